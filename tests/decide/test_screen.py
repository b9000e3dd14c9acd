"""Screening keeps what is ahead, drops what is behind at once, and tells its numbers."""

from math import inf, isclose, nan

import numpy as np
import pytest

from overnight.decide.screen import Pair, screen
from overnight.records.codec import decode, encode
from overnight.records.decision import Decision, LoopDecision, Verdict
from overnight.records.metric import Direction, Guardrail, MetricSpec


def metric(*, direction: Direction = Direction.HIGHER, least_gain: float = 0.0) -> MetricSpec:
    return MetricSpec(
        name="episode_return",
        unit="return",
        direction=direction,
        source="episode_return",
        lowest=None,
        highest=None,
        least_gain=least_gain,
        guardrails=(Guardrail(name="worst", direction=Direction.HIGHER, margin=0.0),),
        rollback_drop=0.0,
    )


def pairs(*gains: float | None, tip: float = 200.0) -> tuple[Pair, ...]:
    """Pairs with these gains over a tip that always scores the same; None is a seed that the candidate lost."""
    return tuple(
        Pair(
            train_seed=number,
            run=f"r-{number + 10:04d}",
            candidate_score=None if gain is None else tip + gain,
            tip_run=f"r-{number:04d}",
            tip_score=tip,
        )
        for number, gain in enumerate(gains, 1)
    )


def screened(*gains: float | None, wanted: int = 3, least_gain: float = 0.0) -> Decision | None:
    return screen(metric(least_gain=least_gain), pairs(*gains), candidate="c-0007", wanted=wanted)


def verdict(decision: Decision | None) -> Verdict:
    assert decision is not None
    return decision.verdict


@pytest.mark.parametrize(
    ("gains", "least_gain", "expected"),
    [
        pytest.param((28, 31, 34), 0, Verdict.KEEP, id="clearly ahead"),
        pytest.param((28, 31, 34), 29, Verdict.KEEP, id="the lower limit of 29.16 is above the bar"),
        pytest.param((28, 31, 34), 29.5, Verdict.INCONCLUSIVE, id="the mean is above the bar, the limit is not"),
        pytest.param((28, 31, 34), 31, Verdict.REJECT, id="the mean is not above the bar"),
        pytest.param((60, 2, -20), 0, Verdict.INCONCLUSIVE, id="ahead, but carried by one seed"),
        pytest.param((30, -20, -40), 0, Verdict.REJECT, id="behind in the end"),
        pytest.param((0, 0, 0), 0, Verdict.REJECT, id="a tie is never a win"),
        pytest.param((5, 5, 5), 0, Verdict.KEEP, id="the same gain on every seed"),
        pytest.param((28, 31, None), 0, Verdict.REJECT, id="one seed lost where the tip lost none"),
    ],
)
def test_the_verdict_depends_on_the_mean_gain_and_its_lower_limit(
    gains: tuple[float | None, ...], least_gain: float, expected: Verdict
) -> None:
    assert verdict(screened(*gains, least_gain=least_gain)) is expected


def test_a_candidate_behind_after_its_first_seed_costs_one_run() -> None:
    decision = screened(-12.4)
    assert decision is not None
    assert decision.verdict is Verdict.REJECT
    assert decision.because == (
        "c-0007 was stopped after 1 of 3 train seeds: it gained −12.4 return on average over 1 paired train seed "
        "(−12.4), but more than 0 is needed."
    )
    assert decision.gain is not None
    assert isclose(decision.gain, -12.4)
    assert decision.gain_low is None


def test_a_dear_idea_may_be_given_more_seeds_before_it_is_dropped() -> None:
    assert screen(metric(), pairs(-1), candidate="c-0007", wanted=3, patience=2) is None
    assert verdict(screen(metric(), pairs(-1, -1), candidate="c-0007", wanted=3, patience=2)) is Verdict.REJECT


