"""A certified stack is taken apart with the runs that are left: passengers leave the tip, and the claim stays whole."""

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import nights
from benches import IDEA, Silent, bench_of, calibrate, entered, judged, level, play, raced, run_once, seated, study_in
from nights import knowing_study
from overnight import ablating, loop
from overnight.admission import Drafting, admit_candidate, draft_candidate, propose_params
from overnight.candidate.build import params_of
from overnight.errors import Refused
from overnight.loop import Night
from overnight.machine import RealMachine
from overnight.morning import Morning
from overnight.records.ablation import Ablation, PartFinding
from overnight.records.lifecycle import Actor, State
from overnight.records.proposal import Exhausted, Proposal, View
from overnight.trials import Bench, Wanted
from scenes import Said, Scene

Worth = Callable[[frozenset[str]], float]
"""What the certified stack scores on average without some of its parts."""


def certified(bench: Bench) -> tuple[str, str]:
    """Two ideas that were kept one on the other, and certified together."""
    calibrate(bench)
    first = entered(bench)
    raced(bench, level(first))
    second = entered(bench, null_knob=2.0)
    raced(bench, level(second, 400.0))
    assert bench.study.state.stack == [first, second]
    play(bench, level(second, 400.0))
    judged(bench)
    assert bench.study.state.certified == [second]
    return first, second


def sitting(bench: Bench) -> Night:
    return Night(bench, Silent(), RealMachine().monotonic() + 1e6, over="There are no ideas.")


def measured(bench: Bench, want: Wanted, worth: Worth) -> None:
    without = frozenset(bench.study.state.candidates[want.candidate].without)
    run_once(bench, want, worth(without) + (want.number * 7 + int(want.candidate[2:]) * 3) % 11)


def step(bench: Bench, worth: Worth, *, most: int = 1000) -> bool:
    """What the loop does once the search is over, with runs that are written and not trained."""
    one = sitting(bench)
    if not loop._ablate(one):
        return False
    for want in ablating.wanted(bench, loop.runs_left(one))[:most]:
        measured(bench, want, worth)
    return True


def take_apart(bench: Bench, worth: Worth) -> None:
    while step(bench, worth):
        pass


def records(scene_or_bench: Bench | Scene) -> list[dict[str, object]]:
    at = scene_or_bench.at if isinstance(scene_or_bench, Scene) else scene_or_bench.study.at
    entries = (json.loads(line)["e"] for line in at.ledger.read_text().splitlines())
    return [entry["data"] for entry in entries if entry["kind"] == "ablated"]


def morning(bench: Bench) -> Morning:
    return Morning(bench.study.machine, bench.study.at, bench.study.state, bench.contract, bench.seeds)


def test_a_passenger_leaves_the_tip_and_the_claim_stays_one_about_the_whole_stack(tmp_path: Path) -> None:
    with bench_of(tmp_path / "project", plants=False) as bench:
        first, second = certified(bench)
        incumbent, certain = bench.study.state.incumbent, list(bench.study.state.certified)
        take_apart(bench, lambda without: 500.0 - 200.0 * (first in without))
        state = bench.study.state
        found = records(bench)[-1]
        assert found["removed"] == [second] and state.ablated == [second]
        leaner = state.candidates[str(found["leaner"])]
        assert (state.tip, state.stack) == (leaner.commit, [leaner.id]), "the next idea is built on the leaner stack"
        assert (state.incumbent, state.certified) == (incumbent, certain), "nothing is claimed by a removal"
        assert {one["part"]: one["word"] for one in found["parts"]} == {first: "carries", second: "dead weight"}  # type: ignore[attr-defined]
        told = morning(bench)._attribution()
        assert f"The claim is about the whole certified stack. The search goes on from {leaner.id}" in told[0]
        assert told[1].startswith(f"{first} carries ") and told[2].startswith(f"{second} is dead weight: without it, ")
        assert morning(bench)._night().candidates == 3, "the leaner stack is told of, and the other knock-outs are not"
        assert not loop._is_time_to_certify(sitting(bench)), "a leaner tip is no gain, so there is nothing to certify"
        assert state.candidates[entered(bench, null_knob=7.0)].base == leaner.commit


