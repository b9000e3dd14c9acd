"""Permutation tests of means: exact when the candidate does nothing, whatever the scores' shape.

The arrangements are counted one by one while they are few. Beyond that a fixed list of 9,999 of them is drawn
once from a fixed seed and the observed one is added, which keeps the test valid and its answer the same everywhere.
"""

from collections.abc import Sequence
from functools import lru_cache
from itertools import combinations
from math import comb

import numpy as np
from numpy.typing import NDArray

_MOST_COUNTED = 13_000
_DRAWN = 9_999
_FIRST_DRAWN = 14
"""With this many pairs, sign patterns are drawn and no longer counted."""
_DUST = 1e-9


def mean_gain_p(candidate: Sequence[float], incumbent: Sequence[float], *, shift: float = 0.0) -> float:
    """How probable is a mean at least this far ahead when the candidate gains no more than `shift`?

    Valid for arms of the same size even where their spreads differ a little; keep them balanced.
    """
    if not candidate or not incumbent:
        raise ValueError(f"Both arms need a seed, but they have {len(candidate)} and {len(incumbent)}.")
    ours = np.asarray(candidate, dtype=np.float64) - shift
    pooled = np.concatenate([ours, np.asarray(incumbent, dtype=np.float64)])
    pooled = pooled - pooled.mean()  # the sums below then keep their digits, whatever the scores' level
    members, counted = _arrangements(len(candidate), len(incumbent))
    observed = pooled[: len(candidate)].sum()
    return _share(members @ pooled, observed, float(np.abs(pooled).max(initial=0.0)), counted=counted)


def paired_gain_p(gains: Sequence[float]) -> float:
    """How probable is a mean paired gain at least this high when each pair's sign is a coin's?"""
    if not gains:
        raise ValueError("A paired test needs a gain, but there is none.")
    found = np.asarray(gains, dtype=np.float64)
    signs, counted = _signs(len(gains))
    return _share(signs @ found, found.sum(), float(np.abs(found).max(initial=0.0)), counted=counted)


def least_mean_p(seeds: int, others: int) -> float:
    """The least p-value that the test of means can give for arms of these sizes."""
    arrangements = comb(seeds + others, seeds)
    return 1 / arrangements if arrangements <= _MOST_COUNTED else 1 / (_DRAWN + 1)


def least_paired_p(pairs: int) -> float:
    """The least p-value that the test of paired gains can give."""
    return 1 / 2**pairs if pairs < _FIRST_DRAWN else 1 / (_DRAWN + 1)


def _share(sums: NDArray[np.float64], observed: float, size: float, *, counted: bool) -> float:
    ahead = int(np.count_nonzero(sums >= observed - _DUST * size))
    return ahead / len(sums) if counted else (ahead + 1) / (len(sums) + 1)


@lru_cache(maxsize=64)
def _arrangements(seeds: int, others: int) -> tuple[NDArray[np.float64], bool]:
    """One row an arrangement, a one where a pooled score is on the candidate's side; and whether all are there."""
    total = seeds + others
    counted = comb(total, seeds) <= _MOST_COUNTED
    if counted:
        chosen = np.array(list(combinations(range(total), seeds)))
    else:
        drawn = np.random.default_rng([seeds, others]).random((_DRAWN, total))
        chosen = np.argsort(drawn, axis=1)[:, :seeds]
    members = np.zeros((len(chosen), total))
    np.put_along_axis(members, chosen, 1.0, axis=1)
    return members, counted


@lru_cache(maxsize=64)
def _signs(pairs: int) -> tuple[NDArray[np.float64], bool]:
    counted = pairs < _FIRST_DRAWN
    if counted:
        bits = (np.arange(2**pairs)[:, None] >> np.arange(pairs)) & 1
    else:
        bits = np.random.default_rng([pairs]).integers(0, 2, (_DRAWN, pairs))
    signs: NDArray[np.float64] = np.asarray(1.0 - 2.0 * bits, dtype=np.float64)
    return signs, counted
