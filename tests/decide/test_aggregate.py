"""Aggregates are what a plain implementation gives, and quick."""

from time import process_time

import numpy as np
import pytest

from overnight.decide.aggregate import (
    as_table,
    by_task,
    improvement,
    iqm,
    iqm_gain,
    iqm_interval,
    mean_interval,
    profile,
    profile_band,
)

DRAW = np.random.default_rng(5)
OURS, THEIRS = DRAW.normal(1.0, 1.0, (10, 26)), DRAW.normal(0.8, 1.0, (8, 26))


def plain_iqm(values: list[float]) -> float:
    ordered, cut = sorted(values), len(values) // 4
    middle = ordered[cut : len(ordered) - cut]
    return sum(middle) / len(middle)


def plain_replicates(scores: np.ndarray, replicates: int, seed: int) -> list[list[float]]:
    """The scores of every replicate, drawn as documented: seeds again inside every task."""
    picked = np.random.default_rng(seed).integers(0, len(scores), (replicates, *scores.shape), dtype=np.int32)
    return [
        [float(scores[one[seed_, task], task]) for seed_ in range(scores.shape[0]) for task in range(scores.shape[1])]
        for one in picked
    ]


def test_the_interquartile_mean_is_the_mean_of_the_middle_half() -> None:
    assert iqm(as_table([[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 100.0]])) == pytest.approx(4.5)
    assert iqm(OURS) == pytest.approx(plain_iqm(OURS.ravel().tolist()))


def test_intervals_are_those_of_a_plain_stratified_bootstrap() -> None:
    drawn = plain_replicates(OURS, 200, 3)
    for found, plain in (
        (iqm_interval(OURS, replicates=200, seed=3), [plain_iqm(one) for one in drawn]),
        (mean_interval(OURS, replicates=200, seed=3), [sum(one) / len(one) for one in drawn]),
    ):
        assert (found.low, found.high) == pytest.approx(tuple(np.quantile(plain, [0.025, 0.975])))


def test_the_gain_of_the_interquartile_mean_draws_both_sides() -> None:
    ours = [plain_iqm(one) for one in plain_replicates(OURS, 100, 0)]
    theirs = [plain_iqm(one) for one in plain_replicates(THEIRS, 100, 1)]
    plain = np.quantile(np.subtract(ours, theirs), [0.025, 0.975])
    found = iqm_gain(OURS, THEIRS, replicates=100)
    assert (found.low, found.high) == pytest.approx(tuple(plain))


def test_the_probability_of_improvement_counts_pairs_within_tasks() -> None:
    ours, theirs = as_table([[1.0, 5.0], [2.0, 5.0]]), as_table([[1.0, 6.0], [0.0, 7.0]])
    assert improvement(ours, theirs).estimate == pytest.approx((3.5 / 4 + 0) / 2)
    plain = [
        sum((mine > other) + 0.5 * (mine == other) for mine in OURS[:, task] for other in THEIRS[:, task]) / 80
        for task in range(26)
    ]
    found = improvement(OURS, THEIRS)
    assert found.estimate == pytest.approx(sum(plain) / 26)
    assert found.low < found.estimate < found.high


def test_a_performance_profile_is_the_share_of_runs_above() -> None:
    scores = as_table([[0.1, 0.5], [0.9, 1.0]])
    assert profile(scores, [0.0, 0.5, 0.95]) == (1.0, 0.5, 0.25)
    band = profile_band(OURS, [0.5, 1.0])
    assert all(one.low <= one.estimate <= one.high for one in band)
    drawn = plain_replicates(OURS, 100, 0)
    plain = np.quantile([np.mean(np.array(one) > 1.0) for one in drawn], [0.025, 0.975])
    found = profile_band(OURS, [1.0], replicates=100)[0]
    assert (found.low, found.high) == pytest.approx(tuple(plain))


def test_the_same_seed_gives_the_same_interval() -> None:
    assert iqm_interval(OURS, seed=9) == iqm_interval(OURS, seed=9)
    assert iqm_interval(OURS, seed=9) != iqm_interval(OURS, seed=8)


def test_2000_replicates_of_10_seeds_on_26_tasks_take_less_than_100_milliseconds() -> None:
    def seconds() -> float:
        began = process_time()
        iqm_interval(OURS, replicates=2000)
        return process_time() - began

    assert min(seconds() for _ in range(3)) < 0.1


@pytest.mark.parametrize("scores", [[], [[]], [[1.0, float("nan")]]])
def test_what_is_no_table_of_numbers_is_refused(scores: list[list[float]]) -> None:
    with pytest.raises(ValueError, match=r"\."):
        as_table(scores)


def test_tasks_need_as_many_seeds_each() -> None:
    with pytest.raises(ValueError, match="as many seeds"):
        by_task({"walk": [1.0, 2.0], "run": [1.0]})