def test_what_carries_the_gain_stays_and_is_told(tmp_path: Path) -> None:
    with bench_of(tmp_path / "project", plants=False) as bench:
        first, second = certified(bench)
        take_apart(bench, lambda without: 500.0 - 200.0 * len(without))
        found = records(bench)[-1]
        assert (found["removed"], found["leaner"], bench.study.state.stack) == ([], None, [])
        assert f"{first}, {second} are shown to carry the gain" in str(found["says"])
        assert len(bench.study.state.ideas()) == 2, "a knock-out is no idea, and no stop rule counts it"
        assert morning(bench)._night().candidates == 2, "knock-outs are told as parts, and not as candidates"


def test_a_sitting_that_is_killed_after_every_single_run_takes_apart_as_one_that_is_not(tmp_path: Path) -> None:
    worth = lambda without: 500.0 - 200.0 * ("c-0002" in without)  # noqa: E731
    whole = study_in(tmp_path / "one", plants=False)
    with seated(whole) as bench:
        certified(bench)
        take_apart(bench, worth)
    parts = study_in(tmp_path / "many", plants=False)
    with seated(parts) as bench:
        certified(bench)
    for _ in range(100):
        with seated(parts) as bench:  # this sitting knows nothing but the ledger
            if not step(bench, worth, most=1):
                break
    assert records(parts) == records(whole) != []


def test_a_budget_that_does_not_hold_the_knock_outs_spends_nothing_and_the_report_says_so(tmp_path: Path) -> None:
    with bench_of(tmp_path / "project", plants=False, max_runs=64) as bench:
        certified(bench)
        while 64 - len(bench.study.state.runs) >= 18:
            run_once(bench, Wanted(bench.study.state.baseline, "screen", 1, len(bench.study.state.runs)), 100.0)
        before = bench.study.state.entries
        assert not step(bench, lambda without: 500.0)
        assert bench.study.state.entries == before
        told = morning(bench)._attribution()[0]
        assert told.startswith("Which of its 2 parts carry the gain was not tested: that takes 18 runs or more")
        assert told.endswith("The claim is about the whole certified stack.")


def test_a_removal_that_the_budget_cannot_test_is_not_made_and_attribution_is_told(tmp_path: Path) -> None:
    with bench_of(tmp_path / "project", plants=False, max_runs=64) as bench:
        first, second = certified(bench)
        while 64 - len(bench.study.state.runs) > 25:
            run_once(bench, Wanted(bench.study.state.baseline, "screen", 1, len(bench.study.state.runs)), 100.0)
        take_apart(bench, lambda without: 500.0 - 200.0 * (first in without))
        found = records(bench)[-1]
        assert (found["removed"], bench.study.state.stack) == ([], [])
        assert len(bench.study.state.runs) <= 64
        assert {one["part"]: one["word"] for one in found["parts"]} == {first: "carries", second: "unclear"}  # type: ignore[attr-defined]


def test_a_bundle_of_parameters_is_taken_apart_key_by_key(tmp_path: Path) -> None:
    with bench_of(tmp_path / "project", plants=False) as bench:
        calibrate(bench)
        params = {"learning_rate": 0.003, "null_knob": 3.0}
        bundle = tuple(f"{key} becomes {value}" for key, value in params.items())
        one = propose_params(bench.study, bench.store, replace(IDEA, params=params, bundle=bundle)).id
        assert admit_candidate(bench.study, bench.store, one) == ()
        raced(bench, level(one))
        play(bench, level(one))
        judged(bench)
        assert bench.study.state.certified == [one]
        take_apart(bench, lambda without: 300.0 - 150.0 * ("learning_rate" in without))
        found = records(bench)[-1]
        assert found["removed"] == ["null_knob"]
        leaner = bench.study.state.candidates[str(found["leaner"])]
        assert b"0.003" in (bench.store.file(leaner.tree, "params.json") or b"")


