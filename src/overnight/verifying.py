"""Verification: what the evidence of a certification supports, with behaviour looked at and not only the score.

A record of its own, written after the verdict. It reads every stored episode of both arms, and asks the referee to
play some episodes of the median run again while it counts what the policy does. Reward alone never makes it `improved`.
"""

import json
from collections.abc import Sequence
from statistics import fmean

from overnight.decide.telling import decimals, told
from overnight.errors import OvernightError
from overnight.evaluate.behaviour import Actions
from overnight.evaluate.measure import watch
from overnight.isolation import tier_for
from overnight.records.evidence import Verification
from overnight.records.text import sentence
from overnight.study.artifacts import read_bytes
from overnight.study.ledger import RawEntry, read_sound
from overnight.study.state import Data, StudyState
from overnight.trials import Bench

Episode = tuple[int, float, int]


def unverified(state: StudyState) -> str | None:
    """The certified candidate whose verification is not written yet, as after a kill between the two; or None."""
    return next((name for name in state.certified if name not in state.verified), None)


def verify(bench: Bench, candidate: str) -> Verification:
    """Look at the behaviour behind the last certification of a candidate."""
    decided, artefacts = _records(bench, candidate)
    runs: list[str] = list(decided["evidence"])
    ours = [run for run in runs if bench.study.state.runs[run].candidate == candidate]
    theirs = [run for run in runs if run not in ours]
    mine, other = (_episodes(bench, side, artefacts) for side in (ours, theirs))
    incumbent = bench.study.state.runs[theirs[0]].candidate if theirs else "the incumbent"
    seen = [
        *_lengths(candidate, mine, incumbent, other),
        *_worst(candidate, mine, incumbent, other, bench.contract.metric.unit),
        *_acts(bench, ours, artefacts),
    ]
    improved = decided["verdict"] == "certified" and bool(seen)
    return Verification(
        candidate=candidate,
        verdict="improved" if improved else "insufficient evidence",
        because=sentence(decided["because"]),
        behaviour=tuple(sentence(says) for says in seen),
        evidence=tuple(runs),
    )


def _records(bench: Bench, candidate: str) -> tuple[Data, dict[str, str]]:
    """The last certification of a candidate, and the digest of the stored episodes of each measured run."""
    decided: list[Data] = []
    artefacts: dict[str, str] = {}

    def take(entry: RawEntry, _: int) -> None:
        data = entry["data"]
        if entry["kind"] == "measured":
            artefacts[data["run"]] = data["artefact"]
        elif entry["kind"] == "decided" and (data["candidate"], data["verdict"]) == (candidate, "certified"):
            decided.append(data)

    read_sound(bench.study.machine, bench.study.at.folder, take)
    return decided[-1], artefacts


def _episodes(bench: Bench, runs: Sequence[str], artefacts: dict[str, str]) -> list[Episode]:
    found: list[Episode] = []
    for run in runs:
        if run in artefacts:
            text = read_bytes(bench.study.machine, bench.study.at.objects, artefacts[run])
            found += [(seed, total, steps) for seed, total, steps in json.loads(text)["episodes"]]
    return found


def _lengths(candidate: str, mine: list[Episode], incumbent: str, other: list[Episode]) -> list[str]:
    if not mine or not other:
        return []
    ours, theirs = ([steps for _, _, steps in side] for side in (mine, other))
    return [
        f"Episodes of {candidate} last {fmean(ours):,.0f} steps on average ({min(ours):,} to {max(ours):,}), "
        f"those of {incumbent} {fmean(theirs):,.0f} ({min(theirs):,} to {max(theirs):,})."
    ]


def _worst(candidate: str, mine: list[Episode], incumbent: str, other: list[Episode], unit: str) -> list[str]:
    if not mine or not other:
        return []
    worst, theirs = (sorted(total for _, total, _ in side)[: max(len(side) // 10, 1)] for side in (mine, other))
    places = decimals(max(abs(worst[-1]), abs(theirs[-1])) or 1.0, digits=3)
    return [
        f"The worst of {len(mine):,} episodes of {candidate} brought {told(worst[0], places)} {unit}, and the worst "
        f"tenth {told(fmean(worst), places)} on average; for {incumbent} it was {told(theirs[0], places)} and "
        f"{told(fmean(theirs), places)}."
    ]


def _acts(bench: Bench, ours: Sequence[str], artefacts: dict[str, str]) -> list[str]:
    """What the policy of the median run does in its worst, its median and its best episode."""
    state = bench.study.state
    scored = sorted((run for run in ours if run in artefacts), key=lambda run: state.runs[run].score or 0.0)
    if not scored:
        return []
    run = scored[len(scored) // 2]
    episodes = sorted(_episodes(bench, [run], artefacts), key=lambda one: one[1])
    picked = {episodes[0][0], episodes[len(episodes) // 2][0], episodes[-1][0]} if episodes else set()
    try:
        tier = tier_for(bench.contract.evaluation.min_tier)
        played = watch(bench.study.machine, bench.contract.task.env, bench.study.at.runs / run, sorted(picked), tier)
    except OvernightError:
        return []
    return [_told(run, len(picked), played.actions)] if played.actions is not None and not played.error else []


def _told(run: str, episodes: int, did: Actions) -> str:
    lead = f"In {episodes} episodes of {run}, {did.steps:,} steps,"
    if not did.shares:
        steady = " It never varied." if not did.spread else ""
        return f"{lead} its actions have the mean {did.mean:.3g} and the spread {did.spread:.3g}.{steady}"
    common = ", ".join(f"{choice} in {share:.0%}" for choice, share in enumerate(did.shares) if share)
    steady = " It always did the same." if max(did.shares) == 1.0 else ""
    return f"{lead} it chose {common} of them.{steady}"
