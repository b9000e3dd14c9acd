"""Is this difference real? Two per-seed tables of anybody's results, compared without any study around them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, variance

from overnight.decide.aggregate import (
    Figure,
    Table,
    by_task,
    improvement,
    iqm_gain,
    iqm_interval,
    mean_interval,
    profile_band,
)
from overnight.decide.intervals import Interval
from overnight.decide.looks import seeds_to_decide
from overnight.decide.permute import least_mean_p, mean_gain_p
from overnight.decide.student import mean_error, t_quantile, welch_freedom
from overnight.decide.telling import decimals, told

_SURE = 0.05
_MARKS = 20
"""At how many scores a performance profile is told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskDifference:
    """One task's two arms."""

    task: str
    """The task's name; empty where there is only one."""
    seeds: tuple[int, int]
    """How many seeds the first and the second table have."""
    means: tuple[float, float]
    """Their means."""
    gain: Interval
    """How much higher the second one's mean is, with Welch's 95 % interval."""
    p_value: float
    """The two-sided permutation p-value of that difference."""
    improvement: float
    """The chance that a seed of the second table beats one of the first."""


@dataclass(frozen=True, slots=True)
class Threshold:
    """One point of two performance profiles."""

    score: float
    """The score that is looked at."""
    first: Figure
    """The share of the first table's runs above it, with its band."""
    second: Figure
    """The share of the second table's runs above it, with its band."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Two tables, task by task and together."""

    tasks: tuple[TaskDifference, ...]
    """Each task."""
    iqm: Figure | None
    """The gain of the interquartile mean over all tasks; None where tasks have unequal numbers of seeds."""
    improvement: Figure | None
    """The probability of improvement over all tasks, with its stratified bootstrap interval."""
    levels: tuple[Figure, Figure] | None
    """Both tables' means over all tasks, with stratified bootstrap intervals."""
    middles: tuple[Figure, Figure] | None
    """Both tables' interquartile means over all tasks, with stratified bootstrap intervals."""
    profiles: tuple[Threshold, ...]
    """The performance profiles: what part of the runs of either table lies above each score; empty as above."""
    says: str
    """The answer in one sentence."""


def compare(
    first: Mapping[str, Sequence[float]], second: Mapping[str, Sequence[float]], *, seed: int = 0
) -> Comparison:
    """Compare two tables of scores by task. Positive gains mean that the second one is higher."""
    if sorted(first) != sorted(second):
        raise ValueError(f"Both tables need the same tasks, but they have {sorted(first)} and {sorted(second)}.")
    tasks = tuple(_difference(task, first[task], second[task]) for task in sorted(first))
    even = all(len({len(scores) for scores in side.values()}) == 1 for side in (first, second))
    pooled = (by_task(first), by_task(second)) if even else None
    return Comparison(
        tasks=tasks,
        iqm=iqm_gain(pooled[1], pooled[0], seed=seed) if pooled else None,
        improvement=improvement(pooled[1], pooled[0], seed=seed) if pooled else None,
        levels=(mean_interval(pooled[0], seed=seed), mean_interval(pooled[1], seed=seed)) if pooled else None,
        middles=(iqm_interval(pooled[0], seed=seed), iqm_interval(pooled[1], seed=seed)) if pooled else None,
        profiles=_profiles(*pooled, seed=seed) if pooled else (),
        says=_answer(tasks),
    )


def welch_interval(ours: Sequence[float], theirs: Sequence[float], *, level: float = 0.95) -> Interval:
    """How much higher the mean of ours is, with Welch's two-sided interval."""
    seeds, variances = (len(ours), len(theirs)), (variance(ours), variance(theirs))
    gain = fmean(ours) - fmean(theirs)
    reach = t_quantile((1 + level) / 2, welch_freedom(variances, seeds)) * mean_error(variances, seeds)
    return Interval(gain, gain - reach, gain + reach)


def _profiles(first: Table, second: Table, *, seed: int) -> tuple[Threshold, ...]:
    """Both profiles at the same scores, evenly from the lowest to the highest of both tables."""
    low, high = min(first.min(), second.min()), max(first.max(), second.max())
    marks = [float(low + (high - low) * step / _MARKS) for step in range(_MARKS)]
    bands = zip(marks, profile_band(first, marks, seed=seed), profile_band(second, marks, seed=seed + 1), strict=True)
    return tuple(Threshold(*point) for point in bands)


def _difference(task: str, first: Sequence[float], second: Sequence[float]) -> TaskDifference:
    up, down = mean_gain_p(second, first), mean_gain_p(first, second)
    wins = sum((ours > theirs) + 0.5 * (ours == theirs) for ours in second for theirs in first)
    return TaskDifference(
        task=task,
        seeds=(len(first), len(second)),
        means=(sum(first) / len(first), sum(second) / len(second)),
        gain=welch_interval(second, first),
        p_value=min(1.0, 2 * min(up, down)),
        improvement=wins / (len(first) * len(second)),
    )


def _answer(tasks: Sequence[TaskDifference]) -> str:
    if len(tasks) > 1:
        level = _SURE / len(tasks)
        real = [one for one in tasks if one.p_value <= level]
        return f"The difference is real on {len(real)} of {len(tasks)} tasks, at 5 % over all of them together."
    one = tasks[0]
    places = decimals(one.gain.high - one.gain.low if one.seeds != (1, 1) else one.gain.estimate, digits=2)
    size = told(one.gain.estimate, places, sign=True)
    if one.p_value <= _SURE:
        return f"The difference of {size} is real: chance alone brings one as large {_often(one.p_value)}."
    if 2 * least_mean_p(*one.seeds) > _SURE:
        return (
            f"Nobody can tell: {one.seeds[0]} against {one.seeds[1]} seeds are too few for any difference to be shown."
        )
    return f"The difference of {size} may be chance, which brings one as large {_often(one.p_value)}.{_more(one)}"


def _more(one: TaskDifference) -> str:
    """How many seeds would decide, if the difference were as large as it looks."""
    half = (one.gain.high - one.gain.low) / 2
    seeds = min(one.seeds)
    noise = half / 2 * (seeds / 2) ** 0.5  # about two standard errors make the half width
    wanted = seeds_to_decide(abs(one.gain.estimate), noise, _SURE / 2)
    return "" if wanted is None or wanted <= seeds else f" About {wanted} seeds a side would decide."


def _often(p_value: float) -> str:
    if p_value >= 0.01:
        return f"{100 * p_value:.0f} times in a hundred"
    return f"{max(1, round(10_000 * p_value))} times in ten thousand"
