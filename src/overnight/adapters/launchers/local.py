"""Runs on this machine: one supervisor process for each run, in a session of its own."""

import fcntl
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path


class LocalLauncher:
    """See `ports.Launcher`. Whether a run is alive is told by its lock, never by a stored process id."""

    def start(self, run_folder: Path) -> str:
        """Start the supervisor, detached, so that it outlives the engine."""
        with (run_folder / "supervisor.log").open("ab") as said:
            process = subprocess.Popen(
                [sys.executable, "-I", "-m", "overnight.run.supervisor", str(run_folder)],
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                start_new_session=True,
            )
        _CHILDREN.append(process)
        return f"pid {process.pid}"

    def is_alive(self, run_folder: Path) -> bool:
        """Whether the supervisor holds its lock, or is one that we started and that has not got so far yet."""
        for process in list(_CHILDREN):
            if process.poll() is not None:
                _CHILDREN.remove(process)
            elif process.args[-1] == str(run_folder):  # type: ignore[index]
                return True
        return _is_locked(run_folder / "run.lock")

    def stop(self, run_folder: Path) -> None:
        """Leave the word where the supervisor looks for it."""
        (run_folder / "stop").touch()

    def end(self, run_folder: Path) -> None:
        """Kill every process that was started as this run's supervisor, as its command line tells."""
        for entry in Path("/proc").iterdir():
            with suppress(OSError):
                words = (entry / "cmdline").read_bytes().split(b"\0") if entry.name.isdigit() else []
                if b"overnight.run.supervisor" in words and os.fsencode(run_folder) in words:
                    os.kill(int(entry.name), signal.SIGKILL)


_CHILDREN: list["subprocess.Popen[bytes]"] = []
"""Supervisors that this process started, so that their exits are taken."""


def _is_locked(path: Path) -> bool:
    try:
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False
