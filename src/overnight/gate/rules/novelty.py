"""Refuse an idea that was tried before, or that differs from one only in layout, comments or a digit nobody would see.

Does not: see through code that was rewritten to do the same thing in other words.
"""

from overnight.gate.case import Admission
from overnight.records.refusal import Reason


def refuse(case: Admission) -> tuple[Reason, ...]:
    """Its result is known already, so it would only cost. The contract may say `novelty: off`."""
    one = case.candidate
    exempt = one.plant is not None or one.ablates is not None or one.id == case.opening.baseline
    if not case.twin or exempt or case.contract.experiments.novelty == "off":
        return ()
    return (Reason(rule="novelty", says=f"It comes to the same thing as {case.twin}."),)
