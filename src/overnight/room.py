"""Room on this machine: what a folder takes, how much disk is free, whether a night has enough of it; and the cores."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from overnight.records.contract import Contract
from overnight.study.layout import StudyFolder

LEAST_FREE_BYTES = 1_000_000_000
"""Below this, no night is begun, whatever its budget."""


def disk_shortfall(contract: Contract, at: StudyFolder) -> str:
    """A sentence when there is less free disk than the budget may still take, or under 1 GB; else nothing."""
    free = shutil.disk_usage(at.task.root.folder).free
    wanted = max(contract.budget.disk_gigabytes * 1e9 - tree_bytes(at.folder), 0.0)
    if free < LEAST_FREE_BYTES:
        return f"Only {size(free)} of disk is free, and no night begins below {size(LEAST_FREE_BYTES)}."
    if free < wanted:
        return f"Only {size(free)} of disk is free, but the study's budget may take {size(wanted)} more."
    return ""


def tree_bytes(folder: Path) -> int:
    """The disk that a folder takes, following nothing."""
    return sum(_file_bytes(folder))


def _file_bytes(folder: Path) -> Iterator[int]:
    for where, folders, names in os.walk(folder, followlinks=False):
        for name in (*names, *folders):
            try:
                yield os.lstat(os.path.join(where, name)).st_blocks * 512  # noqa: PTH118 - a hot walk
            except OSError:
                continue


def size(count: float) -> str:
    """A number of bytes as people say it."""
    for unit, step in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= step:
            return f"{count / step:.1f} {unit}"
    return f"{count:.0f} bytes"


def usable_cores() -> int:
    """How many processor cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
