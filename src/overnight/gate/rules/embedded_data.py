"""Refuse weights smuggled into a change: binary files, long literals, long encoded runs.

Does not find data that is spread over many short lines; the change's size is limited as well.
"""

import re

from overnight.gate.case import Admission
from overnight.records.refusal import Reason

_FILES = ("100644", "100755")
_LONGEST_LINE = 2000
_ENCODED = re.compile(rb"[A-Za-z0-9+/=_-]{400,}")


def refuse(case: Admission) -> tuple[Reason, ...]:
    """One reason for each changed file that carries data a person cannot read."""
    found = [
        f"{change.path} is {change.new_bytes:,} bytes, which is too much to be checked."
        for change in case.changes
        if change.new_mode in _FILES and change.path not in case.after
    ]
    for path, data in case.after.items():
        new = _new_lines(data, case.before.get(path, b""))
        if b"\0" in data and data != case.before.get(path):
            found.append(f"{path} is a binary file.")
        elif any(len(line) > _LONGEST_LINE for line in new):
            found.append(f"{path} has a line of more than {_LONGEST_LINE:,} bytes.")
        elif any(_ENCODED.search(line) for line in new):
            found.append(f"{path} holds a long run of encoded data.")
    return tuple(Reason(rule="embedded-data", says=says[:2000]) for says in found[:20])


def _new_lines(after: bytes, before: bytes) -> list[bytes]:
    known = set(before.split(b"\n"))
    return [line for line in after.split(b"\n") if line not in known]
