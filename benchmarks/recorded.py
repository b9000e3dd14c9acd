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
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

NAME = "actions.npz"


class Taken(NamedTuple):
    """One batch of environments, and what was done in it."""

    batch: Any
    """Held, so that no other batch gets its identity."""
    about: dict[str, Any]
    actions: list[NDArray[Any]]
    last: list[Any]
    """What the last step returned."""


class Spec(NamedTuple):
    """The environment, as the port asks for it."""

    id: str
    kwargs: dict[str, Any]
    max_episode_steps: int | None
    clip_actions: bool


def record() -> None:
    """Train, and write down what each batch of environments is made of and which actions it took."""
    from overnight.rl.envs import batched

    made: dict[int, Taken] = {}
    make, step = batched.make, batched.Batch.step

    def recording_make(spec: Any, seeds: Any, *, threads: int) -> Any:  # noqa: ANN401 - the port's own types
        found = make(spec, seeds, threads=threads)
        about = {name: getattr(spec, name) for name in Spec._fields} | {"kwargs": dict(spec.kwargs)}
        made[id(found)] = Taken(found, about | {"seeds": [int(seed) for seed in seeds], "threads": threads}, [], [])
        return found

    def recording_step(self: Any, actions: NDArray[Any]) -> Any:  # noqa: ANN401
        one = made[id(self)]
        one.actions.append(actions.copy())
        one.last[:] = [found := step(self, actions)]
        return found

    batched.make, batched.Batch.step = recording_make, recording_step  # type: ignore[method-assign]
    try:
        runpy.run_module("overnight.rl.trainers.ppo", run_name="__main__")
    finally:
        if not all(one.actions for one in made.values()):
            sys.exit("The trainer took no step by `Batch.step`, so nothing was recorded")
        held = {"about": np.array(json.dumps([one.about for one in made.values()]))}
        for place, one in enumerate(made.values()):
            held |= {f"actions{place}": np.stack(one.actions), f"last{place}": one.last[0].observations}
        np.savez(Path(os.environ["OVERNIGHT_OUT"]) / NAME, allow_pickle=False, **held)


def replay(path: Path, first: int, last: int) -> dict[str, Any]:
    """Take the recorded actions again: the rate of all steps, and of those between two numbers of steps.

    Batches that a training plays side by side are stepped side by side here, too.
    """
    from overnight.rl.envs import batched

    with np.load(path) as found:
        about = json.loads(str(found["about"]))
        actions = [found[f"actions{place}"] for place in range(len(about))]
        ends = [found[f"last{place}"] for place in range(len(about))]
    batches = []
    for one in about:
        seeds, threads = one.pop("seeds"), one.pop("threads")
        batches.append(batched.make(Spec(**one), seeds, threads=threads))
        batches[-1].reset()
    clock = _clock()

    def again(place: int) -> tuple[NDArray[Any], bool]:
        times = np.empty(len(actions[place]) + 1)
        times[0] = clock()
        for t, action in enumerate(actions[place]):
            told = batches[place].step(action)
            times[t + 1] = clock()
        return times, bool(np.array_equal(told.observations, ends[place]))

    with ThreadPoolExecutor(len(batches)) as threads:
        taken = list(threads.map(again, range(len(batches))))
    times = [each for each, _ in taken]
    width, count = sum(batch.num_envs for batch in batches), min(len(each) for each in times) - 1

    def rate(left: int, right: int) -> float:
        seconds = max(each[right] for each in times) - min(each[left] for each in times)
        return float((right - left) * width / seconds)

    return {
        "rate": rate(0, count),
        "late_rate": rate(first // width, min(last // width, count)),
        "same": all(same for _, same in taken),
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
