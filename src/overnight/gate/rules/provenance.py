"""Refuse a candidate whose tree is not the one that was drafted, wherever it came from."""

from overnight.gate.case import Admission
from overnight.records.codec import digest
from overnight.records.refusal import Reason


def refuse(case: Admission) -> tuple[Reason, ...]:
    """The ref, its commit, the commit's tree and its parent must all be the recorded ones."""
    candidate, found = case.candidate, []
    if case.stored_commit is None:
        found.append(f"{candidate.id} has no commit in the candidate store.")
    elif case.stored_commit != candidate.commit:
        found.append(
            f"{candidate.id} was drafted as commit {candidate.commit[:12]}, but its ref now points to "
            f"{case.stored_commit[:12]}: it was swapped."
        )
    elif case.stored_tree != candidate.tree:
        found.append(f"{candidate.id} was drafted with tree {candidate.tree[:12]}, but its commit holds another one.")
    elif case.stored_parents != (candidate.base,):
        found.append(f"{candidate.id} was drafted on {candidate.base[:12]}, but its commit has another parent.")
    if digest(case.changes) != candidate.changes:
        found.append(f"The recorded changes of {candidate.id} are not the difference of its trees.")
    return tuple(Reason(rule="provenance", says=says) for says in found)
