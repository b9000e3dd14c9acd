"""How near our trainer comes to its own environments: record what a training does, and do it again without learning.

`python -m recorded` is our PPO as the supervisor starts it, and writes down every action with the environments that
took it. `python -m recorded replay FILE FIRST LAST` makes the same environments from the same seeds with as many
threads, takes the same actions, and prints the steps a second of all and of those between two numbers of steps. As
the episodes are the same to the last number, which is checked, the difference is what learning costs.
"""

import json
import os
import runpy
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

NAME = "actions.npz"


class Spec(NamedTuple):
    """The environment, as the port asks for it."""

    id: str
    kwargs: dict[str, Any]
    max_episode_steps: int | None
    clip_actions: bool


def record() -> None:
    """Train, and write down the actions."""
    from overnight.rl.envs import batched

    made: list[tuple[Any, dict[str, Any]]] = []
    taken: list[NDArray[Any]] = []
    which: list[int] = []
    last: list[Any] = []
    make, step = batched.make, batched.Batch.step

    def recording_make(spec: Any, seeds: Any, *, threads: int) -> Any:  # noqa: ANN401 - the port's own types
        found = make(spec, seeds, threads=threads)
        about = {name: getattr(spec, name) for name in Spec._fields} | {"kwargs": dict(spec.kwargs)}
        made.append((found, about | {"seeds": [int(seed) for seed in seeds], "threads": threads}))
        return found

    def recording_step(self: Any, actions: NDArray[Any]) -> Any:  # noqa: ANN401
        which.append(next(place for place, (one, _) in enumerate(made) if one is self))
        taken.append(actions.copy())
        last[:] = [step(self, actions)]
        return last[0]

    batched.make, batched.Batch.step = recording_make, recording_step  # type: ignore[method-assign]
    try:
        runpy.run_module("overnight.rl.trainers.ppo", run_name="__main__")
    finally:
        if not taken:
            sys.exit("The trainer took no step by `Batch.step`, so nothing was recorded")
        about = json.dumps([facts for _, facts in made])
        np.savez(
            Path(os.environ["OVERNIGHT_OUT"]) / NAME,
            actions=np.stack(taken),
            which=np.array(which),
            about=np.array(about),
            last=last[0].observations,
        )


def replay(path: Path, first: int, last: int) -> dict[str, Any]:
    """Take the recorded actions again: the rate of all steps, and of those between two numbers of steps."""
    from overnight.rl.envs import batched

    with np.load(path) as found:
        actions, which, end = found["actions"], found["which"], found["last"]
        about = json.loads(str(found["about"]))
    batches = []
    for one in about:
        seeds, threads = one.pop("seeds"), one.pop("threads")
        batches.append(batched.make(Spec(**one), seeds, threads=threads))
        batches[-1].reset()
    width, clock = actions.shape[1], _clock()
    times = np.empty(len(actions) + 1)
    times[0] = clock()
    for t, (place, action) in enumerate(zip(which, actions, strict=True)):
        told = batches[place].step(action)
        times[t + 1] = clock()
    left, right = first // width, min(last // width, len(actions))
    return {
        "rate": len(actions) * width / (times[-1] - times[0]),
        "late_rate": (right - left) * width / (times[right] - times[left]),
        "same": bool(np.array_equal(told.observations, end)),
        "backend": batches[0].backend,
    }


def _clock() -> Callable[[], float]:
    """The clock of the budgets: that on the wall, or processor time divided by the cores."""
    if os.environ.get("OVERNIGHT_CPU_TIME"):
        return lambda: time.process_time() / (os.cpu_count() or 1)
    return time.perf_counter


def main() -> int:
    """Record, or replay."""
    if sys.argv[1:2] == ["replay"]:
        print(json.dumps(replay(Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))))
        return 0
    record()
    return 0


if __name__ == "__main__":
    sys.exit(main())
