"""An attempt to certify: the tip against the incumbent on fresh seeds, at the looks that were frozen beforehand.

A pure fold of the two arms' scores. Seeds beyond the look that decided are not looked at, so the answer is the same
whenever the question is asked again. Scores are balanced: every look compares as many seeds of one arm as of the other.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil, isfinite
from statistics import NormalDist, fmean, stdev

from overnight.decide.belief import Score
from overnight.decide.certify import POWER, Arm, Certification, better_is_higher, headline
from overnight.decide.guards import Guarded, guarded, leans_on_luck, mean_gain_interval
from overnight.decide.intervals import Interval, paired_interval, wins
from overnight.decide.permute import mean_gain_p, paired_gain_p
from overnight.decide.spending import LookPlan
from overnight.records.decision import Verdict
from overnight.records.metric import MetricSpec

_HOPELESS = 0.5
"""An attempt whose p-value is above this at a look is given up."""
_MOST_PLANNED = 1_000


@dataclass(frozen=True, slots=True)
class SeedsWanted:
    """The next look needs this many fresh seeds of each arm in all."""

    seeds: int


def attempt(
    metric: MetricSpec, plan: LookPlan, candidate: Arm, incumbent: Arm, *, alpha: float, next_alpha: float | None = None
) -> Certification | SeedsWanted:
    """Say whether the tip is better than the incumbent, or how many seeds the next look needs.

    At each look of the plan, with as many seeds of either arm:

    * certified when the permutation test of the mean gain, with the least gain taken off, has a p-value of at most
      the look's share of `alpha`, the 95 % interval of the gain lies above the least gain, and every guard holds;
    * refuted when the p-value is above one half, or a guardrail is shown to be worse than its margin;
    * otherwise the next look is asked for, and after the last one the verdict is inconclusive, with the number of
      fresh seeds that a new attempt at `next_alpha` would need at this gain.

    A seed that an arm lost by its own fault counts one standard deviation below the worst score of both.
    The looks and `alpha` must have been fixed before the first score was seen.
    """
    odd = [one for one in (*candidate.scores, *incumbent.scores) if one is not None and not isfinite(one)]
    if odd:
        raise ValueError(f"A score must be finite or None for a lost seed, but one is {odd[0]}.")
    for place, (seeds, share) in enumerate(zip(plan.looks, plan.shares, strict=True)):
        if min(len(candidate.scores), len(incumbent.scores)) < seeds:
            return SeedsWanted(seeds)
        seen = _Look.at(metric, plan, _first(candidate, seeds), _first(incumbent, seeds), alpha * share)
        verdict = seen.verdict(metric)
        if verdict is None and place + 1 == len(plan.looks):
            verdict = Verdict.INCONCLUSIVE
        if verdict is not None:
            return seen.told(metric, plan, verdict, alpha, next_alpha or alpha)
    raise ValueError("A plan has at least one look, but this one has none.")


def seeds_to_decide(gain: float, noise: float, alpha: float, *, power: float = POWER) -> int | None:
    """Fresh seeds a side at which a true gain of this size is certified so often; None beyond a thousand."""
    if not (gain > 0 and noise >= 0 and isfinite(gain) and isfinite(noise)):
        return None
    normal = NormalDist()
    found = 2 * ((normal.inv_cdf(power) - normal.inv_cdf(alpha)) * noise / gain) ** 2
    return max(4, ceil(found)) if found <= _MOST_PLANNED else None


def promise(total: float) -> str:
    """The sentence that tells how often claims are wrong; it belongs to every claim."""
    return f"Chance that a night like this claims a gain that is not there: below {100 * total:g} %."


@dataclass(frozen=True, slots=True, kw_only=True)
class _Look:
    candidate: Arm
    incumbent: Arm
    ours: tuple[Score, ...]
    theirs: tuple[Score, ...]
    p_value: float
    bar: float
    gain: Interval
    guards: Guarded

    @classmethod
    def at(cls, metric: MetricSpec, plan: LookPlan, candidate: Arm, incumbent: Arm, bar: float) -> "_Look":
        ours = better_is_higher(metric.direction, candidate.scores)
        theirs = better_is_higher(metric.direction, incumbent.scores)
        mine, other = floored(ours, theirs)
        if plan.paired:
            gains = [one - two for one, two in zip(mine, other, strict=True)]
            p_value = paired_gain_p([gain - metric.least_gain for gain in gains])
        else:
            p_value = mean_gain_p(mine, other, shift=metric.least_gain)
        guards = guarded(metric.guardrails, candidate.guardrails, incumbent.guardrails, (ours, theirs))
        if p_value <= bar and not guards.open and leans_on_luck(mine, other, paired=plan.paired):
            guards = replace(guards, open=("the level of the low seeds",))
        return cls(
            candidate=candidate,
            incumbent=incumbent,
            ours=ours,
            theirs=theirs,
            p_value=p_value,
            bar=bar,
            gain=_gain(ours, theirs, paired=plan.paired),
            guards=guards,
        )

    def verdict(self, metric: MetricSpec) -> Verdict | None:
        if self.guards.broken or self.p_value > _HOPELESS:
            return Verdict.REFUTED
        sure = self.p_value <= self.bar and self.gain.low > metric.least_gain and isfinite(self.gain.low)
        return Verdict.CERTIFIED if sure and self.guards.hold() else None

    def told(
        self, metric: MetricSpec, plan: LookPlan, verdict: Verdict, alpha: float, next_alpha: float
    ) -> Certification:
        wanted = self._wanted(metric, plan, next_alpha) if verdict is Verdict.INCONCLUSIVE else None
        ahead = wins(self.ours, self.theirs)
        shown = headline(metric, self.gain, self.candidate, self.incumbent)
        return Certification(
            metric=metric,
            verdict=verdict,
            because=f"{shown}{self._why(metric, verdict, wanted)}.",
            rule=_rule(metric, plan, alpha),
            p_value=self.p_value,
            gain=self.gain,
            candidate=self.candidate,
            incumbent=self.incumbent,
            guardrails=self.guards.findings,
            seeds_wanted=wanted,
            improvement=ahead,
            error_spent=alpha,
            paired=plan.paired,
            details=(
                f"p = {self.p_value:.2g} where this look allows {self.bar:.2g}; the attempt may spend {alpha:.2g}; "
                f"a seed of the candidate beats one of the incumbent {100 * ahead:.0f} times in a hundred."
            ),
        )

    def _wanted(self, metric: MetricSpec, plan: LookPlan, alpha: float) -> int | None:
        mine, other = floored(self.ours, self.theirs)
        if plan.paired:
            noise = stdev([one - two for one, two in zip(mine, other, strict=True)]) / 2**0.5
        else:
            noise = ((stdev(mine) ** 2 + stdev(other) ** 2) / 2) ** 0.5
        return seeds_to_decide(fmean(mine) - fmean(other) - metric.least_gain, noise, alpha * plan.shares[-1])

    def _why(self, metric: MetricSpec, verdict: Verdict, wanted: int | None) -> str:
        if verdict is Verdict.CERTIFIED:
            return ""
        if self.guards.broken:
            return f"; not better, because {', '.join(self.guards.broken)} got worse than its margin"
        if verdict is Verdict.REFUTED:
            return f"; no gain above {metric.least_gain:g} showed, so the attempt was given up"
        if self.guards.silent:
            return f"; nothing is claimed, because {', '.join(self.guards.silent)} was not measured on every seed"
        if self.p_value <= self.bar and self.guards.open:
            return f"; nothing is claimed, because {', '.join(self.guards.open)} may have got worse"
        if wanted is None:
            return f"; not decided, and more than {_MOST_PLANNED:,} fresh seeds each would be needed at this gain"
        return f"; not decided: about {wanted} fresh seeds each would decide at this gain, {2 * wanted} runs"


def _first(arm: Arm, seeds: int) -> Arm:
    rails = {name: tuple(values[:seeds]) for name, values in arm.guardrails.items()}
    return replace(arm, scores=arm.scores[:seeds], guardrails=rails)


def floored(ours: Sequence[Score], theirs: Sequence[Score]) -> tuple[list[float], list[float]]:
    """The scores as numbers: a lost seed is one standard deviation below the worst score of both arms."""
    known = [one for one in (*ours, *theirs) if one is not None]
    floor = (min(known) - (stdev(known) if len(known) > 1 else 1.0)) if known else 0.0
    return [floor if one is None else one for one in ours], [floor if one is None else one for one in theirs]


def _gain(ours: Sequence[Score], theirs: Sequence[Score], *, paired: bool) -> Interval:
    """The gain in the mean over the seeds that brought a score, with its 95 % interval."""
    if paired:
        gains = [one - two for one, two in zip(ours, theirs, strict=True) if one is not None and two is not None]
        return paired_interval(gains, level=0.975) if gains else Interval(0.0, float("-inf"), float("inf"))
    mine, other = [one for one in ours if one is not None], [one for one in theirs if one is not None]
    if not mine or not other:
        return Interval(0.0, float("-inf"), float("inf"))
    return mean_gain_interval(mine, other)


def _rule(metric: MetricSpec, plan: LookPlan, alpha: float) -> str:
    looks = ", ".join(f"{seeds} v {seeds}" for seeds in plan.looks)
    kind = "paired by seed" if plan.paired else "of means"
    return (
        f"Certification on fresh seeds: permutation test {kind} of a gain above {metric.least_gain:g} {metric.unit}, "
        f"looks at {looks}, at most {alpha:.2g} false claims in this attempt, every guardrail shown not to be worse by "
        "its margin, no more seeds lost than the incumbent, low seeds no lower, and no gain that low luck undoes."
    )
