"""A certified change elsewhere: the same trees, the same seeds, the one launch path, and never part of a claim."""

import json
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from overnight import transfer
from overnight.ports import Machine
from overnight.records.job import Exit
from overnight.room import usable_cores
from overnight.run.launch import exit_of
from overnight.study.stored import STORED
from scenes import Said, Scene

Verb = Callable[..., Said]
ARMS = ("baseline", "candidate")


def travel(verb: Verb, scene: Scene, *words: str) -> Said:
    return verb("transfer", *words, "--dir", str(scene.project))


@pytest.mark.feature("Z54")
@pytest.mark.feature("Z42")
def test_a_certified_change_is_tried_unmodified_in_another_environment(params: Scene, verb: Verb) -> None:
    runs, decided = params.state().runs, params.entries("decided")
    said = travel(verb, params, "--env", "CartPole-v0", "--seeds", "3", "--json")
    assert said.code == 0, said.stderr
    told = json.loads(said.stdout)
    one, state = told["transfers"][0], params.state()
    assert (one["candidate"], one["env"]["id"], one["times"]) == ("c-0001", "CartPole-v0", 1.0)
    assert one["tree"] == state.candidates["c-0001"].tree and one["baseline"] == state.candidates["c-0002"].tree
    assert len(set(one["train_seeds"])) == 3 and min(one["ours"]) > max(one["theirs"])
    assert "CartPole-v0: the gain holds; return" in one["says"] and not told["part_of_a_claim"]
    assert "6 of 6 runs" in said.stderr and "left" in said.stderr
    chart, table = Path(told["chart"]).read_text(), Path(told["table"]).read_text()
    assert chart.startswith("<svg xmlns=") and chart.count("<rect") == 2 and chart.count("<circle") == 6
    assert "| CartPole\\-v0 |" in table or "| CartPole-v0 |" in table
    assert "3 each" in table and "cores a run" in table
    assert (state.runs, params.entries("decided")) == (runs, decided), "the claim stays what it was"
    assert "outside of every claim" in params.entries("noted")[-1]["says"]
    assert verb("audit", "--dir", str(params.project)).code == 0


@pytest.mark.feature("Z55")
def test_the_winner_is_tried_again_at_a_longer_budget(params: Scene, verb: Verb) -> None:
    said = travel(verb, params, "c-0001", "--budget", "4x", "--budget", "1x", "--seeds", "2", "--json")
    assert said.code == 0, said.stderr
    found = json.loads(said.stdout)["transfers"]
    assert [one["budget"] for one in found] == [{"unit": "env_steps", "amount": amount} for amount in (4000, 1000)]
    assert found[0]["train_seeds"] == found[1]["train_seeds"]
    order = json.loads(next(params.at.transfers.glob("*-4x-*/candidate-1/run.json")).read_text())
    assert order["budget"]["amount"] == 4000 and order["env"]["id"] == "CartPole-v1"


def test_what_is_on_file_is_not_trained_again(params: Scene, verb: Verb) -> None:
    words = ("--env", "CartPole-v0", "--seeds", "2")
    assert travel(verb, params, *words).code == 0
    notes = len(params.entries("noted"))
    again = travel(verb, params, *words)
    assert "of 4 runs" not in again.stderr and "seed" not in again.stderr.partition("runs.\n")[2]
    assert len(params.entries("noted")) == notes
    next(params.at.transfers.glob("*/baseline-2.json")).unlink()
    assert "baseline, seed 2 of 2 (1 of 1 runs)" in travel(verb, params, *words).stderr
    more = travel(verb, params, "--env", "CartPole-v0", "--seeds", "3", "--json")
    assert "(2 of 2 runs" in more.stderr and len(json.loads(more.stdout)["transfers"][0]["ours"]) == 3


def test_every_record_that_is_left_behind_is_sound(params: Scene, verb: Verb) -> None:
    assert travel(verb, params, "--budget", "0.5x", "--seeds", "2").code == 0
    path = next(params.at.transfers.glob("*/transfer.json"))
    assert "overnight/transfer/1" in STORED
    assert verb("check", "record", str(path)).code == 0


