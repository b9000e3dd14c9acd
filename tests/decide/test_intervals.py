"""The rank test is exact, and its intervals say the same as the test. Small numbers were worked out by hand."""

from collections.abc import Sequence
from itertools import combinations
from math import inf, isclose, nan

import numpy as np
import pytest

from overnight.decide.intervals import (
    Score,
    _doubled_ranks,
    _sums,
    attained_level,
    paired_interval,
    rank_sum_p,
    shift_interval,
    smallest_p,
    student_t,
    wins,
)


def enumerated_p(candidate: Sequence[Score], incumbent: Sequence[Score]) -> float:
    """The same p-value the long way: every arrangement is made, and every rank is counted by comparing."""
    pooled = [-inf if score is None else score for score in (*candidate, *incumbent)]
    ranks = [sum(other < one for other in pooled) + (sum(other == one for other in pooled) + 1) / 2 for one in pooled]
    sums = [sum(arm) for arm in combinations(ranks, len(candidate))]
    observed = sum(ranks[: len(candidate)])
    return sum(total >= observed for total in sums) / len(sums)


@pytest.mark.parametrize(
    ("candidate", "incumbent", "p"),
    [
        pytest.param((3.0, 5.0), (1.0, 4.0), 2 / 6, id="sums 3 4 5 5 6 7, and 6 was seen"),
        pytest.param((2.0, 2.0), (1.0, 2.0), 3 / 6, id="three tie at rank 3"),
        pytest.param((None, 5.0), (1.0, 2.0), 4 / 6, id="a lost seed has rank 1"),
        pytest.param((None, None), (None, None), 1.0, id="all lost"),
        pytest.param((4.0, 5.0, 6.0), (1.0, 2.0, 3.0), 1 / 20, id="three above three"),
        pytest.param((1.0, 2.0, 3.0), (4.0, 5.0, 6.0), 1.0, id="three below three"),
        pytest.param(tuple(range(6, 12)), tuple(range(6)), 1 / 924, id="six above six"),
        pytest.param(tuple(range(12, 24)), tuple(range(12)), 1 / 2_704_156, id="twelve above twelve"),
    ],
)
def test_the_p_value_is_the_share_of_arrangements(
    candidate: tuple[Score, ...], incumbent: tuple[Score, ...], p: float
) -> None:
    assert isclose(rank_sum_p(candidate, incumbent), p)


def test_the_p_value_equals_a_full_enumeration() -> None:
    rng = np.random.default_rng(1)
    for _ in range(200):
        arms: list[list[Score]] = [
            [None if rng.random() < 0.15 else float(score) for score in rng.integers(0, 5, size)]
            for size in rng.integers(1, 7, 2)
        ]
        assert isclose(rank_sum_p(*arms), enumerated_p(*arms)), arms


def test_the_two_tails_share_only_what_was_seen() -> None:
    candidate, incumbent = (1.0, 7.0, 3.0), (2.0, 5.0, 0.0, 9.0)
    at_least, at_most = rank_sum_p(candidate, incumbent), rank_sum_p(incumbent, candidate)
    assert at_least + at_most > 1
    assert isclose(at_least, enumerated_p(candidate, incumbent))
    assert isclose(at_most, enumerated_p(incumbent, candidate))


def test_a_shift_is_taken_off_the_candidate() -> None:
    assert rank_sum_p((11.0, 13.0), (1.0, 3.0), shift=10.0) == rank_sum_p((1.0, 3.0), (1.0, 3.0))


def test_floating_point_dust_does_not_break_a_tie() -> None:
    assert rank_sum_p((0.1 + 0.2,), (0.3,)) == 1.0
    assert wins((0.1 + 0.2,), (0.3,)) == 0.5


@pytest.mark.parametrize(
    ("seeds", "alpha", "level"),
    [
        pytest.param(6, 0.025, 19 / 924, id="6 v 6: U of at most 5, as in the printed tables"),
        pytest.param(6, 0.05, 43 / 924, id="6 v 6: U of at most 7, as in the printed tables"),
        pytest.param(4, 0.025, 1 / 70, id="4 v 4: only all above all"),
        pytest.param(3, 0.025, None, id="3 v 3 cannot"),
    ],
)
def test_the_level_that_steps_reach_is_that_of_the_tables(seeds: int, alpha: float, level: float | None) -> None:
    found = attained_level(seeds, seeds, alpha)
    assert found == level if level is None else found is not None and isclose(found, level)


def test_the_estimate_is_the_median_of_all_differences() -> None:
    found = shift_interval((10.0, 12.0, 15.0), (1.0, 3.0))  # 7 9 9 11 12 14
    assert found.estimate == 10.0


def test_four_against_four_reach_from_the_least_to_the_greatest_difference() -> None:
    found = shift_interval((20.0, 21.0, 23.0, 26.0), (10.0, 10.5, 12.0, 14.0))
    assert (found.low, found.high) == (20.0 - 14.0, 26.0 - 10.0)


def test_six_against_six_reach_from_the_sixth_difference_to_the_sixth_last() -> None:
    rng = np.random.default_rng(8)
    candidate, incumbent = rng.normal(0, 1, 6), rng.normal(0, 1, 6)
    differences = np.sort(np.subtract.outer(candidate, incumbent).ravel())
    found = shift_interval(candidate.tolist(), incumbent.tolist())
    assert (found.low, found.high) == (differences[5], differences[-6])  # as the printed tables have it


