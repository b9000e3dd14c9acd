"""Refuse a candidate that has run, was judged, or was built on something that is no longer the tip."""

from overnight.gate.case import Admission
from overnight.records.lifecycle import State
from overnight.records.refusal import Reason


def refuse(case: Admission) -> tuple[Reason, ...]:
    """Only a draft or a validated candidate on the present tip may be admitted."""
    found = []
    if case.state not in (State.DRAFT, State.VALIDATED):
        found.append(f"{case.candidate.id} is {case.state}, so it cannot be admitted again.")
    elif case.candidate.base != case.tip:
        found.append(
            f"{case.candidate.id} was built on {case.candidate.base[:12]}, but the tip is {case.tip[:12]} now."
        )
    return tuple(Reason(rule="lifecycle", says=says) for says in found)
