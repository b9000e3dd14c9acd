"""The one launch path: everything a run needs is laid out, and then a launcher starts its supervisor.

Nothing else calls the `Launcher` port. The candidate's tree is written out read-only from
the store, by the tree hash that the gate has just checked.
"""

import os
import shutil
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from overnight.errors import UserError
from overnight.ports import Launcher, Machine
from overnight.records import strict_json
from overnight.records.codec import dumps, loads
from overnight.records.job import LIBRARY, Exit, Job
from overnight.records.order import RunOrder
from overnight.records.run import Outcome
from overnight.records.text import sentence
from overnight.sandbox.cgroup import remove_group
from overnight.sandbox.processes import kill, with_variable
from overnight.study.durable import make_folder, write_file

_SWEEP_SECONDS = 3.0
_FACTS_BYTES = 4096
Export = Callable[[Path], None]
"""Writes the candidate's tree into a new folder."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A run's folder with everything in it, not started yet."""

    folder: Path


def prepare(machine: Machine, folder: Path, order: RunOrder, job: Job, export: Export) -> Prepared:
    """Lay a run out on disk: source, guest library, order and limits. Starting over is harmless."""
    shutil.rmtree(folder / "source", ignore_errors=True)
    make_folder(machine, folder)
    export(folder / "source")
    _copy_guest(folder / LIBRARY)
    _protect(folder / "source")
    _protect(folder / LIBRARY)
    write_file(machine, folder / "run.json", dumps(order), mode=0o444)
    write_file(machine, folder / "job.json", dumps(job))
    return Prepared(folder)


def launch(prepared: Prepared, launcher: Launcher) -> str:
    """Start the supervisor of a prepared run somewhere, and return the launcher's handle."""
    return launcher.start(prepared.folder)


def exit_of(machine: Machine, folder: Path) -> Exit | None:
    """What the supervisor said at the end; None while it has not, or never will, or where the word is no word."""
    text = machine.read(str(folder / "exit.json"))
    try:
        return loads(Exit, text, where=str(folder / "exit.json")) if text is not None else None
    except UserError:
        return None


def facts_of(folder: Path) -> dict[str, str]:
    """What a run's trainer told about itself when it was ready, such as its `backend`: for people, and untrusted."""
    try:
        fd = os.open(folder / "out" / "ready", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(fd, "rb") as file:
            told = strict_json.parse(file.read(_FACTS_BYTES), where="ready")
    except (OSError, UserError):
        return {}
    facts = told.items() if isinstance(told, dict) else ()
    return {sentence(name): sentence(fact) for name, fact in facts if isinstance(fact, str)}


def give_up(machine: Machine, folder: Path) -> Exit | None:
    """What is known of a run that seems to have no supervisor any more; None where one has it after all.

    A supervisor that the last engine started may not have come so far as to take its lock. So
    the lock is taken here and the run's end is written under it: whoever comes later finds
    that the run is over, and a run that counts as lost can never begin.
    """
    lock = machine.open(str(folder / "run.lock"), os.O_RDWR | os.O_CREAT)
    try:
        if not machine.lock(lock):
            return None
        swept = sweep(folder)
        ended = exit_of(machine, folder)
        if ended is None:
            ended = _lost(swept)
            write_file(machine, folder / "exit.json", dumps(ended))
        return ended
    finally:
        machine.close(lock)


def _lost(swept: int) -> Exit:
    because = f"Its supervisor is gone and left no word{f'; {swept} processes were ended' if swept else ''}."
    return Exit(
        outcome=Outcome.LOST,
        because=because,
        exit_status=-signal.SIGKILL,
        wall_seconds=0.0,
        cpu_seconds=0.0,
        policy=None,
        log_bytes=0,
    )


def sweep(folder: Path) -> int:
    """End what was left behind when a supervisor or a referee was killed: processes with this run's variable."""
    mark, ended = f"OVERNIGHT_RUN={folder / 'run.json'}", 0
    until = time.monotonic() + _SWEEP_SECONDS
    while time.monotonic() < until and (left := with_variable(mark)):
        for pid in left:
            kill(pid)
        ended = max(ended, len(left))
        time.sleep(0.01)
    remove_group(folder)
    return ended


def clear(folder: Path) -> None:
    """Remove what only the run itself needed; its log, metrics, policy and exit stay."""
    for name in ("source", LIBRARY, "home", "tmp", "broker"):
        with suppress(RecursionError):  # a trainer can nest folders deeper than they can be removed
            shutil.rmtree(folder / name, ignore_errors=True)


def _copy_guest(target: Path) -> None:
    shutil.rmtree(target, ignore_errors=True)
    (target / "guest").mkdir(parents=True)
    for file in files("overnight.guest").iterdir():
        if file.name.endswith(".py"):
            (target / "guest" / file.name).write_bytes(file.read_bytes())


def _protect(folder: Path) -> None:
    """Files that nobody writes and every user may read, whatever our own mask: the trainer may be another user."""
    for where, _, names in os.walk(folder):
        Path(where).chmod(0o755)
        for name in names:
            path = Path(where) / name
            if not path.is_symlink():
                path.chmod(0o555 if path.stat().st_mode & 0o100 else 0o444)
