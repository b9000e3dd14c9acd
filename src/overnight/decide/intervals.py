"""How often one arm beats the other, and intervals of paired gains. Pure: no clock, no disk, no randomness.

A score here is higher-is-better, or None for a seed that was lost by its own side's fault.
A lost seed ranks below every score and ties with other lost seeds.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, isfinite, sqrt
from statistics import fmean, stdev

import numpy as np
from numpy.typing import NDArray

from overnight.decide.student import t_quantile

Score = float | None
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


def wins(candidate: Sequence[Score], incumbent: Sequence[Score], *, shift: float = 0.0) -> float:
    """The share of pairs across the arms in which the candidate is ahead by more than `shift`; ties are half."""
    ranks = _doubled_ranks(np.concatenate([_checked(candidate) - shift, _checked(incumbent)]))
    seeds, others = len(candidate), len(incumbent)
    return (sum(ranks[:seeds]) / 2 - seeds * (seeds + 1) / 2) / (seeds * others)


def paired_interval(gains: Sequence[float], *, level: float) -> Interval:
    """The mean of paired gains with Student's one-sided limits, each at `level`; infinite for a single gain."""
    if not gains or not all(map(isfinite, gains)):
        raise ValueError(f"Gains must be finite and at least one, but they are {list(gains)}.")
    mean, seeds = fmean(gains), len(gains)
    if seeds == 1:
        return Interval(mean, -inf, inf)
    reach = t_quantile(level, seeds - 1) * stdev(gains) / sqrt(seeds)
    return Interval(mean, mean - reach, mean + reach)


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
