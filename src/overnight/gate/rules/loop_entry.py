"""Refuse to launch when nobody asked to enter the loop under the contract as it stands."""

from overnight.gate.case import Opening
from overnight.records.refusal import Reason


def refuse(case: Opening) -> tuple[Reason, ...]:
    """A complete plan starts nothing by itself."""
    if case.entered is not None and case.entered == case.digest:
        return ()
    what = (
        "Nobody has asked to enter the loop"
        if case.entered is None
        else "The contract changed since the loop was entered"
    )
    return (Reason(rule="loop-entry", says=f"{what}; `overnight start` does."),)
