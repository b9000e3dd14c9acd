"""A metered run: the environments live with a broker, which counts every step and takes none beyond the budget."""

import json
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from overnight.evaluate.measure import measure
from overnight.records.env import EnvSpec
from overnight.records.job import Exit
from overnight.records.order import RunBudget
from overnight.records.run import Outcome
from overnight.records.tier import Tier
from overnight.sandbox.processes import with_variable
from runs import MACHINE, POLICY, begin, need, run, wait

CLIENT = (
    POLICY
    + """
import sys
from guest.steps import Environments, Refused, Spent
import numpy as np
def tell(**words): (out / "told.json").write_text(json.dumps(words))
"""
)
STEP_ON = """
envs, taken = Environments(range(30)), 0
envs.reset()
for lanes in (30, 7, 1):
    try:
        while True:
            envs.step(np.zeros(lanes)); taken += lanes
    except Spent:
        envs = Environments(range({then}[lanes])); envs.reset()
tell(taken=taken)
"""
PARAMS = {"num_envs": 4, "rollout_steps": 16, "num_minibatches": 2, "update_epochs": 1}
TRAIN = """
import runpy, sys
sys.argv = ["train"]
runpy.run_module("overnight.rl.trainers.ppo", run_name="__main__")
"""


def told(folder: Path) -> Any:
    return json.loads((folder / "out" / "told.json").read_text())


@pytest.mark.parametrize("tier", ["T1", "T2", "T3"])
def test_not_one_step_beyond_the_budget_is_taken_whatever_is_asked(tmp_path: Path, tier: Tier) -> None:
    need(tier)
    ended = run(tmp_path / "run", CLIENT + STEP_ON.format(then={30: 7, 7: 1, 1: 1}), tier=tier, metered=True)
    assert ended.outcome is Outcome.COMPLETED, (tmp_path / "run" / "log").read_text()
    assert told(tmp_path / "run") == {"taken": 100}
    assert ended.env_steps == 100
    assert not (tmp_path / "run" / "broker").exists()


def test_a_run_that_is_not_metered_has_no_count(tmp_path: Path) -> None:
    assert run(tmp_path / "run", POLICY + "assert 'OVERNIGHT_BROKER' not in os.environ").env_steps is None


@pytest.mark.timeout(600)
def test_a_metered_training_is_the_same_to_the_last_bit_and_is_counted_in_full(tmp_path: Path) -> None:
    pytest.importorskip("envpool")
    returns, ends = [], []
    for metered in (False, True):
        folder = tmp_path / str(metered)
        steps = RunBudget(unit="env_steps", amount=1100)
        begin(folder, TRAIN, wall=240, silence=240, disk=10**9, params=PARAMS, budget=steps, metered=metered)
        ends.append(wait(folder, 240))
        assert ends[-1].outcome is Outcome.COMPLETED, (folder / "log").read_text()[-2000:]
        env = EnvSpec(backend="gymnasium", id="CartPole-v1")
        returns.append(measure(MACHINE, env, folder, range(10)).episodes)
    assert json.loads((tmp_path / "True" / "out" / "ready").read_text())["backend"] == "broker"
    assert returns[0] == returns[1]
    reported = (tmp_path / "True" / "out" / "metrics.jsonl").read_text().splitlines()
    assert ends[1].env_steps == json.loads(reported[-1])["env_steps"] == 1088


@pytest.mark.timeout(600)
def test_the_rehearsals_of_a_metered_training_are_counted_too(tmp_path: Path) -> None:
    steps, params = RunBudget(unit="env_steps", amount=6000), {**PARAMS, "rehearsal_episodes": 2}
    begin(tmp_path / "run", TRAIN, wall=240, silence=240, disk=10**9, params=params, budget=steps, metered=True)
    ended = wait(tmp_path / "run", 240)
    assert ended.outcome is Outcome.COMPLETED, (tmp_path / "run" / "log").read_text()[-2000:]
    lines = [json.loads(line) for line in (tmp_path / "run" / "out" / "metrics.jsonl").read_text().splitlines()]
    rehearsed = [line["rehearsal_steps"] for line in lines if "rehearsal_steps" in line]
    assert len(rehearsed) > 2 and ended.env_steps == lines[-1]["env_steps"] <= 6000
    assert ended.env_steps == sum("entropy" in line for line in lines) * 64 + sum(rehearsed)


def test_the_count_goes_on_where_a_run_goes_on(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "steps").write_bytes((90).to_bytes(8, "little"))
    ended = run(folder, CLIENT + STEP_ON.format(then={30: 7, 7: 1, 1: 1}), metered=True)
    assert told(folder) == {"taken": 10}
    assert ended.env_steps == 100


@pytest.mark.parametrize(
    ("env", "asks", "says"),
    [
        ("CartPole-v1", "envs.step(np.array([2]))", "an action is none of its list"),
        ("CartPole-v1", "envs.step(np.array([0, 0]))", "8 bytes are not one action for each of 1 environments"),
        ("Pendulum-v1", "envs.step(np.array([[np.nan]]))", "an action is not finite"),
        ("CartPole-v1", "envs._ask(9, b'')", "there is no question of kind 9"),
        ("CartPole-v1", "envs._ask(1, b'123')", "1 to 4096 seeds of 8 bytes are needed"),
    ],
)
def test_what_is_no_question_ends_the_conversation_with_a_sentence(
    tmp_path: Path, env: str, asks: str, says: str
) -> None:
    begin(tmp_path / "run", f"{CLIENT}\nenvs = Environments([1])\n{asks}\n", metered=True, env=env)
    ended = wait(tmp_path / "run")
    assert ended.outcome is Outcome.CRASHED
    assert f"guest.steps.Refused: {says}" in ended.because


def test_a_repository_finds_out_about_shapes_and_bounds(tmp_path: Path) -> None:
    asks = "told = Environments([1, 2])\nseen = told.reset()\nseen[0] = 0\n"
    asks += "tell(low=told.low.tolist(), seen=seen.shape, shape=told.observation_shape, choices=told.choices)\n"
    begin(tmp_path / "run", CLIENT + asks, metered=True, env="Pendulum-v1")
    assert wait(tmp_path / "run").outcome is Outcome.COMPLETED
    assert told(tmp_path / "run") == {"low": [-2.0], "seen": [2, 3], "shape": [3], "choices": []}


def test_a_run_whose_broker_was_killed_is_lost_and_nobody_is_blamed(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    waiting = "Environments([1]); (out / 'made').touch()\nimport time\ntime.sleep(60)\n"
    begin(folder, CLIENT + waiting, metered=True)
    until = time.monotonic() + 30
    while not (folder / "out" / "made").exists() and time.monotonic() < until:
        time.sleep(0.05)
    for pid in with_variable(f"OVERNIGHT_RUN={folder / 'run.json'}"):
        if b"overnight.rl.envs.broker" in Path(f"/proc/{pid}/cmdline").read_bytes():
            os.kill(pid, signal.SIGKILL)
    ended: Exit = wait(folder)
    assert ended.outcome is Outcome.LOST
    assert ended.because == "The broker that held its environments is gone."
