"""A laboratory in which truth is known: streams of candidates, and runs that are drawn instead of trained."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from math import exp, sqrt
from random import Random

import numpy as np

from overnight.simulate.families import Family

_TABLE_SIZE = 1 << 20
_MASK = (1 << 64) - 1


class OutOfBudget(Exception):
    """No run is left. The rule ends its study with what it has."""


@dataclass(frozen=True, slots=True)
class Idea:
    """What a candidate does to its parent, unknown to the rule."""

    effect: float
    """The change of skill; what improves, improves less the better the parent is."""
    volatility: float = 1.0
    """The factor on the scatter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mix:
    """What a stream of ideas is made of, as shares; the rest is catastrophic."""

    improving: float = 0.12
    null: float = 0.31
    steadier: float = 0.07
    mild_harm: float = 0.25
    noisy_harm: float = 0.10
    sizes: tuple[float, ...] = (0.3, 0.6, 1.0, 1.5, 2.5)
    """The improvements' sizes …"""
    weights: tuple[float, ...] = (0.35, 0.30, 0.20, 0.10, 0.05)
    """… and how often each comes."""


@dataclass(frozen=True, slots=True)
class Arm:
    """One piece of code with its true skill."""

    number: int
    skill: float
    volatility: float
    mean: float
    parent: "Arm | None" = None


def stream(kind: str, ideas: int, seed: int, mix: Mix | None = None) -> tuple[Idea, ...]:
    """A stream of ideas: `null` (clones), `volatile` (same mean, 1.5 times the noise), `harmful` or `mixed`."""
    if kind == "null":
        return (Idea(0.0),) * ideas
    if kind == "volatile":
        return (Idea(0.0, 1.5),) * ideas
    mix, draw = mix or Mix(), Random(seed * 7919 + 77)  # noqa: S311 - a simulation, not a secret
    return tuple(_idea(mix, draw, improving=0.0 if kind == "harmful" else mix.improving) for _ in range(ideas))


def _idea(mix: Mix, draw: Random, *, improving: float) -> Idea:
    place = draw.random()
    size = draw.choices(mix.sizes, mix.weights)[0]
    mild, volatile = -abs(draw.gauss(0, 0.6)), -abs(draw.gauss(0, 0.4))
    edges = (mix.improving, mix.null, mix.steadier, mix.mild_harm, mix.noisy_harm)
    if place < improving:
        return Idea(size)
    for share, found in (
        (sum(edges[:2]), Idea(0.0)),
        (sum(edges[:3]), Idea(0.0, 1 / 1.5)),
        (sum(edges[:4]), Idea(mild)),
        (sum(edges), Idea(volatile, 1.5)),
    ):
        if place < share:
            return found
    return Idea(-3.0)


@dataclass(slots=True)
class Lab:
    """Draws runs. The same arm on the same seed of a phase always scores the same; each costs one run."""

    family: Family
    key: int
    shared: float
    """The correlation of luck between arms on one seed."""
    budget: float
    """How many runs are left."""

    def root(self) -> Arm:
        """The baseline."""
        return Arm(0, 0.0, 1.0, self.family.mean(0.0, 1.0))

    def child(self, number: int, parent: Arm, idea: Idea) -> Arm:
        """What an idea makes of its parent."""
        gained = idea.effect * exp(-max(parent.skill, 0.0) / 4) if idea.effect > 0 else idea.effect
        skill = parent.skill + gained
        volatility = min(2.25, max(0.67, parent.volatility * idea.volatility))
        return Arm(number, skill, volatility, self.family.mean(skill, volatility), parent)

    def run(self, arm: Arm, phase: int, number: int) -> float:
        """Train one arm on one seed of a phase."""
        if self.budget < 1:
            raise OutOfBudget
        self.budget -= 1
        common, own = _normal(self.key, phase, number, 999_983), _normal(self.key, phase, number, arm.number + 1)
        luck = sqrt(self.shared) * common + sqrt(1 - self.shared) * own
        return self.family.score(arm.skill, arm.volatility, luck)

    def runs(self, arm: Arm, phase: int, numbers: range) -> list[float]:
        """Train one arm on several seeds, all or none."""
        if self.budget < len(numbers):
            raise OutOfBudget
        return [self.run(arm, phase, number) for number in numbers]


@cache
def _table() -> list[float]:
    return [float(one) for one in np.random.default_rng(12345).standard_normal(_TABLE_SIZE)]


def _normal(*keys: int) -> float:
    """A standard-normal number addressed by whole numbers."""
    found = 0x9E3779B97F4A7C15
    for key in keys:
        found = ((found ^ (key + 0x7F4A7C15)) * 0xBF58476D1CE4E5B9) & _MASK
        found ^= found >> 29
    found = (found * 0x94D049BB133111EB) & _MASK
    return _table()[(found ^ (found >> 32)) % _TABLE_SIZE]


def lineage(arm: Arm) -> Iterator[Arm]:
    """An arm's own changes, latest first, without the baseline."""
    while arm.parent is not None:
        yield arm
        arm = arm.parent
