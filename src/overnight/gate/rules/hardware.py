"""Refuse to train on another machine than the approved one."""

from overnight.gate.case import Opening
from overnight.records.refusal import Reason


def refuse(case: Opening) -> tuple[Reason, ...]:
    """`any` allows every machine; otherwise the name must be this one's."""
    if case.contract is None or case.contract.hardware.host in ("any", case.host):
        return ()
    approved = case.contract.hardware.host
    return (
        Reason(
            rule="hardware",
            says=f"Training is approved on {approved} alone, and this machine is {case.host}.",
        ),
    )
