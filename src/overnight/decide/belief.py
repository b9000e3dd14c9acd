"""What is believed while candidates race: the tip's level, the noise around it, and the luck that seeds share.

Plain arithmetic on measured scores; higher is better here. The race claims nothing, so it may look at scores in
whatever way finds improvements fastest: far-out residuals are pulled in, and where scores fall into solved and
failed seeds the gap between the two groups is shortened.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf, sqrt

Score = float | None
"""What a train seed brought; None when it was lost by its own side's fault."""
_TAIL = 0.1
_REACH = 1.5
"""Residuals are pulled in to this many spreads beyond the outer tenths."""
_APART = 5.0
"""Scores fall into two groups when the gap between them is this many times the spread inside them."""
_KEPT_GAP = 4.0
"""The gap that is left between two groups for screening, in spreads inside them."""
_CAUTION = {2: 2.5, 3: 1.6, 4: 1.3, 5: 1.15}
"""A noise measured on so few seeds is often far too small, so it is widened."""
_FEW = 15
_INEXPLICABLE = 5.0
"""A gain of more than so many of the prior's spreads is larger than the prior foresaw."""
_TINY = 1e-12


@dataclass(frozen=True, slots=True)
class Gap:
    """Two groups of scores, solved and failed seeds, and the distance that screening leaves between them."""

    cut: float
    """Scores below this are of the lower group."""
    kept: float
    """How far below the upper group's level a failed seed counts."""


