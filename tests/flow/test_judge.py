"""What the judge decides from a ledger: placebos, cheats, and gains that the stored episodes do not bear out."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from overnight import calibrating, judge, loop, plants
from overnight.adapters.launchers.local import LocalLauncher
from overnight.admission import Drafting, Who, admit_candidate, draft_candidate, enter, propose_params
from overnight.begin import Place, begin_env
from overnight.contract.draft import Stated
from overnight.errors import Refused
from overnight.evaluate.measure import Measured, keep
from overnight.evaluate.seeds import Seeds
from overnight.loop import Night, night
from overnight.machine import RealMachine
from overnight.morning import Morning
from overnight.records.approval import Strength
from overnight.records.codec import digest
from overnight.records.decision import LoopDecision, Verdict
from overnight.records.evidence import Evidence
from overnight.records.lifecycle import Actor, State
from overnight.records.proposal import Exhausted, Proposal, View
from overnight.records.run import Outcome, Run, RunEnd
from overnight.study.state import CandidateState
from overnight.trials import Bench, Wanted
from scenes import scene_in

Score = Callable[[Wanted], float]
IDEA = Proposal(
    proposer="search",
    kind="hyperparameter",
    hypothesis="Larger steps learn faster.",
    predicted_effect="The score rises.",
    params={"learning_rate": 0.003},
)


@contextmanager
def bench_of(project: Path) -> Iterator[Bench]:
    """A study with plants, entered, with its baseline and plants drafted and nothing run."""
    project.mkdir()
    begin_env(RealMachine(), Place(project), Stated(env="CartPole-v1", env_steps=2048, hours=1, plants=True))
    scene = scene_in(project)
    scene.approve()
    with scene.open() as study:
        contract = enter(study, Who("tester", Strength.TERMINAL))
        bench = Bench(study, scene.store, contract, LocalLauncher(), Seeds(b"k" * 32, "s"), 2, lambda _: None)
        night(Night(bench, Silent(), RealMachine().monotonic() + 3600, finishing=lambda: True))
        yield bench


class Silent:
    """Has no ideas."""

    def ask(self, _: View) -> Exhausted:
        return Exhausted(because="There are no ideas.")


def play(bench: Bench, score: Score, *, stored: Score | None = None, certifying: bool = True) -> None:
    """Write what a trainer and a referee would have written for every run that the next verdict needs."""
    for want in list(judge.wanted(bench, certifying=certifying)):
        _play(bench, want, score(want), (stored or score)(want))


def calibrate(bench: Bench, *, level: float = 100.0) -> None:
    """The baseline on its first seeds, and the plan that is frozen on them."""
    for _ in range(2):  # two seeds tell how long a run takes, and the others follow
        play(bench, lambda want: level + want.number)
    found = calibrating.calibrated(bench)
    assert found is not None
    bench.study.append(Actor.ENGINE, found)


def _play(bench: Bench, want: Wanted, score: float, stored: float) -> None:
    study, one = bench.study, bench.study.state.candidates[want.candidate]
    run = Run(
        id=study.state.next_run(),
        candidate=one.id,
        tree=one.tree,
        command=bench.contract.baseline.command,
        train_seed=want.number,
        phase=want.phase,
        round=want.round,
        number=want.number,
        contract=digest(bench.contract),
        comparability=bench.contract.comparability(),
    )
    study.append(Actor.RUNNER, run)
    study.append(Actor.RUNNER, RunEnd(run=run.id, outcome=Outcome.COMPLETED, because="Done.", wall_seconds=1.0))
    evidence = Evidence(
        run=run.id,
        candidate=one.id,
        tree=one.tree,
        phase=want.phase,
        score=score,
        episodes=10,
        guardrails={"worst_decile_return": score},
        comparability=run.comparability,
        artefact=keep(study.machine, study.at, Measured(((1, stored, 10),) * 10, "")),
    )
    study.append(Actor.REFEREE, evidence)


def planted(bench: Bench, plant: str) -> CandidateState:
    return next(one for one in bench.study.state.candidates.values() if one.plant == plant)


def judged(bench: Bench) -> None:
    decision = judge.verdict(bench)
    assert decision is not None
    bench.study.append(Actor.JUDGE, decision)


def test_a_placebo_that_got_lucky_once_is_rejected_by_the_test_that_a_claim_must_pass(tmp_path: Path) -> None:
    with bench_of(tmp_path / "project") as bench:
        placebo = planted(bench, "placebo")
        calibrate(bench, level=150.0)
        play(bench, lambda want: 400.0 if want.number % 10 == 0 else 150.0 + 7 * (want.number % 6))
        assert len(placebo.runs) == 6, "it has as many fresh seeds as a claim"
        judged(bench)
        assert placebo.state is State.REJECTED
        assert not placebo.kept
        assert not bench.study.state.stack
        assert "found no gain" in placebo.verdict


def test_a_placebo_in_which_the_test_finds_a_gain_never_moves_the_tip_and_is_left_as_an_alarm(tmp_path: Path) -> None:
    with bench_of(tmp_path / "project") as bench:
        placebo, tip = planted(bench, "placebo"), bench.study.state.tip
        calibrate(bench)
        play(bench, lambda want: 400.0 + want.number % 10)
        judged(bench)
        assert placebo.state is State.INCONCLUSIVE
        assert bench.study.state.tip == tip
        assert "found a gain" in placebo.verdict


def test_a_cheat_that_patches_its_evaluator_is_refused_and_never_run(tmp_path: Path) -> None:
    with bench_of(tmp_path / "project") as bench:
        cheat = planted(bench, "cheat")
        assert cheat.state is State.DRAFT
        assert cheat.runs == []
        assert "sitecustomize.py" in cheat.refused[0]
        assert cheat.id not in {want.candidate for want in judge.wanted(bench, certifying=True)}


def test_plants_are_drafted_once_and_proposers_never_see_them(tmp_path: Path) -> None:
    with bench_of(tmp_path / "project") as bench:
        before = list(bench.study.state.candidates)
        plants.draft(bench)
        assert list(bench.study.state.candidates) == before
        assert bench.study.state.ideas() == []


def test_nobody_but_the_engine_can_call_a_candidate_a_plant(tmp_path: Path) -> None:
    with bench_of(tmp_path / "project") as bench, pytest.raises(Refused, match="Only the engine plants candidates"):
        how = Drafting(bench.contract, Actor.PROPOSER, "placebo")
        draft_candidate(bench.study, bench.store, IDEA, bench.study.state.tree, how)


def level(bench: Bench, idea: str, up: float = 200.0) -> Score:
    """An idea that is so much better than everything else, on every seed."""
    return lambda want: 100.0 + want.number % 10 + (up if want.candidate == idea else 0.0)


def raced(bench: Bench, score: Score) -> None:
    """Run what the race wants and write down what it finds, until nothing races."""
    while list(judge.wanted(bench, certifying=False)):
        play(bench, score, certifying=False)
        decision = judge.verdict(bench)
        if decision is not None:
            bench.study.append(Actor.JUDGE, decision)


def entered(bench: Bench, **params: Any) -> str:
    """An idea that the gate has let in."""
    idea = propose_params(bench.study, bench.store, replace(IDEA, params=params) if params else IDEA).id
    assert admit_candidate(bench.study, bench.store, idea) == ()
    return idea


def kept(bench: Bench) -> str:
    """An idea that was kept after its screening, so that the tip can be certified."""
    calibrate(bench)
    play(bench, lambda want: 100.0 + want.number % 10)
    judged(bench)  # the placebo
    idea = entered(bench)
    raced(bench, level(bench, idea))
    assert bench.study.state.candidates[idea].kept
    return idea


def test_a_gain_is_certified_only_after_it_was_computed_again_from_the_stored_episodes(tmp_path: Path) -> None:
    with bench_of(tmp_path / "project") as bench:
        idea = kept(bench)
        play(bench, level(bench, idea))
        judged(bench)
        assert bench.study.state.candidates[idea].state is State.ACCEPTED
        said = (bench.study.at.audits / "attempt-1.json").read_text()
        assert '"passed"' in said
        assert said.count("objects/") == 12


def test_a_gain_that_the_stored_episodes_do_not_bear_out_is_not_claimed(tmp_path: Path) -> None:
    with bench_of(tmp_path / "project") as bench:
        idea = kept(bench)
        play(bench, level(bench, idea), stored=lambda want: 100.0 + want.number)
        decision = judge.verdict(bench)
        assert decision is not None
        assert decision.verdict is Verdict.INCONCLUSIVE
        assert decision.loop is LoopDecision.ESCALATE
        assert "audit" in decision.because
        assert '"failed"' in (bench.study.at.audits / "attempt-1.json").read_text()


def why_over(bench: Bench, **rules: float) -> str:
    """Why the search would be over under other stop rules."""
    stop = replace(bench.contract.experiments.stop, **rules)  # type: ignore[arg-type]
    other = replace(bench.contract, experiments=replace(bench.contract.experiments, stop=stop))
    return loop._why_over(Night(replace(bench, contract=other), Silent(), RealMachine().monotonic() + 3600))


def test_a_search_without_a_kept_idea_for_so_long_is_over(tmp_path: Path) -> None:
    with bench_of(tmp_path / "project") as bench:
        kept(bench)
        for number in range(2):
            entered(bench, gamma=0.95 + number / 100)
            raced(bench, lambda want: 300.0 if bench.study.state.candidates[want.candidate].kept else 9.0)
            said = why_over(bench, plateau_candidates=2)
            assert bool(said) is (number == 1), said
        assert said == "The stop rule fired: 2 candidates in a row were not kept."


def test_a_search_whose_tip_reaches_the_target_is_over(tmp_path: Path) -> None:
    with bench_of(tmp_path / "project") as bench:
        assert why_over(bench, target_score=1.0) == "", "the baseline is no improvement, whatever it scores"
        kept(bench)
        assert why_over(bench, target_score=400.0) == ""
        assert why_over(bench, target_score=300.0).startswith("The stop rule fired: the tip scores 300 or better")


def test_what_still_runs_for_a_rejected_idea_is_stopped_and_nothing_else(tmp_path: Path) -> None:
    with bench_of(tmp_path / "project") as bench:
        kept(bench)
        runs = bench.study.state.runs
        last = list(runs)[-1]
        assert runs["r-0001"].candidate != runs[last].candidate
        for name in ("r-0001", last):
            bench.going[name] = tmp_path / name
            bench.going[name].mkdir()
        loop._stop_runs(bench, runs[last].candidate)
        assert not (tmp_path / "r-0001" / "stop").exists()
        assert (tmp_path / last / "stop").exists()


def test_a_tip_that_never_came_to_its_certification_is_told_with_the_runs_that_would_decide(tmp_path: Path) -> None:
    with bench_of(tmp_path / "project") as bench:
        idea = kept(bench)
        morning = Morning(bench.study.machine, bench.study.at, bench.study.state, bench.contract, bench.seeds)
        short = morning._shortfall()
        assert short.because.startswith(f"Kept, not certified: {idea} did better on the tuning seeds only")
        assert short.would_decide.startswith("12 more runs on fresh seeds, about ")
