"""Refuse a change to a path that the contract does not open."""

from overnight.gate.case import Admission
from overnight.records.refusal import Reason


def refuse(case: Admission) -> tuple[Reason, ...]:
    """Compared tree with tree, so renames, deletions and mode changes count as the changes they are."""
    outside = [change.path for change in case.changes if not case.contract.scope.allows(change.path)]
    if not outside:
        return ()
    named = ", ".join(outside[:10]) + (f" and {len(outside) - 10} more" if len(outside) > 10 else "")
    allowed = ", ".join(case.contract.scope.paths[:10])
    return (
        Reason(
            rule="surface",
            says=f"The candidate changes {named[:1200]}, but the contract opens only {allowed[:600]}.",
        ),
    )
