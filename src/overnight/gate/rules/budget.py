"""Refuse to launch when the approved budget is spent."""

from overnight.gate.case import Opening
from overnight.records.refusal import Reason


def refuse(case: Opening) -> tuple[Reason, ...]:
    """One reason for each part of the budget that is used up.

    A run that the machine lost is none of the budget's runs: it is run again, at most five times on one train seed.
    """
    if case.contract is None:
        return ()
    budget, found = case.contract.budget, []
    if case.runs >= budget.max_runs:
        found.append(f"The budget of {budget.max_runs:,} training runs is spent.")
    if case.wall_seconds >= budget.max_wall_hours * 3600:
        found.append(f"The budget of {budget.max_wall_hours:g} hours is spent ({case.wall_seconds / 3600:.2f} used).")
    return tuple(Reason(rule="budget", says=says) for says in found)
