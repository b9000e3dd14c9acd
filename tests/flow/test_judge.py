"""What the judge decides from a ledger: placebos, cheats, and gains that the stored episodes do not bear out."""

from dataclasses import replace
from pathlib import Path

import pytest

from benches import IDEA, Silent, bench_of, calibrate, entered, judged, kept, level, planted, play, raced
from overnight import judge, loop, plants, progress
from overnight.admission import Drafting, draft_candidate
from overnight.decide.race import Race
from overnight.errors import Refused
from overnight.loop import Night
from overnight.machine import RealMachine
from overnight.morning import Morning
from overnight.records.decision import LoopDecision, Verdict
from overnight.records.lifecycle import Actor, State
from overnight.trials import Bench


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


def test_a_gain_is_certified_only_after_it_was_computed_again_from_the_stored_episodes(tmp_path: Path) -> None:
    with bench_of(tmp_path / "project") as bench:
        idea = kept(bench)
        play(bench, level(idea))
        judged(bench)
        assert bench.study.state.candidates[idea].state is State.ACCEPTED
        said = (bench.study.at.audits / "attempt-1.json").read_text()
        assert '"passed"' in said
        assert said.count("objects/") == 12


def test_a_gain_that_the_stored_episodes_do_not_bear_out_is_not_claimed(tmp_path: Path) -> None:
    with bench_of(tmp_path / "project") as bench:
        idea = kept(bench)
        play(bench, level(idea), stored=lambda want: 100.0 + want.number)
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


def test_a_tip_that_the_runs_left_cannot_certify_says_how_many_were_left_and_how_many_it_takes(tmp_path: Path) -> None:
    with bench_of(tmp_path / "project") as bench:
        idea = kept(bench)
        few = replace(bench.contract.budget, max_runs=bench.study.state.paid_runs + 3)
        contract = replace(bench.contract, budget=few)
        short = Morning(bench.study.machine, bench.study.at, bench.study.state, contract, bench.seeds)._shortfall()
        assert short.because.startswith(f"Kept, not certified: {idea} did better on the tuning seeds only")
        assert short.because.endswith("and the 3 runs that were left are fewer than the 12 that fresh seeds take.")


def test_a_tip_whose_lead_shrank_is_no_improvement_and_the_gain_it_may_have_is_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with bench_of(tmp_path / "project") as bench:
        idea = kept(bench)
        monkeypatch.setattr(Race, "lead", lambda _: 0.1)  # as the race believes when the tip's later seeds are poor
        short = Morning(
            bench.study.machine, bench.study.at, bench.study.state, bench.contract, bench.seeds
        )._shortfall()
        assert short.because.startswith(f"No improvement was found: {idea} did better on the tuning seeds")
        assert short.ruled_out is not None and short.ruled_out > 0
        assert "more runs on fresh seeds" in short.would_decide or "than anybody can pay for" in short.would_decide


def test_a_night_says_what_it_is_doing(tmp_path: Path) -> None:
    with bench_of(tmp_path / "project", plants=False) as bench:
        assert progress.doing(bench) == "calibrating the baseline"
        calibrate(bench)
        assert progress.doing(bench) == "waiting for an idea"
        idea = entered(bench)
        assert progress.doing(bench) == f"trying {idea}"
        raced(bench, level(idea))
        assert bench.study.state.stack == [idea]
        play(bench, level(idea), most=1)
        assert progress.doing(bench) == "certifying the tip on fresh seeds"
        play(bench, level(idea))
        judged(bench)
        assert bench.study.state.certified == [idea]
        assert progress.doing(bench) == "taking stock of what was certified"


def test_a_verdict_shows_its_gain_as_finely_as_the_baseline_scatters(tmp_path: Path) -> None:
    with bench_of(tmp_path / "project", plants=False) as bench:
        calibrate(bench, level=0.5, step=0.02)
        idea = entered(bench)
        decision = None
        while decision is None and list(judge.wanted(bench, certifying=False)):
            play(bench, lambda want: 0.85 if want.candidate == idea else 0.5, certifying=False)
            decision = judge.verdict(bench)
        assert decision is not None and decision.gain is not None and 0.2 < decision.gain < 0.4
        assert f"  +{decision.gain:.3f} return" in progress.verdict(bench, decision)