def test_three_against_three_have_no_limits_at_95_percent() -> None:
    found = shift_interval((4.0, 5.0, 6.0), (1.0, 2.0, 3.0))
    assert (found.low, found.high) == (-inf, inf)
    assert shift_interval((4.0, 5.0, 6.0), (1.0, 2.0, 3.0), level=0.9).low == 1.0


def test_the_interval_says_the_same_as_the_test() -> None:
    rng = np.random.default_rng(2)
    for _ in range(200):
        candidate, incumbent = rng.normal(1.4, 1, 6).tolist(), rng.normal(0, 1, 6).tolist()
        found = shift_interval(candidate, incumbent)
        assert (found.low > 0) == (rank_sum_p(candidate, incumbent) <= 0.025)
        assert (found.high < 0) == (rank_sum_p(incumbent, candidate) <= 0.025)


def test_the_interval_turns_with_the_arms_and_moves_with_the_scores() -> None:
    candidate, incumbent = (3.0, 9.0, 4.0, 8.0, 7.0), (1.0, 6.0, 2.0, 5.0, 0.0)
    found, turned = shift_interval(candidate, incumbent), shift_interval(incumbent, candidate)
    assert (turned.estimate, turned.low, turned.high) == (-found.estimate, -found.high, -found.low)
    moved = shift_interval(tuple(score + 100 for score in candidate), incumbent)
    assert (moved.estimate, moved.low, moved.high) == (found.estimate + 100, found.low + 100, found.high + 100)


def test_the_interval_covers_the_true_gain_as_often_as_it_says() -> None:
    rng = np.random.default_rng(3)
    covered = 0
    for _ in range(1000):
        found = shift_interval(rng.lognormal(0, 1, 6).tolist(), (rng.lognormal(0, 1, 6) - 2).tolist())
        covered += found.low <= 2 <= found.high
    assert covered >= 950 - 3 * 7


def test_a_few_lost_seeds_lower_the_estimate_and_leave_it_a_number() -> None:
    whole = shift_interval((11.0, 12.0, 13.0, 14.0, 15.0, 16.0), (1.0, 2.0, 3.0, 4.0, 5.0, 6.0))
    short = shift_interval((11.0, 12.0, 13.0, 14.0, 15.0, None), (1.0, 2.0, 3.0, 4.0, 5.0, 6.0))
    assert whole.estimate == 10.0
    assert short.low < short.estimate < whole.estimate


def test_when_most_seeds_are_lost_there_is_no_number() -> None:
    scores, lost = (1.0, 2.0, 3.0, 4.0), (None, None, None, 1.0)
    assert shift_interval(lost, scores).estimate == -inf
    assert shift_interval(scores, lost).estimate == inf
    nothing = shift_interval((None,) * 4, (None,) * 4)
    assert (nothing.low, nothing.estimate, nothing.high) == (-inf, 0.0, inf)


@pytest.mark.parametrize("bad", [nan, inf, -inf])
def test_a_score_that_is_no_number_is_refused(bad: float) -> None:
    for call in (rank_sum_p, shift_interval, wins):
        with pytest.raises(ValueError, match="must be finite"):
            call((1.0, bad), (2.0, 3.0))
    with pytest.raises(ValueError, match="must be finite"):
        rank_sum_p((1.0,), (2.0,), shift=bad)
    with pytest.raises(ValueError, match="must be finite"):
        paired_interval((1.0, bad), level=0.8)


def test_an_empty_arm_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one seed"):
        rank_sum_p((), (1.0,))
    with pytest.raises(ValueError, match="need a seed"):
        smallest_p(0, 6)


def test_many_seeds_go_by_the_normal_law_and_meet_the_counting() -> None:
    rng = np.random.default_rng(9)
    for gain in (0.0, 0.4, 0.8):
        candidate, incumbent = np.round(rng.normal(gain, 1, 31), 1).tolist(), np.round(rng.normal(0, 1, 31), 1).tolist()
        ranks = _doubled_ranks(np.array(candidate + incumbent))
        counts = _sums(tuple(sorted(ranks)), 31)
        exact = float(counts[sum(ranks[:31]) :].sum() / counts.sum())
        assert isclose(rank_sum_p(candidate, incumbent), exact, abs_tol=0.002)


def test_a_thousand_seeds_are_no_trouble() -> None:
    rng = np.random.default_rng(10)
    found = shift_interval(rng.normal(1, 1, 1000).tolist(), rng.normal(0, 1, 1000).tolist())
    assert 0.85 < found.low < 1 < found.high < 1.15
    assert smallest_p(1000, 1000) == 0.0
    assert attained_level(1000, 1000, 0.025) == 0.025
    assert rank_sum_p((1.0,) * 40, (1.0,) * 40) == 1.0


@pytest.mark.parametrize(
    ("level", "freedom", "quantile"),
    [(0.8, 1, 1.3764), (0.8, 2, 1.0607), (0.8, 3, 0.9785), (0.8, 10, 0.8791), (0.975, 10, 2.2281), (0.99, 6, 3.1427)],
)
def test_students_quantiles_are_those_of_the_tables(level: float, freedom: int, quantile: float) -> None:
    assert isclose(student_t(level, freedom), quantile, rel_tol=2e-3)


def test_the_paired_interval_is_students() -> None:
    found = paired_interval((28.0, 31.0, 34.0), level=0.8)  # mean 31, spread 3, 1.0607 * 3 / sqrt(3) = 1.837
    assert found.estimate == 31.0
    assert isclose(found.low, 29.163, abs_tol=1e-3)
    assert isclose(found.high, 32.837, abs_tol=1e-3)
    assert paired_interval((5.0,), level=0.8).low == -inf
