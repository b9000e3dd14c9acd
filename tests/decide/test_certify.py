"""A claim is made only when fresh seeds support it, and rarely when nothing is there."""

from collections.abc import Callable
from math import inf, isclose, nan, sqrt

import numpy as np
import pytest

from overnight.decide.certify import (
    MEANING,
    Arm,
    Certification,
    attempts_possible,
    certify,
    detectable_gain,
    error_for_attempt,
)
from overnight.decide.intervals import Score
from overnight.records.codec import Misfit
from overnight.records.contract import Budget
from overnight.records.decision import LoopDecision, Verdict
from overnight.records.metric import Direction, Guardrail, MetricSpec

Draw = Callable[[np.random.Generator, int], list[Score]]
BUDGET = Budget(stop_unit="env_steps", stop_amount=30_000, run_wall_seconds=60, max_runs=100, max_wall_hours=1)
BEFORE = (210.0, 196.0, 228.0, 206.0, 218.0, 214.0)
AFTER = (303.0, 284.0, 326.0, 299.0, 311.0, 307.0)


def metric(*, direction: Direction = Direction.HIGHER, least_gain: float = 0.0, margin: float = 5.0) -> MetricSpec:
    return MetricSpec(
        name="episode_return",
        unit="return",
        direction=direction,
        source="episode_return",
        lowest=None,
        highest=None,
        least_gain=least_gain,
        guardrails=(Guardrail(name="worst", direction=Direction.HIGHER, margin=margin),),
        rollback_drop=0.0,
    )


def side(scores: tuple[Score, ...], *, worst: float = 100.0) -> Arm:
    """An arm whose guardrail scatters around `worst`."""
    guarded = tuple(None if score is None else worst + number for number, score in enumerate(scores))
    return Arm(scores=scores, guardrails={"worst": guarded})


def certified(candidate: tuple[Score, ...], incumbent: tuple[Score, ...] = BEFORE, **how: float) -> Certification:
    return certify(metric(**how), side(candidate), side(incumbent), alpha=0.025)  # type: ignore[arg-type]


def test_a_clear_gain_is_certified_and_told() -> None:
    found = certified(AFTER)
    assert found.verdict is Verdict.CERTIFIED
    assert isclose(found.p_value, 1 / 924)
    assert (found.gain.low, found.gain.estimate, found.gain.high) == (75.0, 93.0, 111.0)
    assert found.claim(BUDGET) == (
        "Return 212 → 305 (+93, 95 % interval 75 to 111), 6 fresh seeds each, 30,000 env steps of training."
    )
    assert (found.before(), found.after()) == (212.0, 305.0)


def test_the_line_under_a_claim_says_what_it_does_not_say() -> None:
    assert MEANING == (
        "Certified means better than the baseline on fresh seeds at this budget; "
        "it says nothing about safety, real hardware or longer training."
    )


def test_a_certified_gain_becomes_a_decision_with_its_audit() -> None:
    decision = certified(AFTER).decision(candidate="c-0007", evidence=("r-0001",), audit="a-1")
    assert decision.verdict is Verdict.CERTIFIED
    assert decision.loop is LoopDecision.CONTINUE
    assert (decision.gain_low, decision.gain, decision.gain_high) == (75.0, 93.0, 111.0)
    assert decision.because == (
        "Return 212 → 305 (+93, 95 % interval 75 to 111), 6 fresh seeds each; p = 0.0011 where 0.025 is allowed."
    )
    with pytest.raises(Misfit):
        certified(AFTER).decision(candidate="c-0007", evidence=("r-0001",))


def test_what_is_not_certified_is_no_claim() -> None:
    with pytest.raises(ValueError, match="Only a certified gain"):
        certified(BEFORE).claim(BUDGET)


def test_no_gain_is_refuted_and_rolled_back() -> None:
    decision = certified(BEFORE, AFTER).decision(candidate="c-0007", evidence=("r-0001",))
    assert decision.verdict is Verdict.REFUTED
    assert decision.loop is LoopDecision.ROLLBACK
    assert decision.gain == -93.0
    assert certified(BEFORE).verdict is Verdict.REFUTED


def test_a_gain_that_does_not_stand_out_is_inconclusive_and_says_what_would_decide() -> None:
    found = certified(tuple(score + 10.5 for score in BEFORE))
    assert found.verdict is Verdict.INCONCLUSIVE
    assert found.seeds_wanted is not None
    assert 6 < found.seeds_wanted < 60
    assert found.because.endswith(f", and about {found.seeds_wanted} fresh seeds each would decide at this gain.")


