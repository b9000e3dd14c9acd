"""What trainings told about themselves, as a few numbers: hints for a proposer, never evidence.

Of each run the middle half of its metrics is averaged, because a step size that falls to zero makes the last of them
look calm, and the mean over the runs is rounded to three digits. What a trainer tells of its rehearsals is left out.
"""

import json
from collections.abc import Iterable
from math import isfinite
from statistics import fmean

UPDATES = "updates"
"""How often a run reported: once for each rollout that it learnt from."""
FORGOTTEN = "forgotten"
"""The share of what a run had gained in return at its best that it had lost again at its end."""
_RETURN, _REHEARSED = "episodic_return", "rehearsal_steps"
_PARTS = 10
"""A run's return is looked at in so many parts of equal length."""
_MOST_METRICS = 40


def diagnostics(reports: Iterable[bytes]) -> dict[str, float]:
    """The numbers of several runs' `metrics.jsonl`, by name; whatever is no number is left out."""
    found: dict[str, list[float]] = {}
    for report in reports:
        lines = [one for line in report.splitlines() if (one := _numbers(line)) and _REHEARSED not in one]
        if not lines:
            continue
        found.setdefault(UPDATES, []).append(float(len(lines)))
        if (lost := _forgotten([line[_RETURN] for line in lines if _RETURN in line])) is not None:
            found.setdefault(FORGOTTEN, []).append(lost)
        middle = lines[len(lines) // 4 : max(len(lines) * 3 // 4, len(lines) // 4 + 1)]
        for name in {name for line in middle for name in line}:
            found.setdefault(name, []).append(fmean(line[name] for line in middle if name in line))
    return {name: float(f"{fmean(values):.3g}") for name, values in sorted(found.items())[:_MOST_METRICS]}


def _forgotten(returns: list[float]) -> float | None:
    """How much of its best gain a run lost again, from 0 to 1; None where it reported too little or gained nothing."""
    if len(returns) < 2 * _PARTS:
        return None
    means = [fmean(returns[len(returns) * i // _PARTS : len(returns) * (i + 1) // _PARTS]) for i in range(_PARTS)]
    best = max(means)
    return min((best - means[-1]) / (best - means[0]), 1.0) if best > means[0] else None


def _numbers(line: bytes) -> dict[str, float]:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(found, dict):
        return {}
    return {name: float(one) for name, one in found.items() if type(one) in (int, float) and isfinite(one)}
