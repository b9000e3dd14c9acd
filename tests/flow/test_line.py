"""Candidates that run beside the one that is being looked at: slots work, and the verdicts come in the same order."""

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benches import Silent, bench_of, calibrate, entered, judged, level, play, raced, run_once
from nights import bench_of as real_bench
from nights import params_study
from overnight import judge, loop, progress
from overnight.admission import Who, enter
from overnight.intake import carry_over
from overnight.loop import Night, night
from overnight.machine import RealMachine
from overnight.racing import Follower
from overnight.records.approval import Strength
from overnight.records.lifecycle import State
from overnight.records.proposal import Exhausted, Proposal, View, Wait
from overnight.study.layout import StudyFolder
from overnight.trials import Bench

MANY = {"max_runs": 100_000}
"""More runs than an hour holds, so that time is what is short."""


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    """A study with two slots, calibrated, in which time is short."""
    with bench_of(tmp_path / "project", plants=False, **MANY) as found:
        calibrate(found)
        yield found


def wanted(bench: Bench) -> list[tuple[str, int]]:
    return [(want.candidate, want.number) for want in judge.wanted(bench, certifying=False)]


def play_only(bench: Bench, scores: dict[str, float]) -> None:
    """Run what is wanted of these candidates, and nothing else."""
    for want in list(judge.wanted(bench, certifying=False)):
        if want.candidate in scores:
            run_once(bench, want, scores[want.candidate])


def test_the_first_seed_of_the_next_candidate_is_wanted_while_one_races_and_no_other(bench: Bench) -> None:
    first, second = entered(bench), entered(bench, null_knob=2.0)
    assert wanted(bench) == [(first, 0), (second, 0)]
    play_only(bench, {first: 108.0, second: 90.0})
    assert [seed for seed in wanted(bench) if seed[0] == second] == [], "its second seed waits for its turn"
    assert progress.doing(bench) == f"trying {first}, then {second}"


def test_where_runs_are_dear_one_candidate_runs_at_a_time(tmp_path: Path) -> None:
    with bench_of(tmp_path / "project", plants=False, max_runs=40) as bench:
        calibrate(bench)
        first, _ = entered(bench), entered(bench, null_knob=2.0)
        assert wanted(bench) == [(first, 0)]


def test_verdicts_come_in_turn_and_use_what_has_run(bench: Bench) -> None:
    first, second = entered(bench), entered(bench, null_knob=2.0)
    play_only(bench, {first: 60.0, second: 50.0})
    judged(bench)
    judged(bench)
    states = [bench.study.state.candidates[name].state for name in (first, second)]
    assert states == [State.REJECTED, State.REJECTED]
    tried = [run.candidate for run in bench.study.state.runs.values() if run.candidate != bench.study.state.baseline]
    assert tried == [first, second], "nobody ran twice"
    assert judge.verdict(bench) is None


def test_what_was_ahead_when_the_tip_moved_on_is_tried_again_on_the_new_tip_and_what_was_behind_is_not(
    bench: Bench,
) -> None:
    first, ahead, behind = entered(bench), entered(bench, null_knob=2.0), entered(bench, gamma=0.95)
    play_only(bench, {first: 300.0, ahead: 400.0, behind: 20.0})
    before = len(bench.study.state.candidates)
    raced(bench, level(first))
    state = bench.study.state
    assert state.stack == [first]
    assert [state.candidates[name].state for name in (ahead, behind)] == [State.INCONCLUSIVE, State.REJECTED]
    assert "when another candidate joined the tip before it" in state.candidates[ahead].verdict
    store = bench.store
    (carried,) = list(carry_over(bench.study, store))
    assert list(carry_over(bench.study, store)) == [], "once is enough"
    again = state.candidates[carried[1].candidate or ""]
    assert (again.parents, again.base, again.state) == ([ahead], state.tip, State.VALIDATED)
    assert len(state.candidates) == before + 1


def test_while_somebody_leads_the_line_begins_nothing(bench: Bench) -> None:
    first = entered(bench)
    while (race := judge.race_of(bench)) is not None and race.leading is None:
        play(bench, level(first), certifying=False)
    judged(bench)
    assert bench.study.state.candidates[first].provisional
    entered(bench, null_knob=2.0)
    assert {name for name, _ in wanted(bench)} == {first}


def test_whoever_folds_the_ledger_later_finds_the_same_line(bench: Bench) -> None:
    names = [entered(bench), entered(bench, null_knob=2.0), entered(bench, gamma=0.95)]
    play_only(bench, dict.fromkeys(names, 50.0))
    for _ in names:
        again = replace(bench, follower=Follower())
        assert judge.undecided(again) == judge.undecided(bench)
        assert wanted(again) == wanted(bench)
        judged(bench)
    assert [data["candidate"] for kind, data in told(bench.study.at) if kind == "decided"] == names