def test_a_hopelessly_small_gain_wants_more_seeds_than_anyone_has() -> None:
    small = certified(tuple(score + 1 for score in BEFORE))
    assert small.verdict is Verdict.INCONCLUSIVE
    assert small.seeds_wanted is None
    assert "more than 200 fresh seeds" in small.because


@pytest.mark.parametrize(("least_gain", "verdict"), [(70.0, Verdict.CERTIFIED), (90.0, Verdict.INCONCLUSIVE)])
def test_the_least_gain_must_be_exceeded_by_the_whole_interval(least_gain: float, verdict: Verdict) -> None:
    assert certified(AFTER, least_gain=least_gain).verdict is verdict
    assert certified(AFTER, least_gain=93.0).verdict is Verdict.REFUTED


def test_later_attempts_need_stronger_evidence() -> None:
    arms = side((305.0, 284.0, 326.0, 299.0, 311.0, 207.0)), side(BEFORE)
    assert certify(metric(), *arms, alpha=error_for_attempt(1)).verdict is Verdict.CERTIFIED
    assert certify(metric(), *arms, alpha=error_for_attempt(3)).verdict is Verdict.INCONCLUSIVE


def test_a_generous_error_never_certifies_an_interval_that_holds_nothing() -> None:
    arms = side((2.0, 4.0, 6.0)), side((1.0, 3.0, 0.0))
    found = certify(metric(margin=100), *arms, alpha=0.5)
    assert found.p_value <= 0.5
    assert found.verdict is Verdict.INCONCLUSIVE


def test_lower_is_better_turns_the_sign() -> None:
    turned = metric(direction=Direction.LOWER)
    found = certify(turned, side(BEFORE), side(AFTER), alpha=0.025)
    assert found.verdict is Verdict.CERTIFIED
    assert found.gain.estimate == 93.0
    assert found.claim(BUDGET).startswith("Return 305 → 212 (+93 better, 95 % interval 75 to 111)")
    lost = certify(turned, side((None, *BEFORE[1:])), side(AFTER), alpha=0.025)
    assert lost.p_value > found.p_value


def test_a_median_that_is_not_the_difference_of_the_means_is_called_one() -> None:
    found = certified((305.0, 284.0, 326.0, 299.0, 311.0, 500.0))
    assert "(+98 in the median pair, 95 % interval" in found.claim(BUDGET)


def test_a_lost_seed_ranks_below_every_score_and_is_told() -> None:
    found = certified((*AFTER[:5], None))
    assert isclose(found.p_value, 30 / 924)  # one at the bottom, five on top: U is 30 of 36
    assert found.verdict is Verdict.INCONCLUSIVE
    assert ", 1 of the candidate's lost" in found.because
    assert found.decision(candidate="c-0007", evidence=("r-0001",)).gain_low is None


def test_a_candidate_that_mostly_crashes_is_refuted_without_a_number() -> None:
    found = certified((305.0, None, None, None, None, None))
    assert found.verdict is Verdict.REFUTED
    decision = found.decision(candidate="c-0007", evidence=("r-0001",))
    assert decision.gain is None
    assert "no number for the gain" in decision.because


def test_an_incumbent_that_always_crashes_gives_the_gain_no_number() -> None:
    found = certified(AFTER, (None,) * 6)
    assert found.verdict is Verdict.INCONCLUSIVE
    assert "Return crash → 305" in found.because
    assert found.guardrails == ()


def test_a_guardrail_within_its_margin_holds() -> None:
    found = certify(metric(margin=5.0), side(AFTER, worst=96.0), side(BEFORE), alpha=0.025)
    assert found.verdict is Verdict.CERTIFIED
    assert [(rail.worse_by, rail.holds()) for rail in found.guardrails] == [(4.0, True)]


def test_a_guardrail_that_seems_worse_holds_back_the_claim() -> None:
    found = certify(metric(margin=3.0), side(AFTER, worst=96.0), side(BEFORE), alpha=0.025)
    assert found.verdict is Verdict.INCONCLUSIVE
    assert found.because.endswith("and worst seems worse than its margin.")


def test_a_guardrail_that_is_shown_worse_refutes() -> None:
    found = certify(metric(margin=3.0), side(AFTER, worst=60.0), side(BEFORE), alpha=0.025)
    assert found.verdict is Verdict.REFUTED
    assert found.because.endswith("and worst got worse than its margin.")


