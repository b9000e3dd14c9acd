"""An attempt certifies only what it may, spends no more than it has, and says how many seeds would decide."""

from itertools import combinations

import numpy as np
import pytest

from overnight.decide.certify import Arm, Certification
from overnight.decide.guards import (
    has_lower_lows,
    leans_on_luck,
    loses_more,
    mean_gain_interval,
    non_inferior,
)
from overnight.decide.looks import SeedsWanted, attempt, promise, seeds_to_decide
from overnight.decide.permute import least_mean_p, least_paired_p, mean_gain_p, paired_gain_p
from overnight.decide.spending import LookPlan, attempts_that_can_certify, error_for_next
from overnight.records.decision import LoopDecision, Verdict
from overnight.records.metric import Direction, Guardrail, MetricSpec

PLAN = LookPlan(looks=(6, 12), shares=(0.6, 0.4))
BEFORE = (210.0, 196.0, 228.0, 206.0, 218.0, 214.0)
AFTER = (303.0, 284.0, 326.0, 299.0, 311.0, 307.0)
METRIC = MetricSpec(
    name="episode_return",
    unit="return",
    direction=Direction.HIGHER,
    source="episode_return",
    lowest=None,
    highest=None,
    least_gain=0.0,
    guardrails=(Guardrail(name="worst", direction=Direction.HIGHER, margin=5.0),),
    rollback_drop=0.0,
)


def side(scores: tuple[float | None, ...], worst: tuple[float | None, ...] | None = None) -> Arm:
    steady = tuple(100.0 + 0.5 * (number % 3) for number in range(len(scores)))
    return Arm(scores=scores, guardrails={"worst": worst or steady})


def tried(ours: Arm, theirs: Arm, plan: LookPlan = PLAN, alpha: float = 0.0194) -> Certification:
    found = attempt(METRIC, plan, ours, theirs, alpha=alpha, next_alpha=0.0086)
    assert isinstance(found, Certification)
    return found


def test_an_attempt_asks_for_the_seeds_of_its_next_look() -> None:
    assert attempt(METRIC, PLAN, side(()), side(()), alpha=0.02) == SeedsWanted(6)
    close = side(tuple(score + 6 for score in BEFORE))
    assert attempt(METRIC, PLAN, close, side(BEFORE), alpha=0.02) == SeedsWanted(12)


def test_a_clear_gain_is_certified_at_the_first_look_and_told_in_its_own_unit() -> None:
    found = tried(side(AFTER), side(BEFORE))
    assert found.verdict is Verdict.CERTIFIED
    assert found.because == "Return 212 → 305 (+93, 95 % interval 74 to 112), 6 fresh seeds each."
    assert found.details.startswith("p = 0.0011 where this look allows 0.012; the attempt may spend 0.019")
    assert found.improvement == 1.0
    assert found.decision(candidate="c-0002", evidence=("r-0001",), audit="a-1").verdict is Verdict.CERTIFIED
    assert promise(0.05) == "Chance that a night like this claims a gain that is not there: below 5 %."


def test_seeds_beyond_the_look_that_decided_change_nothing() -> None:
    longer = side((*AFTER, 0.0, 1.0)), side((*BEFORE, 999.0, 999.0))
    assert tried(*longer).because == tried(side(AFTER), side(BEFORE)).because


def test_an_attempt_without_a_gain_is_given_up_at_once() -> None:
    found = tried(side(tuple(score - 20 for score in BEFORE)), side(BEFORE))
    assert found.verdict is Verdict.REFUTED
    assert found.decision(candidate="c-0002", evidence=("r-0001",)).loop is LoopDecision.ROLLBACK


def test_an_undecided_attempt_says_how_many_seeds_would_decide() -> None:
    theirs = (*BEFORE, 209.0, 198.0, 226.0, 207.0, 217.0, 215.0)
    found = tried(side(tuple(score + 8 for score in theirs)), side(theirs))
    assert found.verdict is Verdict.INCONCLUSIVE
    assert found.seeds_wanted is not None
    assert found.seeds_wanted > 12
    assert f"about {found.seeds_wanted} fresh seeds each would decide at this gain, {2 * found.seeds_wanted} runs" in (
        found.because
    )


