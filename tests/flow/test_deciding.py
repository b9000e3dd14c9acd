"""What the night decides from its ledger: leads, undoings, crashes, guardrails, other budgets, and many nights."""

import json
import subprocess
from dataclasses import replace
from pathlib import Path
from time import process_time

import pytest

from benches import (
    Silent,
    bench_of,
    calibrate,
    entered,
    judged,
    kept,
    level,
    play,
    raced,
    run_once,
    seated,
    study_in,
)
from overnight import attempts, judge, loop, schedules, verifying
from overnight.admission import may_launch_now
from overnight.decide.race import Race
from overnight.errors import Refused
from overnight.loop import Night
from overnight.machine import RealMachine
from overnight.racing import Follower
from overnight.records.codec import digest
from overnight.records.decision import Decision, LoopDecision, Verdict
from overnight.records.lifecycle import Actor, State
from overnight.records.run import Outcome, Run, RunEnd
from overnight.records.strict_json import canonical
from overnight.shortfall import shortfall
from overnight.study.layout import StudyFolder
from overnight.study.state import CandidateState, Moment, RunState, StudyState
from overnight.trials import Bench, Wanted


def decisions(at: StudyFolder) -> list[dict[str, object]]:
    """What was decided so far, from the file."""
    lines = at.ledger.read_text().splitlines()
    return [entry["data"] for line in lines if (entry := json.loads(line)["e"])["kind"] == "decided"]


def test_a_lead_joins_the_tip_only_until_fresh_seeds_have_spoken_and_is_reverted_when_they_disagree(
    tmp_path: Path,
) -> None:
    with bench_of(tmp_path / "project", plants=False) as bench:
        calibrate(bench)
        before = bench.study.state.tip
        idea = entered(bench)
        lucky = lambda want: 100.0 + want.number % 10 + (100.0 if want.number < 2 else -50.0)  # noqa: E731
        for _ in range(2):
            play(bench, lucky, certifying=False)
        judged(bench)
        one = bench.study.state.candidates[idea]
        assert (one.kept, one.provisional, bench.study.state.tip) == (True, True, one.commit)
        assert "it joins the tip until 5 fresh seeds have spoken" in one.verdict
        raced(bench, lucky)
        assert (one.state, one.kept, bench.study.state.tip) == (State.REVERTED, False, before)
        assert one.verdict.endswith("so it was undone.")
        assert decisions(bench.study.at)[-1]["loop"] == LoopDecision.ROLLBACK
        used = [run.number for run in bench.study.state.runs.values() if run.candidate == idea]
        assert len(set(used)) == len(used), "no seed both selects and checks"


def test_a_candidate_that_crashes_on_half_of_its_seeds_is_rejected_with_that_sentence(tmp_path: Path) -> None:
    with bench_of(tmp_path / "project", plants=False) as bench:
        calibrate(bench)
        idea = entered(bench)
        raced(bench, lambda want: None if want.candidate == idea and want.number % 2 else 400.0)
        one = bench.study.state.candidates[idea]
        assert one.state is State.REJECTED
        assert "by its own fault where the tip lost 0, and a lost seed ranks below every score." in one.verdict


def test_a_tip_that_crashes_on_half_of_its_fresh_seeds_is_not_certified(tmp_path: Path) -> None:
    with bench_of(tmp_path / "project") as bench:
        idea = kept(bench)
        good = level(idea)
        while bench.study.state.stack and not bench.study.state.attempts:
            play(bench, lambda want: None if want.candidate == idea and want.number % 2 else good(want))
            if (decision := judge.verdict(bench)) is not None:
                bench.study.append(Actor.JUDGE, decision)
        assert bench.study.state.candidates[idea].state is not State.ACCEPTED
        assert "of the candidate's lost" in bench.study.state.candidates[idea].verdict


