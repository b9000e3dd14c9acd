"""A claim is made only when fresh seeds support it, in the metric's own unit, and rarely when nothing is there."""

from collections.abc import Callable
from math import inf, isclose, nan

import numpy as np
import pytest

from overnight.decide.certify import MEANING, Arm, Certification
from overnight.decide.intervals import Score
from overnight.decide.looks import attempt
from overnight.decide.spending import LookPlan, error_for_next
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


def certified(
    candidate: tuple[Score, ...], incumbent: tuple[Score, ...] = BEFORE, *, alpha: float = 0.0194, **how: object
) -> Certification:
    """The one look of an attempt at as many seeds as the candidate has."""
    looks = LookPlan(looks=(len(candidate),), shares=(1.0,))
    found = attempt(metric(**how), looks, side(candidate), side(incumbent), alpha=alpha)  # type: ignore[arg-type]
    assert isinstance(found, Certification)
    return found


def test_a_clear_gain_is_certified_and_told() -> None:
    found = certified(AFTER)
    assert found.verdict is Verdict.CERTIFIED
    assert isclose(found.p_value, 1 / 924)
    assert found.claim(BUDGET) == (
        "Return 212 → 305 (+93, 95 % interval 74 to 112), 6 fresh seeds each, 30,000 env steps of training, "
        "this machine."
    )
    assert (found.before(), found.after()) == (212.0, 305.0)


def test_the_line_under_a_claim_says_what_it_does_not_say() -> None:
    assert MEANING == (
        "Certified means better than the baseline on fresh seeds at this budget; "
        "it says nothing about safety, real hardware or longer training."
    )


def test_a_certified_gain_becomes_a_decision_with_its_audit_and_every_figure() -> None:
    decision = certified(AFTER).decision(candidate="c-0007", evidence=("r-0001",), audit="a-1")
    assert (decision.verdict, decision.loop) == (Verdict.CERTIFIED, LoopDecision.CONTINUE)
    assert decision.because == "Return 212 → 305 (+93, 95 % interval 74 to 112), 6 fresh seeds each."
    assert (decision.seeds, decision.improvement, decision.error_spent) == (6, 1.0, 0.0194)
    assert "p = 0.0011" in decision.details and "p =" not in decision.because
    with pytest.raises(Misfit):
        certified(AFTER).decision(candidate="c-0007", evidence=("r-0001",))


def test_what_is_not_certified_is_no_claim() -> None:
    with pytest.raises(ValueError, match="Only a certified gain"):
        certified(BEFORE).claim(BUDGET)


def test_no_gain_is_refuted_and_rolled_back() -> None:
    decision = certified(BEFORE, AFTER).decision(candidate="c-0007", evidence=("r-0001",))
    assert (decision.verdict, decision.loop, decision.gain) == (Verdict.REFUTED, LoopDecision.ROLLBACK, -93.0)


def test_a_gain_that_does_not_stand_out_is_inconclusive_narrows_the_loop_and_says_what_would_decide() -> None:
    found = certified(tuple(score + 10.5 for score in BEFORE))
    assert found.verdict is Verdict.INCONCLUSIVE
    assert found.seeds_wanted is not None and 6 < found.seeds_wanted < 60
    assert found.because.endswith(
        f"not decided: about {found.seeds_wanted} fresh seeds each would decide at this gain, "
        f"{2 * found.seeds_wanted} runs."
    )
    decision = found.decision(candidate="c-0007", evidence=("r-0001",))
    assert (decision.loop, decision.seeds_wanted) == (LoopDecision.NARROW, found.seeds_wanted)


def test_a_hopelessly_small_gain_wants_more_seeds_than_anyone_has() -> None:
    small = certified(tuple(score + 0.4 for score in BEFORE))
    assert (small.verdict, small.seeds_wanted) == (Verdict.INCONCLUSIVE, None)
    assert "more than 1,000 fresh seeds" in small.because


@pytest.mark.parametrize(("least_gain", "verdict"), [(70.0, Verdict.CERTIFIED), (90.0, Verdict.INCONCLUSIVE)])
def test_the_least_gain_must_be_exceeded_by_the_whole_interval(least_gain: float, verdict: Verdict) -> None:
    assert certified(AFTER, least_gain=least_gain).verdict is verdict


def test_later_attempts_need_stronger_evidence() -> None:
    after = (305.0, 284.0, 326.0, 299.0, 311.0, 237.0)
    assert certified(after, alpha=error_for_next(())).verdict is Verdict.CERTIFIED
    assert certified(after, alpha=error_for_next((False,) * 9)).verdict is Verdict.INCONCLUSIVE


def test_lower_is_better_turns_the_sign() -> None:
    found = certified(BEFORE, AFTER, direction=Direction.LOWER)
    assert (found.verdict, found.gain.estimate) == (Verdict.CERTIFIED, 93.0)
    assert found.claim(BUDGET).startswith("Return 305 → 212 (+93 better, 95 % interval 74 to 112)")
    lost = certified((None, *BEFORE[1:]), AFTER, direction=Direction.LOWER)
    assert lost.p_value > found.p_value


@pytest.mark.parametrize("crashes", [1, 3, 5])
def test_a_candidate_that_crashes_on_seeds_where_the_incumbent_does_not_is_never_certified(crashes: int) -> None:
    found = certified((*AFTER[crashes:], *(None,) * crashes))
    assert found.verdict is not Verdict.CERTIFIED
    assert f", {crashes} of the candidate's lost" in found.because


def test_an_incumbent_that_always_crashes_gives_the_gain_no_number() -> None:
    found = certified(AFTER, (None,) * 6)
    assert found.verdict is not Verdict.CERTIFIED
    assert "Return crash → 305" in found.because


@pytest.mark.parametrize("bad", [nan, inf, -inf])
def test_what_is_no_number_is_refused(bad: float) -> None:
    with pytest.raises(ValueError, match="must be finite"):
        certified((bad, *AFTER[1:]))


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
    rng, rounds, alpha = np.random.default_rng(7), 1200, 0.0194
    false = sum(
        certified(tuple(draw(rng, 6)), tuple(draw(rng, 6)), alpha=alpha, margin=1e6).verdict is Verdict.CERTIFIED
        for _ in range(rounds)
    )
    assert false <= alpha * rounds + 3 * (alpha * rounds) ** 0.5


def test_a_gain_of_three_spreads_is_nearly_always_certified() -> None:
    rng, found = np.random.default_rng(8), 0
    for _ in range(300):
        better = tuple(None if score is None else score + 3 for score in normal(rng, 6))
        found += certified(better, tuple(normal(rng, 6)), margin=1e6).verdict is Verdict.CERTIFIED
    assert found >= 270
