"""Exact rank tests, and the intervals that invert them. Pure: no clock, no disk, no randomness.

A score here is higher-is-better, or None for a seed that was lost by its own side's fault.
A lost seed ranks below every score and ties with other lost seeds. It has no number: where a
lost seed reaches an estimate or a limit, that figure is infinite.

What the test assumes: under "no gain" every arrangement of the scores over the two arms is equally
likely, which fresh train seeds give. When both arms share their train seeds and shared seeds do alike,
the test is conservative. An arm of equal mean but other spread is not "no gain" in this sense.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import comb, inf, isfinite, pi, sqrt, tan
from statistics import NormalDist, fmean, pvariance, stdev

import numpy as np
from numpy.typing import NDArray

Score = float | None
MOST_COUNTED = 30
"""The most seeds of an arm for which every arrangement is counted; beyond, the normal law is as good and quick."""
_SAME = 1e-12
"""Numbers that differ by less than this part of the largest one are equal: the rest is floating-point dust."""


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate of a gain with its two limits; infinite where lost seeds leave no number."""

    estimate: float
    """The most plausible gain."""
    low: float
    """The least plausible gain."""
    high: float
    """The greatest plausible gain."""


def rank_sum_p(candidate: Sequence[Score], incumbent: Sequence[Score], *, shift: float = 0.0) -> float:
    """How probable is a rank sum at least this high when the candidate gains no more than `shift`?

    The exact one-sided permutation test on mid-ranks: the share, among all arrangements of the pooled
    scores into two arms of these sizes, of those whose candidate arm ranks at least as high. With more
    than thirty seeds in an arm, the normal law with the correction for ties stands in for the counting.
    """
    if not isfinite(shift):
        raise ValueError(f"A shift must be finite, but it is {shift}.")
    ours, theirs = _checked(candidate) - shift, _checked(incumbent)
    ranks = _doubled_ranks(np.concatenate([ours, theirs]))
    if max(len(ours), len(theirs)) > MOST_COUNTED:
        return _normal_tail(ranks, len(ours))
    counts = _sums(tuple(sorted(ranks)), len(ours))
    return float(counts[sum(ranks[: len(ours)]) :].sum() / comb(len(ranks), len(ours)))


def smallest_p(seeds: int, others: int) -> float:
    """The least p-value that arms of these sizes can reach: one arrangement among all."""
    if seeds < 1 or others < 1:
        raise ValueError(f"Both arms need a seed, but they have {seeds} and {others}.")
    return 1 / comb(seeds + others, seeds)


def attained_level(seeds: int, others: int, alpha: float) -> float | None:
    """The greatest p-value up to `alpha` that untied arms of these sizes can have, or None when all are greater.

    P-values of few seeds come in steps, so a test at 0.025 of 6 against 6 really is one at 0.021.
    """
    if smallest_p(seeds, others) > alpha:
        return None
    if max(seeds, others) > MOST_COUNTED:
        return alpha
    counts = _sums(tuple(range(2, 2 * (seeds + others) + 1, 2)), seeds)[::-1]
    reachable = np.cumsum(counts[counts > 0]) / comb(seeds + others, seeds)
    return float(reachable[reachable <= alpha].max())


def wins(candidate: Sequence[Score], incumbent: Sequence[Score], *, shift: float = 0.0) -> float:
    """The share of pairs across the arms in which the candidate is ahead by more than `shift`; ties are half."""
    ranks = _doubled_ranks(np.concatenate([_checked(candidate) - shift, _checked(incumbent)]))
    seeds, others = len(candidate), len(incumbent)
    return (sum(ranks[:seeds]) / 2 - seeds * (seeds + 1) / 2) / (seeds * others)


def shift_interval(candidate: Sequence[Score], incumbent: Sequence[Score], *, level: float = 0.95) -> Interval:
    """The Hodges-Lehmann estimate of the gain, with exact two-sided limits from the same test.

    The estimate is the median of all differences across the arms. The limits enclose every gain that
    `rank_sum_p` would not reject at half of `1 - level`, in either direction. Where the seeds are too few
    for that level, the limits are infinite.
    """
    if not 0 < level < 1:
        raise ValueError(f"A level lies between 0 and 1, but it is {level}.")
    tail = (1 - level) / 2 * (1 + _SAME)
    differences = _differences(_checked(candidate), _checked(incumbent))
    return Interval(
        estimate=_median(differences),
        low=_lower_limit(candidate, incumbent, tail),
        high=-_lower_limit(incumbent, candidate, tail),
    )


def paired_interval(gains: Sequence[float], *, level: float) -> Interval:
    """The mean of paired gains with Student's one-sided limits, each at `level`; infinite for a single gain."""
    if not gains or not all(map(isfinite, gains)):
        raise ValueError(f"Gains must be finite and at least one, but they are {list(gains)}.")
    mean, seeds = fmean(gains), len(gains)
    if seeds == 1:
        return Interval(mean, -inf, inf)
    reach = student_t(level, seeds - 1) * stdev(gains) / sqrt(seeds)
    return Interval(mean, mean - reach, mean + reach)


