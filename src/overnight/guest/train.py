"""The training side of the guest contract: what to train, how much is left, and where results go.

Standard library only, and nothing of Overnight's: the folder `guest/` is copied beside a
candidate's code, so that this works where Overnight is not installed.

    order = load()                          # the file that OVERNIGHT_RUN names
    training = Training(order)              # writes below the folder that OVERNIGHT_OUT names
    training.ready()                        # imports are done; the budget's clock starts
    while not training.spent(env_steps):
        ...
        training.report(env_steps, episodic_return=21.5)
    training.save_policy(write)             # `write(folder)` fills an empty folder

A training that can go on after a kill asks for `training.checkpoint()` when it begins, calls
`training.resume` with what it finds there, and calls `training.save_checkpoint` on the way.

Import this module first: where `ready` is never called, time counts from that import on.

Does not: enforce anything. The supervisor holds the hard limit, and nothing written here but
`policy/` is used for more than display and diagnosis.
"""

import json
import math
import os
import shutil
import signal
import struct
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

SCHEMA = "overnight/run-order/1"
_STARTED = time.monotonic()
_ITEM_BYTES = {"F32": 4, "F64": 8, "I32": 4, "I64": 8}


@dataclass(frozen=True)
class Env:
    """The environment to train in, as Gymnasium makes it."""

    backend: str
    id: str
    kwargs: Mapping[str, object]
    max_episode_steps: int | None
    clip_actions: bool


@dataclass(frozen=True)
class Budget:
    """How much the training gets: `env_steps`, `cpu_seconds` or `wall_seconds`."""

    unit: str
    amount: float


@dataclass(frozen=True)
class Order:
    """What one training is told."""

    run: str
    env: Env
    train_seed: int
    budget: Budget
    params: Mapping[str, object]
    cores: int
    device: str
    compile_cache: str | None


