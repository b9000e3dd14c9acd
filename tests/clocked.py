"""A world in which eight hours take seconds: a clock that jumps while somebody sleeps, a toy trainer and a toy referee.

Disk, locks, ledger, gate, candidate store and judge are the real ones. A machine can be told to die at its Nth
operation: from then on every operation raises `Killed`, and whoever comes next finds the files as they lie.
"""

import json
import math
import os
import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from overnight.machine import RealMachine
from overnight.ports import Finished
from overnight.records.codec import dumps
from overnight.records.job import Exit
from overnight.records.run import Outcome

SPEED = 100.0
"""How much faster the clock runs while the engine sleeps."""
REFEREE_SECONDS = 20.0


class Killed(BaseException):
    """The process stops existing here."""


@dataclass
class World:
    """The time of a simulated night, and what happened in it that nobody wrote down."""

    now: float = 1_900_000_000.0
    still: float = 0.0
    quota_until: float = 0.0
    """Until when the proposer's quota is used up; 0 before it ever was."""
    asked: list[str] = field(default_factory=list)
    """What the proposer did each time, in a word."""
    gaps: list[tuple[float, float]] = field(default_factory=list)
    """When the whole machine stood still: from, to."""

    def stand_still(self, seconds: float) -> None:
        self.gaps.append((self.now, self.now + seconds))
        self.now += seconds
        self.still += seconds


