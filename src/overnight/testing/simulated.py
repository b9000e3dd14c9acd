"""A simulated machine: a disk that crashes, tears, reorders, fills up and lies, and a clock to set.

Every call of the port is one operation with a number, so that a test can repeat the
same work and stop it before, in the middle of, or after each one:

    machine = SimulatedMachine(fault=Crash(at=17, moment="half"))
    try: work(machine)
    except PowerCut: ...
    survivor = machine.after_power_cut(seed=3)   # or .after_kill()

A kill keeps everything that was written. A power cut keeps what was synced, and of the
rest any subset of 64-byte pieces in any order; names survive up to some point of each
folder's history, unless the folder was synced.
"""

import errno
import os
import posixpath
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from overnight.ports import Finished

PIECE_BYTES = 64


class PowerCut(BaseException):
    """The process stops existing here. Not an `Exception`, so that nothing can catch it by habit."""


@dataclass(frozen=True, slots=True)
class Crash:
    """Stop before, inside or after one operation."""

    at: int
    moment: Literal["before", "half", "after"]


@dataclass(frozen=True, slots=True)
class Failure:
    """Let one operation fail with an error; a failing write may have written a part."""

    at: int
    code: int = errno.ENOSPC


@dataclass(slots=True)
class _File:
    now: bytearray = field(default_factory=bytearray)
    durable: bytes = b""
    pending: list[tuple[int, bytes | None]] = field(default_factory=list)
    """Writes since the last sync, as (offset, bytes); None cuts the file there."""


@dataclass(slots=True)
class _Open:
    path: str
    file: _File
    append: bool


