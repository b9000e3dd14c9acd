"""A control group for one run, where this machine lets us make one: exact processor time, a kill that nobody outruns,
and, where the controllers are given to us, caps on memory and tasks that the kernel itself holds.

Only version 2. The group lies below our own one, so a group that was delegated to the user is enough; `systemd-run
--user --scope -p Delegate=yes` gives such a one. Where nothing can be made there is no group, and `meter` counts.
"""

import os
import time
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

_PREFIX = "overnight-"
_LEAVE_SECONDS = 2.0


class Group:
    """One run's group."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def enter(self) -> None:
        """Put the calling process into the group, and with it everything that it will start."""
        (self.folder / "cgroup.procs").write_text("0")

    def cap(self, *, memory_bytes: int, tasks: int) -> bool:
        """Set the caps that there are controllers for; whether memory is among them."""
        with suppress(OSError):
            (self.folder / "pids.max").write_text(str(tasks))
        with suppress(OSError):
            (self.folder / "memory.swap.max").write_text("0")
        with suppress(OSError):
            (self.folder / "memory.oom.group").write_text("1")
        try:
            (self.folder / "memory.max").write_text(str(memory_bytes))
        except OSError:
            return False
        return True

    def processes(self) -> list[int]:
        """Everybody in it."""
        return [int(word) for word in self._read("cgroup.procs").split()]

    def cpu_seconds(self) -> float:
        """Processor time of everybody who ever was in it."""
        return self._number("cpu.stat", "usage_usec") / 1e6

    def ran_out_of_memory(self) -> bool:
        """Whether the kernel ended somebody in it because of its own cap."""
        return self._number("memory.events", "oom_kill") > 0

    def kill(self) -> None:
        """End everybody in it at once."""
        with suppress(OSError):
            (self.folder / "cgroup.kill").write_text("1")

    def remove(self) -> None:
        """End everybody in it, and let it go."""
        until = time.monotonic() + _LEAVE_SECONDS
        while self.folder.is_dir() and time.monotonic() < until:
            self.kill()
            try:
                self.folder.rmdir()
            except OSError:
                time.sleep(0.01)

    def _number(self, file: str, name: str) -> int:
        found = (line.split() for line in self._read(file).splitlines())
        return next((int(words[1]) for words in found if words[0] == name), 0)

    def _read(self, file: str) -> str:
        try:
            return (self.folder / file).read_text()
        except OSError:
            return ""


def group_for(run: Path) -> Group | None:
    """A new group for a run, or None where none can be made."""
    parent = _own()
    if parent is None:
        return None
    group = Group(parent / name_of(run))
    try:
        group.folder.mkdir(exist_ok=True)
        if not os.access(group.folder / "cgroup.kill", os.W_OK) or not os.access(parent / "cgroup.procs", os.W_OK):
            group.folder.rmdir()
            return None
    except OSError:
        return None
    return group


def remove_group(run: Path) -> None:
    """Let a group go that a run's supervisor has left behind."""
    parent = _own()
    if parent is not None:
        Group(parent / name_of(run)).remove()


def name_of(run: Path) -> str:
    """The name of a run's group, which follows from its folder."""
    return _PREFIX + sha256(str(run).encode()).hexdigest()[:24]


def _own() -> Path | None:
    """The group that we are in, as version 2 tells it."""
    with suppress(OSError, StopIteration):
        lines = Path("/proc/self/mountinfo").read_text().splitlines()
        root = next(line.split()[4] for line in lines if " - cgroup2 " in line)
        told = Path("/proc/self/cgroup").read_text().splitlines()
        own = next(line.removeprefix("0::") for line in told if line.startswith("0::"))
        folder = Path(root + own)
        return folder if folder.is_dir() else None
    return None
