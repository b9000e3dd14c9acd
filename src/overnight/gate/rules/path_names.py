"""Refuse names that leave the tree, hide as `.git`, or look like other names."""

from overnight.gate.case import Admission
from overnight.records.paths import why_unsafe
from overnight.records.refusal import Reason


def refuse(case: Admission) -> tuple[Reason, ...]:
    """One reason for each changed path with such a name."""
    return tuple(
        Reason(rule="path-names", says=f"The path {ascii(change.path)[:200]} {wrong}.")
        for change in case.changes
        if (wrong := why_unsafe(change.path)) is not None
    )[:20]
