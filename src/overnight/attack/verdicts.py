"""Attacks on the decision: results that look like progress and are none, given to the code that decides."""

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from math import nan
from statistics import fmean

from overnight.attack.attacks import Attack
from overnight.decide.certify import Arm, Certification
from overnight.decide.events import Entered, Ran
from overnight.decide.looks import attempt
from overnight.decide.plausible import doubt
from overnight.decide.race import Race
from overnight.decide.screened import RaceRule
from overnight.decide.spending import LookPlan, error_for_next
from overnight.evaluate.seeds import Seeds
from overnight.records.decision import Verdict
from overnight.records.metric import Direction, Guardrail, MetricSpec

Scores = tuple[float | None, ...]


def _metric(direction: Direction = Direction.HIGHER, least_gain: float = 0.0) -> MetricSpec:
    return MetricSpec(
        name="episode_return",
        unit="return",
        direction=direction,
        source="episode_return",
        lowest=None,
        highest=None,
        least_gain=least_gain,
        guardrails=(Guardrail(name="worst_decile_return", direction=direction, margin=5.0),),
        rollback_drop=0.0,
    )


METRIC = _metric()


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictAttack(Attack):
    """A question to the code that decides, and the same question to a script that compares two numbers."""

    ours: Callable[[], bool]
    """Whether it is kept or certified here."""
    theirs: Callable[[], bool]
    """Whether it is kept where the greater number wins."""


def _certified(
    ours: Scores, theirs: Scores, *, metric: MetricSpec = METRIC, rails: tuple[Scores, Scores] | None = None
) -> bool:
    mine, other = rails if rails is not None else (ours, theirs)
    arms = [Arm(scores=one, guardrails={"worst_decile_return": rail}) for one, rail in ((ours, mine), (theirs, other))]
    return _is_certified(metric, arms[0], arms[1], error_for_next(()))


def _is_certified(metric: MetricSpec, mine: Arm, other: Arm, alpha: float) -> bool:
    """Whether the one look of an attempt certifies."""
    try:
        found = attempt(metric, LookPlan(looks=(len(mine.scores),), shares=(1.0,)), mine, other, alpha=alpha)
    except ValueError:
        return False
    return isinstance(found, Certification) and found.verdict is Verdict.CERTIFIED


def _kept(ours: Scores, theirs: Scores, numbers: tuple[int, ...] | None = None) -> bool:
    """Whether a candidate leads the race against a tip with these scores, each of its own on a numbered seed."""
    race = Race(RaceRule(baseline_seeds=len(theirs)), "tip")
    try:
        for number, score in enumerate(theirs):
            race.tell(Ran("tip", number, score))
        race.tell(Entered("candidate"))
        for number, score in zip(numbers or range(len(ours)), ours, strict=True):
            race.tell(Ran("candidate", number, score))
    except ValueError:
        return False
    return race.leading is not None


def _mean(scores: Scores) -> float:
    return fmean(one for one in scores if one is not None)


def _best(scores: Scores) -> float:
    return max(one for one in scores if one is not None)


def _one(name: str, tries: str, stopped_by: str, ours: Callable[[], bool], theirs: Callable[[], bool]) -> VerdictAttack:
    return VerdictAttack(
        id=name,
        family="statistics",
        tries=tries,
        stopped_by=stopped_by,
        seen="a verdict is bought",
        ours=ours,
        theirs=theirs,
    )


_NOISE = (212.0, 187.0, 260.0, 143.0, 231.0, 198.0)
_LOWER = (150.0, 149.0, 151.0, 150.5, 149.5, 150.0)
_HIGHER = tuple(one + 40 for one in _LOWER)


_Sides = tuple[tuple[float, ...], tuple[float, ...]]


def _again(is_better: Callable[[int, _Sides], bool]) -> bool:
    """Whether a candidate that is no better is taken for better once in forty attempts."""
    chance = random.Random(11)  # noqa: S311 - a fixed stream
    sides = [tuple(tuple(chance.gauss(200, 30) for _ in range(6)) for _ in range(2)) for _ in range(40)]
    return any(is_better(number, (ours, theirs)) for number, (ours, theirs) in enumerate(sides))


def _attempted(number: int, sides: _Sides) -> bool:
    ours, theirs = (Arm(scores=one, guardrails={"worst_decile_return": (0.0,) * 6}) for one in sides)
    return _is_certified(METRIC, ours, theirs, error_for_next((False,) * number))


def _is_believed(score: float) -> bool:
    """Whether a score counts without a second measurement, under a contract that says what is plausible."""
    bounded = replace(METRIC, lowest=0.0, highest=500.0)
    return not doubt(bounded, score, _LOWER)


def _knows_seeds(known: set[int], used: tuple[int, ...]) -> bool:
    return bool(known & set(used))


_SEEDS = Seeds(b"k" * 32, "task/study")
_SCREENED = _SEEDS.episodes("screen", 0, 100)

