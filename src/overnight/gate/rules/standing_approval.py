"""Refuse a candidate that neither the standing approval nor a permit of its own covers."""

from overnight.gate.case import Admission
from overnight.records.refusal import Reason


def refuse(case: Admission) -> tuple[Reason, ...]:
    """The standing approval covers the first candidates of the study, up to its number."""
    covered = case.contract.experiments.automation.max_candidates
    number = int(case.candidate.id.removeprefix("c-"))
    if case.permitted or number <= covered:
        return ()
    return (
        Reason(
            rule="standing-approval",
            says=f"The standing approval covers {covered:,} candidates, and this is number {number:,}; "
            f"`overnight approve {case.candidate.id}` approves it by itself.",
        ),
    )
