"""Real nights of which the truth is known: one in which nothing can help, and one with a defect that can be mended.

Quick: one small night of the first kind. With `OVERNIGHT_SOAK=1`: ten of each, the first with thirty candidates. A
repeat that has ended leaves its result in `build/soak`, bound to the source that made it: a soak that was interrupted
goes on with the next repeat, and one line a repeat tells its verdict and its time.
"""

import json
import os
import resource
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import cache
from hashlib import sha256
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from nights import GOOD, Scripted, bench_of
from overnight.admission import Who, enter
from overnight.begin import Place, begin_env
from overnight.contract.draft import Stated
from overnight.decide.guards import mean_gain_interval
from overnight.loop import LOOK_SECONDS, Night, night
from overnight.machine import RealMachine
from overnight.ports import Proposer
from overnight.records.approval import Strength
from overnight.records.decision import Verdict
from overnight.records.proposal import Exhausted, Proposal, View
from overnight.shortfall import shortfall
from overnight.trials import Bench, Wanted, begin, settle
from scenes import Scene, scene_in

SOAK = bool(os.environ.get("OVERNIGHT_SOAK"))
REPEATS = 10 if SOAK else 1
ROOT = Path(__file__).parents[2]
KEPT = Path(os.environ.get("OVERNIGHT_SOAK_FOLDER", ROOT / "build" / "soak"))
"""Where the results of repeats are kept."""
AFTERWARDS = 10_000
"""The round of the seeds on which a gain is measured once more, when the night is over."""


class Turning:
    """Turns the knob that changes nothing, again and again."""

    def __init__(self, ideas: int) -> None:
        self.ideas = ideas

    def ask(self, view: View) -> Proposal | Exhausted:
        if len(view.tried) >= self.ideas:
            return Exhausted(because="The knob was turned often enough.")
        return Proposal(
            proposer="search",
            kind="hyperparameter",
            hypothesis="Another value of a parameter without effect helps.",
            predicted_effect="The score rises.",
            params={"null_knob": 1.0 + len(view.tried)},
        )


@pytest.fixture(autouse=True)
def _keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "keys"))


def study(project: Path, *, env_steps: int, runs: int) -> Scene:
    project.mkdir()
    begin_env(RealMachine(), Place(project), Stated(env="CartPole-v1", env_steps=env_steps, hours=2))
    scene = scene_in(project)
    scene.rewrite(lambda terms: terms["budget"].update(max_runs=runs))
    scene.rewrite(lambda terms: terms["experiments"].update(novelty="off"))
    scene.approve()
    return scene


@contextmanager
def sitting(scene: Scene, proposer: Proposer) -> Iterator[Bench]:
    """One whole night; afterwards its bench."""
    with scene.open() as opened:
        bench = bench_of(scene, opened, enter(opened, Who("tester", Strength.TERMINAL)))
        night(Night(bench, proposer, time.monotonic() + 7200))
        yield bench


# Repeats that are kept


@cache
def source() -> str:
    """The digest of everything that a night is made by, this file too."""
    files = [*sorted((ROOT / "src" / "overnight").rglob("*.py")), Path(__file__), ROOT / "tests" / "nights.py"]
    return sha256(b"".join(path.read_bytes() for path in files)).hexdigest()


def repeated(kind: str, repeat: int, play: Callable[[], dict[str, Any]], capsys: pytest.CaptureFixture[str]) -> Any:
    """What one repeat came to: what is kept of it, or what it comes to now; told in one line."""
    path = KEPT / f"{kind}-{repeat}.json"
    if SOAK and path.exists() and (found := json.loads(path.read_text()))["source"] == source():
        return _told(kind, repeat, {**found, "kept": True}, capsys)
    began, used = time.monotonic(), _cpu()
    found = play()
    cpu = found.pop("run_cpu_seconds") + _cpu() - used
    found |= {"source": source(), "wall_seconds": time.monotonic() - began, "cpu_seconds": cpu}
    if SOAK:
        KEPT.mkdir(parents=True, exist_ok=True)
        half = path.with_suffix(".half")
        half.write_text(json.dumps(found, indent=1))
        half.replace(path)
    return _told(kind, repeat, found, capsys)