def test_a_gain_with_a_guardrail_that_got_worse_is_never_a_success(tmp_path: Path) -> None:
    with bench_of(tmp_path / "project") as bench:
        idea = kept(bench)
        play(bench, level(idea), rail=lambda want: want.number % 3 + (10.0 if want.candidate == idea else 90.0))
        judged(bench)
        one = bench.study.state.candidates[idea]
        assert (one.state, bench.study.state.incumbents) == (State.REVERTED, [])
        assert "not better, because worst_decile_return got worse than its margin" in one.verdict


def test_a_candidate_that_changed_only_the_seed_is_refused(tmp_path: Path) -> None:
    from benches import IDEA
    from overnight.admission import admit_candidate, propose_params

    with bench_of(tmp_path / "project", plants=False) as bench:
        idea = replace(IDEA, params={"seed": 7})
        reasons = admit_candidate(bench.study, bench.store, propose_params(bench.study, bench.store, idea).id)
        assert any("seeds are given by the engine" in reason.says for reason in reasons)


def test_results_at_another_budget_count_for_nothing_and_are_never_compared(tmp_path: Path) -> None:
    with bench_of(tmp_path / "project", plants=False) as bench:
        calibrate(bench)
        idea = entered(bench)
        for number in range(2):
            run_once(bench, Wanted(idea, "screen", 0, number), 400.0, comparability="f" * 64)
        assert judge.verdict(bench) is None
        assert {want.number for want in judge.wanted(bench, certifying=False)} >= {0}, "they are wanted as before"
        mixed = Decision(
            candidate=idea,
            verdict=Verdict.KEEP,
            because="It is better.",
            loop=LoopDecision.CONTINUE,
            rule="None.",
            evidence=(list(bench.study.state.runs)[-1], "r-0001"),
        )
        with pytest.raises(Refused, match="at another budget, on other hardware or by another protocol"):
            bench.study.append(Actor.JUDGE, mixed)


def test_a_claim_at_another_number_of_seeds_than_the_frozen_looks_is_refused(tmp_path: Path) -> None:
    with bench_of(tmp_path / "project") as bench:
        idea = kept(bench)
        play(bench, level(idea))
        decision = judge.verdict(bench)
        assert decision is not None and decision.verdict is Verdict.CERTIFIED
        fewer = replace(decision, evidence=decision.evidence[:5] + decision.evidence[6:11])
        with pytest.raises(Refused, match="the frozen plan does not look there"):
            bench.study.append(Actor.JUDGE, fewer)


def test_a_certified_gain_is_verified_with_behaviour_in_a_record_of_its_own(tmp_path: Path) -> None:
    with bench_of(tmp_path / "project") as bench:
        idea = kept(bench)
        play(bench, level(idea))
        judged(bench)
        assert verifying.unverified(bench.study.state) == idea
        found = verifying.verify(bench, idea)
        assert found.verdict == "improved"
        assert any("Episodes of" in says and "steps on average" in says for says in found.behaviour)
        assert any("worst tenth" in says for says in found.behaviour)
        bench.study.append(Actor.JUDGE, found)
        assert verifying.unverified(bench.study.state) is None


def test_a_night_without_a_gain_says_what_is_ruled_out(tmp_path: Path) -> None:
    with bench_of(tmp_path / "project", plants=False) as bench:
        calibrate(bench)
        for number in range(3):
            entered(bench, null_knob=1.0 + number)
            raced(bench, lambda want: 100.0 + want.number % 10)
        assert not bench.study.state.stack
        short = shortfall(bench.study.state, bench.contract, decisions(bench.study.at))
        assert short.because == (
            "No improvement was found: of 3 candidates, none was better than the baseline on the tuning seeds."
        )
        assert short.ruled_out is not None and 0 < short.ruled_out < 30


# What the machine loses


