"""What a run and everything that it started takes of the machine: memory, processes, processor time.

Read from `/proc`, again and again, because not every machine gives us a control group. Between two looks a process can
take more than its cap; it is ended at the next one. Where memory ends before that, the kernel ends the run first.

Does not: see the memory of a file that has no name and is not mapped, where another user's descriptors are hidden from
us; see processor time of a child that began and ended between two looks while its parent did not wait for it. A control
group sees both.
"""

import os
import resource
import stat
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

from overnight.sandbox.cgroup import Group
from overnight.sandbox.processes import descendants
from overnight.sandbox.wrap import PRIVATE

PROCESSES = 512
"""How many processes one run may have at a time, where nothing else is said."""
_THREADS_PER_CORE = 64
_PAGE, _TICKS = os.sysconf("SC_PAGE_SIZE"), os.sysconf("SC_CLK_TCK")
_OWN_TIME, _WAITED_TIME = slice(11, 13), slice(13, 15)  # fields of `stat` behind the name
_THREADS, _BEGAN, _RESIDENT = 17, 19, 21


class Usage(NamedTuple):
    """What is taken at one moment."""

    memory_bytes: int
    processes: int
    cpu_seconds: float
    """Of everybody, the dead included."""


@dataclass(frozen=True, slots=True)
class Nameless:
    """Files that are open and have no name any more, so that no walk finds them."""

    disk_bytes: int
    memory_bytes: int


class Meter:
    """Looks at everything below this process, except those that were there before."""

    def __init__(self, group: Group | None = None) -> None:
        self._group = group
        self._seen: dict[tuple[int, int], float] = {}
        self._before = _reaped()

    def look(self, *, memory_cap: int, most: int = PROCESSES) -> Usage:
        """Count once. Memory that is shared is counted in full for each, unless that would be beyond the cap.

        Where there are more processes than there may be, only their number is told, because that is urgent.
        """
        below = set(self._group.processes()) if self._group is not None else set()
        if len(below) <= most:
            below |= descendants(os.getpid(), most)
        if len(below) > most:
            return Usage(0, len(below), 0.0)
        found = {pid: fields for pid in below if (fields := _fields(pid)) is not None}
        waited = 0.0
        for pid, fields in found.items():
            own = _seconds(fields[_OWN_TIME])
            self._seen[pid, int(fields[_BEGAN])] = own
            waited += own + _seconds(fields[_WAITED_TIME])
        memory = sum(int(fields[_RESIDENT]) for fields in found.values()) * _PAGE
        if memory > memory_cap:
            # Twice, because whoever ends meanwhile leaves its part of what is shared to those who are read later.
            parts = [(pid, int(fields[_RESIDENT]) * _PAGE) for pid, fields in found.items()]
            memory = min(sum(_share(*part) for part in parts) for _ in range(2))
        return Usage(memory, len(found), self._cpu(_reaped() - self._before + waited))

    def cpu_seconds(self) -> float:
        """Processor time of everybody, when all have ended and were waited for."""
        return self._cpu(_reaped() - self._before)

    def _cpu(self, waited: float) -> float:
        """Three counts, each of which misses something and none of which counts anything twice: the greatest."""
        group = self._group.cpu_seconds() if self._group is not None else 0.0
        return max(waited, sum(self._seen.values()), group)


def nameless(folder: str) -> Nameless:
    """What is held by files without a name, of everything below this process: on a folder's disk, and in memory."""
    disk, found = os.stat(folder).st_dev, dict(_nameless())
    return Nameless(
        sum(size for device, _, size in found.values() if device == disk),
        sum(size for _, in_memory, size in found.values() if in_memory),
    )


def _nameless() -> Iterator[tuple[tuple[int, int], tuple[int, bool, int]]]:
    """Each such file, with its device, whether it never had a name outside of memory, and its size."""
    for pid in descendants(os.getpid()):
        fds = f"/proc/{pid}/fd"
        with suppress(OSError):
            for name in os.listdir(fds):
                with suppress(OSError):
                    how = os.stat(f"{fds}/{name}")
                    if stat.S_ISREG(how.st_mode) and how.st_nlink == 0:
                        in_memory = os.readlink(f"{fds}/{name}").startswith("/memfd:")
                        yield (how.st_dev, how.st_ino), (how.st_dev, in_memory, how.st_blocks * 512)


def private_bytes() -> int:
    """What lies in the folders in memory that a run at T3 has for itself."""
    used: dict[int, int] = {}
    for pid in descendants(os.getpid()):
        for folder in PRIVATE:
            with suppress(OSError):
                path = f"/proc/{pid}/root{folder}"
                device, how = os.stat(path).st_dev, os.statvfs(path)
                if device != os.stat(folder).st_dev:
                    used[device] = (how.f_blocks - how.f_bfree) * how.f_frsize
    return sum(used.values())


def physical_bytes() -> int:
    """The memory of this machine."""
    return os.sysconf("SC_PHYS_PAGES") * _PAGE


def tasks_for(processes: int) -> int:
    """How many threads so many processes may have together; the kernel refuses more."""
    return 2 * processes + _THREADS_PER_CORE * (os.cpu_count() or 1)


def most_tasks(user: int, processes: int) -> int:
    """How many threads a user may have in all, so that one more child of that user may have so many processes."""
    most, hard = _tasks_of(user) + tasks_for(processes), resource.getrlimit(resource.RLIMIT_NPROC)[1]
    return most if hard == resource.RLIM_INFINITY else min(most, hard)


def cap_tasks(most: int) -> None:
    """Refuse this process and its descendants more threads than their user may have in all. In a child."""
    resource.setrlimit(resource.RLIMIT_NPROC, (most, most))


def out_of_memory_kills() -> int:
    """How often the kernel has ended a process of this machine because memory was at its end."""
    with suppress(OSError, StopIteration), open("/proc/vmstat") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("oom_kill "))
    return 0


def _tasks_of(user: int) -> int:
    total = 0
    for name in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError):
            if os.stat(f"/proc/{name}").st_uid == user and (fields := _fields(int(name))) is not None:
                total += int(fields[_THREADS])
    return total


def _fields(pid: int) -> list[bytes] | None:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()
    except OSError:
        return None


def _seconds(ticks: list[bytes]) -> float:
    return sum(map(int, ticks)) / _TICKS


def _share(pid: int, resident: int) -> int:
    """The part of a process's memory that is its own, with what it shares divided among those who share it."""
    try:
        with open(f"/proc/{pid}/smaps_rollup") as file:
            return next(int(line.split()[1]) * 1024 for line in file if line.startswith("Pss:"))
    except (FileNotFoundError, ProcessLookupError, StopIteration):
        return 0  # it has ended, and holds nothing any more
    except OSError:
        return resident


def _reaped() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
