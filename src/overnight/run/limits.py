"""The limits of one run, looked at again and again while it goes on: time, processor time, memory, processes, disk,
and signs of life.

Whoever is beyond a limit is ended, and the ending says whose fault it was. A run during which the machine stood still,
as a laptop does that was closed, is ended as the machine's fault, whatever came of it: it is run again.
"""

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from overnight.records.job import Job
from overnight.records.order import RunBudget
from overnight.records.run import Outcome
from overnight.sandbox.meter import Meter, Usage, nameless, physical_bytes, private_bytes
from overnight.sandbox.standstill import Standstill

TOLERANCE = 1.05
"""How far over its budget a training may be and still be measured."""
_SAVE_SECONDS = 5.0
"""How long a trainer whose time is over may take to leave its policy behind."""
_LOOK_SECONDS = 0.25
_DISK_SECONDS = 1.0
_FILE_BYTES = 512
"""What every entry of a folder counts as, at least, so that empty files are not free."""
_SHARE = 0.9
"""How much of the machine's memory a run may take where nothing else is said."""


@dataclass(frozen=True, slots=True)
class Ending:
    """Why the trainer was ended, when it was not its own doing."""

    outcome: Outcome
    because: str
    at_once: bool = False
    """Whether the machine suffers, so that there is no time in which to finish."""


class Limits:
    """What a run may take, what it has taken, and when it last gave a sign."""

    def __init__(self, folder: Path, job: Job, budget: RunBudget, meter: Meter) -> None:
        self.folder, self.job, self.budget, self.meter = folder, job, budget, meter
        self.memory_cap = job.memory_bytes or int(physical_bytes() * _SHARE)
        self._still = Standstill()
        self.began = self.last_sign = self._still.running()
        self._ready: tuple[float, float] | None = None
        self._next_look = self._next_disk_look = self.began
        self._in_memory = 0.0
        self._metrics_bytes = 0

    def sign(self) -> None:
        """The trainer gave a sign of life."""
        self.last_sign = self._still.running()

    def seconds(self) -> float:
        """How long it has been running, without what stood still."""
        return self._still.running() - self.began

    def stood_still(self) -> Ending | None:
        """The end of a run during which the machine stood still: what came of it is not what would have come of it."""
        self._still.look()
        if not self._still.total:
            return None
        says = f"The machine stood still for {self._still.total:.0f} s while it ran, so it is run again."
        return Ending(Outcome.INFRASTRUCTURE, says)

    def over(self) -> Ending | None:
        """The first limit that is passed, if any."""
        if (ending := self.stood_still()) is not None:
            return ending
        now = self._still.running()
        if (self.folder / "stop").exists():
            return Ending(Outcome.STOPPED, "It was stopped by the engine.")
        return self._over_time(now) or self._over_meter(now) or self._over_disk(now) or self._silent(now)

    def _over_time(self, now: float) -> Ending | None:
        limit = self.job.wall_seconds
        if now - self.began <= limit:
            return None
        return Ending(Outcome.OVER_BUDGET, f"It was still running after its hard limit of {limit:g} s.")

    def _over_disk(self, now: float) -> Ending | None:
        if now < self._next_disk_look:
            return None
        self._next_disk_look = now + _DISK_SECONDS
        most, hidden = self.job.disk_bytes, nameless(str(self.folder))
        self._in_memory = hidden.memory_bytes + private_bytes()
        self._look_for_metrics(now)
        used = hidden.disk_bytes + sum(tree_bytes(self.folder / name, limit=most) for name in ("out", "tmp", "home"))
        says = f"It wrote more than {most:,} bytes."
        return Ending(Outcome.CRASHED, says, at_once=True) if used > most else None

    def _over_meter(self, now: float) -> Ending | None:
        if now < self._next_look:
            return None
        self._next_look = now + _LOOK_SECONDS
        used = self.meter.look(memory_cap=int(self.memory_cap - self._in_memory), most=self.job.processes)
        if used.processes > self.job.processes:
            says = f"It had more than {self.job.processes:,} processes at once, which is its cap."
            return Ending(Outcome.CRASHED, says, at_once=True)
        taken = used.memory_bytes + self._in_memory
        if taken > self.memory_cap:
            says = f"It used {taken / 1e6:,.0f} MB of memory, and its cap was {self.memory_cap / 1e6:,.0f} MB."
            return Ending(Outcome.CRASHED, says, at_once=True)
        return self._over_budget(now, used)

    def _over_budget(self, now: float, used: Usage) -> Ending | None:
        """Time counts from when the trainer said that it is ready, and from its start where it never does."""
        if self._ready is None and (self.folder / "out" / "ready").exists():
            self._ready = (now, used.cpu_seconds)
        wall_zero, cpu_zero = self._ready or (self.began, 0.0)
        amount = self.budget.amount
        if self.budget.unit == "cpu_seconds" and used.cpu_seconds - cpu_zero > amount * TOLERANCE + _SAVE_SECONDS:
            taken = used.cpu_seconds - cpu_zero
            says = f"It and its children used {taken:.1f} s of processor time, and its budget was {amount:g} s."
            return Ending(Outcome.OVER_BUDGET, says)
        wall = now - wall_zero
        if self.budget.unit == "wall_seconds" and wall > amount * TOLERANCE + _SAVE_SECONDS:
            return Ending(Outcome.OVER_BUDGET, f"It trained for {wall:.1f} s, and its budget was {amount:g} s.")
        return None

    def _silent(self, now: float) -> Ending | None:
        if now - self.last_sign > self.job.silence_seconds:
            return Ending(Outcome.CRASHED, f"It gave no sign of life for {self.job.silence_seconds:g} s.")
        return None

    def _look_for_metrics(self, now: float) -> None:
        with suppress(OSError):
            size = (self.folder / "out" / "metrics.jsonl").lstat().st_size
            if size != self._metrics_bytes:
                self._metrics_bytes, self.last_sign = size, now


def tree_bytes(folder: Path, *, limit: int) -> int:
    """The size of a folder without following anything, counted only until a limit is passed."""
    total, wanted = 0, [str(folder)]
    while wanted and total <= limit:
        with suppress(OSError), os.scandir(wanted.pop()) as entries:
            for entry in entries:
                with suppress(OSError):
                    total += max(entry.stat(follow_symlinks=False).st_blocks * 512, _FILE_BYTES)
                if entry.is_dir(follow_symlinks=False):
                    wanted.append(entry.path)
                if total > limit:
                    break
    return total