class SimulatedMachine:
    """See `ports.Machine` for what each call promises; this one keeps it by the letter and no more."""

    def __init__(self, *, seed: int = 0, fault: Crash | Failure | None = None) -> None:
        self.operations = 0
        self.clock = 1_800_000_000.0
        self.still = 0.0
        self._fault = fault
        self._random = random.Random(seed)
        self._names: dict[str, _File] = {}
        self._durable_names: dict[str, _File] = {}
        self._name_log: dict[str, list[tuple[str, _File | None]]] = {}
        self._folders = {"/"}
        self._open: dict[int, _Open] = {}
        self._locks: dict[int, int] = {}
        self._next_fd = 3

    # Time

    def now(self) -> float:
        """See the port; moves only when a test sets `clock`."""
        return self.clock

    def monotonic(self) -> float:
        """See the port."""
        return self.clock

    def running(self) -> float:
        """See the port; a test says by `still` how much of the time that has passed was none."""
        return self.clock - self.still

    def stood_still(self) -> float:
        """See the port."""
        return self.still

    def sleep(self, seconds: float) -> None:
        """See the port; sets the clock forward, and takes no time."""
        self.clock += seconds

    # Disk

    def open(self, path: str, flags: int, mode: int = 0o644) -> int:
        """See the port."""
        self._before()
        file = self._names.get(path)
        if file is None:
            if not flags & os.O_CREAT:
                raise FileNotFoundError(errno.ENOENT, "No such file", path)
            if posixpath.dirname(path) not in self._folders:
                raise FileNotFoundError(errno.ENOENT, "No such folder", path)
            file = _File()
            self._name(path, file)
        elif flags & os.O_TRUNC and file.now:
            file.now.clear()
            file.pending.append((0, None))
        self._next_fd += 1
        self._open[self._next_fd] = _Open(path, file, bool(flags & os.O_APPEND))
        self._after()
        return self._next_fd

    def close(self, fd: int) -> None:
        """See the port."""
        self._open.pop(fd, None)
        self._locks = {file: holder for file, holder in self._locks.items() if holder != fd}

    def read(self, path: str) -> bytes | None:
        """See the port."""
        file = self._names.get(path)
        return bytes(file.now) if file is not None else None

    def write(self, fd: int, data: bytes) -> int:
        """See the port."""
        return self._put(fd, data, None)

    def pwrite(self, fd: int, data: bytes, offset: int) -> int:
        """See the port."""
        return self._put(fd, data, offset)

    def _put(self, fd: int, data: bytes, offset: int | None) -> int:
        self._before(partial=lambda: self._store(fd, data[: len(data) // 2], offset))
        taken = len(data) if self._random.random() < 0.7 else self._random.randint(1, len(data))
        self._store(fd, data[:taken], offset)
        self._after()
        return taken

    def _store(self, fd: int, data: bytes, offset: int | None) -> None:
        file = self._open[fd].file
        at = len(file.now) if offset is None else offset
        if len(file.now) < at:
            file.now.extend(bytes(at - len(file.now)))
        file.now[at : at + len(data)] = data
        file.pending.append((at, bytes(data)))

    def size(self, fd: int) -> int:
        """See the port."""
        return len(self._open[fd].file.now)

    def truncate(self, fd: int, size: int) -> None:
        """See the port."""
        self._before()
        file = self._open[fd].file
        del file.now[size:]
        file.pending.append((size, None))
        self._after()

    def sync(self, fd: int) -> None:
        """See the port."""
        file = self._open[fd].file
        self._before(partial=lambda: self._sync_some(file))
        file.durable, file.pending = bytes(file.now), []
        self._after()

    def _sync_some(self, file: _File) -> None:
        done = len(file.pending) // 2
        file.durable = bytes(_replay(file.durable, file.pending[:done], lambda: True))
        file.pending = file.pending[done:]

    def sync_folder(self, path: str) -> None:
        """See the port."""
        self._before()
        for name, file in self._name_log.pop(path, []):
            _set_name(self._durable_names, name, file)
        self._after()

    def replace(self, source: str, target: str) -> None:
        """See the port."""
        self._before()
        file = self._names.get(source)
        if file is None:
            raise FileNotFoundError(errno.ENOENT, "No such file", source)
        self._name(target, file)
        self._name(source, None)
        self._after()

    def unlink(self, path: str) -> None:
        """See the port."""
        self._before()
        if path in self._names:
            self._name(path, None)
        self._after()

    def make_folder(self, path: str) -> None:
        """Create a folder, durable at once: the layout makes every folder before the first entry."""
        while path not in self._folders:
            self._folders.add(path)
            path = posixpath.dirname(path)

    def lock(self, fd: int) -> bool:
        """See the port."""
        self._before()
        file = id(self._open[fd].file)
        if self._locks.setdefault(file, fd) != fd:
            return False
        self._after()
        return True

    # Processes

    def run_process(
        self, argv: tuple[str, ...], *, env: Mapping[str, str], stdin: bytes = b"", limit_seconds: float
    ) -> Finished:
        """Start nothing: a simulated machine has no programs."""
        raise FileNotFoundError(errno.ENOENT, "No such program", argv[0])

    # Faults

    def after_kill(self) -> "SimulatedMachine":
        """The machine as the next process finds it: every write is there, every lock is gone."""
        return self._survivor({name: bytes(file.now) for name, file in self._names.items()})

    def after_power_cut(self, *, seed: int) -> "SimulatedMachine":
        """The machine after a reboot: one of the many disks that the promises of the port allow."""
        chance = random.Random(seed)
        names = dict(self._durable_names)
        for log in self._name_log.values():
            for name, file in log[: chance.randint(0, len(log))]:
                _set_name(names, name, file)
        return self._survivor({name: _torn(file, chance) for name, file in names.items()})

    def _survivor(self, files: Mapping[str, bytes]) -> "SimulatedMachine":
        other = SimulatedMachine(seed=self._random.randrange(1 << 30))
        other._folders = set(self._folders)
        for name, data in files.items():
            file = _File(bytearray(data), data)
            other._names[name] = other._durable_names[name] = file
        return other

    def _name(self, path: str, file: _File | None) -> None:
        _set_name(self._names, path, file)
        self._name_log.setdefault(posixpath.dirname(path), []).append((path, file))

    def _before(self, partial: Callable[[], None] | None = None) -> None:
        self.operations += 1
        fault = self._fault
        if fault is None or fault.at != self.operations:
            return
        if isinstance(fault, Failure):
            if partial is not None and self._random.random() < 0.5:
                partial()
            raise OSError(fault.code, os.strerror(fault.code))
        if fault.moment == "half" and partial is not None:
            partial()
        if fault.moment != "after":
            raise PowerCut

    def _after(self) -> None:
        fault = self._fault
        if isinstance(fault, Crash) and fault.at == self.operations and fault.moment == "after":
            raise PowerCut


def _set_name(names: dict[str, _File], path: str, file: _File | None) -> None:
    if file is None:
        names.pop(path, None)
    else:
        names[path] = file


def _torn(file: _File, chance: random.Random) -> bytes:
    style = chance.choice(("none", "all", "torn", "torn"))
    if style == "none":
        return file.durable
    return bytes(_replay(file.durable, file.pending, lambda: style == "all" or chance.random() < 0.5))


def _replay(durable: bytes, pending: list[tuple[int, bytes | None]], survives: Callable[[], bool]) -> bytearray:
    found = bytearray(durable)
    for offset, data in pending:
        if data is None:
            if survives():
                del found[offset:]
            continue
        for at in range(0, len(data), PIECE_BYTES):
            if not survives():
                continue
            piece, start = data[at : at + PIECE_BYTES], offset + at
            if len(found) < start:
                found.extend(bytes(start - len(found)))  # a hole reads as zeros
            found[start : start + len(piece)] = piece
    return found
