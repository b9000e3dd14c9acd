"""What trainers reported about themselves while they learned: shown, and never decided on.

From the curves of a night it can be told whether shorter training would have ranked its candidates the same way.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from overnight.decide.calibrate import rank_agreement
from overnight.ports import Machine
from overnight.racing import better_is_higher
from overnight.records.contract import Contract
from overnight.study.layout import StudyFolder
from overnight.study.state import StudyState

Curve = tuple[tuple[float, float], ...]
"""Steps of the environment and the return of the episodes that ended around them."""

_MOST_BYTES = 5_000_000
_SHARES = (0.25, 0.5)
_WINDOW = 0.1
"""The return at a share of the training is the mean over this much of it, up to there."""
_LEAST = 6
"""Fewer candidates than this are ranked alike by chance too easily."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """Whether a part of the training ranks candidates as all of it does."""

    share: float
    """The part of the training."""
    candidates: int
    """How many candidates were ranked, all on the same train seed."""
    tau: float
    """Kendall's tau-b between the return that training showed then, and the score at the end; 1 is the same order."""


def curve_of(machine: Machine, at: StudyFolder, run: str) -> Curve:
    """The curve of one run, without lines that are none."""
    points = []
    for line in (machine.read(str(at.runs / run / "out" / "metrics.jsonl")) or b"")[:_MOST_BYTES].splitlines():
        try:
            row = json.loads(line)
            points.append((float(row["env_steps"]), float(row["episodic_return"])))
        except (ValueError, KeyError, TypeError, RecursionError):
            continue
    return tuple(points)


def agreements(machine: Machine, at: StudyFolder, state: StudyState, contract: Contract) -> tuple[Agreement, ...]:
    """How well each part of the training ranks the candidates of the ledger; empty where they are too few to tell."""
    known: list[tuple[Curve, float]] = []
    key, seen = contract.comparability(), set()
    for name, run in state.runs.items():
        first = run.phase == "screen" and (run.round, run.number) == (0, 0) and run.comparability == key
        score = better_is_higher(contract, run)
        if first and score is not None and run.candidate not in seen:
            seen.add(run.candidate)
            known.append((curve_of(machine, at, name), score))
    return tuple(one for share in _SHARES if (one := _agreement(known, share)) is not None)


def _agreement(known: Sequence[tuple[Curve, float]], share: float) -> Agreement | None:
    pairs = [(early, score) for curve, score in known if (early := _return_at(curve, share)) is not None]
    if len(pairs) < _LEAST:
        return None
    return Agreement(share=share, candidates=len(pairs), tau=rank_agreement(*zip(*pairs, strict=True)))


def _return_at(curve: Curve, share: float) -> float | None:
    """The mean return up to a share of the training; None where no episode ended there."""
    end = curve[-1][0] if curve else 0.0
    there = [value for steps, value in curve if (share - _WINDOW) * end < steps <= share * end and value == value]
    return fmean(there) if there else None


def says(found: Sequence[Agreement]) -> str:
    """The agreements in one sentence; empty where there are none."""
    if not found:
        return ""
    parts = " and ".join(f"{one.tau:.2f} after {one.share:.0%} of it" for one in found)
    return (
        f"Training ranked {found[0].candidates} candidates on one seed as their scores did with an agreement of "
        f"{parts} (1 is the same order, 0 is chance). Shorter training searches well only where this is high."
    ).replace("%", " %")