def test_runs_that_the_machine_lost_use_up_no_budget_and_are_counted_apart(tmp_path: Path) -> None:
    with bench_of(tmp_path / "project", plants=False, max_runs=8) as bench:
        baseline = bench.study.state.baseline
        for outcome in 5 * (Outcome.LOST, Outcome.INFRASTRUCTURE):
            ended(bench, Wanted(baseline, "screen", 0, 0), outcome)
        state = bench.study.state
        assert (len(state.runs), state.paid_runs, state.lost_runs) == (10, 0, 10)
        assert may_launch_now(bench.study, baseline) == (), "ten losses leave all of eight runs"
        assert loop.runs_left(Night(bench, Silent(), RealMachine().monotonic() + 1e6)) == 8
        calibrate(bench)
        assert bench.follower.race(state, bench.contract) is not None
        for outcome in (Outcome.STOPPED, Outcome.CRASHED):
            ended(bench, Wanted(baseline, "screen", 0, 90), outcome)
        assert state.paid_runs == state.calibrations[-1]["seeds"] + 2, "what a verdict stopped, or crashed, was spent"
        while state.paid_runs < 8:
            run_once(bench, Wanted(baseline, "screen", 0, 100 + state.paid_runs), 100.0)
        assert [one.says for one in may_launch_now(bench.study, baseline)] == [
            "The budget of 8 training runs is spent."
        ]


