"""Every extension point, in one file. To extend the engine, implement one of these."""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple, Protocol

from overnight.records.agent import Agent, Answered, EndedBy, Operator, Returned
from overnight.records.proposal import Edited, Exhausted, Proposal, View, Wait


class Finished(NamedTuple):
    """How a short helper process ended, with what it printed."""

    returncode: int
    stdout: bytes
    stderr: bytes


class Clock(Protocol):
    """Time. `now` is for people and may jump; `monotonic` never goes back; `running` is for budgets."""

    def now(self) -> float:
        """Seconds since 1970, UTC. An annotation: nothing is ordered or limited by it."""
        ...

    def monotonic(self) -> float:
        """Seconds since an arbitrary moment of this boot. Never stored."""
        ...

    def running(self) -> float:
        """Seconds by a clock that does not count what this process stood still: suspended, or stopped. Never stored."""
        ...

    def stood_still(self) -> float:
        """How long this process stood still so far, in seconds, since it first asked."""
        ...

    def sleep(self, seconds: float) -> None:
        """Wait for so long."""
        ...


class Disk(Protocol):
    """The few calls by which anything durable is written. Paths are plain strings.

    Every call may raise `OSError`, and a crash may come before, inside or after
    it. What was written is only certain after `sync`; a name that was created,
    replaced or removed is only certain after `sync_folder`.
    """

    def open(self, path: str, flags: int, mode: int = 0o644) -> int:
        """Open a file, with the flags of `os.open`, never inherited by children."""
        ...

    def close(self, fd: int) -> None:
        """Close a descriptor, and let go of its lock."""
        ...

    def read(self, path: str) -> bytes | None:
        """Read a whole file, or return None where there is none."""
        ...

    def write(self, fd: int, data: bytes) -> int:
        """Write at the end of a file opened for append; may write less than asked."""
        ...

    def pwrite(self, fd: int, data: bytes, offset: int) -> int:
        """Write in place; may write less than asked."""
        ...

    def size(self, fd: int) -> int:
        """Tell the length of an open file in bytes."""
        ...

    def truncate(self, fd: int, size: int) -> None:
        """Cut an open file to a length."""
        ...

    def sync(self, fd: int) -> None:
        """Return only when the file's bytes and length are on stable storage."""
        ...

    def sync_folder(self, path: str) -> None:
        """Return only when the names in a folder are on stable storage."""
        ...

    def replace(self, source: str, target: str) -> None:
        """Rename, replacing the target in one step."""
        ...

    def unlink(self, path: str) -> None:
        """Remove a name; a missing one is no error."""
        ...

    def make_folder(self, path: str) -> None:
        """Create a folder and its parents; an existing one is no error."""
        ...

    def lock(self, fd: int) -> bool:
        """Take the exclusive lock of an open file; False when another process has it."""
        ...


class Processes(Protocol):
    """Starting other programs. `tests/rules/test_spawns.py` lists the modules that may."""

    def run_process(
        self, argv: tuple[str, ...], *, env: Mapping[str, str], stdin: bytes = b"", limit_seconds: float
    ) -> Finished:
        """Run a short helper to its end, with exactly this environment, from the root folder.

        A helper that overstays is killed, and `TimeoutError` is raised.
        """
        ...


class Machine(Clock, Disk, Processes, Protocol):
    """Time, disk and processes: the one port between the engine and the world.

    The real one is `overnight.machine.RealMachine`; the one that crashes, fills
    up and cuts the power on demand is `overnight.testing.simulated`.
    """


class Launcher(Protocol):
    """Starts the supervisor of a run somewhere, and tells whether it is still there.

    It reads no metrics and decides nothing: budget, kill and harvest belong to the
    supervisor, which goes on when the engine dies and is found again by its run's folder.
    """

    def start(self, run_folder: Path) -> str:
        """Start `python -m overnight.run.supervisor RUN_FOLDER`, and return a handle for people to read."""
        ...

    def is_alive(self, run_folder: Path) -> bool:
        """Whether the run's supervisor is still there."""
        ...

    def stop(self, run_folder: Path) -> None:
        """Ask the run's supervisor to end the run now."""
        ...

    def end(self, run_folder: Path) -> None:
        """Kill the run's supervisor, which did not keep its own limit."""
        ...


class Proposer(Protocol):
    """Has ideas. It sees a view of the study and answers with one idea, or says why there is none.

    A proposer never blocks, and keeps no store of its own: whatever it must know about earlier
    ideas is in the view, so that a resumed night goes on exactly where it stopped.
    """

    def ask(self, view: View) -> Proposal | Edited | Wait | Exhausted:
        """Propose one change to the tip; or say when to ask again; or that there is nothing left."""
        ...


class Caller(Protocol):
    """Runs a coding agent once, in a folder that was laid out for it, without waiting for it."""

    def call(self, folder: Path) -> None:
        """Start it, with the limits of the folder's `errand.json`."""
        ...

    def look(self, folder: Path) -> Returned | None:
        """How it ended; None while it is at work."""
        ...

    def stop(self, folder: Path, why: EndedBy) -> None:
        """End it now, and leave no process of it."""
        ...


class Desk(Protocol):
    """The engine's side of asking a coding agent: folders, briefs and entries. The proposer itself writes nothing."""

    @property
    def agent(self) -> Agent:
        """The agent that the contract names."""
        ...

    def lay_out(self, view: View, operator: Operator, dollars: float) -> Path:
        """Write that it is asked, and make a new folder with a copy of the tip and a brief."""
        ...

    def folder(self, ask: str) -> Path:
        """Where one asking was laid out."""
        ...

    def is_changed(self, ask: str) -> bool:
        """Whether its copy differs from the tip that it was made from."""
        ...

    def write_down(self, answered: Answered) -> None:
        """Write how one asking ended, and what it cost."""
        ...
