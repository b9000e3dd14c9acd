"""What may not get worse while the score rises: declared guardrails, lost seeds, and the low seeds.

A declared guardrail holds when the same fresh seeds show that it is not worse by its margin or more
(non-inferiority, one-sided at 5 %). All must hold, so their errors need no sharing out. Three guards need no
declaration: the candidate may not lose more seeds than the incumbent by its own fault; its low seeds, one standard
deviation below its mean, may not lie below the incumbent's; and the gain must still show, at 5 %, if one of its seeds
in twelve had been as low as the lowest of both arms, unless every one of them beats every one of the incumbent's. The
last two keep a candidate of the same mean that is merely noisier from passing on seeds that happen to be lucky.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from statistics import fmean, stdev, variance

from overnight.decide.belief import Score
from overnight.decide.intervals import Interval
from overnight.decide.permute import mean_gain_p, paired_gain_p
from overnight.decide.student import mean_error, t_quantile
from overnight.records.decision import GuardrailFinding
from overnight.records.metric import Direction, Guardrail

NI_LEVEL = 0.05
"""The chance at which a guardrail that is worse by exactly its margin is taken to hold."""
_ONE_IN = 12
"""A gain must outlast one low seed in so many, and at least one."""
_FEWEST = 5
"""From this many seeds a side a gain can outlast a low seed."""
_LEAST_SPREAD = 0.25
"""The part of the other arm's variance that an arm has at least."""


@dataclass(frozen=True, slots=True)
class Guarded:
    """How the guards fared, each named in the list of what was found."""

    findings: tuple[GuardrailFinding, ...] = ()
    """The declared guardrails that have a number."""
    broken: tuple[str, ...] = ()
    """Shown worse than the margin: the candidate is refuted."""
    open: tuple[str, ...] = ()
    """Neither shown to hold nor shown worse: more seeds may tell."""
    silent: tuple[str, ...] = ()
    """Not measured on every seed, so nothing can be said."""

    def hold(self) -> bool:
        """Whether nothing stands against a claim."""
        return not (self.broken or self.open or self.silent)


def guarded(
    rails: Sequence[Guardrail],
    ours: Mapping[str, Sequence[Score]],
    theirs: Mapping[str, Sequence[Score]],
    scores: tuple[Sequence[Score], Sequence[Score]],
) -> Guarded:
    """Ask every guard. `scores` are the two arms' primary scores, higher is better, of the same seeds."""
    found: dict[str, list[str]] = {"broken": [], "open": [], "silent": []}
    findings = []
    for rail in rails:
        mine, other = _measured(ours.get(rail.name, ()), scores[0]), _measured(theirs.get(rail.name, ()), scores[1])
        if mine is None or other is None:
            found["silent"].append(rail.name)
            continue
        loss, holds = non_inferior(rail, mine, other)
        findings.append(GuardrailFinding(name=rail.name, worse_by=loss.estimate, margin=rail.margin))
        if loss.low > rail.margin:
            found["broken"].append(rail.name)
        elif not holds or loss.estimate > rail.margin:
            found["open"].append(rail.name)
    if loses_more(*scores):
        found["open"].append("the number of lost seeds")
    elif has_lower_lows(*scores):
        found["open"].append("the level of the low seeds")
    return Guarded(tuple(findings), tuple(found["broken"]), tuple(found["open"]), tuple(found["silent"]))


def non_inferior(rail: Guardrail, ours: Sequence[float], theirs: Sequence[float]) -> tuple[Interval, bool]:
    """How much worse the candidate is with its 95 % interval, and whether it is shown to be within the margin."""
    sign = 1.0 if rail.direction is Direction.HIGHER else -1.0
    mine, other = [sign * one for one in ours], [sign * one for one in theirs]
    gain = mean_gain_interval(mine, other)
    loss = Interval(0.0 - gain.estimate, 0.0 - gain.high, 0.0 - gain.low)
    if min(mine) == max(mine) == min(other) == max(other):
        return loss, True  # a measure that never moves has not got worse
    return loss, mean_gain_p(mine, other, shift=-rail.margin) <= NI_LEVEL


def loses_more(ours: Sequence[Score], theirs: Sequence[Score]) -> bool:
    """Whether the candidate lost a greater part of its seeds by its own fault."""
    return sum(one is None for one in ours) * len(theirs) > sum(one is None for one in theirs) * len(ours)


def has_lower_lows(ours: Sequence[Score], theirs: Sequence[Score]) -> bool:
    """Whether the candidate's low seeds, one standard deviation below the mean, lie below the incumbent's."""
    mine, other = [one for one in ours if one is not None], [one for one in theirs if one is not None]
    if len(mine) < 2 or len(other) < 2:
        return True
    return fmean(mine) - stdev(mine) < fmean(other) - stdev(other)


def leans_on_luck(ours: Sequence[float], theirs: Sequence[float], *, paired: bool = False) -> bool:
    """Whether the gain would be gone if one of the candidate's seeds in twelve were as low as the lowest of both arms.

    A dozen seeds seldom show a failure that comes once in twenty. What the other arm showed may happen here too.
    Four seeds a side cannot outlast a low one at 5 %, whatever the gain, so they are not asked. Nor are seeds that all
    beat all of the other arm's: its luckiest one was not enough, and no such luck lifts every seed above it.
    """
    if len(ours) < _FEWEST or min(ours) > max(theirs):
        return False
    floor, lowered = min(*ours, *theirs), list(ours)
    for place in sorted(range(len(ours)), key=ours.__getitem__)[: ceil(len(ours) / _ONE_IN)]:
        lowered[place] = floor
    if paired:
        return paired_gain_p([one - two for one, two in zip(lowered, theirs, strict=True)]) > NI_LEVEL
    return mean_gain_p(lowered, theirs) > NI_LEVEL


def mean_gain_interval(ours: Sequence[float], theirs: Sequence[float], *, level: float = 0.95) -> Interval:
    """How much higher the mean of ours is, with a two-sided Student interval of unpooled variances.

    The degrees of freedom are those of the smaller arm, which errs on the wide side. Seeds that agree by chance are
    not believed: no arm's variance counts as less than a quarter of the other's.
    """
    gain = fmean(ours) - fmean(theirs)
    seeds = min(len(ours), len(theirs))
    if seeds < 2:
        return Interval(gain, float("-inf"), float("inf"))
    spreads = variance(ours), variance(theirs)
    least = _LEAST_SPREAD * max(spreads)
    error = mean_error((max(spreads[0], least), max(spreads[1], least)), (len(ours), len(theirs)))
    reach = t_quantile((1 + level) / 2, seeds - 1) * error
    return Interval(gain, gain - reach, gain + reach)


def _measured(values: Sequence[Score], scores: Sequence[Score]) -> list[float] | None:
    """The guarded measure of every seed that brought a score, or None where one is missing."""
    if len(values) != len(scores):
        return None
    found = [value for value, score in zip(values, scores, strict=True) if score is not None]
    if not found:
        return None
    known = [value for value in found if value is not None]
    return known if len(known) == len(found) else None
