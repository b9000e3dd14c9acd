"""The planned gain is the one that certification really finds four times in five."""

import time
from itertools import combinations
from math import comb

import numpy as np
import pytest

from overnight.decide.certify import Arm, certify, detectable_gain
from overnight.decide.intervals import MOST_COUNTED, smallest_p
from overnight.decide.power import smallest_gain, wins_needed
from overnight.records.decision import Verdict
from overnight.records.metric import Direction, Guardrail, MetricSpec


def metric(*, least_gain: float = 0.0) -> MetricSpec:
    return MetricSpec(
        name="episode_return",
        unit="return",
        direction=Direction.HIGHER,
        source="episode_return",
        lowest=None,
        highest=None,
        least_gain=least_gain,
        guardrails=(Guardrail(name="worst", direction=Direction.HIGHER, margin=1e9),),
        rollback_drop=0.0,
    )


def arm(scores: "np.ndarray[tuple[int], np.dtype[np.float64]]") -> Arm:
    told = tuple(float(score) for score in scores)
    return Arm(scores=told, guardrails={"worst": told})


def share_certified(gain: float, seeds: int, alpha: float, *, noise: float = 1.0, least: float = 0.0) -> float:
    """How often certification itself finds a true gain, by brute force."""
    rng, rounds = np.random.default_rng(11), 1200
    found = 0
    for _ in range(rounds):
        ours, theirs = rng.normal(gain, noise, seeds), rng.normal(0, noise, seeds)
        verdict = certify(metric(least_gain=least), arm(ours), arm(theirs), alpha=alpha).verdict
        found += verdict is Verdict.CERTIFIED
    return found / rounds


@pytest.mark.parametrize(
    ("seeds", "alpha"),
    [
        pytest.param(4, 0.025, id="where only the least p-value will do"),
        pytest.param(6, 0.025, id="the usual contract"),
        pytest.param(6, 0.0125, id="its second attempt"),
        pytest.param(6, 0.25, id="where the interval is stricter than the error"),
        pytest.param(9, 0.025, id="more seeds"),
    ],
)
def test_the_smallest_gain_is_found_four_times_in_five(seeds: int, alpha: float) -> None:
    gain = smallest_gain(seeds, alpha)
    assert gain is not None
    assert share_certified(gain, seeds, alpha) == pytest.approx(0.8, abs=0.035)


def test_the_gain_is_in_the_unit_of_the_noise_and_beyond_the_least_gain() -> None:
    gain = smallest_gain(6, 0.025, noise_sd=10.0, least_gain=50.0)
    assert gain is not None
    assert share_certified(gain, 6, 0.025, noise=10.0, least=50.0) == pytest.approx(0.8, abs=0.035)


@pytest.mark.parametrize("seeds", [1, 2, 3])
def test_fewer_than_four_seeds_each_find_nothing(seeds: int) -> None:
    assert smallest_gain(seeds, 0.5) is None
    assert share_certified(1000.0, seeds, 0.5) == 0.0


def test_without_noise_every_gain_is_found() -> None:
    assert smallest_gain(6, 0.025, noise_sd=0.0) == 0.0


@pytest.mark.parametrize(("seeds", "others"), [(2, 3), (4, 4), (5, 3)])
@pytest.mark.parametrize("alpha", [0.025, 0.1, 0.4])
def test_the_wins_that_are_needed_are_those_of_every_arrangement(seeds: int, others: int, alpha: float) -> None:
    every = [sum(places) - sum(range(seeds)) for places in combinations(range(seeds + others), seeds)]
    tails = {wins: sum(one >= wins for one in every) / len(every) for wins in range(seeds * others + 1)}
    needed = wins_needed(seeds, others, alpha)
    assert needed == next((wins for wins, tail in tails.items() if tail <= alpha), None)
    assert (needed is None) is (smallest_p(seeds, others) > alpha)
    assert len(every) == comb(seeds + others, seeds)


def test_more_seeds_find_smaller_gains_also_where_the_counting_ends() -> None:
    found = [smallest_gain(seeds, 0.025) for seeds in (4, 6, 12, MOST_COUNTED, MOST_COUNTED + 1, 100)]
    known = [gain for gain in found if gain is not None]
    assert known == sorted(known, reverse=True)
    assert len(known) == 6
    assert detectable_gain(1.0, MOST_COUNTED, MOST_COUNTED, 0.025) == pytest.approx(known[3], rel=0.05)


def test_a_plan_takes_less_than_a_second() -> None:
    began = time.process_time()
    for seeds in range(4, MOST_COUNTED + 1, 5):
        smallest_gain(seeds, 0.0203)
    assert time.process_time() - began < 1.0 * len(range(4, MOST_COUNTED + 1, 5))


@pytest.mark.parametrize(("seeds", "alpha", "noise"), [(0, 0.025, 1.0), (6, 0.0, 1.0), (6, 0.6, 1.0), (6, 0.025, -1.0)])
def test_what_makes_no_sense_is_refused(seeds: int, alpha: float, noise: float) -> None:
    with pytest.raises(ValueError, match="are needed"):
        smallest_gain(seeds, alpha, noise_sd=noise)
