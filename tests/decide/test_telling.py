"""Numbers read well in sentences."""

import pytest

from overnight.decide.telling import decimals, told


@pytest.mark.parametrize(
    ("size", "places"),
    [
        pytest.param(47.0, 0, id="tens"),
        pytest.param(4.7, 1, id="ones"),
        pytest.param(-0.047, 3, id="a negative part"),
        pytest.param(12_000.0, 0, id="thousands"),
        pytest.param(0.0, 0, id="nothing"),
        pytest.param(float("inf"), 0, id="no number"),
    ],
)
def test_two_digits_of_a_figure_are_shown(size: float, places: int) -> None:
    assert decimals(size, digits=2) == places


@pytest.mark.parametrize(
    ("value", "places", "sign", "text"),
    [
        pytest.param(30000.4, 0, False, "30,000", id="thousands stand apart"),
        pytest.param(93.2, 0, True, "+93", id="a gain has its sign"),
        pytest.param(-12.35, 1, True, "−12.3", id="a loss has a true minus"),
        pytest.param(-0.01, 1, True, "0.0", id="nothing has no sign"),
    ],
)
def test_a_number_is_told_as_people_write_it(value: float, places: int, sign: bool, text: str) -> None:
    assert told(value, places, sign=sign) == text
