"""The bars hold for families, correlations and mixes that the rule was never tuned on.

Error and coverage are held to the same figures as for the shipped families, quality to 0.85 of single-seed greedy.
At reduced size here; with OVERNIGHT_SOAK=1 at full size.
"""

import os
from statistics import fmean, pstdev

import pytest

from foreign import FEW_GOOD, MANY_GOOD, SMALL_GOOD, foreign
from overnight.simulate.cells import ENDLESS, Setting, play
from overnight.simulate.families import FAMILIES, Family
from overnight.simulate.lab import Idea, Lab, Mix
from overnight.simulate.rules import Greedy, RaceCertify

SOAK = os.environ.get("OVERNIGHT_SOAK") == "1"
ALL = foreign()
EVERY = (*FAMILIES.values(), *ALL)
pytestmark = pytest.mark.timeout(7200 if SOAK else 600)


def size(full: int, reduced: int) -> int:
    """Studies of each family."""
    return full if SOAK else reduced


@pytest.mark.parametrize("family", ALL, ids=lambda family: family.name)
def test_a_foreign_family_has_the_unit_and_the_means_that_it_says(family: Family) -> None:
    lab = Lab(family, 1, 0.0, 1e9)
    arm = lab.child(1, lab.root(), Idea(0.5, 1.5))
    assert pstdev(lab.run(lab.root(), 0, number) for number in range(10_000)) == pytest.approx(1.0, abs=0.12)
    assert fmean(lab.run(arm, 0, number) for number in range(10_000)) == pytest.approx(arm.mean, abs=0.06)


@pytest.mark.parametrize("shared_luck", [0.0, 0.6])
def test_a_hundred_clones_bring_a_false_claim_in_at_most_2_studies_of_100(shared_luck: float) -> None:
    setting = Setting(kind="null", ideas=100, runs=ENDLESS, shared_luck=shared_luck)
    found = play(RaceCertify(), setting, ALL, size(100, 4))
    assert found.false_bound() <= 0.02 if SOAK else found.false()[0] <= 1


@pytest.mark.parametrize("shared_luck", [0.2, 0.6])
def test_noisier_clones_bring_a_false_claim_in_at_most_5_studies_of_100_in_every_family(shared_luck: float) -> None:
    setting = Setting(kind="volatile", ideas=100, runs=ENDLESS, shared_luck=shared_luck)
    found = play(RaceCertify(), setting, ALL, size(200, 4))
    assert found.false_bound() <= 0.05 if SOAK else found.false()[0] <= 4
    assert not SOAK or max(found.false_by_family().values()) <= 0.05


@pytest.mark.parametrize(
    ("mix", "shared_luck"),
    [
        pytest.param(FEW_GOOD, 0.0, id="4 % improve, no shared luck"),
        pytest.param(MANY_GOOD, 0.4, id="25 % improve, some shared luck"),
        pytest.param(SMALL_GOOD, 0.2, id="effects of half the size"),
        pytest.param(None, 0.6, id="much shared luck"),
    ],
)
def test_other_mixes_hold_the_error_the_coverage_and_most_of_the_quality(mix: Mix | None, shared_luck: float) -> None:
    setting = Setting(mix=mix, shared_luck=shared_luck)
    studies = size(40, 2)
    ours, greedy = play(RaceCertify(), setting, EVERY, studies), play(Greedy(), setting, EVERY, studies)
    assert ours.gain() / greedy.gain() >= (0.85 if SOAK else 0.7)
    assert ours.false_bound() <= 0.05 if SOAK else ours.false()[0] <= 2
    assert (ours.coverage() or 0.0) >= (0.93 if SOAK else 0.85)
    assert 0.9 <= (ours.inflation() or 0.0) <= 1.1


@pytest.mark.parametrize("runs", [3, 8, 16, 24, 32])
def test_small_nights_claim_rarely_falsely_and_keep_nothing_worse_on_average(runs: int) -> None:
    for kind in ("null", "volatile"):
        found = play(RaceCertify(), Setting(kind=kind, ideas=runs, runs=runs), ALL, size(100, 15))
        assert found.false_bound() <= 0.05
    kept = play(RaceCertify(), Setting(ideas=runs, runs=runs), ALL, size(200, 30))
    assert kept.tip_gain() >= (0.0 if SOAK else -0.03)
    assert max(one.runs for one in kept.all()) <= runs