class Bundled:
    """Has one idea, a bundle of what helps and of what does nothing."""

    def ask(self, view: View) -> Proposal | Exhausted:
        if view.tried:
            return Exhausted(because="The script is at its end.")
        params = {"learning_rate": 0.01, "null_knob": 2.0}
        return replace(IDEA, params=params, bundle=tuple(f"{key} becomes {value}" for key, value in params.items()))


@pytest.mark.skipif("OVERNIGHT_SOAK" not in os.environ, reason="a minute of real runs: `make soak`")
def test_a_real_night_takes_its_certified_bundle_apart_and_builds_on_without_the_passenger(
    tmp_path: Path, verb: Callable[..., Said]
) -> None:
    scene = knowing_study(tmp_path / "walker", proposers=["search"])
    assert nights.sit(scene, Bundled()) == "The script is at its end."
    state, found = scene.state(), records(scene)[-1]
    assert found["removed"] == ["null_knob"]
    leaner = state.candidates[str(found["leaner"])]
    assert state.stack == [leaner.id] and state.certified == [str(found["candidate"])] and len(state.ideas()) == 1
    assert params_of(scene.store, leaner.tree)["learning_rate"] == 0.01
    assert "null_knob" not in {
        key
        for key, value in params_of(scene.store, leaner.tree).items()
        if value != params_of(scene.store, state.tree).get(key)
    }
    told = verb("report", "--dir", str(scene.project))
    assert told.code == 0, told.stderr
    page = scene.at.report_text.read_text().replace("\\_", "_")
    assert "## What carries the gain" in page and "learning_rate carries " in page
    assert "null_knob was removed as dead weight" in page and "The claim is about the whole certified stack." in page
    assert verb("audit", "--dir", str(scene.project)).code == 0, "a claim stands as it did before the ablation"
    assert verb("status", "--dir", str(scene.project)).code == 0


# Cheaters


def test_nobody_but_the_engine_knocks_parts_out(tmp_path: Path) -> None:
    with bench_of(tmp_path / "project", plants=False) as bench:
        first, second = certified(bench)
        how = Drafting(bench.contract, Actor.PROPOSER, ablates=second, without=(first,))
        with pytest.raises(Refused, match="Only the engine knocks parts out of a stack"):
            draft_candidate(bench.study, bench.store, IDEA, bench.study.state.tree, how)
        how = Drafting(bench.contract, Actor.ENGINE, ablates=first, without=(second,))
        with pytest.raises(Refused, match="is not the certified incumbent"):
            draft_candidate(bench.study, bench.store, IDEA, bench.study.state.tree, how)


def test_nothing_is_taken_out_that_was_not_measured_or_that_loses_too_much(tmp_path: Path) -> None:
    with bench_of(tmp_path / "project", plants=False) as bench:
        first, second = certified(bench)
        for _ in range(3):
            step(bench, lambda without: 500.0, most=0)
        knock_out = next(one for one in bench.study.state.candidates.values() if one.without == [second])
        ours = [name for name, run in bench.study.state.runs.items() if run.candidate == second][:1]
        parts = tuple(
            PartFinding(part=part, word="unclear", loss=0.0, loss_low=None, loss_high=None, says="It says nothing.")
            for part in (first, second)
        )
        forged = Ablation(
            candidate=second,
            parts=parts,
            margin=10.0,
            removed=(second,),
            leaner=knock_out.id,
            loss=0.0,
            says="It is dead weight.",
            evidence=tuple(ours),
        )
        with pytest.raises(Refused, match=r"cannot follow the tip"):
            bench.study.append(Actor.JUDGE, forged)
        with pytest.raises(Refused, match="Only the judge"):
            bench.study.append(Actor.ENGINE, replace(forged, removed=(), leaner=None, loss=None))
        with pytest.raises(Exception, match="loses less than 10"):
            replace(forged, loss=11.0)
        assert knock_out.state is State.VALIDATED and not bench.study.state.ablated
