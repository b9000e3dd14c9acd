"""The page of what recipes reach in a given time: whole rows of today's recipes, and nothing else."""

import sys
from pathlib import Path
from typing import Any

from overnight.contract.trainers import need_recipe

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

import learning

ROW = learning.ROWS[0]


def run(seed: int, score: float, **changed: Any) -> dict[str, Any]:
    params = dict(need_recipe(ROW.trainer, ROW.env).params)
    return {
        **ROW._asdict(), "seed": seed, "score": score, "steps": 200_000, "foreign": 0.02, "cpu_time": False,
        "params": params, "code": "a1", "machine": {"cores": 2}, **changed,
    }  # fmt: skip


def test_a_row_says_whether_its_mean_holds_the_bar_and_shows_every_seed() -> None:
    told = learning.page([run(seed, 497.0 + seed - 101) for seed in learning.SEEDS])
    assert "| CartPole-v1 | 10 s | 2 | 499.0 | 495, held | 497, 498, 499, 500, 501 | 200,000 | 2% |" in told
    missed = learning.page([run(seed, 494.0) for seed in learning.SEEDS])
    assert "| 494.0 | 495, missed |" in missed


def test_a_row_that_lacks_a_seed_or_is_of_another_recipe_is_left_out() -> None:
    some = [run(seed, 500.0) for seed in learning.SEEDS[:-1]]
    assert "CartPole" not in learning.page(some)
    assert "CartPole" not in learning.page([*some, run(learning.SEEDS[-1], 500.0, params={"num_envs": 2})])


def test_processor_time_and_the_clock_are_told_apart() -> None:
    told = learning.page([run(seed, 500.0, cpu_time=True) for seed in learning.SEEDS])
    assert "| CartPole-v1 | 10 s of each core | 2 | 500.0 |" in told


def test_a_row_is_of_one_version_of_the_trainers_and_the_last_one_counts() -> None:
    old = [run(seed, 400.0) for seed in learning.SEEDS]
    assert "400.0" not in learning.page([*old, run(101, 500.0, code="b2")]), "the newer row is not whole yet"
    new = [run(seed, 500.0, code="b2") for seed in learning.SEEDS]
    assert "| 500.0 |" in learning.page([*old, *new])
