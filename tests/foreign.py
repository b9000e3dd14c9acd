"""Score families and mixes that the rule was not tuned on: a reviewer's, not ours.

They differ from the shipped ones in what makes tests fail: tails on both sides, ties, several groups, rare failures,
skew to the left, a scatter that grows with the level.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from math import atan, exp, floor, pi, sqrt
from statistics import NormalDist

from overnight.simulate.families import Family, table
from overnight.simulate.lab import Mix

_NORMAL = NormalDist()


@dataclass(frozen=True)
class Steps:
    """Whole successes out of a few episodes: scores tie all the time."""

    name: str = "steps"
    step: float = 0.8

    def mean(self, skill: float, volatility: float) -> float:
        return _stepped_mean(self.step, skill, volatility)

    def score(self, skill: float, volatility: float, normal: float) -> float:
        return self.step * floor((skill + volatility * normal) / self.step + 0.5)


@lru_cache(maxsize=100_000)
def _stepped_mean(step: float, skill: float, volatility: float) -> float:
    """The exact mean of rounded normal scores."""
    first, last = (floor((skill + side * 7 * volatility) / step) for side in (-1, 1))
    law = NormalDist(skill, volatility)
    return sum(
        step * place * (law.cdf((place + 0.5) * step) - law.cdf((place - 0.5) * step))
        for place in range(first, last + 2)
    )


@dataclass(frozen=True)
class Growing:
    """The scatter grows with the level: what learns more also scatters more."""

    name: str = "growing"
    slope: float = 0.35

    def mean(self, skill: float, volatility: float) -> float:
        return skill

    def score(self, skill: float, volatility: float, normal: float) -> float:
        return skill + volatility * max(0.3, 1 + self.slope * skill) * normal


@dataclass(frozen=True)
class Ceiling:
    """Good seeds reach the best possible score and stop there, a fixed distance above the baseline's middle."""

    name: str = "ceiling"
    top: float = 2.0

    def mean(self, skill: float, volatility: float) -> float:
        apart = (self.top - skill) / volatility
        below = _NORMAL.cdf(apart)
        return skill * below - volatility * _NORMAL.pdf(apart) + self.top * (1 - below)

    def score(self, skill: float, volatility: float, normal: float) -> float:
        return min(self.top, skill + volatility * normal)


def _student3(rank: float) -> float:
    """The quantile of Student's t with 3 degrees of freedom, by halving its closed distribution."""
    low, high = -2_000.0, 2_000.0
    for _ in range(60):
        middle = (low + high) / 2
        below = 0.5 + (atan(middle / sqrt(3)) + sqrt(3) * middle / (3 + middle * middle)) / pi
        low, high = (middle, high) if below < rank else (low, middle)
    return (low + high) / 2


def _groups(*parts: tuple[float, float, float]) -> Callable[[float], float]:
    """The quantile of groups (share, level, spread), listed from the lowest level to the highest."""

    def quantile(rank: float) -> float:
        for share, level, spread in parts:
            if rank < share:
                return level + spread * _NORMAL.inv_cdf(min(max(rank / share, 1e-6), 1 - 1e-6))
            rank -= share
        return parts[-1][1]

    return quantile


def _contaminated(rank: float) -> float:
    """Nine normal scores in ten, and one with five times the scatter, on both sides."""
    low, high = -40.0, 40.0
    for _ in range(50):
        middle = (low + high) / 2
        below = 0.9 * _NORMAL.cdf(middle) + 0.1 * _NORMAL.cdf(middle / 5)
        low, high = (middle, high) if below < rank else (low, middle)
    return (low + high) / 2


def _tabled(name: str, quantile: Callable[[float], float]) -> Family:
    outer = (1e-7, 1e-6, 1e-5, 1e-4, 3e-4)
    ranks = sorted({*outer, *(1 - one for one in outer), *(step / 1_000 for step in range(1, 1_000))})
    return table(name, tuple(ranks), tuple(quantile(rank) for rank in ranks))


@lru_cache(maxsize=1)
def foreign() -> tuple[Family, ...]:
    """Every foreign family."""
    return (
        _tabled("student 3", _student3),
        _tabled("contaminated", _contaminated),
        _tabled("left skew", lambda rank: -exp(0.7 * _NORMAL.inv_cdf(1 - rank))),
        _tabled("right skew", lambda rank: exp(0.9 * _NORMAL.inv_cdf(rank))),
        _tabled("flat", lambda rank: rank),
        _tabled("rare failures", _groups((0.08, -6.0, 0.5), (0.92, 0.0, 1.0))),
        _tabled("mostly solved", _groups((0.30, -4.0, 0.6), (0.70, 0.0, 1.0))),
        _tabled("three groups", _groups((0.25, -3.0, 0.4), (0.45, 0.0, 0.4), (0.30, 3.0, 0.4))),
        Steps(),
        Growing(),
        Ceiling(),
    )


FEW_GOOD = Mix(improving=0.04, null=0.39)
"""One idea in twenty-five improves."""
MANY_GOOD = Mix(improving=0.25, null=0.23, mild_harm=0.20)
"""One idea in four improves."""
SMALL_GOOD = Mix(sizes=(0.15, 0.3, 0.5, 0.75, 1.25))
"""Improvements of half the size."""
