"""The engine's own parts, run on an attack: the supervisor, the referee, and at T0 what a naive evaluator does instead.

A planted weakness is the same supervisor or referee, started with a layer of isolation left out. That is done here,
from outside, by a process that exchanges one function before it begins; the engine itself has no such switch. Where
the view of its own files is left out, a candidate stays who it is: another user might not reach the interpreter.
"""

import json
import os
import re
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from overnight.attack.attacks import Rung
from overnight.errors import OvernightError
from overnight.evaluate.measure import Measured, measure
from overnight.machine import RealMachine
from overnight.ports import Finished
from overnight.records.env import EnvSpec
from overnight.records.job import Exit, Job
from overnight.records.order import RunBudget, RunOrder
from overnight.records.run import Outcome
from overnight.run.launch import exit_of, launch, prepare
from overnight.sandbox.tiers import Layer

MACHINE = RealMachine()
CARTPOLE = EnvSpec(backend="gymnasium", id="CartPole-v1")
Without = frozenset[Layer]
_WEAK_SUPERVISOR = """
import sys
from functools import partial
from overnight.run import supervisor
from overnight.sandbox import start
layers = frozenset(sys.argv.pop(1).split(","))
supervisor.start = partial(start.start, without=layers)
sys.exit(supervisor.main(sys.argv))
"""
_WEAK_REFEREE = """
from functools import partial
from overnight.evaluate import policy_process, referee
from overnight.sandbox import start
policy_process.start = partial(start.start, without=frozenset({layers!r}))
referee.main()
"""
_NAIVE_TRAINER = "import os, runpy, sys; os.chdir(sys.argv[1]); runpy.run_path('train.py', run_name='__main__')"
NAIVE_SECONDS = 6.0
"""How long a naive evaluator is waited for, before it counts as held up."""


# Trainers


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a trainer is given."""

    wall_seconds: float = 20.0
    disk_bytes: int = 10_000_000
    env_steps: float = 100
    files: Mapping[str, bytes] = field(default_factory=dict)
    """Files beside its source."""
    metered: bool = False
    """Whether a broker holds its environments and counts their steps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """What is believed about a trainer when it is over."""

    folder: Path
    ended: bool
    """Whether it was over within its time; a naive runner may still wait."""
    believed: bool
    """Whether what it left will be measured."""
    because: str
    wall_seconds: float
    cpu_seconds: float
    log: bytes
    real_seconds: float
    """By the gallery's own clock."""
    lost: bool = False
    """Whether whoever watched it is gone."""
    env_steps: float | None = None
    """The steps that are believed."""

    def said(self) -> dict[str, str]:
        """What the trainer wrote down about its attempts."""
        try:
            found = json.loads((self.folder / "out" / "loot.json").read_bytes())
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}


class Foreground:
    """A launcher that starts a supervisor, as strong as it is or with layers left out, and waits for its end."""

    def __init__(self, without: Without, variables: Mapping[str, str]) -> None:
        self._without, self._variables = without, variables

    def start(self, run_folder: Path) -> str:
        """See the port."""
        words: tuple[str, ...] = (sys.executable, "-I", "-m", "overnight.run.supervisor", str(run_folder))
        if self._without:
            words = (sys.executable, "-I", "-c", _WEAK_SUPERVISOR, ",".join(self._without), str(run_folder))
        MACHINE.run_process(words, env={**os.environ, **self._variables}, limit_seconds=120.0)
        return "ended"

    def is_alive(self, run_folder: Path) -> bool:  # noqa: ARG002 - the port's signature
        """See the port: `start` waits."""
        return False

    def stop(self, run_folder: Path) -> None:
        """See the port: there is nothing to stop."""

    def end(self, run_folder: Path) -> None:
        """See the port: there is nothing to end."""


def train(folder: Path, source: str, rung: Rung, without: Without, limits: Limits, variables: Mapping[str, str]) -> Ran:
    """Run one trainer to its end, or as long as a naive runner waits for it."""

    def export(target: Path) -> None:
        target.mkdir(parents=True)
        for name, data in {**limits.files, "train.py": source.encode()}.items():
            (target / name).parent.mkdir(exist_ok=True)
            (target / name).write_bytes(data)

    began = time.monotonic()
    prepared = prepare(MACHINE, folder, _order(limits), _job(rung, limits), export)
    if rung == "T0":
        return _naively(folder, limits, variables, began)
    launch(prepared, Foreground(without, variables))
    ended = exit_of(MACHINE, folder)
    return _ran(folder, ended, time.monotonic() - began)


def _order(limits: Limits) -> RunOrder:
    budget = RunBudget(unit="env_steps", amount=limits.env_steps)
    return RunOrder(run="r-0001", env=CARTPOLE, train_seed=7, budget=budget, params={"a": 1}, cores=1, device="cpu")


def _job(rung: Rung, limits: Limits) -> Job:
    return Job(
        command=(sys.executable, "train.py"),
        env={"PATH": os.environ.get("PATH", os.defpath)},
        fresh_bytecode=True,
        cores=(),
        wall_seconds=limits.wall_seconds,
        silence_seconds=60,
        disk_bytes=limits.disk_bytes,
        tier="T1" if rung == "T0" else rung,
        metered=limits.metered,
    )


