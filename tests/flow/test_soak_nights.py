"""Real nights of which the truth is known: one in which nothing can help, and one with a defect that can be mended.

Quick: one small night of each. With `OVERNIGHT_SOAK=1`: ten of each, the first with thirty candidates.
"""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import fmean

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
    scene.approve()
    return scene


@contextmanager
def sitting(scene: Scene, proposer: Proposer) -> Iterator[Bench]:
    """One whole night; afterwards its bench."""
    with scene.open() as opened:
        bench = bench_of(scene, opened, enter(opened, Who("tester", Strength.TERMINAL)))
        night(Night(bench, proposer, time.monotonic() + 7200))
        yield bench


@pytest.mark.timeout(7200 if SOAK else 600)
@pytest.mark.parametrize("repeat", range(REPEATS))
def test_a_real_night_in_which_nothing_can_help_claims_nothing_and_says_what_is_ruled_out(
    tmp_path: Path, repeat: int
) -> None:
    ideas = 30 if SOAK else 2
    scene = study(tmp_path / "project", env_steps=4096, runs=100 if SOAK else 24)
    with sitting(scene, Turning(ideas)) as bench:
        state = bench.study.state
        assert state.incumbents == [], f"repeat {repeat} claims a gain of a parameter without effect"
        decided = scene.entries("decided")
        assert not [data for data in decided if data["verdict"] == Verdict.CERTIFIED]
        found = shortfall(state, bench.contract, decided)
        assert "No improvement was found" in found.because or state.stack or state.attempts
        assert found.ruled_out is not None or state.stack or state.attempts


@pytest.mark.timeout(7200 if SOAK else 900)
def test_a_defect_that_can_be_mended_is_certified_and_its_interval_holds_afterwards(tmp_path: Path) -> None:
    overlapping = 0
    for repeat in range(REPEATS):
        scene = study(tmp_path / f"project-{repeat}", env_steps=8192, runs=40)
        with sitting(scene, Scripted()) as bench:
            claims = [data for data in scene.entries("decided") if data["verdict"] == Verdict.CERTIFIED]
            assert claims, f"repeat {repeat}: {GOOD} is a clear gain over the defaults at this budget"
            low, high = measured_again(bench, claims[-1]["candidate"], seeds=20 if SOAK else 3)
            overlapping += claims[-1]["gain_low"] <= high and low <= claims[-1]["gain_high"]
    assert overlapping >= 0.8 * REPEATS


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