def _cpu() -> float:
    """Processor time of the engine and of its referees; the runs tell their own in the ledger."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def _told(kind: str, repeat: int, found: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    spent = f"{found['wall_seconds']:.0f} s, {found['cpu_seconds']:.0f} s of processor time, {found['runs']} runs"
    again = ", kept from an earlier soak" if found.get("kept") else ""
    with capsys.disabled() if SOAK else nullcontext():
        print(f"\n{kind} night {repeat + 1} of {REPEATS}: {found['verdict']} ({spent}{again})", flush=True)
    return found


# A night in which nothing can help


def nothing_helps(project: Path) -> dict[str, Any]:
    """Candidates that change a declared parameter without effect, raced and judged by a real night."""
    scene = study(project, env_steps=2048, runs=100 if SOAK else 24)
    with sitting(scene, Turning(30 if SOAK else 2)) as bench:
        state, decided = bench.study.state, scene.entries("decided")
        found = shortfall(state, bench.contract, decided)
        return {
            "verdict": found.because if found.ruled_out is None else f"{found.because} Below {found.ruled_out:.1f}.",
            "claims": len(state.certified) + sum(data["verdict"] == Verdict.CERTIFIED for data in decided),
            "candidates": len(state.ideas()),
            "none_found": "No improvement was found" in found.because,
            "no_room": "that were left are fewer than" in found.because,
            "ruled_out": found.ruled_out,
            "tried_on_fresh_seeds": state.attempts,
            "runs": len(state.runs),
            "run_cpu_seconds": state.cpu_seconds,
        }


@pytest.mark.timeout(7200 if SOAK else 600)
@pytest.mark.parametrize("repeat", range(REPEATS))
def test_a_real_night_in_which_nothing_can_help_claims_nothing_and_says_what_is_ruled_out(
    tmp_path: Path, repeat: int, capsys: pytest.CaptureFixture[str]
) -> None:
    found = repeated("null", repeat, lambda: nothing_helps(tmp_path / "project"), capsys)
    assert not found["claims"], f"repeat {repeat} claims a gain of a parameter without effect"
    assert found["candidates"] == (30 if SOAK else 2)
    tried = found["tried_on_fresh_seeds"]
    assert found["none_found"] or tried or found["no_room"], "a lucky tip is tried, or the night says why it was not"
    assert found["ruled_out"] is not None or tried or found["no_room"]


# A night with a defect that can be mended


def mended(project: Path) -> dict[str, Any]:
    """A baseline with a known defect; the gain is measured once more when the night is over."""
    scene = study(project, env_steps=8192, runs=40)
    with sitting(scene, Scripted()):
        claims = [data for data in scene.entries("decided") if data["verdict"] == Verdict.CERTIFIED]
    told: dict[str, Any] = {"certified": bool(claims), "overlaps": False, "verdict": "nothing was certified"}
    if claims:
        one, seeds = claims[-1], 20
        low, high = afterwards(scene, one["candidate"], seeds=seeds)
        told["overlaps"] = one["gain_low"] <= high and low <= one["gain_high"]
        word = "overlaps" if told["overlaps"] else "misses"
        told["verdict"] = (
            f"certified {one['gain']:+.0f} ({one['gain_low']:.0f} to {one['gain_high']:.0f}), which {word} "
            f"{low:.0f} to {high:.0f} on {seeds} fresh seeds afterwards"
        )
    state = scene.state()
    return {**told, "runs": len(state.runs), "run_cpu_seconds": state.cpu_seconds}


def afterwards(scene: Scene, winner: str, *, seeds: int) -> tuple[float, float]:
    """The gain once more, when the night is over and somebody has given the study the runs for it."""
    scene.rewrite(lambda terms: terms["budget"].update(max_runs=40 + 2 * seeds))
    scene.approve()
    with scene.open() as opened:
        bench = bench_of(scene, opened, enter(opened, Who("tester", Strength.TERMINAL)))
        return measured_again(bench, winner, seeds=seeds)


@pytest.mark.skipif(not SOAK, reason="a minute of real runs: `make soak`")
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("repeat", range(REPEATS))
def test_a_defect_that_can_be_mended_is_certified(
    tmp_path: Path, repeat: int, capsys: pytest.CaptureFixture[str]
) -> None:
    found = repeated("mended", repeat, lambda: mended(tmp_path / "project"), capsys)
    assert found["certified"], f"repeat {repeat}: {GOOD} is a clear gain over the defaults at this budget"


@pytest.mark.skipif(not SOAK, reason="eight of ten need ten")
@pytest.mark.timeout(7200)
def test_eight_of_ten_intervals_of_a_mended_defect_overlap_what_is_measured_afterwards(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Reads what the repeats before it have kept; one that is missing is played."""
    found = [
        repeated("mended", repeat, lambda at=tmp_path / f"{repeat}": mended(at), capsys)  # type: ignore[misc]
        for repeat in range(REPEATS)
    ]
    assert sum(one["overlaps"] for one in found) >= 8


def measured_again(bench: Bench, winner: str, *, seeds: int) -> tuple[float, float]:
    """The 95 % interval of the gain over the baseline on seeds that nobody ever saw."""
    arms = (winner, bench.study.state.baseline)
    waiting = [Wanted(arm, "confirm", AFTERWARDS, number) for number in range(seeds) for arm in arms]
    while waiting or bench.going:
        while waiting and len(bench.going) < bench.slots:
            begin(bench, waiting.pop(0))
        settle(bench)
        time.sleep(LOOK_SECONDS)
    scores = {
        arm: [
            run.score
            for run in bench.study.state.runs.values()
            if (run.candidate, run.round) == (arm, AFTERWARDS) and run.score is not None
        ]
        for arm in arms
    }
    found = mean_gain_interval(scores[winner], scores[arms[1]])
    assert fmean(scores[winner]) > fmean(scores[arms[1]])
    return found.low, found.high