def ended(bench: Bench, want: Wanted, outcome: Outcome) -> None:
    """A run that ended without a policy."""
    one = bench.study.state.candidates[want.candidate]
    run = Run(
        id=bench.study.state.next_run(),
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
    bench.study.append(Actor.RUNNER, run)
    end = RunEnd(run=run.id, outcome=outcome, because="It ended.", wall_seconds=0.1)
    bench.study.append(Actor.RUNNER, end)


# The looks of an attempt


def test_the_last_attempt_of_a_study_takes_the_runs_that_are_left_into_its_last_look(tmp_path: Path) -> None:
    scene = study_in(tmp_path / "project", plants=False, max_runs=64)
    with seated(scene) as bench:
        idea = lone(bench)
        plan = bench.follower.plan
        assert plan is not None and plan.looks is not None
        sitting = Night(bench, Silent(), RealMachine().monotonic() + 1e6)
        assert loop._left_over(sitting) is None, "while the search may go on, nothing is stretched"
        sitting.over = "There are no ideas."
        assert loop._is_time_to_certify(sitting)
        loop._narrow(sitting, 1)
        fixed = schedules.recorded(bench.study.state)
        left = 64 - len(bench.study.state.runs)
        assert fixed is not None and fixed.runs_left == left
        assert fixed.looks == (*plan.looks.looks[:-1], left // 2) and left // 2 > plan.looks.looks[-1]
        assert bench.study.state.attempt_is_open(), "nothing else may begin between the schedule and its first run"
    with seated(scene) as bench:  # as after a kill: this sitting knows nothing but the ledger
        race, plan = judge.race_of(bench), bench.follower.plan
        assert race is not None and plan is not None
        found = attempts.attempt_of(bench, race, plan)
        assert found is not None and found.looks == schedules.look_plan(fixed)
        small = lambda want: 100.0 + 7 * (want.number * 5 % 11) + (9.0 if want.candidate == idea else 0.0)  # noqa: E731
        while not bench.study.state.attempts:
            play(bench, small)
            judged_now(bench)
        last = decisions(scene.at)[-1]
        assert (last["verdict"], last["seeds"]) == (Verdict.INCONCLUSIVE, left // 2)
        assert bench.study.state.schedule is None


def test_a_last_look_is_never_stretched_beyond_the_fresh_seeds_of_the_contract(tmp_path: Path) -> None:
    scene = study_in(tmp_path / "project", plants=False, max_runs=64)
    scene.rewrite(lambda terms: terms["evaluation"].update(confirm_train_seeds=8))
    scene.approve()
    with seated(scene) as bench:
        lone(bench)
        sitting = Night(bench, Silent(), RealMachine().monotonic() + 1e6, over="There are no ideas.")
        assert loop._is_time_to_certify(sitting)
        loop._narrow(sitting, 1)
        fixed = schedules.recorded(bench.study.state)
        assert fixed is not None and fixed.looks == (6, 8)


def test_a_candidate_that_stays_undecided_is_left_before_it_uses_up_the_runs_that_certify_the_tip(
    tmp_path: Path,
) -> None:
    with bench_of(tmp_path / "project", plants=False, max_runs=28) as bench:
        tip = lone(bench)
        plan = bench.follower.plan
        assert plan is not None and plan.looks is not None
        sitting = Night(bench, Silent(), RealMachine().monotonic() + 1e6)
        idea = entered(bench, null_knob=2.0)
        race = judge.race_of(bench)
        assert race is not None
        mean, noise = race.tip.level.mean, race.noise.spread
        slightly = lambda want: mean + (noise / 2 if want.candidate == idea else 0.0)  # noqa: E731
        while not loop._is_in_the_way(sitting, 1):
            play(bench, slightly, certifying=False, most=1)
            assert judge.verdict(bench) is None, "it is neither ahead nor behind"
        left = 28 - len(bench.study.state.runs)
        assert loop._begin(sitting) and not bench.going
        one = bench.study.state.candidates[idea]
        assert one.state is State.INCONCLUSIVE and one.verdict.startswith(f"{idea} was at ")
        assert "the remaining runs were needed to certify the tip" in one.verdict
        assert judge.tip(bench) == tip and plan.looks.runs() <= left <= plan.looks.runs() + 2
        assert loop._is_time_to_certify(sitting)
        again = replace(bench, follower=Follower())  # whoever comes later finds the same
        race = judge.race_of(again)
        assert race is not None and race.racing is None and race.tip.candidate == tip


def lone(bench: Bench) -> str:
    """An idea that was kept in a study without plants."""
    calibrate(bench)
    idea = entered(bench)
    raced(bench, level(idea))
    assert bench.study.state.candidates[idea].kept
    return idea


# Many nights


def test_three_nights_of_16_runs_decide_as_one_of_48(tmp_path: Path) -> None:
    whole = study_in(tmp_path / "one", plants=False, max_runs=48)
    with seated(whole) as bench:
        told = through(bench, 48)
        one = decisions(whole.at)
    parts = study_in(tmp_path / "three", plants=False, max_runs=48)
    for night in (16, 32, 48):
        with seated(parts) as bench:
            again = through(bench, night)
    assert decisions(parts.at) == one
    assert again == told
    assert any(data["verdict"] == Verdict.CERTIFIED for data in one), "the study is long enough to claim something"


def through(bench: Bench, runs: int) -> str:
    """Search and certify until so many runs are used: every fifth idea is far better, and the others are none."""
    sitting = Night(bench, Silent(), RealMachine().monotonic() + 1e6)
    while len(bench.study.state.runs) < runs:
        if loop._calibrate(sitting) or judged_now(bench):
            continue
        due = loop._is_time_to_certify(sitting)
        if not list(judge.wanted(bench, certifying=due)):
            entered(bench, null_knob=1.0 + len(bench.study.state.candidates))
            continue
        play(bench, truth, certifying=due, most=1)
    loop._calibrate(sitting)
    while judged_now(bench):
        pass
    return judge.tip(bench)


def judged_now(bench: Bench) -> bool:
    decision = judge.verdict(bench)
    if decision is not None:
        bench.study.append(Actor.JUDGE, decision)
    return decision is not None


def truth(want: Wanted) -> float:
    noise = (want.number * 37 + int(want.candidate[2:]) * 11 + (5 if want.phase == "confirm" else 0)) % 17
    return 100.0 + noise + (60.0 if int(want.candidate[2:]) >= 3 else 0.0)


# Quickly


def test_a_decision_with_a_thousand_candidates_in_the_ledger_takes_less_than_50_milliseconds(tmp_path: Path) -> None:
    with bench_of(tmp_path / "project", plants=False) as bench:
        calibrate(bench)
        state = crowded(bench.study.state, bench.contract.comparability())
        best = min(seconds(state, bench) for _ in range(3))
    assert best < 0.05, f"{1000 * best:.0f} ms"


def test_a_step_of_the_night_with_a_thousand_past_candidates_takes_less_than_50_milliseconds(tmp_path: Path) -> None:
    """What the loop does between a result and the next runs: judge, write down, ask whether to certify, want."""
    scene = study_in(tmp_path / "project", plants=False, max_runs=5000)
    most = {"max_candidates": 2000}
    scene.rewrite(lambda terms: [terms["experiments"][key].update(most) for key in ("stop", "automation")])
    scene.approve()
    with seated(scene) as bench:
        calibrate(bench)
        crowded(bench.study.state, bench.contract.comparability())
        referred(bench)
        warm, cold = [], []
        for number in range(4):
            idea = entered(bench, null_knob=1.0 + number)
            while judge.verdict(bench) is None:
                play(bench, lambda want: 90.0 + want.number % 3, certifying=False, most=1)
            anew = replace(bench, follower=Follower())  # an engine that has just started folds everything first
            began = process_time()
            judge.verdict(anew)
            cold.append(process_time() - began)
            began = process_time()
            assert loop._judge(bench)
            due = loop._is_time_to_certify(Night(bench, Silent(), RealMachine().monotonic() + 1e6))
            list(judge.wanted(bench, certifying=due))
            warm.append(process_time() - began)
            assert bench.study.state.candidates[idea].state is State.REJECTED
    assert min(warm) < 0.05, f"{1000 * min(warm):.0f} ms"
    assert min(cold) < 0.05, f"{1000 * min(cold):.0f} ms just after a start"


def crowded(state: StudyState, key: str) -> StudyState:
    """A thousand candidates that were rejected after one or two seeds each."""
    for number in range(1000):
        name = state.next_candidate()
        state.candidates[name] = CandidateState(
            id=name, drafted_at=0, hypothesis="An idea.", base=state.tip, commit=f"{number:040d}", tree="0" * 40
        )
        state.candidates[name].state, state.candidates[name].validated_under = State.REJECTED, state.entered
        state.moments.append(Moment("entered", name))
        for seed in range(2):
            run = f"r-{len(state.runs) + 1:04d}"
            state.runs[run] = RunState(
                candidate=name,
                tree="0" * 40,
                comparability=key,
                train_seed=seed,
                phase="screen",
                round=0,
                number=seed,
                outcome=Outcome.COMPLETED,
                evidence=1,
                score=103.5 if seed == 0 else 90.0,
            )
            state.moments.append(Moment("ran", run))
        state.moments.append(Moment("decided", name, "reject", state.tip, state.incumbent))
    return state


def referred(bench: Bench) -> None:
    """Give every candidate its commit and its ref in the store, as those have that were really drafted."""
    state, store = bench.study.state, bench.store
    commit = store.write_commit(state.tree, (), "An idea.", at=1)
    made = [one for one in state.candidates.values() if one.id != state.baseline]
    for one in made:
        one.commit = commit
    lines = "".join(f"create {bench.study.at.ref('candidates', one.id)} {commit}\n" for one in made)
    words = ["git", f"--git-dir={bench.study.at.task.root.store}", "update-ref", "--stdin"]
    subprocess.run(words, input=lines, text=True, check=True)


def seconds(state: StudyState, bench: Bench) -> float:
    """Processor time of a decision by an engine that has just started: everything is folded anew."""
    follower, began = Follower(), process_time()
    found = follower.race(state, bench.contract)
    assert isinstance(found, Race)
    found.wants()
    return process_time() - began


def test_the_same_ledger_is_decided_in_the_same_way(tmp_path: Path) -> None:
    with bench_of(tmp_path / "project") as bench:
        idea = kept(bench)
        play(bench, level(idea))
        first, again = judge.verdict(bench), judge.verdict(replace(bench, follower=Follower()))
        assert first == again and first is not None
        assert canonical(first.because) == canonical(again.because if again is not None else "")