class ClockedMachine(RealMachine):
    """A real machine on simulated time, which may die at one of its operations."""

    def __init__(self, world: World, dies_at: int | None = None) -> None:
        super().__init__()
        self.world, self.dies_at = world, dies_at
        self.operations = 0
        self._born_still = world.still
        self._fds: set[int] = set()

    def _live(self) -> None:
        self.operations += 1
        if self.dies_at is not None and self.operations >= self.dies_at:
            raise Killed

    def bury(self) -> None:
        """What the kernel does when a process is killed: its locks are free."""
        for fd in self._fds:
            os.close(fd)
        self._fds.clear()

    def now(self) -> float:
        return self.world.now

    def monotonic(self) -> float:
        return self.world.now

    def running(self) -> float:
        return self.world.now - self.world.still

    def stood_still(self) -> float:
        return self.world.still - self._born_still

    def sleep(self, seconds: float) -> None:
        self._live()
        self.world.now += seconds * SPEED

    def open(self, path: str, flags: int, mode: int = 0o644) -> int:
        self._live()
        fd = super().open(path, flags, mode)
        self._fds.add(fd)
        return fd

    def close(self, fd: int) -> None:
        if fd in self._fds:
            self._fds.discard(fd)
            super().close(fd)

    def write(self, fd: int, data: bytes) -> int:
        if self.dies_at is not None and self.operations + 1 >= self.dies_at:
            super().write(fd, data[: len(data) // 2])  # a kill in the middle of a write leaves a torn line
        self._live()
        return super().write(fd, data)

    def pwrite(self, fd: int, data: bytes, offset: int) -> int:
        self._live()
        return super().pwrite(fd, data, offset)

    def sync(self, fd: int) -> None:
        self._live()  # nothing is pulled out of the socket here, so the disk need not be waited for

    def sync_folder(self, path: str) -> None:
        self._live()

    def replace(self, source: str, target: str) -> None:
        self._live()
        super().replace(source, target)

    def unlink(self, path: str) -> None:
        self._live()
        super().unlink(path)

    def lock(self, fd: int) -> bool:
        self._live()
        return super().lock(fd)

    def run_process(
        self, argv: tuple[str, ...], *, env: Mapping[str, str], stdin: bytes = b"", limit_seconds: float
    ) -> Finished:
        self._live()
        if "overnight.evaluate.referee" in argv:
            self.world.now += REFEREE_SECONDS
            return Finished(0, _referee(json.loads(stdin)), b"")
        return super().run_process(argv, env=env, stdin=stdin, limit_seconds=limit_seconds)


def _referee(asked: dict[str, object]) -> bytes:
    """Episodes around what the toy trainer left, in the form of the referee's own answer."""
    if "record" in asked:
        return json.dumps({"ticket": asked["ticket"], "failed": "nothing can be drawn here"}).encode()
    mean = 20.0 if "reference" in asked else float((Path(str(asked["policy"])) / "mean").read_text())
    seeds = asked["seeds"]
    assert isinstance(seeds, list)
    episodes = [[seed, mean + random.Random(seed).gauss(0, 3), 100] for seed in seeds]
    told = {"ticket": asked["ticket"], "episodes": episodes, "repeated": asked.get("repeat", 0), "different": 0}
    return json.dumps({**told, "differs": ""}).encode()


class ToyLauncher:
    """Trainings that take their time on the simulated clock; some crash, some are lost, some never end."""

    def __init__(self, world: World, *, run_seconds: float, hard_seconds: float) -> None:
        self.world, self.run_seconds, self.hard_seconds = world, run_seconds, hard_seconds

    def start(self, run_folder: Path) -> str:
        order = json.loads((run_folder / "run.json").read_text())
        fate = random.Random(f"{order['run']}").random()
        seconds = self.run_seconds * random.Random(order["run"] + "t").uniform(0.7, 1.2)
        ends = math.inf if fate > 0.97 else self.world.now + seconds
        toy = {"began": self.world.now, "ends": ends, "fate": fate, "order": order}
        (run_folder / "toy.json").write_text(json.dumps(toy))
        return "toy"

    def is_alive(self, run_folder: Path) -> bool:
        toy = self._toy(run_folder)
        if toy is None or (run_folder / "exit.json").exists() or (run_folder / "dead").exists():
            return False
        if (run_folder / "stop").exists():
            return self._end(run_folder, toy, Outcome.STOPPED, "It was stopped by the engine.")
        if self.world.now < toy["ends"]:
            return True
        if any(began < toy["ends"] and toy["began"] < ended for began, ended in self.world.gaps):
            return self._end(run_folder, toy, Outcome.INFRASTRUCTURE, "The machine stood still while it ran.")
        if toy["fate"] < 0.04:
            return self._end(run_folder, toy, Outcome.CRASHED, "It ended with status 1: boom.")
        if toy["fate"] < 0.08:
            (run_folder / "dead").touch()  # its supervisor was killed, and left no word
            return False
        return self._end(run_folder, toy, Outcome.COMPLETED, "It ended with a policy.")

    def stop(self, run_folder: Path) -> None:
        (run_folder / "stop").touch()

    def end(self, run_folder: Path) -> None:
        (run_folder / "dead").touch()

    def _toy(self, run_folder: Path) -> dict[str, Any] | None:
        try:
            found: dict[str, Any] = json.loads((run_folder / "toy.json").read_text())
        except FileNotFoundError:
            return None
        return found

    def _end(self, folder: Path, toy: dict[str, Any], outcome: Outcome, because: str) -> bool:
        order = toy["order"]
        policy = None
        if outcome is Outcome.COMPLETED:
            (folder / "policy").mkdir(exist_ok=True)
            (folder / "policy" / "policy.json").write_text('{"kind": "weights"}')
            off = abs(math.log10(order["params"]["learning_rate"] / 0.004))
            mean = 100 - 30 * off + random.Random(order["train_seed"]).gauss(0, 4)
            (folder / "policy" / "mean").write_text(str(mean))
            policy = "0" * 64
        ended = Exit(
            outcome=outcome,
            because=because,
            exit_status=0,
            wall_seconds=max(min(self.world.now, toy["ends"]) - toy["began"], 0.0),
            cpu_seconds=1.0,
            policy=policy,
            log_bytes=0,
            tier="T1",
        )
        (folder / "exit.json").write_bytes(dumps(ended))
        return False