def test_a_run_that_breaks_elsewhere_is_a_lost_seed_and_no_number(params: Scene, verb: Verb) -> None:
    command = Path(params.contract().baseline.command[1])
    text = command.read_text()
    command.write_text("raise SystemExit('not here')")
    try:
        said = travel(verb, params, "--env", "CartPole-v0", "--seeds", "2", "--json")
    finally:
        command.write_text(text)
    assert said.code == 0, said.stderr
    one = json.loads(said.stdout)["transfers"][0]
    assert one["ours"] == [None, None] and one["gain"] is None
    assert "too few runs brought a score to compare; 2 against 2 of 2 seeds were lost" in one["says"]


def test_only_a_certified_change_is_transferred(params: Scene, verb: Verb) -> None:
    assert params.propose({"learning_rate": 0.02}) == ()
    for name in ("c-0002", "c-0003"):
        said = travel(verb, params, name, "--budget", "4x")
        assert said.code == 3 and "not certified" in said.stderr
    assert travel(verb, params, "c-0099", "--budget", "4x").code == 2
    assert not params.at.transfers.exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "needs another environment or another budget"),
        (("--env", "CartPol-v1"), "did you mean"),
        (("--budget", "fast"), "a number of times such as `4x`"),
        (("--budget", "-1x"), "a number of times such as `4x`"),
        (("--budget", "4x", "--seeds", "1"), "noise shows only from two on"),
    ],
)
def test_a_wrong_setting_is_told_before_anything_is_trained(
    words: tuple[str, ...], said: str, params: Scene, verb: Verb
) -> None:
    found = travel(verb, params, *words)
    assert found.code == 2 and said in found.stderr
    assert not params.at.transfers.exists()


def test_a_tree_that_another_hand_has_changed_is_not_launched(certified: Scene, verb: Verb) -> None:
    certified.git("update-ref", certified.at.ref("candidates", "c-0003"), certified.state().candidates["c-0001"].commit)
    said = travel(verb, certified, "--budget", "4x")
    assert said.code == 3 and "another tree" in said.stderr and not certified.at.transfers.exists()


def test_a_stack_of_code_is_transferred_as_a_whole(certified: Scene, verb: Verb) -> None:
    said = travel(verb, certified, "--env", "CartPole-v0", "--seeds", "2", "--json")
    assert said.code == 0, said.stderr
    one = json.loads(said.stdout)["transfers"][0]
    assert one["candidate"] == "c-0003" and one["tree"] == certified.state().candidates["c-0003"].tree


@pytest.mark.skipif(usable_cores() < 2, reason="one core takes one run at a time")
def test_both_arms_train_side_by_side_on_cores_of_their_own(params: Scene, verb: Verb) -> None:
    assert travel(verb, params, "--budget", "2x", "--seeds", "2").code == 0
    jobs = [json.loads(next(params.at.transfers.glob(f"*/{arm}-1/job.json")).read_text()) for arm in ARMS]
    assert all(len(one["cores"]) == 1 for one in jobs) and jobs[0]["cores"] != jobs[1]["cores"]


def test_a_run_that_is_lost_is_trained_again_and_three_losses_end_the_journey(
    params: Scene, verb: Verb, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost = Counter[Path]()

    def forgetful(machine: Machine, folder: Path) -> Exit | None:
        lost[folder] += 1
        return None if folder.name == "baseline-2" and lost[folder] <= losses else exit_of(machine, folder)

    monkeypatch.setattr(transfer, "exit_of", forgetful)
    losses = 2
    said = travel(verb, params, "--budget", "2x", "--seeds", "2")
    assert said.code == 0 and "(6 of 6 runs" in said.stderr, said.stderr
    lost.clear()
    losses = 3
    said = travel(verb, params, "--budget", "3x", "--seeds", "2")
    assert said.code == 3 and "It was lost 3 times in a row" in said.stderr
    assert not list(params.at.transfers.glob("*-3x-*/transfer.json"))


def test_with_two_runs_at_a_time_the_first_that_ends_does_not_double_the_time_that_is_left() -> None:
    said = list[str]()
    journey = transfer.Journey(bench=None, candidate="c-0001", seeds=3, tell=said.append)  # type: ignore[arg-type]
    pair = transfer._Progress(journey, wanted=6, began=2, done=1, since=time.monotonic() - 600)
    pair.begin("the third")
    assert said == ["the third (3 of 6 runs, about 20 min left)"]
    alone = transfer._Progress(journey, wanted=6, began=1, done=1, since=time.monotonic() - 600)
    alone.begin("the second")
    assert said[1] == "the second (2 of 6 runs, about 50 min left)"