def told(at: StudyFolder) -> list[tuple[str, dict[str, Any]]]:
    """What the ledger on disk holds, each with its kind."""
    entries = [json.loads(line)["e"] for line in at.ledger.read_text().splitlines()]
    return [(entry["kind"], entry["data"]) for entry in entries]


# Who is asked, and when


class Tireless:
    """Always has another idea; the first few are no good, and each is as small a change as the next."""

    def __init__(self, most: int = 3) -> None:
        self.most, self.asked = most, 0

    def ask(self, view: View) -> Proposal | Exhausted:
        self.asked += 1
        if len(view.tried) >= self.most:
            return Exhausted(because="The script is at its end.")
        return Proposal(
            proposer="search",
            kind="hyperparameter",
            hypothesis=f"Idea {len(view.tried)} helps.",
            predicted_effect="The score rises.",
            params={"gamma": 0.90 + len(view.tried) / 100},
        )


class Slow:
    """Is never done thinking."""

    asked = 0

    def ask(self, _: View) -> Wait:
        self.asked += 1
        return Wait(until_seconds=600.0, because="It is thinking.")


def test_a_slot_that_would_stand_idle_gets_the_next_idea_and_a_slow_proposer_is_not_pestered(bench: Bench) -> None:
    slow = Slow()
    sitting = Night(bench, slow, RealMachine().monotonic() + 3600)
    first = entered(bench)
    play_only(bench, {first: 108.0})
    race = judge.race_of(bench)
    assert race is not None and race.racing == first
    bench.going["r-0000"] = bench.study.at.runs / "r-0000"  # one slot is busy
    for _ in range(20):
        assert not loop._ask_ahead(sitting, race)
    assert slow.asked == 1
    sitting.proposer, sitting.quiet_until = Tireless(), 0.0
    assert loop._ask_ahead(sitting, race)
    assert len(judge.in_line(bench)) == 2
    assert not loop._ask_ahead(sitting, race), "one waits already, and there are two slots"


def test_nothing_begins_beside_the_racing_candidate_when_the_runs_left_are_for_the_tip(bench: Bench) -> None:
    tip = entered(bench)
    raced(bench, level(tip))
    first = entered(bench, null_knob=2.0)
    play_only(bench, {first: 301.0})
    race, plan = judge.race_of(bench), bench.follower.plan
    assert race is not None and plan is not None and plan.looks is not None
    kept_back = plan.looks.runs() + plan.audit_seeds
    past = tuple(bench.study.state.attempts_certified)
    assert not plan.has_room(race, past, kept_back + 4, 1)
    assert plan.has_room(race, past, kept_back + 9, 1)


def test_in_a_night_with_two_slots_two_candidates_run_at_the_same_time(tmp_path: Path) -> None:
    scene = params_study(tmp_path / "project")
    scene.rewrite(lambda terms: terms["budget"].update(max_runs=5000))
    scene.approve()
    with scene.open() as study:
        contract = enter(study, Who("tester", Strength.TERMINAL))
        bench = real_bench(scene, study, contract)
        night(Night(bench, Tireless(), time.monotonic() + 3600))
    assert overlapping(scene.at), "the next candidate began before the verdict on the one before it"
    state = scene.state()
    ideas = [one for one in state.ideas() if not one.parents]
    assert len(ideas) == 3 and all(one.verdict for one in ideas)
    assert all(run.outcome is not None for run in state.runs.values())
    order = [data["candidate"] for kind, data in told(scene.at) if kind == "decided" and not data["provisional"]]
    assert order == sorted(order)


def overlapping(at: StudyFolder) -> list[str]:
    """Candidates that were launched while an earlier one was undecided."""
    found, open_ones = [], list[str]()
    for kind, data in told(at):
        if kind == "launched" and data["phase"] == "screen" and data["candidate"] not in open_ones:
            found += [data["candidate"]] if open_ones else []
            open_ones.append(data["candidate"])
        elif kind in ("decided", "calibrated"):
            done = data.get("candidate")
            open_ones = [one for one in open_ones if done not in (None, one)]
    return found


def test_without_ideas_the_racing_candidate_gets_its_own_next_seed(bench: Bench) -> None:
    sitting = Night(bench, Silent(), RealMachine().monotonic() + 3600)
    first = entered(bench)
    play_only(bench, {first: 108.0})
    race = judge.race_of(bench)
    assert race is not None
    assert not loop._ask_ahead(sitting, race)
    assert [(want.candidate, want.number) for want in judge.likely(bench, 1)] == [(first, 2)]
