"""Refuse a candidate when the stop rule on their number has fired."""

from overnight.gate.case import Admission
from overnight.records.refusal import Reason


def refuse(case: Admission) -> tuple[Reason, ...]:
    """The greatest number of admitted candidates ends the loop, whatever the last verdict was.

    The baseline is none, and neither is a certified stack with parts knocked out: it is no idea of its own.
    """
    most = case.contract.experiments.stop.max_candidates
    others = len(case.opening.admitted - {case.candidate.id})
    if case.candidate.id == case.opening.baseline or case.candidate.ablates is not None or others < most:
        return ()
    return (
        Reason(rule="stop-rules", says=f"The stop rule has fired: {others:,} of {most:,} candidates were admitted."),
    )
