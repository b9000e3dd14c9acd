"""Starts the keeper of one asking as a process, and tells how it ended."""

import os
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from overnight.errors import UserError
from overnight.records.agent import EndedBy, Errand, Returned
from overnight.records.codec import loads
from overnight.sandbox.processes import kill, with_variable

_END_SECONDS = 20.0
_NEEDED = ("PATH", "LANG")


class LocalCaller:
    """See `ports.Caller`. A keeper dies with the engine, so one that is not ours any more is lost."""

    def __init__(self) -> None:
        self._keepers: dict[Path, subprocess.Popen[bytes]] = {}

    def call(self, folder: Path) -> None:
        """Start the keeper, with the variables that the errand names and no others."""
        errand = loads(Errand, (folder / "errand.json").read_bytes(), where=str(folder / "errand.json"))
        named = {name: os.environ[name] for name in (*_NEEDED, *errand.variables) if name in os.environ}
        with (folder / "keeper.log").open("ab") as said:
            self._keepers[folder] = subprocess.Popen(
                [sys.executable, "-I", "-m", "overnight.adapters.proposers.keeper", str(folder), str(os.getpid())],
                cwd="/",
                env={**named, "OVERNIGHT_HOME": str(Path.home())},
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                start_new_session=True,
            )

    def look(self, folder: Path) -> Returned | None:
        """How it ended; None while it is at work."""
        keeper = self._keepers.get(folder)
        if keeper is not None and keeper.poll() is None:
            return None
        self._keepers.pop(folder, None)
        with suppress(OSError, UserError):
            return loads(Returned, (folder / "returned.json").read_bytes(), where=str(folder / "returned.json"))
        for pid in with_variable(f"OVERNIGHT_ASK={folder}"):
            kill(pid)
        for name in ("home", "tmp"):  # the credentials of somebody that nobody keeps any more
            shutil.rmtree(folder / name, ignore_errors=True)
        return Returned(why="lost", status=-9, wall_seconds=0.0, said="Its keeper is gone and left no word.")

    def stop(self, folder: Path, why: EndedBy) -> None:
        """Have it ended, and wait until nothing of it is left."""
        keeper = self._keepers.get(folder)
        (folder / "stop").write_text(why)
        if keeper is not None:
            try:
                keeper.wait(_END_SECONDS)
            except subprocess.TimeoutExpired:
                keeper.terminate()
                keeper.wait()