def _ran(folder: Path, ended: Exit | None, seconds: float) -> Ran:
    log = (folder / "log").read_bytes() if (folder / "log").exists() else b""
    return Ran(
        folder=folder,
        ended=True,
        believed=ended is not None and ended.outcome is Outcome.COMPLETED,
        because=ended.because if ended is not None else "There is no word of its supervisor.",
        wall_seconds=ended.wall_seconds if ended is not None else 0.0,
        cpu_seconds=ended.cpu_seconds if ended is not None else 0.0,
        log=log,
        real_seconds=seconds,
        lost=ended is None,
        env_steps=ended.env_steps if ended is not None else None,
    )


def _naively(folder: Path, limits: Limits, variables: Mapping[str, str], began: float) -> Ran:
    """What a script around a training script does: start it with everything, and believe what it says."""
    (folder / "out").mkdir(exist_ok=True)
    out = {"OVERNIGHT_OUT": str(folder / "out"), "OVERNIGHT_RUN": str(folder / "run.json"), "TMPDIR": str(folder)}
    words = (sys.executable, "-c", _NAIVE_TRAINER, str(folder / "source"))
    try:
        done = MACHINE.run_process(
            words, env={**os.environ, **variables, **out}, limit_seconds=limits.wall_seconds + NAIVE_SECONDS
        )
    except TimeoutError:
        done = Finished(-9, b"", b"It was still running.")
    told = _told(folder)
    return Ran(
        folder=folder,
        ended=done.stderr != b"It was still running.",
        believed=done.returncode == 0,
        because=done.stderr.decode(errors="replace"),
        wall_seconds=told.get("wall_seconds", 0.0),
        cpu_seconds=told.get("cpu_seconds", 0.0),
        log=done.stdout + done.stderr,
        real_seconds=time.monotonic() - began,
        env_steps=told.get("env_steps"),
    )


def _told(folder: Path) -> dict[str, float]:
    """The trainer's own last report, which a naive runner believes."""
    try:
        found = json.loads((folder / "out" / "metrics.jsonl").read_bytes().splitlines()[-1])
    except (OSError, ValueError, IndexError):
        return {}
    return found if isinstance(found, dict) else {}


# Policies


class Weakened(RealMachine):
    """The real machine, on which the referee leaves out layers when it starts a policy."""

    def __init__(self, without: Without) -> None:
        self._without = without

    def run_process(
        self, argv: tuple[str, ...], *, env: Mapping[str, str], stdin: bytes = b"", limit_seconds: float
    ) -> Finished:
        """See the port."""
        if self._without:
            argv = (*argv[:2], "-c", _WEAK_REFEREE.format(layers=sorted(self._without)))
        return super().run_process(argv, env=env, stdin=stdin, limit_seconds=limit_seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """What is believed about a policy."""

    returns: tuple[float, ...]
    """The return of each episode; empty where there is no score."""
    says: str
    """Everything that a proposer or a person gets to read."""
    held_up: bool = False
    """Whether whoever measured gave no result, or none in time."""

    def score(self) -> float | None:
        """The mean return, or None."""
        return sum(self.returns) / len(self.returns) if self.returns else None


def score(
    folder: Path, seeds: Sequence[int], rung: Rung, without: Without = frozenset(), env: EnvSpec = CARTPOLE
) -> Scored:
    """Measure the policy in a run's folder."""
    if rung == "T0":
        return _imported(folder, seeds, env)
    try:
        found: Measured = measure(Weakened(without), env, folder, seeds, tier=rung)
    except OvernightError as failed:
        return Scored(returns=(), says=str(failed), held_up=True)
    return Scored(returns=tuple(one[1] for one in found.episodes), says=found.error)


def _imported(folder: Path, seeds: Sequence[int], env: EnvSpec) -> Scored:
    """What an evaluator gives that imports the policy: the line that it printed first, and the file that it left."""
    policy, result = folder / "policy", folder / "result.json"
    words = (sys.executable, "-m", "overnight.attack.naive", str(policy), str(result))
    horizon = {} if env.max_episode_steps is None else {"max_episode_steps": env.max_episode_steps}
    request = json.dumps({"env": env.id, "kwargs": {**env.kwargs, **horizon}, "seeds": list(seeds)}).encode()
    around = {**os.environ, "PYTHONPATH": str(policy)}
    try:
        done = MACHINE.run_process(words, env=around, stdin=request, limit_seconds=NAIVE_SECONDS * 2)
    except TimeoutError:
        return Scored(returns=(), says="The evaluator did not end.", held_up=True)
    says = (done.stdout + done.stderr).decode(errors="replace")
    printed = re.search(r"^score: (\S+)$", says, re.MULTILINE)
    returns = _left(result)
    if printed is not None and (not returns or float(printed[1]) > sum(returns) / len(returns)):
        returns = (float(printed[1]),) * len(seeds)
    return Scored(returns=returns, says=says, held_up=done.returncode != 0 and not returns)


def _left(result: Path) -> tuple[float, ...]:
    try:
        return tuple(map(float, json.loads(result.read_bytes())))
    except (OSError, ValueError):
        return ()
