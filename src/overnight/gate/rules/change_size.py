"""Refuse a change of more files or more bytes than the contract allows."""

from overnight.gate.case import Admission
from overnight.records.refusal import Reason


def refuse(case: Admission) -> tuple[Reason, ...]:
    """Large changes cannot be reviewed, and large files may carry a finished policy."""
    scope, found = case.contract.scope, []
    if len(case.changes) > scope.max_files:
        found.append(f"The candidate changes {len(case.changes):,} files, and at most {scope.max_files:,} are allowed.")
    size = sum(change.new_bytes for change in case.changes)
    if size > scope.max_changed_bytes:
        found.append(f"The candidate writes {size:,} bytes, and at most {scope.max_changed_bytes:,} are allowed.")
    return tuple(Reason(rule="change-size", says=says) for says in found)
