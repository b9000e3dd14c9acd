"""A gain elsewhere is told with its interval, and never called held where seeds were lost."""

import pytest

from overnight.decide.transferred import judge_transfer
from overnight.records.metric import Direction, MetricSpec

LOW, HIGH = (10.0, 11.0, 12.0, 10.5, 11.5), (20.0, 21.0, 22.0, 20.5, 21.5)


def metric(direction: Direction = Direction.HIGHER) -> MetricSpec:
    return MetricSpec(
        name="episode_return",
        unit="return",
        direction=direction,
        source="episode_return",
        lowest=None,
        highest=None,
        least_gain=0.0,
        guardrails=(),
        rollback_drop=0.0,
    )


@pytest.mark.parametrize(
    ("ours", "theirs", "direction", "word"),
    [
        pytest.param(HIGH, LOW, Direction.HIGHER, "holds", id="better"),
        pytest.param(LOW, HIGH, Direction.HIGHER, "reversed", id="worse"),
        pytest.param(LOW, HIGH, Direction.LOWER, "holds", id="lower is better"),
        pytest.param(LOW, LOW, Direction.HIGHER, "not shown", id="the same"),
        pytest.param((20.0, 21.0, None, 20.5, 21.5), LOW, Direction.HIGHER, "not shown", id="loses a seed"),
        pytest.param((20.0, None, None, None, None), LOW, Direction.HIGHER, "unknown", id="one score"),
    ],
)
def test_the_word_depends_on_the_whole_interval(
    ours: tuple[float | None, ...], theirs: tuple[float | None, ...], direction: Direction, word: str
) -> None:
    assert judge_transfer(metric(direction), ours, theirs, where="Ant-v5").holds == word


def test_the_sentence_has_the_numbers_in_the_metrics_own_direction() -> None:
    found = judge_transfer(metric(), HIGH, LOW, where="Ant-v5 at 4 times the budget")
    assert found.says.startswith(
        "Ant-v5 at 4 times the budget: the gain holds; return 11.0 → 21.0 (+10.0, 95 % interval"
    )
    assert found.says.endswith("5 seeds each.")
