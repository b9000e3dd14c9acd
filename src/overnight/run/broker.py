"""The supervisor's hold on the broker of a metered run: its start, its count, and whether it is still there.

The broker is ours, and is held as strongly as the trainer all the same, because bytes of the trainer's reach it. It
dies with the supervisor and is ended with the run; its memory and processor time count as the run's.
"""

import os
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from overnight.records.job import Job
from overnight.sandbox.bounds import bounds_for
from overnight.sandbox.start import start
from overnight.sandbox.tiers import Child

VARIABLE = "OVERNIGHT_BROKER"
_COUNT = struct.Struct("<Q")


class Broker:
    """One running broker."""

    def __init__(self, folder: Path, job: Job, first: Callable[[], None]) -> None:
        own = folder / "broker"
        own.mkdir(exist_ok=True)
        self._count = os.open(folder / "steps", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        asked, questions = os.pipe()
        answered, answers = os.pipe()
        self.fds = (answered, questions)
        """The trainer's ends: for answers, and for questions."""
        numbers = (asked, answers, self._count)
        child = Child(
            command=(sys.executable, "-I", "-B", "-m", "overnight.rl.envs.broker", *map(str, numbers)),
            cwd=str(own),
            env={
                "PATH": os.defpath,
                "LC_ALL": "C",
                "OVERNIGHT_RUN": str(folder / "run.json"),
                **dict.fromkeys(("HOME", "TMPDIR", "XDG_CACHE_HOME", "MPLCONFIGDIR"), str(own)),
                **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1"),
            },
            pass_fds=numbers,
            first=first,
        )
        bounds = bounds_for((str(folder / "run.json"),), writable=(str(own),), hidden=job.hidden)
        try:
            self._process: subprocess.Popen[bytes] = start(child, bounds, job.tier)
        finally:
            os.close(asked)
            os.close(answers)

    def variables(self) -> dict[str, str]:
        """What the trainer is told about its broker."""
        return {VARIABLE: ",".join(map(str, self.fds))}

    def leave_to_trainer(self) -> None:
        """Close our own copies of the trainer's ends, so that the broker hears when the trainer is gone."""
        for fd in self.fds:
            os.close(fd)

    def is_lost(self) -> bool:
        """Whether it ended otherwise than with its trainer."""
        return self._process.poll() not in (None, 0)

    def env_steps(self) -> int:
        """How many steps were counted, whether it is still there or not."""
        stored = os.pread(self._count, _COUNT.size, 0)
        return int(_COUNT.unpack(stored)[0]) if len(stored) == _COUNT.size else 0
