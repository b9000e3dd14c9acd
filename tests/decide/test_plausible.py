"""Which scores nobody believes at once."""

from dataclasses import replace

import pytest

from overnight.decide.plausible import doubt, is_possible
from overnight.records.metric import Direction, Guardrail, MetricSpec

METRIC = MetricSpec(
    name="episode_return",
    unit="return",
    direction=Direction.HIGHER,
    source="episode_return",
    lowest=0.0,
    highest=500.0,
    least_gain=0.0,
    guardrails=(Guardrail(name="worst_decile_return", direction=Direction.HIGHER, margin=0.0),),
    rollback_drop=0.0,
)


@pytest.mark.parametrize(
    ("score", "others", "says"),
    [
        pytest.param(500.0, (), "", id="the greatest possible score"),
        pytest.param(500.1, (), "is impossible, because the contract says 0 to 500", id="more than possible"),
        pytest.param(-0.1, (), "is impossible", id="less than possible"),
        pytest.param(400.0, (10.0, 12.0), "", id="too little is known"),
        pytest.param(400.0, (10.0, 12.0, 11.0), "too good to be believed at once, after 10 to 12", id="far beyond"),
        pytest.param(14.0, (10.0, 12.0, 11.0), "", id="beyond by no more than the spread"),
        pytest.param(14.1, (10.0, 12.0, 11.0), "too good", id="beyond by more than the spread"),
        pytest.param(0.0, (10.0, 12.0, 11.0), "", id="much worse is believed"),
        pytest.param(12.0, (12.0, 12.0, 12.0), "", id="as good as everything"),
    ],
)
def test_a_score_is_doubted_when_it_is_impossible_or_too_good(
    score: float, others: tuple[float, ...], says: str
) -> None:
    found = doubt(METRIC, score, others)
    assert says in found if says else not found


def test_where_lower_is_better_too_good_is_too_low() -> None:
    lower = replace(METRIC, direction=Direction.LOWER)
    assert "too good" in doubt(lower, 1.0, (10.0, 12.0, 11.0))
    assert not doubt(lower, 400.0, (10.0, 12.0, 11.0))


def test_a_range_that_nobody_stated_calls_everything_possible() -> None:
    assert is_possible(replace(METRIC, lowest=None, highest=None), 1e300)
