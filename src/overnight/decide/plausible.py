"""Scores that nobody believes at once: impossible ones, and ones that are too good. Pure.

Such a score is set aside, and the policy is measured once more on fresh episodes before anything
counts. The second measurement is the one that counts, because the first was chosen for being extreme.
"""

from collections.abc import Sequence

from overnight.records.metric import Direction, MetricSpec

FEWEST = 3
"""Before so many scores are known, none is too good."""


def is_possible(metric: MetricSpec, score: float) -> bool:
    """Whether a score lies in the range that the contract calls plausible."""
    return not (
        (metric.lowest is not None and score < metric.lowest) or (metric.highest is not None and score > metric.highest)
    )


def doubt(metric: MetricSpec, score: float, others: Sequence[float]) -> str:
    """Why a score needs a second measurement; empty where it needs none.

    Too good is what lies further beyond the best score of the study so far than that lies beyond the
    worst: further away than everything that was ever measured is spread.
    """
    if not is_possible(metric, score):
        low, high = ("any" if end is None else f"{end:g}" for end in (metric.lowest, metric.highest))
        return f"its score {score:.6g} is impossible, because the contract says {low} to {high}"
    if len(others) < FEWEST:
        return ""
    sign = 1.0 if metric.direction is Direction.HIGHER else -1.0
    known = sorted(sign * one for one in others)
    if sign * score - known[-1] <= known[-1] - known[0]:
        return ""
    before = f"{sign * known[0]:.6g} to {sign * known[-1]:.6g}"
    return f"its score {score:.6g} is too good to be believed at once, after {before}"
