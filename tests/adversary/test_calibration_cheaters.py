"""Whoever wants to spend the budget, or to choose the looks, before the eighth approval allows it."""

from dataclasses import replace
from pathlib import Path

import pytest

from benches import run_once, seated, study_in
from nights import bench_of
from overnight.admission import Who, approve_clauses, enter, enter_to_calibrate, may_launch_now, read_terms
from overnight.begin import Place, begin_env
from overnight.calibrating import calibrated
from overnight.contract.draft import Stated
from overnight.errors import Refused
from overnight.loop import CALIBRATED, Night, night
from overnight.machine import RealMachine
from overnight.records.approval import Strength
from overnight.records.contract import Clause
from overnight.records.lifecycle import Actor, State
from overnight.records.proposal import Exhausted, View
from overnight.trials import Bench, Wanted
from scenes import Scene, scene_in

WHO = Who("tester", Strength.TERMINAL)
SEVEN = [clause for clause in Clause if clause is not Clause.EXPERIMENTS]


class Silent:
    def ask(self, _: View) -> Exhausted:
        return Exhausted(because="There are no ideas.")


@pytest.fixture
def seven(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scene:
    """A study whose first seven clauses are approved."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "keys"))
    project = tmp_path / "project"
    project.mkdir()
    begin_env(RealMachine(), Place(project), Stated(env="CartPole-v1", env_steps=2048, hours=1))
    scene = scene_in(project)
    scene.approve(*SEVEN)
    return scene


def drafted(bench: Bench) -> None:
    """The baseline, let in by the gate, and nothing run."""
    assert (
        night(Night(bench, Silent(), RealMachine().monotonic() + 60, lambda: True, only_calibrates=True)) != CALIBRATED
    )
    assert bench.study.state.candidates["c-0001"].state is State.VALIDATED


def test_before_the_eighth_approval_nobody_enters_the_loop_and_only_the_baseline_may_run(seven: Scene) -> None:
    with seven.open() as study:
        with pytest.raises(Refused, match=r"class of experiments .* is not approved"):
            enter(study, WHO)
        contract = enter_to_calibrate(study, WHO)
        bench = bench_of(seven, study, contract)
        drafted(bench)
        assert may_launch_now(study, "c-0001") == ()
        assert "class of experiments" in may_launch_now(study, "c-0002")[0].says


def test_a_certification_cannot_be_run_under_the_word_to_calibrate(seven: Scene) -> None:
    with seven.open() as study:
        bench = bench_of(seven, study, enter_to_calibrate(study, WHO))
        drafted(bench)
        with pytest.raises(Refused, match="nobody asked to enter the loop"):
            run_once(bench, Wanted("c-0001", "confirm", 1, 0), 400.0)


def test_an_approval_that_names_another_calibration_is_refused(seven: Scene) -> None:
    from overnight.contract.approve import Given, approval

    with seven.open() as study:
        clause = read_terms(study.machine, study.at).clauses[Clause.EXPERIMENTS]
        given = approval(clause, Clause.EXPERIMENTS, given=Given("eve", Strength.TERMINAL), before=None)
        with pytest.raises(Refused, match="names a calibration that is not the last one"):
            study.append(Actor.PERSON, replace(given, calibration="e" * 64))


def test_the_eighth_approval_is_bound_to_the_calibration_that_was_shown(tmp_path: Path) -> None:
    scene = study_in(tmp_path / "project", plants=False, max_runs=48)
    with seated(scene) as bench:
        for number in range(8):
            run_once(bench, Wanted("c-0001", "screen", 0, number), 100.0 + number)
        found = calibrated(bench)
        assert found is not None and found.plan.looks == (5, 8)
        bench.study.append(Actor.ENGINE, found)
        scene.rewrite(lambda terms: terms["experiments"].update(kinds=["hyperparameter"]))
        given = approve_clauses(bench.study, scene.terms(), [Clause.EXPERIMENTS], WHO)
        assert given[0].calibration == bench.study.state.calibration_digest()


def test_looks_cannot_be_changed_while_a_certification_is_open(tmp_path: Path) -> None:
    from benches import bench_of as played
    from benches import kept, level, play

    with played(tmp_path / "project") as bench:
        idea = kept(bench)
        play(bench, level(idea), most=3)
        assert bench.study.state.attempt_is_open()
        last = bench.follower.calibration
        assert last is not None
        kinder = replace(last, plan=replace(last.plan, looks=(2,), shares=(1.0,)))
        with pytest.raises(Refused, match="its looks cannot be changed"):
            bench.study.append(Actor.ENGINE, kinder)


def test_a_candidates_runs_cannot_calibrate_the_noise(tmp_path: Path) -> None:
    from benches import bench_of as played
    from benches import calibrate, entered

    with played(tmp_path / "project", plants=False) as bench:
        calibrate(bench)
        idea = entered(bench)
        run_once(bench, Wanted(idea, "screen", 0, 0), 100.0)
        bench.follower.race(bench.study.state, bench.contract)
        last = bench.follower.calibration
        assert last is not None
        with pytest.raises(Refused, match="is no run of the baseline"):
            bench.study.append(Actor.ENGINE, replace(last, evidence=(list(bench.study.state.runs)[-1],)))
