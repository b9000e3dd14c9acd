"""How scores scatter over train seeds. The unit is the standard deviation of the baseline's scores.

A family turns a skill, a volatility and one standard-normal number into a score. A skill of one is about one
standard deviation better in the mean; volatility widens the scatter and leaves the mean where it is.
"""

from bisect import bisect_right
from dataclasses import dataclass
from math import erf, exp, log, sqrt
from statistics import NormalDist, fmean, pstdev
from typing import Protocol

from overnight.errors import UserError, did_you_mean

_NORMAL = NormalDist()


class Family(Protocol):
    """One law of scores."""

    @property
    def name(self) -> str:
        """What the family is called."""

    def mean(self, skill: float, volatility: float) -> float:
        """The true mean score."""

    def score(self, skill: float, volatility: float, normal: float) -> float:
        """The score of a run whose luck is this standard-normal number."""


@dataclass(frozen=True, slots=True)
class Gaussian:
    """Even noise around the mean."""

    name: str = "gaussian"

    def mean(self, skill: float, volatility: float) -> float:  # noqa: ARG002 - volatility does not move the mean
        """The true mean score."""
        return skill

    def score(self, skill: float, volatility: float, normal: float) -> float:
        """The score of one run."""
        return skill + volatility * normal


@dataclass(frozen=True, slots=True)
class Lognormal:
    """A heavy right tail, as raw game scores have; improvements multiply."""

    name: str = "lognormal"
    spread: float = 0.6

    def _centre(self) -> float:
        """The baseline's mean over its standard deviation."""
        return 1 / sqrt(exp(self.spread**2) - 1)

    def mean(self, skill: float, volatility: float) -> float:  # noqa: ARG002 - volatility does not move the mean
        """The true mean score."""
        return self._centre() * max(0.02, 1 + skill / self._centre())

    def score(self, skill: float, volatility: float, normal: float) -> float:
        """The score of one run."""
        wide = self.spread * min(volatility, 1.8)
        return self.mean(skill, volatility) * exp(wide * normal - wide * wide / 2)


@dataclass(frozen=True, slots=True)
class Bimodal:
    """Seeds solve the task or fail; skill solves it more often and better."""

    name: str = "bimodal"
    solved: float = 0.35
    fail_level: float = 0.15
    inside: float = 0.07

    def _unit(self) -> float:
        return sqrt(self.solved * (1 - self.solved) * (1 - self.fail_level) ** 2 + self.inside**2)

    def _modes(self, skill: float, volatility: float) -> tuple[float, float]:
        """The share of solving seeds, and their level."""
        share = 1 / (1 + exp(-(log(self.solved / (1 - self.solved)) + 1.6 * skill)))
        height = 1 + 0.25 * max(skill, -1.0) - self.fail_level
        stretched = height * volatility**0.6
        return min(0.99, share * height / stretched), self.fail_level + stretched

    def mean(self, skill: float, volatility: float) -> float:
        """The true mean score."""
        share, level = self._modes(skill, volatility)
        return (share * level + (1 - share) * self.fail_level) / self._unit()

    def score(self, skill: float, volatility: float, normal: float) -> float:
        """The score of one run."""
        share, level = self._modes(skill, volatility)
        rank = _cdf(normal)
        solved = rank > 1 - share
        inner = (rank - (1 - share)) / share if solved else rank / (1 - share)
        wobble = _NORMAL.inv_cdf(min(max(inner, 1e-6), 1 - 1e-6)) * self.inside
        return ((level if solved else self.fail_level) + wobble) / self._unit()


@dataclass(frozen=True, slots=True)
class Table:
    """The shape of a list of real scores, moved by skill and stretched by volatility."""

    name: str
    ranks: tuple[float, ...]
    values: tuple[float, ...]
    """The standardised score at each of the ranks, both rising."""

    def mean(self, skill: float, volatility: float) -> float:  # noqa: ARG002 - volatility does not move the mean
        """The true mean score."""
        return skill

    def score(self, skill: float, volatility: float, normal: float) -> float:
        """The score of one run."""
        return skill + volatility * _between(self.ranks, self.values, _cdf(normal))


def table(name: str, ranks: tuple[float, ...], values: tuple[float, ...]) -> Table:
    """A family with this shape, standardised to mean 0 and standard deviation 1."""
    grid = [_between(ranks, values, (step + 0.5) / 20_000) for step in range(20_000)]
    centre, wide = fmean(grid), pstdev(grid)
    return Table(name, ranks, tuple((value - centre) / wide for value in values))


def from_scores(name: str, scores: list[float]) -> Table:
    """A family with the shape of these scores, such as a baseline's own."""
    ordered = sorted(scores)
    if len(ordered) < 5 or ordered[0] == ordered[-1]:
        raise UserError(name, f"has {len(ordered)} scores, but a shape needs at least 5 that are not all the same")
    last = len(ordered) - 1
    return table(name, tuple(place / last for place in range(len(ordered))), tuple(ordered))


def family(name: str) -> Family:
    """A shipped family by its name."""
    if name not in FAMILIES:
        hint = did_you_mean(name, FAMILIES) or f"the shipped ones are {', '.join(FAMILIES)}"
        raise UserError("--family", f"`{name[:60]}` is not a family", hint=hint)
    return FAMILIES[name]


def _cdf(normal: float) -> float:
    return 0.5 * (1 + erf(normal / sqrt(2)))


def _between(ranks: tuple[float, ...], values: tuple[float, ...], rank: float) -> float:
    """The value at a rank, by straight lines between the listed ones."""
    right = bisect_right(ranks, rank)
    if right == 0:
        return values[0]
    if right == len(ranks):
        return values[-1]
    low, high = ranks[right - 1], ranks[right]
    return values[right - 1] + (values[right] - values[right - 1]) * (rank - low) / (high - low)


# Final returns of SAC and TD3 on HalfCheetah over about 190 seeds each, as quantiles of the data published with
# Colas, Sigaud and Oudeyer 2019, "A Hitchhiker's Guide to Statistical Comparisons of RL Algorithms". Their mark is
# a long left tail of seeds that failed.
_RANKS = (
    *(0, 0.005, 0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6),
    *(0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.925, 0.95, 0.97, 0.98, 0.99, 1),
)
_SAC = (
    *(-566, 7353, 7733, 8000, 8315, 10053, 10937, 11244, 11426, 11577, 11838, 11893, 11967, 12087, 12115, 12180),
    *(12264, 12331, 12374, 12459, 12517, 12579, 12667, 12740, 12816, 12898, 12967, 13034, 13154, 13393),
)
_TD3 = (
    *(4734, 5340, 6059, 6220, 6955, 7592, 8383, 8503, 9027, 9412, 9918, 10135, 10481, 10762, 10922, 11040),
    *(11156, 11319, 11474, 11556, 11681, 11791, 11934, 12108, 12174, 12278, 12458, 12475, 12637, 12727),
)
FAMILIES: dict[str, Family] = {
    one.name: one
    for one in (Gaussian(), Lognormal(), Bimodal(), table("sac", _RANKS, _SAC), table("td3", _RANKS, _TD3))
}
"""The shipped families by name."""