def load() -> Order:
    """Read the order that `OVERNIGHT_RUN` names, or end the process with one sentence."""
    path = _folder_or_file("OVERNIGHT_RUN")
    try:
        found = json.loads(path.read_bytes())
        schema = found.pop("schema", None)
        if schema != SCHEMA:
            sys.exit(f"{path}: `schema` is {schema!r}, but {SCHEMA!r} is needed")
        return Order(
            run=found["run"],
            env=Env(
                backend=found["env"]["backend"],
                id=found["env"]["id"],
                kwargs=found["env"].get("kwargs", {}),
                max_episode_steps=found["env"].get("max_episode_steps"),
                clip_actions=found["env"].get("clip_actions", True),
            ),
            train_seed=found["train_seed"],
            budget=Budget(unit=found["budget"]["unit"], amount=found["budget"]["amount"]),
            params=found["params"],
            cores=found["cores"],
            device=found["device"],
            compile_cache=found.get("compile_cache"),
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        sys.exit(f"{path}: is not a run order: {type(error).__name__}: {error}")


def limit_threads(cores: int) -> None:
    """Keep the number libraries to so many threads; they read this when they are imported."""
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = str(cores)
    flags = f"--xla_cpu_multi_thread_eigen={'true' if cores > 1 else 'false'}"
    os.environ["XLA_FLAGS"] = f"{flags} {os.environ.get('XLA_FLAGS', '')}".strip()


class Training:
    """One training in progress: its budget, its reports and its policy.

    SIGTERM means finish: it sets `stopping`, and from then on the budget is spent.
    """

    def __init__(self, order: Order, out: Path | None = None) -> None:
        self.order = order
        self.out = _folder_or_file("OVERNIGHT_OUT") if out is None else out
        self.stopping = False
        self._wall_zero = _STARTED
        self._cpu_zero = 0.0
        self._asked: list[float] = []
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, self._finish)

    def ready(self, **facts: str) -> None:
        """Start the budget's clock: imports are done, and what follows is training.

        `facts` are for people, such as `backend="envpool"`; the file `ready` holds them as JSON.
        """
        self._wall_zero = time.monotonic()
        self._cpu_zero = time.process_time()
        (self.out / "ready").write_text(json.dumps(facts) + "\n" if facts else "", encoding="utf-8")

    def resume(self, env_steps: int, *, wall_seconds: float, cpu_seconds: float) -> None:
        """Go on where a checkpoint was written; call it after `ready`.

        What the checkpoint had spent counts as spent, and the metrics that were reported
        after it are dropped, because they will be reported again.
        """
        self._wall_zero -= wall_seconds
        self._cpu_zero -= cpu_seconds
        reported = self.out / "metrics.jsonl"
        if reported.exists():
            lines = reported.read_bytes().splitlines(keepends=True)
            kept = [line for line in lines if line.endswith(b"\n") and json.loads(line)["env_steps"] <= env_steps]
            fresh = reported.with_name(".metrics.jsonl")
            fresh.write_bytes(b"".join(kept))
            fresh.rename(reported)

    def wall_seconds(self) -> float:
        """Seconds since `ready`."""
        return time.monotonic() - self._wall_zero

    def cpu_seconds(self) -> float:
        """CPU seconds of this process and its threads since `ready`."""
        return time.process_time() - self._cpu_zero

    def share(self, env_steps: int) -> float:
        """The spent share of the budget, from 0 to 1, in the order's own unit.

        CPU time is that of this process and its threads, not of its children. The supervisor counts those too.
        """
        budget = self.order.budget
        if budget.unit == "env_steps":
            used: float = env_steps
        elif budget.unit == "cpu_seconds":
            used = self.cpu_seconds()
        else:
            used = self.wall_seconds()
        return min(max(used / budget.amount, 0.0), 1.0)

    def spent(self, env_steps: int) -> bool:
        """Whether to stop now: the budget is used up, or SIGTERM has come."""
        return self.stopping or self.share(env_steps) >= 1.0

    def has_room(self, env_steps: int, lap_steps: int, *, aside: float = 0.0) -> bool:
        """Whether one more lap fits into the budget; ask once before each lap.

        A budget of steps is exact: `lap_steps` more must not exceed it. In a budget of
        time, the next lap is taken to be as long as the last one was; only the first lap says
        nothing about the second, because programs are compiled in it. `aside` is a share of the
        budget that must be left after the lap.
        """
        if self.spent(env_steps):
            return False
        if self.order.budget.unit == "env_steps":
            return env_steps + lap_steps <= self.order.budget.amount * (1.0 - aside)
        now = self.share(env_steps)
        lap = now - self._asked[-1] if len(self._asked) > 1 else 0.0
        self._asked = [*self._asked[-1:], now]
        return now + lap <= 1.0 - aside

    def report(self, env_steps: int, **numbers: float) -> None:
        """Append one line to `metrics.jsonl`; a number that is not finite becomes null."""
        line: dict[str, float | None] = {"env_steps": int(env_steps), "wall_seconds": round(self.wall_seconds(), 3)}
        for name, number in numbers.items():
            value = float(number)
            line[name] = value if math.isfinite(value) else None
        with (self.out / "metrics.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(line, allow_nan=False) + "\n")

    def save_policy(self, write: Callable[[Path], None]) -> None:
        """Fill a new folder with `write`, then put it in the place of `policy/` by renaming.

        Where `write` fails, the policy that was there stays. A process that is killed
        between the two renames leaves the old policy under a name that begins `.policy-`.
        """
        self._replace("policy", write)

    def checkpoint(self) -> Path | None:
        """The folder of the last checkpoint, or None where a training begins."""
        found = self.out / "checkpoint"
        return found if found.is_dir() else None

    def save_checkpoint(self, write: Callable[[Path], None]) -> None:
        """Put a new checkpoint in the place of the last one, as `save_policy` does with a policy."""
        self._replace("checkpoint", write)

    def _replace(self, name: str, write: Callable[[Path], None]) -> None:
        fresh = Path(tempfile.mkdtemp(prefix=f".{name}-", dir=self.out))
        gone, place = fresh.with_name(fresh.name + "-old"), self.out / name
        try:
            fresh.chmod(0o755)
            write(fresh)
            if place.exists():
                place.rename(gone)
            fresh.rename(place)
        except BaseException:
            shutil.rmtree(fresh, ignore_errors=True)
            raise
        shutil.rmtree(gone, ignore_errors=True)

    def _finish(self, _signal: int, _frame: FrameType | None) -> None:
        self.stopping = True


def write_tensors(path: Path, tensors: Mapping[str, tuple[str, Sequence[int], bytes]]) -> None:
    """Write named arrays as a safetensors file: for each its dtype, its shape and its little-endian bytes."""
    header: dict[str, object] = {}
    end = 0
    for name, (dtype, shape, data) in tensors.items():
        needed = _ITEM_BYTES[dtype] * math.prod(shape)
        if len(data) != needed:
            raise ValueError(f"`{name}` has {len(data)} bytes, but its shape {list(shape)} of {dtype} needs {needed}")
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [end, end + needed]}
        end += needed
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for _, _, data in tensors.values():
            file.write(data)


def _folder_or_file(variable: str) -> Path:
    """Where one of the two variables of the guest contract leads."""
    if not os.environ.get(variable):
        sys.exit(f"{variable} is not set: Overnight starts this program and sets it")
    return Path(os.environ[variable])
