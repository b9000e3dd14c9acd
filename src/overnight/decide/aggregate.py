"""Several tasks in one figure: interquartile mean, intervals, probability of improvement, performance profiles.

Scores come as one row a train seed and one column a task, already on a common scale where tasks are mixed.
Intervals are stratified percentile bootstraps: seeds are drawn again inside every task, tasks never. They are the
same for the same seed. With few seeds on one task such intervals are too narrow; a claim rests on certification.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Table = NDArray[np.float64]
REPLICATES = 2_000
"""How often seeds are drawn again by default."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One aggregate with its interval."""

    estimate: float
    """The figure itself."""
    low: float
    """The low end of its interval."""
    high: float
    """The high end of its interval."""


def as_table(scores: Sequence[Sequence[float]]) -> Table:
    """Scores as a table of seeds by tasks, or a complaint."""
    found = np.asarray(scores, dtype=np.float64)
    if found.ndim != 2 or not found.size:
        raise ValueError(f"Scores are a table of seeds by tasks, but their shape is {found.shape}.")
    if not np.isfinite(found).all():
        raise ValueError("Every score must be a finite number, but one is not.")
    return found


def iqm(scores: Table) -> float:
    """The mean of the middle half of all scores of all tasks: a quarter is cut off at either end."""
    ordered = np.sort(scores, axis=None)
    first, last = _middle(ordered)
    return float(ordered[first:last].mean())


def iqm_interval(scores: Table, *, level: float = 0.95, replicates: int = REPLICATES, seed: int = 0) -> Figure:
    """The interquartile mean with its stratified bootstrap interval."""
    drawn = _draw_iqm(scores, replicates, seed)
    return _figure(iqm(scores), drawn, level)


def mean_interval(scores: Table, *, level: float = 0.95, replicates: int = REPLICATES, seed: int = 0) -> Figure:
    """The mean over all tasks and seeds with its stratified bootstrap interval."""
    drawn = _draw_mean(scores, replicates, seed)
    return _figure(float(scores.mean()), drawn, level)


def iqm_gain(ours: Table, theirs: Table, *, level: float = 0.95, replicates: int = REPLICATES, seed: int = 0) -> Figure:
    """How much higher our interquartile mean is, with its interval; both sides are drawn again independently."""
    _check_tasks(ours, theirs)
    drawn = _draw_iqm(ours, replicates, seed) - _draw_iqm(theirs, replicates, seed + 1)
    return _figure(iqm(ours) - iqm(theirs), drawn, level)


def improvement(
    ours: Table, theirs: Table, *, level: float = 0.95, replicates: int = REPLICATES, seed: int = 0
) -> Figure:
    """The probability that a seed of ours beats one of theirs on the same task, averaged over tasks; ties are half."""
    _check_tasks(ours, theirs)
    wins = np.stack([_wins(ours[:, task], theirs[:, task]) for task in range(ours.shape[1])])
    mine = _drawn_counts(ours.shape, replicates, seed).reshape(replicates, *ours.shape).astype(np.float64)
    other = _drawn_counts(theirs.shape, replicates, seed + 1).reshape(replicates, *theirs.shape).astype(np.float64)
    drawn = np.zeros(replicates)
    for task, won in enumerate(wins):
        drawn += ((mine[:, :, task] @ won) * other[:, :, task]).sum(axis=1)
    drawn /= ours.shape[0] * theirs.shape[0] * ours.shape[1]
    return _figure(float(wins.mean()), drawn, level)


def profile(scores: Table, thresholds: Sequence[float]) -> tuple[float, ...]:
    """The share of runs above each threshold, over all tasks: the performance profile."""
    flat = np.sort(scores, axis=None)
    above = flat.size - np.searchsorted(flat, np.asarray(thresholds, dtype=np.float64), side="right")
    return tuple(float(one) for one in above / flat.size)


def profile_band(
    scores: Table, thresholds: Sequence[float], *, level: float = 0.95, replicates: int = REPLICATES, seed: int = 0
) -> tuple[Figure, ...]:
    """The performance profile with a pointwise stratified bootstrap band."""
    marks = np.asarray(thresholds, dtype=np.float64)
    counts = _drawn_counts(scores.shape, replicates, seed)
    drawn = (counts @ (scores.reshape(-1, 1) > marks) / scores.size).T
    return tuple(_figure(share, found, level) for share, found in zip(profile(scores, thresholds), drawn, strict=True))


def by_task(scores: Mapping[str, Sequence[float]]) -> Table:
    """Tasks by name as a table; every task needs as many seeds."""
    counts = {name: len(found) for name, found in scores.items()}
    if len(set(counts.values())) > 1:
        raise ValueError(f"Every task needs as many seeds, but they have {counts}.")
    return as_table(list(zip(*(scores[name] for name in sorted(scores)), strict=True)))


def _middle(flat: Table) -> tuple[int, int]:
    """Where the middle half begins and ends among so many scores in order."""
    return flat.size // 4, flat.size - flat.size // 4


def _draw_iqm(scores: Table, replicates: int, seed: int) -> Table:
    """The interquartile mean of every replicate.

    The scores are put in order once. A replicate is then only how often each of them was drawn: summed up along
    the order, the counts say which part of each falls into the middle half.
    """
    order = np.argsort(scores, axis=None, kind="stable")
    values = scores.ravel()[order]
    upto = np.cumsum(_drawn_counts(scores.shape, replicates, seed)[:, order], axis=1)
    first, last = _middle(values)
    inside = np.diff(np.clip(upto, first, last).astype(np.float64), axis=1, prepend=float(first))
    found: Table = inside @ values / (last - first)
    return found


def _draw_mean(scores: Table, replicates: int, seed: int) -> Table:
    found: Table = _drawn_counts(scores.shape, replicates, seed) @ scores.ravel() / scores.size
    return found


def _drawn_counts(shape: tuple[int, ...], replicates: int, seed: int) -> NDArray[np.int32]:
    """How often each score is drawn in each replicate, when seeds are drawn again inside every task."""
    if replicates < 1:
        raise ValueError(f"At least one replicate is needed, not {replicates}.")
    seeds, tasks = shape
    picked = np.random.default_rng(seed).integers(0, seeds, (replicates, seeds, tasks), dtype=np.int32)
    picked *= tasks
    picked += np.arange(tasks, dtype=np.int32)
    picked += np.arange(replicates, dtype=np.int32)[:, None, None] * (seeds * tasks)
    found = np.bincount(picked.ravel(), minlength=replicates * seeds * tasks)
    return found.reshape(replicates, -1).astype(np.int32)


def _wins(ours: Table, theirs: Table) -> Table:
    found: Table = (ours[:, None] > theirs) + 0.5 * (ours[:, None] == theirs)
    return found


def _figure(estimate: float, drawn: Table, level: float) -> Figure:
    low, high = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2])
    return Figure(estimate, float(low), float(high))


def _check_tasks(ours: Table, theirs: Table) -> None:
    if ours.shape[1] != theirs.shape[1]:
        raise ValueError(f"Both sides need the same tasks, but they have {ours.shape[1]} and {theirs.shape[1]}.")
