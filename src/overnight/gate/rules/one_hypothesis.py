"""Refuse several changes at once that were not declared as a bundle, and a change that changes nothing."""

from overnight.gate.case import Admission
from overnight.gate.rules.parameters import changed_keys
from overnight.records.refusal import Reason


def refuse(case: Admission) -> tuple[Reason, ...]:
    """One candidate carries one hypothesis; a declared bundle is allowed, and is ablated when it wins."""
    if case.contract.scope.preset != "params":
        return ()
    keys = sorted(changed_keys(case))
    if case.changes and not keys:
        says = "The candidate changes a file but no parameter, so it is another roll of the dice."
        return (Reason(rule="one-hypothesis", says=says),)
    if len(keys) <= 1 or case.candidate.proposal.bundle:
        return ()
    return (
        Reason(
            rule="one-hypothesis",
            says=f"The candidate changes {', '.join(keys)[:1000]} at once without declaring a bundle.",
        ),
    )
