"""Refuse to train while one of the eight approvals is missing or void."""

from overnight.gate.case import Opening
from overnight.records.refusal import Reason
from overnight.records.standing import Standing


def refuse(case: Opening) -> tuple[Reason, ...]:
    """One reason for each approval that is not in force."""
    return tuple(
        Reason(rule="approvals", says=one.says) for one in case.standings if one.standing is not Standing.IN_FORCE
    )
