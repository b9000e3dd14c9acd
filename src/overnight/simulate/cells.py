"""Many studies of one kind, and what they show together."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import comb, sqrt
from statistics import fmean, stdev

from overnight.simulate.families import Family
from overnight.simulate.lab import Lab, Mix, stream
from overnight.simulate.rules import Played, Rule

ENDLESS = 1e9
"""As many runs as the ideas need."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What is simulated: which ideas come, how many runs there are, how alike seeds are."""

    kind: str = "mixed"
    """`null`, `volatile`, `harmful` or `mixed`."""
    ideas: int = 600
    runs: float = 600
    """Training runs of the study in all, or `ENDLESS`."""
    shared_luck: float = 0.2
    """The correlation between arms on one seed."""
    idea_cost: float = 0.0
    """What an idea costs in runs."""
    mix: Mix | None = None
    """What a mixed stream is made of; None for the shipped mix."""
    seed: int = 3001
    """Everything that is drawn follows from it."""


@dataclass(frozen=True, slots=True)
class Cell:
    """The studies of one rule under one setting, by family."""

    rule: str
    setting: Setting
    studies: Mapping[str, tuple[Played, ...]]

    def all(self) -> tuple[Played, ...]:
        """Every study."""
        return tuple(one for found in self.studies.values() for one in found)

    def gain(self) -> float:
        """The mean true gain of what is claimed."""
        return fmean(one.gain for one in self.all())

    def gains(self) -> dict[str, float]:
        """The mean true gain by family."""
        return {name: fmean(one.gain for one in found) for name, found in self.studies.items()}

    def tip_gain(self) -> float:
        """The mean true gain of what is kept, claimed or not."""
        return fmean(one.tip_gain for one in self.all())

    def false(self) -> tuple[int, int]:
        """Studies with a false claim, and all studies."""
        return sum(one.false_claims > 0 for one in self.all()), len(self.all())

    def false_by_family(self) -> dict[str, float]:
        """The share of studies with a false claim, by family."""
        return {name: fmean(one.false_claims > 0 for one in found) for name, found in self.studies.items()}

    def false_bound(self, level: float = 0.95) -> float:
        """The one-sided exact upper limit of the chance of any false claim in a study."""
        return upper_limit(*self.false(), level=level)

    def inflation(self) -> float | None:
        """The claimed gain over the true one, in studies that claim."""
        told = [one for one in self.all() if one.claims]
        true = sum(one.gain for one in told)
        return sum(one.claimed for one in told) / true if true else None

    def coverage(self) -> float | None:
        """The share of told intervals that hold the true gain."""
        told = [one.covered for one in self.all() if one.covered is not None]
        return fmean(told) if told else None

    def claiming(self) -> float:
        """The share of studies that claim anything."""
        return fmean(one.claims > 0 for one in self.all())

    def runs(self) -> float:
        """The mean cost in runs."""
        return fmean(one.runs for one in self.all())

    def passengers(self) -> float | None:
        """The share of changes in the claimed code that are no improvement by themselves."""
        changes = sum(one.changes for one in self.all())
        return sum(one.passengers for one in self.all()) / changes if changes else None

    def gain_error(self) -> float:
        """The standard error of the mean true gain."""
        found = [one.gain for one in self.all()]
        return stdev(found) / sqrt(len(found)) if len(found) > 1 else 0.0


def play(rule: Rule, setting: Setting, families: Sequence[Family], studies: int) -> Cell:
    """So many studies a family. Every rule meets the same streams and the same luck."""
    found = {}
    for place, family in enumerate(families):
        keys = [setting.seed * 1_000_003 + place * 10_007 + number for number in range(studies)]
        found[family.name] = tuple(_play_one(rule, setting, family, key) for key in keys)
    return Cell(rule.name, setting, found)


def with_runs(setting: Setting, runs: float) -> Setting:
    """The same setting with another budget."""
    return replace(setting, runs=runs)


def upper_limit(hits: int, trials: int, *, level: float = 0.95) -> float:
    """The exact (Clopper-Pearson) one-sided upper limit of a share."""
    if hits >= trials:
        return 1.0
    low, high = hits / trials, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        if _at_most(hits, trials, middle) > 1 - level:
            low = middle
        else:
            high = middle
    return high


def _at_most(hits: int, trials: int, share: float) -> float:
    return sum(comb(trials, k) * share**k * (1 - share) ** (trials - k) for k in range(hits + 1))


def _play_one(rule: Rule, setting: Setting, family: Family, key: int) -> Played:
    lab = Lab(family, key, setting.shared_luck, setting.runs)
    ideas = stream(setting.kind, setting.ideas, key, setting.mix)
    return rule.play(lab, ideas, idea_cost=setting.idea_cost)