@dataclass(slots=True)
class Noise:
    """How scores scatter around the tip's level."""

    spread: float = 0.0
    """The standard deviation of winsorised residuals; 0 while it is unknown."""
    lowest: float = -inf
    highest: float = inf
    gap: Gap | None = None
    failed: float = 0.0
    """The share of failed seeds among the tip's latest, where there are two groups."""
    winsorised: bool = True
    """Whether far-out residuals are pulled in."""
    memory: int = 60
    """How many of the latest residuals the spread is taken from."""
    residuals: list[float] = field(default_factory=list)
    failures: list[bool] = field(default_factory=list)

    def distance(self, score: float, mean: float) -> float:
        """How far a score is from a mean, with the gap shortened."""
        gap = self.gap
        if gap is not None and score < gap.cut:
            return -gap.kept * (1 - self.failed)
        return score - mean

    def apart(self, score: Score, mean: float) -> float:
        """How far a score is from a mean, pulled in; a lost seed is as far below as any may be."""
        if score is None:
            return self.lowest if self.lowest > -inf else -abs(mean) - 1.0
        return min(max(self.distance(score, mean), self.lowest), self.highest)

    def shifted(self, scores: Sequence[Score], mean: float) -> list[float]:
        """How far another arm's scores are from a mean: pulled in, around their lower median where it is far above.

        One lucky seed is pulled in as ever; an arm whose every second seed is out of reach has moved, and counts so.
        """
        known = sorted(self.distance(score, mean) for score in scores if score is not None)
        middle = known[(len(known) - 1) // 2] if known else 0.0
        moved = middle if middle > self.highest else 0.0
        return [
            self.apart(score, mean) if score is None else moved + self.apart(score, mean + moved) for score in scores
        ]

    def count(self, scores: Sequence[float]) -> None:
        """Learn how often the tip's seeds fail."""
        if self.gap is None:
            return
        self.failures = (self.failures + [score < self.gap.cut for score in scores])[-self.memory :]
        self.failed = sum(self.failures) / len(self.failures)

    def learn(self, residuals: Sequence[float]) -> None:
        """Take in residuals of scores that selected nothing."""
        self.residuals = (self.residuals + list(residuals))[-self.memory :]
        seeds = len(self.residuals)
        if seeds < 2:
            return
        ordered = sorted(self.residuals)
        if not self.winsorised:
            self.spread = cautious_spread(ordered)
            return
        low, high = _quantile(ordered, _TAIL), _quantile(ordered, 1 - _TAIL)
        inner = max(_deviation([min(max(one, low), high) for one in ordered]), _TINY)
        self.lowest, self.highest = low - _REACH * inner, high + _REACH * inner
        self.spread = max(_deviation([min(max(one, self.lowest), self.highest) for one in ordered]), _TINY)
        self.spread *= _CAUTION.get(seeds, 1.0)


@dataclass(frozen=True, slots=True)
class Level:
    """The estimated mean of one arm."""

    mean: float
    variance: float
    """Of the mean, in units of the squared noise."""

    def learned(self, noise: Noise, scores: Sequence[Score], *, plainly: bool = False) -> "Level":
        """The level after scores of this arm that selected nothing; the noise learns from them too.

        `plainly` pulls no score in: for a level that has just moved so far that the noise says little about it.
        """
        if not scores:
            return self
        weight = self.variance / (self.variance + 1 / len(scores))
        apart = sum(
            noise.distance(score, self.mean) if plainly and score is not None else noise.apart(score, self.mean)
            for score in scores
        )
        found = Level(self.mean + weight * apart / len(scores), self.variance * (1 - weight))
        known = [score for score in scores if score is not None]
        noise.count(known)
        noise.learn([noise.distance(score, found.mean) for score in known])
        return found

    def shrunk(self, gain: float, seeds: int, noise: float, prior: tuple[float, float]) -> "Level":
        """The level of a candidate that led by `gain` over so many seeds, allowing for the luck of the one picked.

        Most candidates do harm, so the gain is drawn towards the prior: its mean and spread, in noises. A gain that the
        prior could not explain is believed instead, as luck cannot explain it either.
        """
        size = gain / noise if noise else 0.0
        variance = self.variance + max(prior[1], size / _INEXPLICABLE) ** 2
        weight = variance / (variance + 1 / seeds)
        expected = self.mean + prior[0] * noise
        return Level(expected + weight * (self.mean + gain - expected), variance * (1 - weight))


def first_level(noise: Noise, scores: Sequence[float], *, split: bool) -> Level:
    """The baseline's level from its first scores; the noise begins with them. `split` looks for a gap to shorten."""
    seeds = len(scores)
    noise.gap = find_gap(scores) if split else None
    noise.count(scores)
    mean = sum(scores) / seeds
    if noise.gap is not None:
        upper = [score for score in scores if score >= noise.gap.cut]
        mean = sum(upper) / len(upper) - noise.failed * noise.gap.kept
    stretch = sqrt(seeds / (seeds - 1)) if seeds > 1 else 1.0
    noise.learn([noise.distance(score, mean) * stretch for score in scores])
    apart = sum(noise.apart(score, mean) for score in scores) / seeds
    return Level(mean + apart, 1 / seeds)


@dataclass(slots=True)
class Luck:
    """The learned correlation between arms that share a seed."""

    across: float = 0.0
    ours: float = 0.0
    theirs: float = 0.0
    freedom: int = 0

    def learn(self, candidate: Sequence[float], tip: Sequence[float]) -> None:
        """Take in the residuals of a candidate and of the tip on the same seeds."""
        seeds = min(len(candidate), len(tip))
        if seeds < 2:
            return
        mine, other = sum(candidate[:seeds]) / seeds, sum(tip[:seeds]) / seeds
        for one, two in zip(candidate, tip, strict=False):
            self.across += (one - mine) * (two - other)
            self.ours += (one - mine) ** 2
            self.theirs += (two - other) ** 2
        self.freedom += seeds - 1

    def shared(self) -> float:
        """The correlation, held back while little is known of it."""
        if self.freedom < _FEW:
            return 0.0
        found = self.across / sqrt(max(self.ours * self.theirs, _TINY))
        return max(0.0, min(0.9, found)) * self.freedom / (self.freedom + 10)


def find_gap(scores: Sequence[float]) -> Gap | None:
    """The gap that splits scores into solved and failed seeds, at least two of each; None without two clear groups."""
    ordered = sorted(scores)
    if len(ordered) < 6:
        return None
    width, place = max((ordered[place] - ordered[place - 1], place) for place in range(2, len(ordered) - 1))
    lower, upper = ordered[:place], ordered[place:]
    inside = sqrt((_squares(lower) + _squares(upper)) / (len(ordered) - 2))
    if width <= 0 or width < _APART * inside:
        return None
    return Gap(cut=ordered[place] - width / 2, kept=_KEPT_GAP * inside)


def cautious_spread(values: Sequence[float]) -> float:
    """The standard deviation of two values and more, widened where they are few."""
    return max(_deviation(values), _TINY) * _CAUTION.get(len(values), 1.0)


def _squares(values: Sequence[float]) -> float:
    mean = sum(values) / len(values)
    return sum((value - mean) ** 2 for value in values)


def _deviation(values: Sequence[float]) -> float:
    return sqrt(_squares(values) / (len(values) - 1))


def _quantile(ordered: Sequence[float], share: float) -> float:
    place = share * (len(ordered) - 1)
    below = int(place)
    if below + 1 >= len(ordered):
        return ordered[-1]
    return ordered[below] + (place - below) * (ordered[below + 1] - ordered[below])
