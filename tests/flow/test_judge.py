"""What the judge decides from a ledger: placebos, cheats, and gains that the stored episodes do not bear out."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from overnight import judge, plants
from overnight.adapters.launchers.local import LocalLauncher
from overnight.admission import Drafting, Who, admit_candidate, draft_candidate, enter, propose_params
from overnight.begin import Place, begin_env
from overnight.contract.draft import Stated
from overnight.errors import Refused
from overnight.evaluate.measure import Measured, keep
from overnight.evaluate.seeds import Seeds
from overnight.loop import Night, night
from overnight.machine import RealMachine
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


def play(bench: Bench, score: Score, *, stored: Score | None = None) -> None:
    """Write what a trainer and a referee would have written for every run that the next verdict needs."""
    for want in list(judge.wanted(bench, certifying=True)):
        _play(bench, want, score(want), (stored or score)(want))


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
        play(bench, lambda want: 400.0 if want.number == 6 else 150.0 + 7 * (want.number % 6))
        assert len(placebo.runs) == 6, "it has as many fresh seeds as a claim"
        judged(bench)
        assert placebo.state is State.REJECTED
        assert not placebo.kept
        assert not bench.study.state.stack
        assert "found no gain" in placebo.verdict


def test_a_placebo_in_which_the_test_finds_a_gain_never_moves_the_tip_and_is_left_as_an_alarm(tmp_path: Path) -> None:
    with bench_of(tmp_path / "project") as bench:
        placebo, tip = planted(bench, "placebo"), bench.study.state.tip
        play(bench, lambda want: 400.0 + want.number if want.candidate == placebo.id else 100.0 + want.number)
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


def kept(bench: Bench) -> str:
    """An idea that was kept after its screening, so that the tip can be certified."""
    play(bench, lambda want: 100.0 + want.number)
    judged(bench)  # the placebo
    idea = propose_params(bench.study, bench.store, IDEA).id
    assert admit_candidate(bench.study, bench.store, idea) == ()
    play(bench, lambda want: 300.0 + want.number if want.candidate == idea else 100.0 + want.number)
    judged(bench)
    assert bench.study.state.candidates[idea].kept
    return idea


def test_a_gain_is_certified_only_after_it_was_computed_again_from_the_stored_episodes(tmp_path: Path) -> None:
    with bench_of(tmp_path / "project") as bench:
        idea = kept(bench)
        play(bench, lambda want: 300.0 + want.number if want.candidate == idea else 100.0 + want.number)
        judged(bench)
        assert bench.study.state.candidates[idea].state is State.ACCEPTED
        said = (bench.study.at.audits / "attempt-1.json").read_text()
        assert '"passed"' in said
        assert said.count("objects/") == 12


def test_a_gain_that_the_stored_episodes_do_not_bear_out_is_not_claimed(tmp_path: Path) -> None:
    with bench_of(tmp_path / "project") as bench:
        idea = kept(bench)
        play(
            bench,
            lambda want: 300.0 + want.number if want.candidate == idea else 100.0 + want.number,
            stored=lambda want: 100.0 + want.number,
        )
        decision = judge.verdict(bench)
        assert decision is not None
        assert decision.verdict is Verdict.INCONCLUSIVE
        assert decision.loop is LoopDecision.ESCALATE
        assert "audit" in decision.because
        assert '"failed"' in (bench.study.at.audits / "attempt-1.json").read_text()