def test_a_guardrail_that_nobody_measured_holds_back_the_claim() -> None:
    found = certify(metric(), Arm(scores=AFTER), side(BEFORE), alpha=0.025)
    assert found.verdict is Verdict.INCONCLUSIVE
    assert found.because.endswith("and nothing can be said about the guardrail worst.")


@pytest.mark.parametrize("bad", [nan, inf, -inf])
def test_what_is_no_number_is_refused(bad: float) -> None:
    with pytest.raises(ValueError, match="must be finite"):
        certified((bad, *AFTER[1:]))
    with pytest.raises(ValueError, match="error"):
        certify(metric(), side(AFTER), side(BEFORE), alpha=bad)
    with pytest.raises(ValueError, match="noise"):
        detectable_gain(bad, 6, 6, 0.025)


def test_all_attempts_together_spend_no_more_than_the_total() -> None:
    assert [error_for_attempt(attempt) for attempt in (1, 2, 3)] == [0.025, 0.0125, 0.00625]
    assert sum(error_for_attempt(attempt) for attempt in range(1, 1000)) <= 0.05
    assert error_for_attempt(1, total=0.2) == 0.1
    with pytest.raises(ValueError, match="count from 1"):
        error_for_attempt(0)


@pytest.mark.parametrize(("seeds", "attempts"), [(3, 0), (4, 1), (5, 3), (6, 5), (12, 17)])
def test_only_so_many_attempts_can_certify(seeds: int, attempts: int) -> None:
    assert attempts_possible(seeds, seeds) == attempts


def normal(rng: np.random.Generator, seeds: int) -> list[Score]:
    return [float(score) for score in rng.normal(0, 1, seeds)]


def two_humped(rng: np.random.Generator, seeds: int) -> list[Score]:
    return [float(score) for score in np.where(rng.random(seeds) < 0.35, 5, 0) + rng.normal(0, 0.4, seeds)]


def at_a_ceiling(rng: np.random.Generator, seeds: int) -> list[Score]:
    return [float(score) for score in np.minimum(rng.normal(0, 1, seeds), 0.3)]


def crashing(rng: np.random.Generator, seeds: int) -> list[Score]:
    return [None if rng.random() < 0.2 else float(score) for score in rng.normal(0, 1, seeds)]


@pytest.mark.parametrize("draw", [normal, two_humped, at_a_ceiling, crashing], ids=lambda draw: draw.__name__)
def test_where_nothing_is_better_a_claim_is_as_rare_as_allowed(draw: Draw) -> None:
    rng, rounds, alpha = np.random.default_rng(5), 2000, 0.025
    free = metric(margin=1e9)
    claims = sum(
        certify(free, side(tuple(draw(rng, 6))), side(tuple(draw(rng, 6))), alpha=alpha).verdict is Verdict.CERTIFIED
        for _ in range(rounds)
    )
    assert claims <= rounds * alpha + 3 * sqrt(rounds * alpha * (1 - alpha))


def test_a_gain_of_three_spreads_is_nearly_always_certified() -> None:
    rng, free = np.random.default_rng(6), metric(margin=1e9)
    found = 0
    for _ in range(300):
        better = tuple(score + 3 for score in normal(rng, 6) if score is not None)
        found += certify(free, side(better), side(tuple(normal(rng, 6))), alpha=0.025).verdict is Verdict.CERTIFIED
    assert found >= 285


@pytest.mark.parametrize(("seeds", "alpha"), [(4, 0.025), (6, 0.025), (6, 0.0125), (12, 0.025)])
def test_the_planning_figure_is_found_about_four_times_in_five(seeds: int, alpha: float) -> None:
    gain = detectable_gain(10.0, seeds, seeds, alpha)
    assert gain is not None
    rng, free, found = np.random.default_rng(7), metric(margin=1e9), 0
    for _ in range(600):
        better = tuple(10 * score + gain for score in normal(rng, seeds) if score is not None)
        plain = tuple(10 * score for score in normal(rng, seeds) if score is not None)
        found += certify(free, side(better), side(plain), alpha=alpha).verdict is Verdict.CERTIFIED
    assert 0.7 < found / 600 < 0.88


def test_too_few_seeds_detect_nothing_however_large() -> None:
    assert detectable_gain(1.0, 3, 3, 0.025) is None
    assert detectable_gain(0.0, 6, 6, 0.025) == 0.0
