"""The arithmetic of the comparison with the peers: areas under curves, ratios, and intervals. Pure, NumPy only."""

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

LEVEL = 0.9
T_95 = {1: 6.314, 2: 2.920, 3: 2.353, 4: 2.132, 5: 2.015, 6: 1.943, 7: 1.895, 8: 1.860, 9: 1.833}
"""The 95 % points of Student's distribution, by degrees of freedom: the ends of two-sided 90 % intervals."""
DRAWS = 2000
KEY = ("table", "learner", "env", "seed", "seconds", "settings", "versions", "cpu_time")
"""What tells one run from another; two lines with the same key are two attempts at the same run."""
MOST_FOREIGN = 0.1

Line = Mapping[str, Any]
Point = tuple[float, float]


class Interval(NamedTuple):
    """An estimate and the ends of its 90 % interval."""

    middle: float
    low: float
    high: float

    def apart(self, other: "Interval") -> bool:
        """Whether this one lies wholly above the other one."""
        return self.low > other.high


def mean_over_time(points: Sequence[Point], start: float, seconds: float) -> float:
    """The area under a curve of returns over time, divided by the time: the mean return on the way.

    The curve begins with `start` at second 0, runs straight from point to point, stays where it is after the
    last one, and is cut at the end of the time.
    """
    line = [(0.0, start), *sorted(points)]
    line.append((max(seconds, line[-1][0]), line[-1][1]))
    area = 0.0
    for (left, low), (right, high) in pairwise(line):
        end = min(right, seconds)
        if right > left and end > left:
            at_end = low + (high - low) * (end - left) / (right - left)
            area += (end - left) * (low + at_end) / 2
    return area / seconds


def ratio(ours: Sequence[float], theirs: Sequence[float]) -> Interval:
    """How many times faster we are, from pairs of one seed each: Student's interval on the logarithms."""
    logs = [math.log(a / b) for a, b in zip(ours, theirs, strict=True)]
    return Interval(*map(math.exp, student(logs)))


def student(values: Sequence[float]) -> Interval:
    """Student's 90 % interval on the mean of a few values; one value alone has none, and gives infinite ends."""
    n = len(values)
    middle = sum(values) / n
    if n < 2:
        return Interval(middle, -math.inf, math.inf)
    spread = math.sqrt(sum((value - middle) ** 2 for value in values) / (n - 1))
    room = T_95[min(n - 1, max(T_95))] * spread / math.sqrt(n)
    return Interval(middle, middle - room, middle + room)


def bootstrap(runs: Sequence[Any], value: Callable[[Any, np.random.Generator | None], float]) -> Interval:
    """The mean of a value over runs, with a 90 % interval from drawing runs anew, and their episodes in them.

    `value(run, rng)` computes it from episodes that it draws with `rng`, or from all of them where that is None.
    """
    rng = np.random.default_rng(0)
    middle = float(np.mean([value(run, None) for run in runs]))
    means = []
    for _ in range(DRAWS):
        drawn = rng.integers(len(runs), size=len(runs))
        means.append(float(np.mean([value(runs[i], rng) for i in drawn])))
    low, high = np.quantile(means, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Interval(middle, float(low), float(high))


def final_return(run: Line, rng: np.random.Generator | None) -> float:
    """The mean return of the last policy's episodes."""
    return _mean(run["final"], rng)


def mean_return(starts: Mapping[str, float]) -> Callable[[Line, np.random.Generator | None], float]:
    """From what random actions score in each environment to the mean return over the time of a run."""

    def value(run: Line, rng: np.random.Generator | None) -> float:
        points = [(point["seconds"], _mean(point["returns"], rng)) for point in run["points"]]
        points.append((run["end"], _mean(run["final"], rng)))
        return mean_over_time(points, starts[run["env"]], run["seconds"])

    return value


def _mean(values: Sequence[float], rng: np.random.Generator | None) -> float:
    found = np.asarray(values, float)
    return float(found.mean() if rng is None else found[rng.integers(len(found), size=len(found))].mean())


class Rates(NamedTuple):
    """How fast a training stepped."""

    whole: float
    """Steps a second from beginning to end, with what is compiled on the way."""
    late: float
    """Steps a second of the later half."""
    first: int
    """The steps before the later half."""
    last: int
    """The steps at its end."""


def rates(lines: Sequence[tuple[float, int]]) -> Rates:
    """Steps a second from (seconds, steps) after each rollout.

    The later half begins with the last rollout that ended before half of the time.
    """
    last_seconds, last_steps = lines[-1]
    early = [line for line in lines if line[0] <= last_seconds / 2] or [(0.0, 0)]
    seconds, steps = early[-1]
    return Rates(last_steps / last_seconds, (last_steps - steps) / (last_seconds - seconds), steps, last_steps)


def key(line: Line) -> tuple[str, ...]:
    """What tells one run from another."""
    return tuple(repr(_sorted(line[name])) for name in KEY)


def _sorted(value: object) -> object:
    return sorted((name, _sorted(inner)) for name, inner in value.items()) if isinstance(value, dict) else value


def disturbed(line: Line) -> bool:
    """Whether other programs had more than a tenth of the machine, in a run that is measured in wall time."""
    return not line["cpu_time"] and line["foreign"] > MOST_FOREIGN


def best(attempts: Sequence[Line]) -> Line:
    """The attempt that others disturbed least."""
    return min(attempts, key=lambda line: line["foreign"])


def is_done(attempts: Sequence[Line], *, again: bool) -> bool:
    """Whether a run needs no further attempt: one was undisturbed, or it was repeated once."""
    quiet = any(not disturbed(line) for line in attempts)
    return quiet or (len(attempts) >= 2 and not again)
