"""How often one arm beats the other, and intervals of paired gains."""

from math import inf, nan

import pytest

from overnight.decide.intervals import paired_interval, wins


def test_wins_are_the_share_of_pairs_and_a_lost_seed_loses_to_every_score() -> None:
    assert wins((3.0, 4.0), (1.0, 2.0)) == 1.0
    assert wins((1.0, 2.0), (1.0, 2.0)) == 0.5
    assert wins((None, 4.0), (1.0, 2.0)) == 0.5
    assert wins((None,), (None,)) == 0.5
    assert wins((3.0, 4.0), (1.0, 2.0), shift=2.0) == pytest.approx(0.5)


def test_floating_point_dust_does_not_break_a_tie() -> None:
    assert wins((0.1 + 0.2,), (0.3,)) == 0.5


@pytest.mark.parametrize("bad", [nan, inf, -inf])
def test_a_score_that_is_no_number_is_refused(bad: float) -> None:
    with pytest.raises(ValueError, match="finite"):
        wins((bad,), (1.0,))
    with pytest.raises(ValueError, match="finite"):
        paired_interval((bad,), level=0.9)


def test_an_empty_arm_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one seed"):
        wins((), (1.0,))
    with pytest.raises(ValueError, match="at least one"):
        paired_interval((), level=0.9)


def test_the_paired_interval_is_students() -> None:
    found = paired_interval((1.0, 2.0, 3.0), level=0.975)
    assert found.estimate == 2.0
    assert found.low == pytest.approx(2.0 - 4.302653 / 3**0.5, abs=1e-5)
    assert paired_interval((5.0,), level=0.9).low == -inf
