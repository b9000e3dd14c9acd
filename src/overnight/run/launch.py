"""The one launch path: everything a run needs is laid out, and then a launcher starts its supervisor.

Nothing else calls the `Launcher` port. The candidate's tree is written out read-only from
the store, by the tree hash that the gate has just checked.
"""

import os
import shutil
import signal
from collections.abc import Callable
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from overnight.ports import Launcher, Machine
from overnight.records.codec import dumps, loads
from overnight.records.job import Exit, Job
from overnight.records.order import RunOrder
from overnight.study.durable import make_folder, write_file

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
    _copy_guest(folder / "guest")
    _protect(folder / "source")
    write_file(machine, folder / "run.json", dumps(order), mode=0o444)
    write_file(machine, folder / "job.json", dumps(job))
    return Prepared(folder)


def launch(prepared: Prepared, launcher: Launcher) -> str:
    """Start the supervisor of a prepared run somewhere, and return the launcher's handle."""
    return launcher.start(prepared.folder)


def exit_of(machine: Machine, folder: Path) -> Exit | None:
    """What the supervisor said at the end; None while it has not, or never will."""
    text = machine.read(str(folder / "exit.json"))
    return loads(Exit, text, where=str(folder / "exit.json")) if text is not None else None


def sweep(folder: Path) -> int:
    """End what a supervisor left behind when it was killed itself: processes that carry this run's variable."""
    mark, ended = f"OVERNIGHT_RUN={folder / 'run.json'}".encode(), 0
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            if mark in (entry / "environ").read_bytes().split(b"\0"):
                os.kill(int(entry.name), signal.SIGKILL)
                ended += 1
        except OSError:
            continue
    return ended


def clear(folder: Path) -> None:
    """Remove what only the training needed. Log, metrics, exit, policy and the library that plays it stay."""
    for name in ("source", "home", "tmp"):
        shutil.rmtree(folder / name, ignore_errors=True)


def _copy_guest(target: Path) -> None:
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir()
    for file in files("overnight.guest").iterdir():
        if file.name.endswith(".py"):
            (target / file.name).write_bytes(file.read_bytes())


def _protect(folder: Path) -> None:
    for where, _, names in os.walk(folder):
        for name in names:
            path = Path(where) / name
            if not path.is_symlink():
                path.chmod(0o555 if path.stat().st_mode & 0o100 else 0o444)
