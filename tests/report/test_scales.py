"""Ticks are round, enclose their range, and a value lies where arithmetic says."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from overnight.report.scales import Scale, nice_ticks, tick_labels


def test_a_value_lies_where_arithmetic_says() -> None:
    assert [Scale(0, 10, 100, 300).at(value) for value in (0, 2.5, 10)] == [100, 150, 300]
    assert Scale(-1, 1, 200, 0).at(0.5) == 50


@pytest.mark.parametrize(
    ("low", "high", "most", "ticks"),
    [
        (0, 97, 5, (0, 20, 40, 60, 80, 100)),
        (-112.7, 138.6, 6, (-150, -100, -50, 0, 50, 100, 150)),
        (0, 255, 6, (0, 50, 100, 150, 200, 250, 300)),
        (0.1, 0.3, 4, (0.1, 0.15, 0.2, 0.25, 0.3)),
        (5, 5, 4, (4.5, 5.0, 5.5)),
        (0, 0, 4, (-1, -0.5, 0, 0.5, 1)),
    ],
)
def test_ticks_are_round_and_enclose_the_range(low: float, high: float, most: int, ticks: tuple[float, ...]) -> None:
    assert nice_ticks(low, high, most) == ticks


@given(st.floats(-1e15, 1e15), st.floats(-1e15, 1e15))
def test_any_two_numbers_give_a_few_rising_ticks_around_them(one: float, other: float) -> None:
    ticks = nice_ticks(one, other, 6)
    slack = (ticks[-1] - ticks[0]) * 1e-6
    assert 2 <= len(ticks) <= 9
    assert all(left < right for left, right in itertools.pairwise(ticks))
    assert ticks[0] - slack <= min(one, other) <= max(one, other) <= ticks[-1] + slack


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        ([0, 500, 5000], ["0", "500", "5,000"]),
        ([0, 5000, 10_000], ["0", "5k", "10k"]),
        ([500_000, 1_500_000], ["0.5M", "1.5M"]),
        ([-3e9, 0], ["−3G", "0"]),
        ([0.05], ["0.05"]),
    ],
)
def test_tick_labels_are_short_and_of_one_unit(values: list[float], shown: list[str]) -> None:
    assert tick_labels(values) == shown