def test_a_gain_with_a_guardrail_shown_worse_is_refuted() -> None:
    found = tried(side(AFTER, (80.0, 81.0, 82.0, 80.0, 81.0, 82.0)), side(BEFORE))
    assert found.verdict is Verdict.REFUTED
    assert "worst got worse than its margin" in found.because


def test_a_guardrail_that_was_not_measured_keeps_a_gain_from_being_claimed() -> None:
    one_look = LookPlan(looks=(6,), shares=(1.0,))
    found = tried(side(AFTER, (None,) * 6), side(BEFORE), one_look)
    assert found.verdict is Verdict.INCONCLUSIVE
    assert "worst was not measured on every seed" in found.because


def test_a_candidate_that_crashes_on_half_of_its_seeds_is_not_certified() -> None:
    one_look = LookPlan(looks=(6,), shares=(1.0,))
    crashing: tuple[float | None, ...] = (400.0, None, 410.0, None, 405.0, None)
    found = tried(side(crashing), side(BEFORE), one_look)
    assert found.verdict is not Verdict.CERTIFIED
    assert loses_more(crashing, BEFORE)


def test_a_noisier_candidate_with_lower_low_seeds_is_guarded_against() -> None:
    assert has_lower_lows((0.0, 100.0, 0.0, 100.0), (40.0, 42.0, 41.0, 43.0))
    assert not has_lower_lows(AFTER, BEFORE)


def test_a_gain_that_one_low_seed_would_undo_is_not_claimed() -> None:
    solved, failing = (10.0, 10.5, 11.0, 10.2, 10.8, 10.4), (1.0, 9.0, 9.1, 9.2, 1.2, 10.1)
    one_look = LookPlan(looks=(6,), shares=(1.0,))
    found = tried(side(solved), side(failing), one_look)
    assert found.verdict is Verdict.INCONCLUSIVE and found.p_value < 0.0194
    assert "the level of the low seeds may have got worse" in found.because
    assert leans_on_luck(solved, failing) and not leans_on_luck(AFTER, BEFORE)


def test_a_gain_whose_every_seed_beats_the_incumbents_luckiest_does_not_lean_on_luck() -> None:
    walks = (322.0, 323.0, 313.0, 308.0, 305.0, 313.0)
    sometimes = (-88.0, 228.0, -113.0, 244.0, 247.0, 66.0)
    assert tried(side(walks), side(sometimes), LookPlan(looks=(6,), shares=(1.0,))).verdict is Verdict.CERTIFIED
    assert leans_on_luck(walks, (*sometimes[:5], 306.0)), "where luck did reach as high, it may have done so here"


@pytest.mark.parametrize("seeds", [4, 5, 6])
def test_a_clear_gain_passes_every_guard_at_the_fewest_seeds(seeds: int) -> None:
    one_look = LookPlan(looks=(seeds,), shares=(1.0,))
    assert tried(side(AFTER[:seeds]), side(BEFORE[:seeds]), one_look).verdict is Verdict.CERTIFIED


def test_the_last_look_can_be_stretched_and_never_comes_earlier() -> None:
    assert PLAN.stretched(40) == LookPlan(looks=(6, 40), shares=(0.3, 0.7))
    assert PLAN.stretched(3) == PLAN


def test_a_paired_attempt_compares_seed_by_seed() -> None:
    plan = PLAN.pairwise()
    assert (plan.looks, plan.paired) == ((8, 12), True)
    luck = (0.0, 50.0, -40.0, 90.0, -80.0, 30.0, -10.0, 60.0)
    ours = side(tuple(score + 5 + 0.1 * place for place, score in enumerate(luck)))
    assert tried(ours, side(luck), plan).verdict is Verdict.CERTIFIED


def test_looks_that_meet_at_eight_pairs_become_one() -> None:
    assert LookPlan(looks=(4, 6), shares=(0.5, 0.5)).pairwise() == LookPlan(looks=(8,), shares=(1.0,), paired=True)


