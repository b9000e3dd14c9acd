"""Refuse a candidate that was drafted under other terms than the ones in force."""

from overnight.gate.case import Admission
from overnight.records.refusal import Reason


def refuse(case: Admission) -> tuple[Reason, ...]:
    """The baseline's tree is part of the terms; a candidate of an amended contract is drafted anew."""
    if case.candidate.contract == case.opening.digest:
        return ()
    return (
        Reason(
            rule="terms",
            says=f"{case.candidate.id} was drafted under other terms than the contract has now; propose it again.",
        ),
    )