def test_a_candidate_ahead_gets_all_its_seeds() -> None:
    assert screened() is None
    assert screened(40) is None
    assert screened(40, -10) is None


def test_a_lost_seed_rejects_at_once() -> None:
    decision = screened(40, None)
    assert decision is not None
    assert decision.verdict is Verdict.REJECT
    assert decision.because == (
        "c-0007 lost 1 of 2 train seeds by its own fault and the tip 0, and a lost seed ranks below every score."
    )


def test_the_tips_own_lost_seeds_count_for_the_candidate() -> None:
    lost = Pair(train_seed=9, run="r-0019", candidate_score=150.0, tip_run="r-0009", tip_score=None)
    assert verdict(screen(metric(), (*pairs(60, -20), lost), candidate="c-0007", wanted=3)) is Verdict.KEEP
    assert verdict(screen(metric(), (lost,), candidate="c-0007", wanted=1)) is Verdict.KEEP
    assert screen(metric(), (lost,), candidate="c-0007", wanted=3) is None
    both = Pair(train_seed=9, run="r-0019", candidate_score=None, tip_run="r-0009", tip_score=None)
    assert verdict(screen(metric(), (both,), candidate="c-0007", wanted=1)) is Verdict.REJECT


def test_lower_is_better_turns_the_sign() -> None:
    decision = screen(metric(direction=Direction.LOWER), pairs(-28, -31, -34), candidate="c-0007", wanted=3)
    assert decision is not None
    assert decision.verdict is Verdict.KEEP
    assert decision.gain == 31.0


def test_a_keep_tells_its_numbers_and_names_its_runs() -> None:
    decision = screened(28, 31, 34)
    assert decision is not None
    assert decision.because == (
        "c-0007 gained 31.0 return on average over 3 paired train seeds (+28.0, +31.0, +34.0), "
        "and more than 29.2 with 80 % confidence; more than 0 is needed."
    )
    assert decision.evidence == ("r-0011", "r-0012", "r-0013", "r-0001", "r-0002", "r-0003")
    assert decision.loop is LoopDecision.CONTINUE
    assert decode(Decision, encode(decision), where="ledger") == decision


def test_one_wanted_seed_is_judged_by_its_gain_alone() -> None:
    assert verdict(screened(3, wanted=1)) is Verdict.KEEP
    assert verdict(screened(-3, wanted=1)) is Verdict.REJECT


@pytest.mark.parametrize("bad", [nan, inf, -inf])
def test_a_score_that_is_no_number_is_refused(bad: float) -> None:
    with pytest.raises(ValueError, match="must be finite"):
        screened(bad)


def test_a_seed_that_is_paired_twice_is_refused() -> None:
    with pytest.raises(ValueError, match="paired twice"):
        screen(metric(), pairs(1) * 2, candidate="c-0007", wanted=3)
    with pytest.raises(ValueError, match="must be wanted"):
        screened(1, wanted=0)


def simulated(true_gain: float, rounds: int = 2000) -> tuple[float, float]:
    """How often a candidate of this true gain is kept, and what it costs in runs. Noise has the spread 1."""
    rng = np.random.default_rng(4)
    kept = runs = 0
    for _ in range(rounds):
        gains = true_gain + rng.normal(0, 1, 3) - rng.normal(0, 1, 3)
        decision = next(found for n in (1, 2, 3) if (found := screened(*gains[:n].tolist())) is not None)
        kept += decision.verdict is Verdict.KEEP
        runs += next(n for n in (1, 2, 3) if screened(*gains[:n].tolist()) is not None)
    return kept / rounds, runs / rounds


def test_most_ideas_that_do_nothing_are_dropped_cheaply() -> None:
    kept, runs = simulated(0.0)
    assert kept < 0.2
    assert runs < 2.0


def test_most_ideas_that_do_much_are_kept() -> None:
    kept, _ = simulated(2.5)
    assert kept > 0.8
