"""Refuse a candidate that neither the standing approval nor a permit of its own covers."""

from overnight.gate.case import Admission
from overnight.records.refusal import Reason


def refuse(case: Admission) -> tuple[Reason, ...]:
    """The standing approval covers the first candidates that the gate admits, up to its number.

    The baseline changes nothing: it is neither counted nor in need of an approval of its own. A certified stack with
    parts knocked out is not counted, but where nothing stands approved, it may not run by itself either.
    """
    covered = case.contract.experiments.automation.max_candidates
    others = len(case.opening.admitted - {case.candidate.id})
    knocked_out = case.candidate.ablates is not None and covered > 0
    if case.candidate.id == case.opening.baseline or case.permitted or knocked_out or others < covered:
        return ()
    return (
        Reason(
            rule="standing-approval",
            says=f"The standing approval covers {covered:,} admitted candidates, and there are {others:,} others; "
            f"`overnight approve {case.candidate.id}` approves it by itself.",
        ),
    )