@pytest.mark.parametrize(
    ("looks", "shares"), [((), ()), ((6, 6), (0.5, 0.5)), ((6,), (0.5, 0.5)), ((6, 12), (0.9, 0.9))]
)
def test_a_plan_that_cannot_be_followed_is_refused(looks: tuple[int, ...], shares: tuple[float, ...]) -> None:
    with pytest.raises(ValueError, match=r"\."):
        LookPlan(looks=looks, shares=shares)


def test_the_errors_of_all_attempts_stay_within_the_total() -> None:
    spent = [error_for_next((False,) * attempts) for attempts in range(2000)]
    assert sum(spent) < 0.05
    assert spent[0] == pytest.approx(0.01938, abs=1e-4)


def test_an_attempt_that_certified_hands_its_error_on() -> None:
    assert error_for_next((True,)) == pytest.approx(error_for_next(()) + error_for_next((False,)))
    assert error_for_next((True, False)) == pytest.approx(error_for_next((False, False)))
    assert error_for_next((True, True), mode="discovery") == pytest.approx(3 * error_for_next((False, False)))


def test_four_against_four_can_certify_once() -> None:
    assert attempts_that_can_certify(LookPlan(looks=(4,), shares=(1.0,))) == 1
    assert attempts_that_can_certify(LookPlan(looks=(3,), shares=(1.0,))) == 0


def test_the_permutation_test_counts_every_arrangement() -> None:
    ours, theirs = [3.0, 5.0, 9.0, 1.0], [2.0, 4.0, 0.0, 6.0]
    pooled = ours + theirs
    plain = [sum(pooled[place] for place in chosen) >= sum(ours) for chosen in combinations(range(8), 4)]
    assert mean_gain_p(ours, theirs) == pytest.approx(sum(plain) / len(plain))
    assert mean_gain_p([one + 1e9 for one in ours], [one + 1e9 for one in theirs]) == mean_gain_p(ours, theirs)
    assert mean_gain_p((10.0,) * 6, (0.0,) * 6) == pytest.approx(least_mean_p(6, 6))
    assert paired_gain_p((1.0,) * 8) == pytest.approx(least_paired_p(8))


def test_clones_pass_no_more_often_than_they_may() -> None:
    draw = np.random.default_rng(2)
    found = [
        mean_gain_p(draw.exponential(size=12).tolist(), draw.exponential(size=12).tolist()) <= 0.05 for _ in range(1500)
    ]
    assert np.mean(found) < 0.066


def test_non_inferiority_needs_more_than_an_estimate_within_the_margin() -> None:
    rail = Guardrail(name="worst", direction=Direction.HIGHER, margin=1.0)
    noisy = [0.0, 4.0, -4.0, 3.0, -3.0, 1.0]
    loss, holds = non_inferior(rail, noisy, noisy)
    assert (loss.estimate, holds) == (0.0, False)
    steady = [0.0, 0.1, 0.2, 0.1, 0.0, 0.2]
    assert non_inferior(rail, steady, steady)[1]


def test_the_interval_of_a_mean_gain_is_students() -> None:
    found = mean_gain_interval((1.0, 2.0, 3.0, 4.0), (0.0, 1.0, 2.0, 2.0))
    assert found.estimate == 1.25
    assert found.high - found.estimate == pytest.approx(3.182 * (1.6667 / 4 + 0.9167 / 4) ** 0.5, rel=0.001)


def test_seeds_that_agree_by_chance_do_not_make_an_interval_narrow() -> None:
    found = mean_gain_interval((5.0, 5.0, 5.0, 5.0), (1.0, 2.0, 3.0, 4.0))
    assert found.high - found.estimate == pytest.approx(3.182 * (1.6667 / 4 * 1.25) ** 0.5, rel=0.001)


def test_a_gain_of_one_noise_needs_about_thirty_seeds() -> None:
    assert seeds_to_decide(1.0, 1.0, 0.0058) == 23
    assert seeds_to_decide(0.01, 1.0, 0.0058) is None
    assert seeds_to_decide(-1.0, 1.0, 0.05) is None
