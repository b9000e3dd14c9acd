"""The engine of a study, seen from outside: started without a terminal, found, asked to finish, ended with its tree.

Whether there is an engine is told by its lock, never by a stored process id. Signals go through a handle on the process
that was taken while the lock was seen to be held, before and after, so a number that the system gave to somebody else
in the meantime is never hit.

Does not: reach an engine on another host, as on a shared disk; that is said.
"""

import os
import re
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from overnight.errors import OvernightError, Refused
from overnight.ports import Launcher, Machine
from overnight.sandbox.processes import kill, with_variable_below, with_word
from overnight.study.layout import StudyFolder
from overnight.study.ledger import holder

DOING = "overnight start"
_HOLDER = re.compile(r"pid (\d+) on (\S+) \((.*), since (\d+)\)")
_LOOK_SECONDS = 0.05
_BEGIN_SECONDS = 60.0
ASK_SECONDS, KILL_SECONDS = 5.0, 2.0
"""How long an engine or a run that was told to end now has for it, and how long the kill after that may take."""


class Engine(NamedTuple):
    """Who holds a study just now."""

    pid: int
    host: str
    doing: str
    since: float
    """When it began, in seconds since 1970."""

    def is_night(self) -> bool:
        """Whether it is the loop, and not a short verb such as `approve`."""
        return self.doing == DOING

    def is_here(self) -> bool:
        """Whether it runs on this machine."""
        return self.host == socket.gethostname()


def engine_of(machine: Machine, at: StudyFolder) -> Engine | None:
    """The process that holds a study, or None when nobody does."""
    found = _HOLDER.match(holder(machine, at.folder))
    if found is None:
        return None
    pid, host, doing, since = found.groups()
    return Engine(int(pid), host, doing, float(since))


def night_of(machine: Machine, at: StudyFolder) -> Engine | None:
    """The engine of a night that is going on, or None."""
    found = engine_of(machine, at)
    return found if found is not None and found.is_night() else None


# Starting


def start(machine: Machine, at: StudyFolder, words: Sequence[str]) -> Engine:
    """Start the loop of a study as a process that no terminal ends, and wait until it holds the study."""
    with at.night_log.open("ab") as said:
        begins = said.tell()
        process = subprocess.Popen(
            [sys.executable, "-I", "-m", "overnight.cli.main", "start", "--dir", str(at.task.root.project), *words],
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            start_new_session=True,
        )
    until = machine.monotonic() + _BEGIN_SECONDS
    while machine.monotonic() < until:
        found = night_of(machine, at)
        if found is not None:
            return found  # ours, or the one that was faster: there is one night either way
        if process.poll() is not None:
            raise OvernightError("overnight start --detach", _last_words(at.night_log, begins))
        machine.sleep(_LOOK_SECONDS)
    raise OvernightError("overnight start --detach", f"pid {process.pid} did not begin within {_BEGIN_SECONDS:g} s")


def _last_words(log: Path, begins: int) -> str:
    with log.open("rb") as file:
        file.seek(begins)
        said = file.read(4000).decode(errors="replace").split()
    return f"the engine ended at once: {' '.join(said) or 'it said nothing'}"


# Ending


def ask_to_finish(at: StudyFolder) -> None:
    """Leave the word at which the engine finishes what is running, reports and ends."""
    at.stop_word.touch()


def wait_for_end(machine: Machine, one: "Hold", passing: Callable[[str], None]) -> None:
    """Wait until an engine's process has ended, its report and its handoff written."""
    while one.lives():
        passing(f"pid {one.engine.pid} finishes what is running; `overnight stop --now` does not wait for that")
        machine.sleep(_LOOK_SECONDS)


def end_now(machine: Machine, at: StudyFolder, launcher: Launcher) -> int:
    """End the engine and every run with everything below them; return how many processes had to be killed."""
    with hold(machine, at) as one:
        if one is not None:
            one.send(signal.SIGTERM)
        end_runs(at, launcher)
        if one is not None:
            _wait(machine, lambda: not one.lives(), ASK_SECONDS)
            one.send(signal.SIGKILL)
            _wait(machine, lambda: not one.lives(), KILL_SECONDS)
    end_runs(at, launcher)  # one that was begun in the meantime
    _wait(machine, lambda: not left(at), ASK_SECONDS + 1)
    return kill_left(machine, at)


def end_runs(at: StudyFolder, launcher: Launcher) -> None:
    """Tell the supervisor of every run that is alive to end it now."""
    if at.runs.is_dir():
        for folder in at.runs.iterdir():
            if launcher.is_alive(folder):
                launcher.stop(folder)


def kill_left(machine: Machine, at: StudyFolder) -> int:
    """Kill whatever of a study's runs still lives, and return how many that were."""
    killed: set[int] = set()
    until = machine.monotonic() + KILL_SECONDS
    while machine.monotonic() < until and (found := left(at)):
        killed |= set(found)
        for pid in found:
            kill(pid)
        machine.sleep(_LOOK_SECONDS)
    return len(killed)


def left(at: StudyFolder) -> list[int]:
    """Supervisors, trainers, referees and policies of a study that live."""
    return [*with_word("overnight.run.supervisor", at.runs), *with_variable_below("OVERNIGHT_RUN", at.runs)]


class Hold:
    """A handle on the process of one engine, which stays its own when the process has ended."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._handle = os.pidfd_open(engine.pid) if hasattr(os, "pidfd_open") else None

    def send(self, word: signal.Signals) -> None:
        """Send a signal; that it has ended already is no error."""
        with suppress(ProcessLookupError):
            if self._handle is not None:
                signal.pidfd_send_signal(self._handle, word)
            else:
                os.kill(self.engine.pid, word)

    def lives(self) -> bool:
        """Whether the process is still there."""
        if self._handle is not None:
            return not select.select([self._handle], [], [], 0)[0]
        with suppress(ProcessLookupError):
            os.kill(self.engine.pid, 0)
            return True
        return False

    def close(self) -> None:
        """Let go of the handle."""
        if self._handle is not None:
            os.close(self._handle)


@contextmanager
def hold(machine: Machine, at: StudyFolder) -> Iterator[Hold | None]:
    """Take a handle on the engine that holds a study; None where no night is going on, or it ends at this moment."""
    found, one = night_of(machine, at), None
    if found is not None and not found.is_here():
        says = f"The engine is pid {found.pid} on {found.host}, and this is {socket.gethostname()}."
        raise Refused("overnight stop", (says,), hint=f"run it there, or touch {at.stop_word}")
    with suppress(ProcessLookupError):
        one = Hold(found) if found is not None else None
    try:
        yield one if one is not None and night_of(machine, at) == found else None
    finally:
        if one is not None:
            one.close()


def _wait(machine: Machine, done: Callable[[], bool], seconds: float) -> None:
    until = machine.monotonic() + seconds
    while machine.monotonic() < until and not done():
        machine.sleep(_LOOK_SECONDS)
