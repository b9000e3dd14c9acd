"""How the allowed chance of a false claim is shared out over a study's attempts, and over the looks of an attempt."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import pi
from typing import Literal

from overnight.decide.permute import least_mean_p, least_paired_p
from overnight.records.schedule import PAIRED_LOOK

Mode = Literal["family", "discovery"]
"""`family`: any false claim in the study at all; `discovery`: the expected share of false ones among the claims."""
_ALL = pi**2 / 6 - 1
_LEAST_SEEDS = 4
"""With fewer fresh seeds a side, no test can make a claim."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LookPlan:
    """When an attempt looks at its scores, and which part of its error each look may spend. Frozen before the first."""

    looks: tuple[int, ...]
    """Fresh seeds a side at each look, rising."""
    shares: tuple[float, ...]
    """The part of the attempt's error that each look may spend; together at most 1."""
    paired: bool = False
    """Whether both arms are compared seed by seed, because seeds were seen to share much of their luck."""

    def __post_init__(self) -> None:
        """Refuse a plan that cannot be followed, or that spends more than it has."""
        if not self.looks or len(self.looks) != len(self.shares):
            raise ValueError(f"Each look needs its share, but there are {len(self.looks)} and {len(self.shares)}.")
        if list(self.looks) != sorted(set(self.looks)) or self.looks[0] < 1:
            raise ValueError(f"Looks come at a rising number of seeds, not at {self.looks}.")
        if min(self.shares) <= 0 or sum(self.shares) > 1 + 1e-9:
            raise ValueError(f"Shares lie above 0 and sum up to at most 1, but they are {self.shares}.")

    def pairwise(self) -> "LookPlan":
        """The same plan for a comparison seed by seed, with at least eight seeds at the first look."""
        looks = tuple(max(PAIRED_LOOK, seeds) for seeds in self.looks)
        kept = [place for place, seeds in enumerate(looks) if seeds not in looks[place + 1 :]]
        shares = tuple(
            sum(share for share, seeds in zip(self.shares, looks, strict=True) if seeds == looks[place])
            for place in kept
        )
        return LookPlan(looks=tuple(looks[place] for place in kept), shares=shares, paired=True)

    def stretched(self, seeds: int) -> "LookPlan":
        """The same plan with its last look at so many seeds, which then gets half of what earlier looks may spend.

        A number of seeds that is not above the last look's changes nothing.
        """
        if seeds <= self.looks[-1]:
            return self
        earlier = tuple(share / 2 for share in self.shares[:-1])
        return replace(self, looks=(*self.looks[:-1], seeds), shares=(*earlier, 1 - sum(earlier)))

    def up_to(self, seeds: int) -> "LookPlan | None":
        """The same plan without looks beyond so many seeds; None where fewer than four leave nothing to look at.

        What later looks would have spent goes to the last one that is left.
        """
        kept = [(look, share) for look, share in zip(self.looks, self.shares, strict=True) if look < seeds]
        if seeds < _LEAST_SEEDS:
            return None
        if seeds >= self.looks[-1]:
            return self
        spent = sum(share for _, share in kept)
        looks, shares = (*(look for look, _ in kept), seeds), (*(share for _, share in kept), 1 - spent)
        return LookPlan(looks=looks, shares=shares, paired=self.paired)

    def runs(self) -> int:
        """The training runs of an attempt that uses every look."""
        return 2 * self.looks[-1]

    def can_certify(self, alpha: float) -> bool:
        """Whether any look can reach a p-value as small as its share of this error."""
        least = least_paired_p if self.paired else lambda seeds: least_mean_p(seeds, seeds)
        return any(least(seeds) <= alpha * share for seeds, share in zip(self.looks, self.shares, strict=True))


def error_for_next(past: Sequence[bool], total: float = 0.05, mode: Mode = "family") -> float:
    """The chance of a false claim that the next attempt may spend, after attempts that certified (True) or did not.

    The j-th attempt owns 1.55/(j+1)² of the total, so that all of them together, however many, own the total.
    By `family` (online fallback) an attempt that certified hands its error on to the next one, and the chance of
    any false claim in the whole study stays within the total. By `discovery` (LOND) each attempt's own share is
    multiplied by one more than the claims so far, and the expected share of false claims stays within the total.
    """
    if not 0 < total <= 0.5:
        raise ValueError(f"The total lies above 0 and is at most 0.5, but it is {total}.")
    own = [total / (_ALL * (attempt + 1) ** 2) for attempt in range(1, len(past) + 2)]
    if mode == "discovery":
        return own[-1] * (1 + sum(past))
    handed_on = 0.0
    for mine, certified in zip(own, past, strict=False):
        handed_on = mine + handed_on if certified else 0.0
    return own[-1] + handed_on


def attempts_that_can_certify(plan: LookPlan, total: float = 0.05) -> int:
    """How many attempts in a row can still certify when none before them did."""
    attempts = 0
    while attempts < 1000 and plan.can_certify(error_for_next((False,) * attempts, total)):
        attempts += 1
    return attempts
