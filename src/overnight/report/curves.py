"""Learning curves of several seeds, brought onto one grid. Pure arithmetic on plain tuples."""

import math
from bisect import bisect_left
from statistics import median
from typing import NamedTuple, TypeGuard

LARGEST = 1e15
"""Numbers beyond this are not drawn; a diverged training must not flatten every other curve."""

Points = tuple[tuple[float, float], ...]


class BandPoint(NamedTuple):
    """What the seeds of one arm say at one number of env_steps."""

    env_steps: float
    """Where."""
    low: float
    """The lowest value of any seed."""
    middle: float
    """The median of the seeds."""
    high: float
    """The highest value of any seed."""
    seeds: int
    """How many seeds reach this far."""


def drawable(value: float | None) -> TypeGuard[float]:
    """Whether a number has a place on a figure."""
    return value is not None and math.isfinite(value) and abs(value) <= LARGEST


def band(seeds: tuple[Points, ...], most: int = 160) -> tuple[BandPoint, ...]:
    """Median, lowest and highest value of the seeds on one grid of at most `most` places.

    Between two points a seed is a straight line; beyond its last point it says nothing, so a
    seed that stopped early leaves the band instead of being drawn on. Seeds rarely log at the
    very same env_steps, so an end that misses by a fiftieth of the whole still counts.
    """
    drawn = tuple(line for line in (_drawable(seed) for seed in seeds) if line)
    grid = _grid(drawn, most)
    near = (grid[-1] - grid[0]) / 50 if grid else 0.0
    found = []
    for env_steps in grid:
        values = [value for line in drawn if (value := _value_near(line, env_steps, near)) is not None]
        if values:
            found.append(BandPoint(env_steps, min(values), median(values), max(values), len(values)))
    return tuple(found)


def value_at(points: Points, env_steps: float) -> float | None:
    """The value of one seed at a number of env_steps, or None where it has none."""
    if not points or not points[0][0] <= env_steps <= points[-1][0]:
        return None
    after = bisect_left(points, env_steps, key=lambda point: point[0])
    right, right_value = points[after]
    if right == env_steps:
        return right_value
    left, left_value = points[after - 1]
    return left_value + (right_value - left_value) * (env_steps - left) / (right - left)


def _value_near(points: Points, env_steps: float, near: float) -> float | None:
    first, last = points[0][0], points[-1][0]
    if not first - near <= env_steps <= last + near:
        return None
    return value_at(points, min(max(env_steps, first), last))


def _drawable(points: Points) -> Points:
    """The points that are numbers, in order, one for each place."""
    kept = {x: y for x, y in points if drawable(x) and drawable(y)}
    return tuple(sorted(kept.items()))


def _grid(drawn: tuple[Points, ...], most: int) -> list[float]:
    places = sorted({x for line in drawn for x, _ in line})
    if len(places) <= most:
        return places
    first, last = places[0], places[-1]
    return [*(first + (last - first) * step / (most - 1) for step in range(most - 1)), last]
