"""Each flaw of a claim fails the check that is there for it, and no other claim is called flawed."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from overnight.decide.audit import QUESTIONS, AuditedLooks, AuditedRun, Dossier, check_claim
from overnight.decide.certify import Arm, Certification
from overnight.decide.looks import attempt
from overnight.decide.spending import LookPlan
from overnight.records.metric import Direction, Guardrail, MetricSpec
from overnight.records.run import Outcome
from overnight.records.schedule import LookSchedule

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
OURS, THEIRS = (303.0, 284.0, 326.0, 299.0, 311.0, 307.0), (210.0, 196.0, 228.0, 206.0, 218.0, 214.0)


def one(number: int, score: float, *, ours: bool) -> AuditedRun:
    return AuditedRun(
        id=f"r-{2 * number + ours + 1:04d}",
        candidate="c-0001" if ours else "c-0002",
        tree="aa" if ours else "bb",
        drafted_tree="aa" if ours else "bb",
        stored_tree="aa" if ours else "bb",
        gated=True,
        phase="confirm",
        round=1,
        number=number,
        train_seed=1000 + number,
        comparability="key",
        outcome=Outcome.COMPLETED,
        score=score,
        guardrails={"worst": 100.0 + number},
        measured=1,
        episodes=((1, score - 1, 10), (2, score + 1, 12)),
        again={"worst": 100.0 + number},
    )


def certification() -> Certification:
    arms = [Arm(scores=scores, guardrails={"worst": tuple(100.0 + n for n in range(6))}) for scores in (OURS, THEIRS)]
    found = attempt(METRIC, LookPlan(looks=(6,), shares=(1.0,)), *arms, alpha=0.0194)
    assert isinstance(found, Certification)
    return found


FIXED = LookSchedule(attempt=1, tip="c-0001", incumbent="c-0002", looks=(6,), shares=(1.0,), paired=False, error=0.0194)


def looks(**other: Any) -> AuditedLooks:
    found = AuditedLooks(
        written=FIXED,
        follows=FIXED,
        runs_then=40,
        total_error=0.05,
        allowed_error=0.05,
        told_error=0.0194,
        replayed=certification(),
    )
    return replace(found, **other)


def dossier(**other: Any) -> Dossier:
    runs = tuple(
        one(n, score, ours=ours) for ours, arm in ((True, OURS), (False, THEIRS)) for n, score in enumerate(arm)
    )
    found = certification()
    return replace(
        Dossier(
            candidate="c-0001",
            metric=METRIC,
            comparability="key",
            metric_digests=("m", "m"),
            allowed=0.05,
            claimed=(found.gain.estimate, found.gain.low, found.gain.high),
            guardrails={rail.name: rail.worse_by for rail in found.guardrails},
            runs=runs,
            missing=(),
            round_mates=runs,
            other_train_seeds=frozenset({1, 2, 3}),
            other_episode_seeds=frozenset({77, 78}),
            derive=lambda run: (1000 + run.number, (1, 2), (8, 9)),
            unkeyed="",
            recomputed=found,
            looks=looks(),
            first_audit="passed",
        ),
        **other,
    )


def with_run(place: int, **other: Any) -> Dossier:
    case = dossier()
    runs = tuple(replace(run, **other) if at == place else run for at, run in enumerate(case.runs))
    return replace(case, runs=runs, round_mates=runs)


def failing(case: Dossier) -> Mapping[str, str]:
    return {check.name: check.because for check in check_claim(case) if not check.passed}


def test_a_sound_claim_passes_every_check_with_a_sentence() -> None:
    found = check_claim(dossier())
    assert [check.name for check in found] == [name for name, _ in QUESTIONS]
    assert all(check.passed and check.because.endswith(".") for check in found)


@pytest.mark.parametrize(
    ("case", "name", "said"),
    [
        pytest.param(dossier(missing=("r-0099",)), "provenance", "never launched: r-0099", id="no such run"),
        pytest.param(dossier(runs=()), "provenance", "it names none", id="no runs"),
        pytest.param(with_run(0, gated=False), "provenance", "had not let in", id="not through the gate"),
        pytest.param(with_run(0, outcome=None), "provenance", "never ended", id="still going"),
        pytest.param(with_run(0, phase="screen"), "provenance", "only fresh seeds certify", id="a screening run"),
        pytest.param(with_run(0, tree="cc"), "trees", "another tree than its candidate", id="another tree ran"),
        pytest.param(with_run(0, stored_tree=None), "trees", "The store has another tree", id="the tree is gone"),
        pytest.param(with_run(3, flaw="it is gone", episodes=None), "digests", "it is gone", id="no artefact"),
        pytest.param(with_run(3, comparability="x"), "comparability", "different comparability", id="two keys"),
        pytest.param(dossier(comparability="x"), "comparability", "another budget", id="another key"),
        pytest.param(dossier(metric_digests=("m", "n")), "metric", "changed after the first run", id="switched"),
        pytest.param(with_run(2, score=400.0), "metric", "scored 400, but the mean", id="a score of its own"),
        pytest.param(with_run(2, again={"worst": 3.0}), "metric", "says 102 for worst", id="a guardrail of its own"),
        pytest.param(with_run(1, train_seed=3), "fresh seeds", "used before", id="an old train seed"),
        pytest.param(with_run(1, train_seed=1000), "fresh seeds", "more than once", id="one seed twice"),
        pytest.param(with_run(1, train_seed=9), "fresh seeds", "same seeds", id="unequal seeds"),
        pytest.param(
            with_run(1, episodes=((77, 283.0, 1), (78, 285.0, 1))), "fresh seeds", "episode seeds", id="old episodes"
        ),
        pytest.param(with_run(1, train_seed=9), "revealed seeds", "committed key gives 1001", id="a chosen seed"),
        pytest.param(dossier(derive=None, unkeyed="no key"), "revealed seeds", "no key", id="no key"),
        pytest.param(
            dossier(runs=tuple(run for run in dossier().runs if run.id != "r-0002")),
            "no seed dropped",
            "r-0002 of c-0001 belongs to the attempt and was left out; it scored 303",
            id="a seed left out",
        ),
        pytest.param(with_run(5, number=7), "no seed dropped", "Seed 6 of c-0001 is missing", id="a gap"),
        pytest.param(with_run(5, measured=2), "no seed dropped", "measured more than once", id="measured twice"),
        pytest.param(with_run(0, score=501.0), "range", "holds 501, but the contract says 0 to 500", id="too high"),
        pytest.param(with_run(0, episodes=((1, 302.0, 0), (2, 304.0, 9))), "range", "without a step", id="no step"),
        pytest.param(dossier(looks=None), "look schedule", "No schedule of looks", id="no schedule"),
        pytest.param(
            dossier(looks=looks(follows=replace(FIXED, looks=(12,)))),
            "look schedule",
            "do not follow",
            id="other looks",
        ),
        pytest.param(
            dossier(looks=looks(written=replace(FIXED, runs_left=41.0))),
            "look schedule",
            "stretched by 41 runs, but the budget held 40",
            id="runs that were not there",
        ),
        pytest.param(dossier(looks=looks(told_error=0.05)), "look schedule", "another error", id="another error"),
        pytest.param(dossier(looks=looks(total_error=0.2)), "look schedule", "another error", id="a greater error"),
        pytest.param(dossier(looks=looks(replayed=None)), "look schedule", "do not certify", id="looks say no"),
        pytest.param(
            dossier(
                looks=looks(written=replace(FIXED, looks=(6, 8), shares=(0.5, 0.5)), follows=None),
            ),
            "look schedule",
            "do not follow",
            id="no attempt was due",
        ),
        pytest.param(dossier(claimed=(200.0, 100.0, 300.0)), "interval", "A gain of 200", id="another gain"),
        pytest.param(dossier(recomputed=None), "interval", "certify no gain", id="no gain"),
        pytest.param(dossier(allowed=1e-5), "interval", "Chance alone", id="too likely by chance"),
        pytest.param(dossier(guardrails={"worst": -9.0}), "guardrails", "told to be worse by -9", id="a better rail"),
        pytest.param(dossier(guardrails={}), "guardrails", "Nothing is known", id="a silent rail"),
        pytest.param(dossier(first_audit="failed"), "first audit", "failed", id="it failed before"),
    ],
)
def test_each_flaw_fails_the_check_that_is_there_for_it(case: Dossier, name: str, said: str) -> None:
    assert said in failing(case).get(name, "")


def test_a_seed_lost_by_a_crash_counts_and_one_lost_by_the_machine_does_not() -> None:
    crashed = replace(one(6, 0.0, ours=True), score=None, episodes=None, measured=0, outcome=Outcome.CRASHED)
    lost = replace(crashed, outcome=Outcome.LOST)
    runs = dossier().runs
    assert "it crashed" in failing(dossier(round_mates=(*runs, crashed)))["no seed dropped"]
    assert not failing(dossier(round_mates=(*runs, lost)))