def student_t(level: float, freedom: int) -> float:
    """The quantile of Student's t, for levels of at least one half.

    Exact for one and two degrees of freedom; Fisher's expansion from three on, which is right to 0.001 at the
    level 0.8 and to 2 % up to the level 0.99.
    """
    if not 0.5 <= level < 1 or freedom < 1:
        raise ValueError(f"A level of 0.5 to 1 and a degree of freedom are needed, not {level} and {freedom}.")
    if freedom == 1:
        return tan(pi * (level - 0.5))
    if freedom == 2:
        centred = 2 * level - 1
        return centred * sqrt(2 / (1 - centred**2))
    z = NormalDist().inv_cdf(level)
    return (
        z
        + (z**3 + z) / (4 * freedom)
        + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * freedom**3)
    )


def _checked(scores: Sequence[Score]) -> NDArray[np.float64]:
    """The scores as numbers, with minus infinity for lost seeds; or a complaint about a number that is none."""
    if not scores:
        raise ValueError("An arm needs at least one seed, but this one has none.")
    odd = [score for score in scores if score is not None and not isfinite(score)]
    if odd:
        raise ValueError(f"A score must be finite or None for a lost seed, but one is {odd[0]}.")
    return np.array([-inf if score is None else score for score in scores], dtype=np.float64)


def _doubled_ranks(values: NDArray[np.float64]) -> list[int]:
    """Twice the mid-rank of each value: whole numbers even where values tie."""
    finite = np.isfinite(values)
    unit = float(np.abs(values[finite]).max(initial=0.0)) * _SAME or 1.0
    levels = np.where(finite, np.rint(np.where(finite, values, 0.0) / unit), -inf)
    ordered = np.sort(levels)
    below = np.searchsorted(ordered, levels, side="left")
    upto = np.searchsorted(ordered, levels, side="right")
    return [int(first) + 1 + int(last) for first, last in zip(below, upto, strict=True)]


@lru_cache(maxsize=256)
def _sums(ranks: tuple[int, ...], size: int) -> NDArray[np.float64]:
    """How many arrangements of `size` of these ranks have each sum.

    Counted one rank after the other instead of one arrangement after the other: 12 v 12 has 2.7 million of
    them. The counts are exact up to 28 v 28 and right to 15 digits beyond.
    """
    most = sum(ranks[-size:])
    counts = np.zeros((size + 1, most + 1))
    counts[0, 0] = 1.0
    for rank in ranks:
        counts[1:, rank:] += counts[:-1, : most + 1 - rank].copy()
    found: NDArray[np.float64] = counts[size]
    return found


def _normal_tail(ranks: list[int], size: int) -> float:
    """The chance of a rank sum at least this high, by the normal law with the permutation variance of these ranks."""
    pooled = len(ranks)
    spread = sqrt(size * (pooled - size) / (pooled - 1) * pvariance(ranks))
    if not spread:
        return 1.0
    observed = sum(ranks[:size]) - 1  # half a rank nearer, because rank sums come in steps
    return NormalDist().cdf((size * fmean(ranks) - observed) / spread)


def _differences(ours: NDArray[np.float64], theirs: NDArray[np.float64]) -> NDArray[np.float64]:
    """Every difference across the arms, sorted; two lost seeds tie."""
    with np.errstate(invalid="ignore"):
        found = np.subtract.outer(ours, theirs).ravel()
    return np.sort(np.where(np.isnan(found), 0.0, found))


def _median(ordered: NDArray[np.float64]) -> float:
    middle = len(ordered) // 2
    if len(ordered) % 2:
        return float(ordered[middle])
    return float((ordered[middle - 1] + ordered[middle]) / 2)


def _lower_limit(candidate: Sequence[Score], incumbent: Sequence[Score], tail: float) -> float:
    """The least gain that the test does not reject.

    The p-value only changes at differences across the arms, so it is asked once between each two of them: gap
    after gap from below, because ties inside an arm can make it fall back a little, and by halving where that
    would take too long.
    """
    differences = _differences(_checked(candidate), _checked(incumbent))
    edges = np.unique(differences[np.isfinite(differences)])
    if not len(edges):
        return -inf if rank_sum_p(candidate, incumbent) > tail else inf
    beyond = 1.0 + float(np.abs(edges).max())
    middles = [edges[0] - beyond, *((edges[1:] + edges[:-1]) / 2), edges[-1] + beyond]

    def is_plausible(gap: int) -> bool:
        return rank_sum_p(candidate, incumbent, shift=float(middles[gap])) > tail

    gaps = range(len(middles))
    if max(len(candidate), len(incumbent)) > MOST_COUNTED:
        first = bisect_left(gaps, x=True, key=is_plausible)
    else:
        first = next((gap for gap in gaps if is_plausible(gap)), len(middles))
    if first == len(middles):
        return inf
    return -inf if first == 0 else float(edges[first - 1])
