"""Refuse several changes at once that were not declared as a bundle."""

from overnight.gate.case import Admission
from overnight.gate.rules.parameters import changed_keys
from overnight.records.refusal import Reason


def refuse(case: Admission) -> tuple[Reason, ...]:
    """One candidate carries one hypothesis; a declared bundle is allowed, and is ablated when it wins."""
    if case.contract.scope.preset != "params" or case.candidate.proposal.bundle:
        return ()
    keys = sorted(changed_keys(case))
    if len(keys) <= 1:
        return ()
    return (
        Reason(
            rule="one-hypothesis",
            says=f"The candidate changes {', '.join(keys)[:1000]} at once without declaring a bundle.",
        ),
    )
