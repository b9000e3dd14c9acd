"""What a certified change did in another setting: a gain with its interval, and one sentence. Claims nothing."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Literal

from overnight.decide.belief import Score
from overnight.decide.guards import loses_more, mean_gain_interval
from overnight.decide.intervals import Interval
from overnight.decide.telling import decimals, told
from overnight.records.metric import Direction, MetricSpec


@dataclass(frozen=True, slots=True)
class Transferred:
    """How one setting turned out."""

    holds: Literal["holds", "reversed", "not shown", "unknown"]
    """Whether the whole interval lies above zero, below it, or around it; unknown without two scores a side."""
    gain: Interval | None
    """How much better the candidate's mean is, higher is better always, with its 95 % interval."""
    means: tuple[float | None, float | None]
    """The baseline's and the candidate's mean over the seeds that brought a score."""
    says: str
    """The result in one sentence."""


def judge_transfer(metric: MetricSpec, ours: Sequence[Score], theirs: Sequence[Score], *, where: str) -> Transferred:
    """Say whether the gain is there as well. A candidate that loses more seeds than the baseline never holds."""
    mine, other = [one for one in ours if one is not None], [one for one in theirs if one is not None]
    means = (fmean(other) if other else None, fmean(mine) if mine else None)
    lost = f"; {len(ours) - len(mine)} against {len(theirs) - len(other)} of {len(ours)} seeds were lost"
    lost = lost if len(mine) < len(ours) or len(other) < len(theirs) else ""
    if min(len(mine), len(other)) < 2:
        return Transferred("unknown", None, means, f"{where}: too few runs brought a score to compare{lost}.")
    sign = 1.0 if metric.direction is Direction.HIGHER else -1.0
    gain = mean_gain_interval([sign * one for one in mine], [sign * one for one in other])
    word: Literal["holds", "reversed", "not shown"] = "not shown"
    if gain.low > 0 and not loses_more(ours, theirs):
        word = "holds"
    elif gain.high < 0:
        word = "reversed"
    places = decimals(gain.high - gain.low, digits=2)
    span = f"95 % interval {told(gain.low, places)} to {told(gain.high, places)}"
    size = (
        f"{told(fmean(other), places)} → {told(fmean(mine), places)} ({told(gain.estimate, places, sign=True)}, {span})"
    )
    what = {"holds": "the gain holds", "reversed": "the change is worse", "not shown": "no gain is shown"}[word]
    return Transferred(word, gain, means, f"{where}: {what}; {metric.unit} {size}, {len(ours)} seeds each{lost}.")
