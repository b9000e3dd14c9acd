"""May this study train? Asked before anything starts, and again before every launch."""

from overnight.gate.case import Opening
from overnight.gate.rules import approvals, baseline, budget, hardware, loop_entry
from overnight.records.refusal import Reason

RULES = (
    approvals.refuse,
    baseline.refuse,
    hardware.refuse,
    budget.refuse,
)  # read top to bottom; every rule is asked, none is skipped

LAUNCH_RULES = (*RULES, loop_entry.refuse)
"""Before a launch, somebody must also have asked to enter the loop."""


def may_open(case: Opening) -> tuple[Reason, ...]:
    """Every reason why the study may not be opened; an empty answer means it may."""
    return tuple(reason for rule in RULES for reason in rule(case))


def may_launch(case: Opening) -> tuple[Reason, ...]:
    """Every reason why nothing may be launched now."""
    return tuple(reason for rule in LAUNCH_RULES for reason in rule(case))
