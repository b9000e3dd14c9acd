"""The runs of the comparison, and how they are shared out."""

import os
import subprocess
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

import bench
from contest import OURS
from peers.settings import not_followed


def test_side_by_side_every_run_is_made_by_exactly_one_part() -> None:
    plan = list(bench.planned(["mujoco"], None, 3))
    parts = [bench.part_of(plan, part, 2) for part in range(2)]
    assert sorted(place for part in parts for place, _ in part) == list(range(1, len(plan) + 1))
    assert all(plan[place - 1] is job for part in parts for place, job in part)
    assert {len(part) for part in parts} == {6}


def test_alone_every_run_is_made_in_its_turn() -> None:
    plan = list(bench.planned(["classic"], 1.0, 1))
    assert [job for _, job in bench.part_of(plan, 0, 1)] == plan


def test_only_what_is_named_is_planned() -> None:
    plan = list(bench.planned(["return"], None, 3, ["HalfCheetah-v5", "overnight", "torch"]))
    assert [(job.env, job.learner.name) for job in plan] == [
        ("HalfCheetah-v5", "overnight"),
        ("HalfCheetah-v5", "torch"),
    ] * 3
    assert {job.env for job in bench.planned(["return"], None, 1, ["torch"])} == {env for env, _ in bench.RETURN}


def test_steps_a_second_are_compared_without_any_setting_that_the_peers_do_not_follow() -> None:
    plan = {job.env: job for job in bench.planned(["speed"], None, 1) if job.learner == OURS}
    walker = plan["BipedalWalker-v3"].settings["recipe"]
    assert not_followed(walker) == [] and "rehearsal_episodes" in bench.recipe_of("BipedalWalker-v3")
    assert walker.items() < bench.recipe_of("BipedalWalker-v3").items(), "nothing else is changed"


def test_runs_that_share_the_machine_are_not_measured_by_the_clock_on_the_wall() -> None:
    told = {name: value for name, value in os.environ.items() if name != "OVERNIGHT_CPU_TIME"}
    words = [sys.executable, bench.__file__, "mujoco", "--side-by-side"]
    done = subprocess.run(words, env=told, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "set OVERNIGHT_CPU_TIME=1" in done.stderr
