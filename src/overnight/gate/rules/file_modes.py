"""Refuse symbolic links, submodules and anything else that is not a plain file."""

from overnight.gate.case import Admission
from overnight.records.refusal import Reason

_PLAIN = {"100644", "100755", "000000"}
_CALLED = {"120000": "a symbolic link", "160000": "a submodule"}


def refuse(case: Admission) -> tuple[Reason, ...]:
    """One reason for each changed path that is, or was, not a plain file."""
    found = []
    for change in case.changes:
        for mode, verb in ((change.new_mode, "would become"), (change.old_mode, "is")):
            if mode not in _PLAIN:
                what = _CALLED.get(mode, f"of the mode {mode}")
                found.append(f"{change.path} {verb} {what}, and a candidate changes plain files only.")
                break
    return tuple(Reason(rule="file-modes", says=says[:2000]) for says in found[:20])
