"""Training a run again: the same to the last digit, or told; and never what the gate has not seen."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from overnight.adapters.launchers.local import LocalLauncher
from overnight.room import usable_cores
from scenes import Said, Scene, clean_env, git

Verb = Callable[..., Said]


def again(verb: Verb, scene: Scene, *words: str) -> Said:
    return verb("reproduce", *words, "--dir", str(scene.project))


@pytest.mark.parametrize("kind", ["params", "certified"])
def test_a_run_comes_out_the_same_and_is_noted(kind: str, request: pytest.FixtureRequest, verb: Verb) -> None:
    scene: Scene = request.getfixturevalue(kind)
    runs = scene.state().runs
    said = again(verb, scene)
    assert said.code == 0, said.stderr
    assert "5 of 5 episodes identical" in said.stdout and "is training again" in said.stderr
    run = said.stdout.split()[0]
    assert f"{run} was trained again. 5 of 5" in scene.entries("noted")[-1]["says"]
    assert scene.state().runs == runs, "a reproduction is no run of the study"
    assert (scene.at.reproductions / run / "exit.json").exists()


def test_it_can_be_done_again_in_the_same_folder(params: Scene, verb: Verb) -> None:
    left = params.at.reproductions / "r-0001"
    left.mkdir(parents=True)
    (left / "exit.json").write_text("left over")
    assert again(verb, params, "r-0001").code == 0


def test_all_runs_of_a_claim_are_trained_again(params: Scene, verb: Verb) -> None:
    said = again(verb, params, "c-0001", "--all", "--json")
    told = json.loads(said.stdout)
    assert told["identical"] and len(told["runs"]) == 8
    assert {one["candidate"] for one in told["runs"]} == {"c-0001", "c-0002"}
    assert again(verb, params, "c-0002", "--all").code == 2, "the baseline has no claim"


def test_a_trainer_that_is_not_repeatable_is_told_with_status_1(params: Scene, verb: Verb) -> None:
    """The command lies outside the tree here, so it can change under the study; the comparison finds it."""
    trainer = params.project.parent / "trainer.py"
    command = params.contract().baseline.command[1]
    text = Path(command).read_text()
    assert not trainer.exists()
    Path(command).write_text(text.replace('"speed": 1.0', '"speed": 0.0'))
    try:
        said = again(verb, params)
    finally:
        Path(command).write_text(text)
    assert said.code == 1 and "of 5 episodes differ" in said.stdout and "episode" in said.stdout


def test_a_training_that_breaks_this_time_is_told(params: Scene, verb: Verb) -> None:
    command = params.contract().baseline.command[1]
    text = Path(command).read_text()
    Path(command).write_text("raise SystemExit('no more')")
    try:
        said = again(verb, params)
    finally:
        Path(command).write_text(text)
    assert said.code == 1 and "did not end as before" in said.stdout and "no more" in said.stdout


def test_a_tree_that_another_hand_has_changed_is_not_launched(certified: Scene, verb: Verb) -> None:
    ref = certified.at.ref("candidates", "c-0003")
    certified.git("update-ref", ref, certified.state().candidates["c-0001"].commit)
    said = again(verb, certified, "c-0003")
    assert said.code == 3 and "another tree" in said.stderr
    assert not certified.at.reproductions.exists()


def test_terms_that_changed_since_are_not_those_of_the_run(params: Scene, verb: Verb) -> None:
    params.rewrite(lambda terms: terms["budget"].update(stop_amount=2000))
    said = again(verb, params)
    assert said.code == 3 and "ran under other terms" in said.stderr
    assert not params.at.reproductions.exists()


def test_what_never_ran_is_not_launched(params: Scene, verb: Verb) -> None:
    assert params.propose({"learning_rate": 0.02}) == ()
    said = again(verb, params, "c-0003")
    assert said.code == 3 and "No run of it was completed" in said.stderr
    assert again(verb, params, "r-0099").code == 2


def test_a_study_that_is_held_is_left_alone(params: Scene, verb: Verb) -> None:
    with params.open():
        said = again(verb, params)
    assert said.code == 3 and not params.at.reproductions.exists()


def test_ctrl_c_stops_the_training(params: Scene) -> None:
    command = params.contract().baseline.command[1]
    text = Path(command).read_text()
    Path(command).write_text("import time; time.sleep(60)")
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever started us may have it ignored
    try:
        child = subprocess.Popen(
            [sys.executable, "-m", "overnight.cli.main", "reproduce", "c-0001", "--all", "--dir", str(params.project)],
            env=clean_env(),
            stderr=subprocess.DEVNULL,
        )
        folders = wait_for_runs(params, min(usable_cores(), 8))
        os.kill(child.pid, signal.SIGINT)
        assert child.wait(30) == 130
    finally:
        signal.signal(signal.SIGINT, before)
        Path(command).write_text(text)
    assert not any(LocalLauncher().is_alive(folder) for folder in folders)
    told = [note for note in params.entries("noted") if not note["says"].startswith("Isolation ")]
    assert not told, "a reproduction that was stopped says nothing"


def wait_for_runs(scene: Scene, count: int) -> list[Path]:
    until = time.monotonic() + 30
    while time.monotonic() < until:
        found = [path.parent for path in scene.at.reproductions.glob("*/out")]
        if len(found) == count:
            return found
        time.sleep(0.05)
    raise AssertionError(f"{count} runs were not launched")


def test_a_damaged_artefact_is_not_compared_with(params: Scene, verb: Verb) -> None:
    for path in params.at.objects.iterdir():
        path.chmod(0o644)
        path.write_bytes(b"{}")
    said = again(verb, params)
    assert said.code == 3 and "not what was stored" in said.stderr


def test_the_repository_is_only_read(certified: Scene, verb: Verb) -> None:
    before = git(certified.project, "for-each-ref")
    again(verb, certified, "c-0002")
    assert git(certified.project, "for-each-ref") == before