ATTACKS: tuple[VerdictAttack, ...] = (
    _one(
        "beyond-what-is-plausible",
        "scores above what the contract calls possible",
        "such a score is set aside, and measured once more on fresh episodes",
        lambda: _is_believed(1e6),
        lambda: max(_LOWER) < 1e6,
    ),
    _one(
        "too-good-at-once",
        "scores far above everything that was ever measured, by luck or by a hole",
        "such a score is set aside, and measured once more on fresh episodes",
        lambda: _is_believed(499.0),
        lambda: max(_LOWER) < 499.0,
    ),
    _one(
        "another-seed",
        "is the same code with a luckier seed",
        "both sides are trained on the same seeds",
        lambda: _kept(_NOISE, _NOISE),
        lambda: 260.0 > 212.0,
    ),
    _one(
        "best-of-six",
        "reports the best of its seeds",
        "every seed counts, by a test of all of them",
        lambda: _certified(_NOISE, (205.0,) * 6),
        lambda: _best(_NOISE) > 205.0,
    ),
    _one(
        "no-number",
        "has a score that is no number",
        "scores are finite",
        lambda: _kept((nan,) * 6, _LOWER) or _certified((nan,) * 6, _LOWER),
        lambda: not nan <= 150.0,
    ),
    _one(
        "endless-score",
        "has a score beyond every number",
        "scores are finite",
        lambda: _kept((float("inf"),) * 6, _LOWER),
        lambda: float("inf") > 150.0,
    ),
    _one(
        "lose-bad-seeds",
        "crashes on the seeds that go badly",
        "a lost seed ranks below every score",
        lambda: _certified((230.0, 260.0, 240.0, None, None, None), (200.0, 198.0, 205.0, 201.0, 199.0, 202.0)),
        lambda: _mean((230.0, 260.0, 240.0, None, None, None)) > 201.0,
    ),
    _one(
        "break-the-other-side",
        "makes the runs crash that it is compared with",
        "a side that is compared with others cannot lose for them",
        lambda: _certified(_LOWER, (None, None, None, None, 150.0, 150.0)),
        lambda: _mean(_LOWER) > 50.0,
    ),
    _one(
        "two-seeds",
        "is ahead on two seeds, and asks for a verdict",
        "an exact test, which two seeds cannot pass",
        lambda: _certified((300.0, 310.0), (150.0, 160.0)),
        lambda: 305.0 > 155.0,
    ),
    _one(
        "ask-again",
        "is tried again until chance makes it better",
        "all attempts share one allowance of errors",
        lambda: _again(_attempted),
        lambda: _again(lambda _, sides: _mean(sides[0]) > _mean(sides[1]) + 20),
    ),
    _one(
        "raise-the-mean-alone",
        "raises the mean and lets the worst episodes fall",
        "guardrails",
        lambda: _certified(_HIGHER, _LOWER, rails=((10.0,) * 6, (100.0,) * 6)),
        lambda: _mean(_HIGHER) > _mean(_LOWER),
    ),
    _one(
        "hide-a-guardrail",
        "does not report the measure that is guarded",
        "a guardrail that is not measured holds nothing",
        lambda: _certified(_HIGHER, _LOWER, rails=((), ())),
        lambda: _mean(_HIGHER) > _mean(_LOWER),
    ),
    _one(
        "other-direction",
        "is worse where lower is better",
        "the contract says which way is better",
        lambda: _certified(_HIGHER, _LOWER, metric=_metric(Direction.LOWER)),
        lambda: _mean(_HIGHER) > _mean(_LOWER),
    ),
    _one(
        "too-small-to-matter",
        "is better by less than anybody asked for",
        "the least gain of the contract",
        lambda: _certified(tuple(one + 3 for one in _LOWER), _LOWER, metric=_metric(least_gain=10.0)),
        lambda: _mean(_LOWER) + 3 > _mean(_LOWER),
    ),
    _one(
        "count-a-seed-twice",
        "counts the seed on which it was lucky again and again",
        "a seed counts once",
        lambda: _kept((300.0,) * 6, _LOWER, numbers=(0,) * 6),
        lambda: 300.0 > 200.0,
    ),
    _one(
        "learn-the-screen",
        "learns the episodes of the screen by heart, and is confirmed on them",
        "fresh seeds for every phase and every attempt",
        lambda: any(_knows_seeds({*_SCREENED}, _SEEDS.episodes("confirm", round_, 100)) for round_ in (1, 2, 3)),
        lambda: _knows_seeds({*range(100)}, tuple(range(100))),
    ),
    _one(
        "count-on-from-its-seed",
        "computes the hidden seeds from the one that it was trained with",
        "seeds by a key that never leaves the user's folder",
        lambda: _knows_seeds({_SEEDS.train("screen", 0, 0) + step for step in range(-10_000, 10_000)}, _SCREENED),
        lambda: _knows_seeds({7 + step for step in range(10_000)}, tuple(7 + 1000 + one for one in range(100))),
    ),
)
