"""Refuse a kind of experiment, or a proposer, that the contract does not name."""

from overnight.gate.case import Admission
from overnight.records.refusal import Reason


def refuse(case: Admission) -> tuple[Reason, ...]:
    """The eighth clause is the class of experiments."""
    proposal, allowed, found = case.candidate.proposal, case.contract.experiments, []
    if proposal.kind not in allowed.kinds:
        found.append(f"The kind `{proposal.kind}` is not in the approved class ({', '.join(allowed.kinds)}).")
    if proposal.proposer not in allowed.proposers:
        found.append(f"`{proposal.proposer}` may not propose; the contract names {', '.join(allowed.proposers)}.")
    return tuple(Reason(rule="experiment-class", says=says) for says in found)
