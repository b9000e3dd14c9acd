"""Families of processes: who dies with whom, who inherits orphans, and how a whole family is ended.

Linux only. Protects against: a process that outlives what started it, a daemon that leaves its
session, a program that looks into the memory or the open files of the one that started it.

Does not: stop a process of the same user from killing another one. A family whose keeper is
killed together with everything above it is found by a variable in its environment alone, and a
hostile program can clear that.
"""

import ctypes
import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_LIBC = ctypes.CDLL(None, use_errno=True)
_DEATH_SIGNAL, _DUMPABLE, _SUBREAPER = 1, 4, 36  # options of prctl
_END_SECONDS = 3.0


def inherit_orphans() -> None:
    """Become the parent of every descendant that loses its own, in the place of init."""
    _LIBC.prctl(_SUBREAPER, 1, 0, 0, 0)


def die_with_parent(parent: int, by: signal.Signals = signal.SIGKILL) -> None:
    """Get a signal when the parent dies, and at once where it is dead already."""
    _LIBC.prctl(_DEATH_SIGNAL, by, 0, 0, 0)
    if os.getppid() != parent:
        os.kill(os.getpid(), by)


def hide_memory() -> None:
    """Keep processes of the same user from tracing this one and from opening its memory and descriptors."""
    _LIBC.prctl(_DUMPABLE, 0, 0, 0, 0)


def end_tree(leader: int) -> None:
    """Kill a process group and every descendant that has left it, until none is left but the leader's exit."""
    with suppress(ProcessLookupError, PermissionError):  # it is gone, which is what was wanted
        os.killpg(leader, signal.SIGKILL)
    end_below(leader)


def end_below(leader: int | None = None) -> None:
    """Kill every descendant until none is left; of a leader, the exit is left for whoever waits for it.

    All are stopped before the first one is killed: whoever forks without end has then no room that the dead have made.
    """
    until = time.monotonic() + _END_SECONDS
    stopped: set[int] = set()
    while time.monotonic() < until and (found := descendants(os.getpid()) - {leader} - stopped):
        for pid in found:
            send(pid, signal.SIGSTOP)
        stopped |= found
    while time.monotonic() < until and (below := descendants(os.getpid()) - {leader}):
        for pid in below:
            kill(pid)
        _reap(leader)
        time.sleep(0.002)


def descendants(pid: int, most: int | None = None) -> set[int]:
    """Every process below one, children of children too; or the first ones, where there are more than so many."""
    found: set[int] = set()
    wanted = [pid]
    while wanted and (most is None or len(found) <= most):
        below = set(_children(wanted.pop())) - found
        found |= below
        wanted += below
    return found


def _children(pid: int) -> Iterator[int]:
    """The children of every thread of a process."""
    with suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with suppress(OSError), open(f"/proc/{pid}/task/{thread}/children") as file:
                yield from map(int, file.read().split())


def kill(pid: int) -> None:
    """Kill one process; that it is gone already is no error."""
    send(pid, signal.SIGKILL)


def send(pid: int, word: signal.Signals) -> None:
    """Send a signal; that nobody is there any more is no error."""
    with suppress(ProcessLookupError, PermissionError):
        os.kill(pid, word)


def with_variable(mark: str) -> list[int]:
    """Every other process whose environment began with a variable, written `NAME=value`."""
    found, wanted = [], mark.encode()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        with suppress(OSError):
            if wanted in (entry / "environ").read_bytes().split(b"\0"):
                found.append(int(entry.name))
    return found


def with_variable_below(name: str, folder: Path) -> list[int]:
    """Every other process whose environment began with a variable that leads into a folder."""
    lead, found = f"{name}={folder}/".encode(), []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            with suppress(OSError):
                if any(one.startswith(lead) for one in (entry / "environ").read_bytes().split(b"\0")):
                    found.append(int(entry.name))
    return found


def with_word(word: str, folder: Path) -> list[int]:
    """Every other process whose command line has a word, and names something inside a folder."""
    lead, found = f"{folder}/".encode(), []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            with suppress(OSError):
                words = (entry / "cmdline").read_bytes().split(b"\0")
                if word.encode() in words and any(one.startswith(lead) for one in words):
                    found.append(int(entry.name))
    return found


def _reap(leader: int | None) -> None:
    """Take the exit of adopted orphans, and leave the leader's own for `wait`."""
    for pid in descendants(os.getpid()) - {leader}:
        with suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)
