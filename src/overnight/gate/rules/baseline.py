"""Refuse to train against another baseline than the one that the study was begun with."""

from overnight.gate.case import Opening
from overnight.records.refusal import Reason


def refuse(case: Opening) -> tuple[Reason, ...]:
    """The contract's baseline tree must be the tree of the ledger's first entry."""
    if case.contract is None or case.contract.baseline.tree == case.tree:
        return ()
    named = case.contract.baseline.tree[:12]
    return (
        Reason(
            rule="baseline",
            says=f"The contract names the baseline {named}, but this study began with {case.tree[:12]}.",
        ),
    )
