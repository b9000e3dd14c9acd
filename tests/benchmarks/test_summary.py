"""The arithmetic of the comparison with the peers, by hand-computed values."""

import math
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

from summary import (
    Interval,
    best,
    bootstrap,
    disturbed,
    final_return,
    is_done,
    key,
    mean_over_time,
    mean_return,
    rates,
    ratio,
    student,
)

LINE = {
    "table": "speed",
    "learner": "overnight",
    "env": "CartPole-v1",
    "seed": 101,
    "seconds": 10.0,
    "settings": {"recipe": {"gamma": 0.99, "num_envs": 64}},
    "versions": {"jax": "0.10.2"},
    "cpu_time": False,
    "foreign": 0.02,
}


@pytest.mark.parametrize(
    ("points", "mean"),
    [
        pytest.param([(5.0, 10.0), (10.0, 10.0)], 7.5, id="a rise and a plateau"),
        pytest.param([(10.0, 10.0)], 5.0, id="one straight line"),
        pytest.param([(5.0, 10.0)], 7.5, id="the last value stays until the end"),
        pytest.param([(20.0, 20.0)], 5.0, id="what comes after the time is cut off"),
        pytest.param([(10.0, 10.0), (5.0, 10.0)], 7.5, id="in any order"),
        pytest.param([], 0.0, id="nothing was learnt"),
    ],
)
def test_the_mean_over_time_is_the_area_under_the_curve(points: list[tuple[float, float]], mean: float) -> None:
    assert mean_over_time(points, start=0.0, seconds=10.0) == pytest.approx(mean)


def test_a_curve_begins_with_what_random_actions_score() -> None:
    assert mean_over_time([(10.0, 100.0)], start=-100.0, seconds=10.0) == pytest.approx(0.0)


def test_a_ratio_is_the_geometric_mean_of_pairs_with_students_interval_on_logarithms() -> None:
    found = ratio([200.0, 400.0], [100.0, 100.0])
    assert found.middle == pytest.approx(math.sqrt(8))
    half = math.log(2) / 2  # two logarithms lie so far from their mean; their mean's error is the same
    assert math.log(found.high / found.middle) == pytest.approx(6.314 * half)
    assert math.log(found.middle / found.low) == pytest.approx(6.314 * half)


def test_one_seed_alone_has_no_interval() -> None:
    assert student([3.0]) == (3.0, -math.inf, math.inf)


def test_equal_pairs_leave_no_doubt() -> None:
    assert ratio([30.0, 60.0, 90.0], [10.0, 20.0, 30.0]) == pytest.approx((3.0, 3.0, 3.0))


def test_one_interval_is_above_another_only_if_they_do_not_touch() -> None:
    assert Interval(3, 2, 4).apart(Interval(1, 0, 1.9))
    assert not Interval(3, 2, 4).apart(Interval(1, 0, 2))


def test_the_bootstrap_draws_runs_and_episodes() -> None:
    same = [{"final": [5.0, 5.0]}] * 3
    assert bootstrap(same, final_return) == (5.0, 5.0, 5.0)
    episodes = bootstrap([{"final": [0.0, 10.0]}] * 3, final_return)
    assert episodes.middle == 5 and 0 <= episodes.low < 5 < episodes.high <= 10
    runs = bootstrap([{"final": [0.0]}, {"final": [10.0]}], final_return)
    assert runs == (5.0, 0.0, 10.0)


def test_the_mean_return_of_a_run_takes_its_snapshots_and_its_last_policy() -> None:
    run = {"env": "X", "seconds": 10.0, "end": 10.0, "final": [10.0], "points": [{"seconds": 5.0, "returns": [8, 12]}]}
    assert mean_return({"X": 0.0})(run, None) == pytest.approx(7.5)


def test_rates_tell_the_whole_from_its_later_half() -> None:
    found = rates([(4.0, 100), (6.0, 300), (8.0, 500)])
    assert found == (500 / 8, 400 / 4, 100, 500)
    assert rates([(4.0, 100)]).late == 25


def test_the_key_of_a_run_is_what_it_was_asked_for_in_any_order() -> None:
    again = dict(reversed(LINE.items())) | {"settings": {"recipe": {"num_envs": 64, "gamma": 0.99}}, "foreign": 0.5}
    assert key(again) == key(LINE)


@pytest.mark.parametrize(
    "changed",
    [
        {"seed": 102},
        {"seconds": 20.0},
        {"settings": {"recipe": {"gamma": 0.98, "num_envs": 64}}},
        {"versions": {"jax": "0.10.3"}},
        {"cpu_time": True},
        {"learner": "sb3"},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_another_run_has_another_key(changed: dict[str, object]) -> None:
    assert key(LINE | changed) != key(LINE)


def test_a_run_is_repeated_once_where_others_had_more_than_a_tenth_of_the_machine() -> None:
    quiet, busy = LINE, LINE | {"foreign": 0.3}
    assert not is_done([], again=False)
    assert is_done([quiet], again=False)
    assert not is_done([busy], again=False)
    assert is_done([busy, busy], again=False)
    assert not is_done([busy, busy], again=True)
    assert is_done([busy, quiet], again=True)
    assert best([busy, quiet]) is quiet


def test_nobody_disturbs_a_run_that_is_measured_in_its_own_processor_time() -> None:
    assert not disturbed(LINE | {"foreign": 0.9, "cpu_time": True})
