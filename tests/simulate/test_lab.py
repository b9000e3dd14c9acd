"""The laboratory tells the truth about itself."""

from statistics import fmean, pstdev

import pytest

from overnight.errors import UserError
from overnight.simulate.cells import upper_limit
from overnight.simulate.families import FAMILIES, family, from_scores
from overnight.simulate.lab import Idea, Lab, OutOfBudget, stream
from overnight.simulate.rules import rule


@pytest.mark.parametrize("name", sorted(FAMILIES))
@pytest.mark.parametrize("volatility", [1.0, 1.5])
def test_a_familys_mean_is_the_mean_of_its_scores(name: str, volatility: float) -> None:
    lab = Lab(FAMILIES[name], 1, 0.2, 1e9)
    arm = lab.child(1, lab.root(), Idea(0.5, volatility))
    scores = [lab.run(arm, 0, number) for number in range(20_000)]
    assert fmean(scores) == pytest.approx(arm.mean, abs=0.04)


@pytest.mark.parametrize("name", sorted(FAMILIES))
def test_the_unit_is_the_baselines_standard_deviation(name: str) -> None:
    lab = Lab(FAMILIES[name], 1, 0.0, 1e9)
    assert pstdev(lab.run(lab.root(), 0, number) for number in range(20_000)) == pytest.approx(1.0, abs=0.08)


def test_arms_share_as_much_luck_as_was_asked_for() -> None:
    lab = Lab(FAMILIES["gaussian"], 1, 0.6, 1e9)
    other = lab.child(1, lab.root(), Idea(0.0))
    pairs = [(lab.run(lab.root(), 0, number), lab.run(other, 0, number)) for number in range(20_000)]
    assert fmean(one * two for one, two in pairs) == pytest.approx(0.6, abs=0.03)


def test_a_run_costs_one_and_none_is_lent() -> None:
    lab = Lab(FAMILIES["gaussian"], 1, 0.2, 2)
    assert lab.run(lab.root(), 0, 0) == Lab(FAMILIES["gaussian"], 1, 0.2, 2).run(lab.root(), 0, 0)
    lab.run(lab.root(), 0, 1)
    with pytest.raises(OutOfBudget):
        lab.run(lab.root(), 0, 2)


def test_streams_are_made_of_what_they_say() -> None:
    ideas = stream("mixed", 20_000, 3)
    assert fmean(one.effect > 0 for one in ideas) == pytest.approx(0.12, abs=0.01)
    assert fmean(one.effect == -3.0 for one in ideas) == pytest.approx(0.15, abs=0.01)
    assert not any(one.effect > 0 for one in stream("harmful", 1000, 3))


def test_ones_own_scores_make_a_family() -> None:
    own = from_scores("mine", [1.0, 2.0, 2.5, 3.0, 9.0])
    assert own.mean(0.0, 1.0) == 0.0
    with pytest.raises(UserError, match="at least 5"):
        from_scores("mine", [1.0, 2.0])


def test_a_misspelt_name_is_helped() -> None:
    with pytest.raises(UserError) as family_error:
        family("gausian")
    assert "gaussian" in family_error.value.hint
    with pytest.raises(UserError) as rule_error:
        rule("greedi")
    assert "greedy" in rule_error.value.hint


def test_the_upper_limit_of_a_share_is_exact() -> None:
    assert upper_limit(0, 300) == pytest.approx(1 - 0.05 ** (1 / 300))
    assert upper_limit(6, 1000) == pytest.approx(0.0118, abs=2e-4)
    assert upper_limit(5, 5) == 1.0
