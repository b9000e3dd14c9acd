"""Before the eighth approval the study says what its budget can prove."""

from dataclasses import replace

import pytest

from overnight.decide.calibrate import calibrate, measure_floor, rank_agreement
from overnight.decide.plan import plan_study
from overnight.records.metric import Direction, Guardrail, MetricSpec

SCORES = (210.0, 196.0, 228.0, 206.0, 218.0, 214.0, 202.0, 222.0)
METRIC = MetricSpec(
    name="episode_return",
    unit="return",
    direction=Direction.HIGHER,
    source="episode_return",
    lowest=0.0,
    highest=500.0,
    least_gain=0.0,
    guardrails=(Guardrail(name="worst", direction=Direction.HIGHER, margin=5.0),),
    rollback_drop=0.0,
)


def test_a_study_says_what_it_can_prove_and_how_many_experiments_fit() -> None:
    found = calibrate(METRIC, SCORES, runs=100, seconds=(300.0,))
    assert found.provable is not None
    assert found.sentences[0] == (
        "Your task needs 12 fresh seeds a side; this study can prove a gain of +14 return (7 %) or more, "
        "and about 47 experiments fit."
    )
    assert "scores 212 return and scatters by 11 over 8 seeds" in found.sentences[1]
    assert found.offers == ()


@pytest.mark.parametrize(
    ("runs", "looks"),
    [
        (3, None),
        (8, None),
        (15, None),
        (16, (4,)),
        (24, (4, 6)),
        (32, (5, 8)),
        (48, (5, 8)),
        (100, (6, 12)),
        (600, (6, 12, 20)),
    ],
)
def test_the_look_schedule_follows_from_the_runs_that_fit(runs: int, looks: tuple[int, ...] | None) -> None:
    plan = plan_study(runs)
    assert (plan.looks.looks if plan.looks else None) == looks
    assert plan.rule.baseline_seeds <= max(1, runs / 4)


def test_three_runs_can_claim_nothing_and_offer_what_else_can_be_done() -> None:
    found = calibrate(METRIC, SCORES[:1], runs=3, seconds=(7200.0,))
    assert found.provable is None
    assert found.sentences[0].startswith("Tonight can search but claim nothing")
    assert [one.kind for one in found.offers] == ["more nights", "shorter training", "past runs", "search only"]
    shorter = found.offers[1].says
    assert "`overnight plan` tells from the curves of six candidates" in shorter, "how it can be checked is said"
    assert "`overnight transfer --budget " in shorter
    assert "22 nights like this make 66 runs, 132 hours of training in all" in found.offers[0].says
    assert found.asks


def test_a_saturated_metric_is_reported_before_anything_is_spent() -> None:
    found = calibrate(METRIC, (499.0, 500.0, 498.0, 500.0), runs=100)
    assert found.saturated is not None
    assert "There is room for" in found.saturated
    same = calibrate(METRIC, (37.0,) * 4, runs=100)
    assert same.saturated is not None
    assert "does not use its seed" in same.saturated
    lower = replace(METRIC, direction=Direction.LOWER)
    assert calibrate(lower, (0.0, 0.1, 0.0, 0.2), runs=100).saturated is not None


@pytest.mark.parametrize(
    ("scores", "shape"),
    [
        ((5.0,), "unknown"),
        ((5.0, 5.0, 5.0), "constant"),
        (SCORES, "even"),
        ((0.1, 0.12, 0.11, 0.1, 1.0, 1.02, 0.99, 1.01), "two groups"),
        ((10.0, 11.0, 10.5, 11.2, 10.8, -30.0), "skewed"),
    ],
)
def test_the_shape_of_the_noise_is_named(scores: tuple[float, ...], shape: str) -> None:
    assert measure_floor(scores).shape == shape


def test_a_baseline_that_only_crashes_is_told() -> None:
    found = calibrate(METRIC, (None, None), runs=100)
    assert any("lost all of its 2 seeds" in one for one in found.sentences)


def test_reference_policies_are_set_beside_the_baseline() -> None:
    found = calibrate(METRIC, SCORES, runs=100, references={"random": 22.0})
    assert "The reference random scores 22 return; the baseline is 190 better." in found.sentences


def test_a_baseline_that_does_not_scatter_promises_no_size_of_gain() -> None:
    found = calibrate(METRIC, (-1000.0,) * 4, runs=22, references={"no-op": -1000.0})
    assert "what this study can prove depends on how far a candidate scatters" in found.sentences[0]
    assert "The reference no-op scores −1,000 return; the baseline is no better." in found.sentences
    assert found.saturated is not None and "the training learns nothing" in found.saturated
    assert not any("prove 0" in one or "gain of 0" in one for one in found.sentences)


def test_rank_agreement_is_kendalls() -> None:
    assert rank_agreement((1.0, 2.0, 3.0), (10.0, 20.0, 30.0)) == 1.0
    assert rank_agreement((1.0, 2.0, 3.0, 4.0), (1.0, 3.0, 2.0, 4.0)) == pytest.approx(4 / 6)
    assert rank_agreement((1.0, 1.0), (1.0, 2.0)) == 0.0
