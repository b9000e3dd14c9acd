"""What the baseline's first runs say about the study: its noise, what its budget can prove, and what else to offer.

Pure data and sentences, made after the first seven approvals and shown with the eighth, before anything is spent on
search. Nothing here decides a claim.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, isfinite, sqrt
from statistics import NormalDist, fmean, median, stdev
from typing import Literal

from overnight.decide.belief import Score, find_gap
from overnight.decide.plan import LEAST_FOR_A_CLAIM, StudyPlan, plan_study
from overnight.decide.telling import decimals, told
from overnight.records.metric import Direction, MetricSpec

Shape = Literal["unknown", "constant", "even", "skewed", "two groups"]
POWER = 0.8
_SKEWED = 0.35
"""The mean and the median are this many standard deviations apart where a tail is heavy."""
_COMFORT = 64
"""The runs from which a study has two looks and room for a search."""
_ROOM = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class Floor:
    """The noise floor: how the unchanged baseline scatters over train seeds."""

    seeds: int
    """How many seeds brought a score."""
    lost: int
    """How many were lost by the baseline's own fault."""
    mean: float | None
    """Their mean; None without a score."""
    noise: float | None
    """Their standard deviation; None below two scores."""
    shape: Shape
    """What the scatter looks like."""
    seconds: float | None
    """What one run takes, in the median; None when nobody measured it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """Something else that can be done with the budget, with its figures."""

    kind: Literal["more nights", "shorter training", "past runs", "search only"]
    """What is offered."""
    says: str
    """The offer as a sentence."""
    runs: int
    """How many runs the study would then have in all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """What is known before the eighth approval."""

    floor: Floor
    """The noise."""
    plan: StudyPlan
    """The plan to freeze: race, looks, audit."""
    runs: int
    """The runs of the whole study."""
    candidates: int
    """About how many experiments fit."""
    provable: float | None
    """The gain, in the metric's unit, that is proven four times in five; None where the study can claim nothing."""
    seeds_needed: int | None
    """The fresh seeds a side at which such a gain is proven."""
    saturated: str | None
    """Why there is little left to gain, where that is so."""
    asks: bool
    """Whether calibration took more than a quarter of the runs, which must be asked for."""
    sentences: tuple[str, ...]
    """Everything above in plain words, most important first."""
    offers: tuple[Offer, ...]
    """What else could be done; empty where the study can prove a gain that there is room for."""


def calibrate(
    metric: MetricSpec,
    scores: Sequence[Score],
    *,
    runs: int,
    seconds: Sequence[float] = (),
    references: Mapping[str, float] | None = None,
    plan: StudyPlan | None = None,
) -> Calibration:
    """Say what a study of so many runs can prove, from the baseline's scores (None for a lost seed) and run times.

    `plan` is the layout where the contract says something about it; by default the one for so many runs.
    """
    floor, plan = measure_floor(scores, seconds), plan or plan_study(runs)
    provable, seeds = provable_gain(plan, floor.noise)
    saturated = _saturated(metric, floor, provable)
    candidates = experiments_that_fit(plan, runs - len(scores))
    offers = _offers(metric, floor, runs) if provable is None or saturated else ()
    asks = len(scores) > max(runs / 4, 0)
    lead = _can_prove(metric, floor, provable, seeds, candidates)
    about = (_noise_sentence(metric, floor), saturated, _asking(len(scores), runs) if asks else None)
    compared = tuple(_reference(metric, floor, name, score) for name, score in (references or {}).items())
    return Calibration(
        floor=floor,
        plan=plan,
        runs=runs,
        candidates=candidates,
        provable=provable,
        seeds_needed=seeds,
        saturated=saturated,
        asks=asks,
        sentences=(lead, *(one for one in about if one), *compared, *(offer.says for offer in offers)),
        offers=offers,
    )


def measure_floor(scores: Sequence[Score], seconds: Sequence[float] = ()) -> Floor:
    """The noise floor of the baseline's scores."""
    known = [score for score in scores if score is not None]
    if any(not isfinite(score) for score in known):
        raise ValueError(f"A score must be finite or None for a lost seed, but they are {list(scores)}.")
    noise = stdev(known) if len(known) > 1 else None
    return Floor(
        seeds=len(known),
        lost=len(scores) - len(known),
        mean=fmean(known) if known else None,
        noise=noise,
        shape=_shape(known, noise),
        seconds=median(seconds) if seconds else None,
    )


def rank_agreement(short: Sequence[float], long: Sequence[float]) -> float:
    """Kendall's tau-b between the scores of the same candidates at a short and at the full training budget.

    Near 1 the short budget picks the same winners; near 0 it picks at random and must not be searched on.
    """
    if len(short) != len(long) or len(short) < 2:
        raise ValueError(f"Two lists of the same two or more candidates are needed, not {len(short)} and {len(long)}.")
    agree, ties_short, ties_long, pairs = 0, 0, 0, len(short) * (len(short) - 1) // 2
    for one in range(len(short)):
        for two in range(one):
            first, second = short[one] - short[two], long[one] - long[two]
            agree += (first * second > 0) - (first * second < 0)
            ties_short += first == 0
            ties_long += second == 0
    scale = sqrt((pairs - ties_short) * (pairs - ties_long))
    return agree / scale if scale else 0.0


def _shape(known: Sequence[float], noise: float | None) -> Shape:
    if noise is None:
        return "unknown"
    if noise == 0:
        return "constant"
    if find_gap(known) is not None:
        return "two groups"
    return "skewed" if abs(fmean(known) - median(known)) > _SKEWED * noise else "even"


def provable_gain(plan: StudyPlan, noise: float | None, past: tuple[bool, ...] = ()) -> tuple[float | None, int | None]:
    """The gain that the next attempt finds at its last look four times in five, and that look's seeds."""
    if plan.looks is None or noise is None or not plan.looks.can_certify(plan.alpha(past)):
        return None, None
    seeds, normal = plan.looks.looks[-1], NormalDist()
    alpha = plan.alpha(past) * plan.looks.shares[-1]
    return (normal.inv_cdf(POWER) - normal.inv_cdf(alpha)) * noise * sqrt(2 / seeds), seeds


def experiments_that_fit(plan: StudyPlan, runs: float) -> int:
    """About how many candidates can race on so many runs when a certification is kept back."""
    last = 0 if plan.looks is None else 2 * plan.looks.looks[0] + plan.audit_seeds
    fits = max(0, int((runs - last) / runs_a_candidate(plan.rule.idea_cost)))
    return fits if plan.ideas is None else min(fits, plan.ideas)


def runs_a_candidate(idea_cost: float) -> float:
    """What the race of one candidate costs on average, in simulation: more where ideas are dear."""
    return 1.6 + 0.1 * idea_cost


def _saturated(metric: MetricSpec, floor: Floor, provable: float | None) -> str | None:
    if floor.mean is None:
        return None
    if floor.shape == "constant" and floor.seeds > 1:
        return (
            f"Every seed scored {told(floor.mean, decimals(floor.mean, digits=3))} {metric.unit}: the metric has "
            "reached its end, the training learns nothing, or it does not use its seed."
        )
    best = metric.highest if metric.direction is Direction.HIGHER else metric.lowest
    if best is None:
        return None
    room, places = abs(best - floor.mean), decimals(floor.noise or floor.mean, digits=2)
    if room <= _ROOM * abs(best) or (provable is not None and room < provable):
        can = "" if provable is None else f", and a gain of {told(provable, places)} is the least that can be proven"
        return f"There is room for {told(room, places)} {metric.unit} at most before the best possible score{can}."
    return None


def _can_prove(metric: MetricSpec, floor: Floor, provable: float | None, seeds: int | None, candidates: int) -> str:
    fits = f"about {candidates} experiment{'' if candidates == 1 else 's'} fit"
    if provable is None or floor.mean is None or seeds is None:
        why = "too few runs" if floor.noise is not None or floor.seeds else "no noise measured"
        return f"Tonight can search but claim nothing ({why}); {fits}, and what is kept stays uncertified."
    if floor.noise == 0:
        return (
            f"Your task needs {seeds} fresh seeds a side; the baseline does not scatter, so what this study can prove "
            f"depends on how far a candidate scatters, and {fits}."
        )
    places = decimals(provable, digits=2)
    part = f" ({100 * provable / abs(floor.mean):.0f} %)" if floor.mean else ""
    return (
        f"Your task needs {seeds} fresh seeds a side; this study can prove a gain of "
        f"{told(provable, places, sign=True)} {metric.unit}{part} or more, and {fits}."
    )


def _noise_sentence(metric: MetricSpec, floor: Floor) -> str:
    if floor.mean is None:
        return (
            f"The baseline lost all of its {floor.lost} seeds by its own fault, so there is nothing to improve on yet."
        )
    places = decimals(floor.noise or floor.mean, digits=2)
    seeds = f"{floor.seeds} seed{'' if floor.seeds == 1 else 's'}"
    if floor.noise is None:
        return f"The baseline scored {told(floor.mean, places)} {metric.unit} on {seeds}, which shows no noise."
    kind = {
        "two groups": "; seeds fall into two groups, solved and failed",
        "skewed": "; a few seeds lie far from the rest",
    }.get(floor.shape, "")
    lost = f"; {floor.lost} more were lost" if floor.lost else ""
    return (
        f"The baseline scores {told(floor.mean, places)} {metric.unit} and scatters by {told(floor.noise, places)} "
        f"over {seeds}{kind}{lost}."
    )


def _reference(metric: MetricSpec, floor: Floor, name: str, score: float) -> str:
    places = decimals(floor.noise or score or 1.0, digits=2)
    if floor.mean is None:
        return f"The reference {name} scores {told(score, places)} {metric.unit}."
    sign = 1.0 if metric.direction is Direction.HIGHER else -1.0
    ahead = sign * (floor.mean - score)
    size = f"{told(abs(ahead), places)} {'better' if ahead > 0 else 'worse'}" if ahead else "no better"
    return f"The reference {name} scores {told(score, places)} {metric.unit}; the baseline is {size}."


def _asking(seeds: int, runs: int) -> str:
    return f"Calibration takes {seeds} of {runs} runs, more than a quarter, so it is asked for here."


def _offers(metric: MetricSpec, floor: Floor, runs: int) -> tuple[Offer, ...]:
    wanted = max(_COMFORT, LEAST_FOR_A_CLAIM)
    nights, factor = max(2, ceil(wanted / runs)), max(2, ceil(wanted / runs))
    plan = plan_study(runs * nights)
    gain, _ = provable_gain(plan, floor.noise)
    shown = "" if not gain else f" and would prove {told(gain, decimals(gain, digits=2), sign=True)} {metric.unit}"
    hours = "" if floor.seconds is None else f", {runs * nights * floor.seconds / 3600:.3g} hours of training in all"
    return (
        Offer(
            kind="more nights",
            says=(
                f"{nights} nights like this make {runs * nights} runs{hours}{shown}; seeds and spent error carry over."
            ),
            runs=runs * nights,
        ),
        Offer(
            kind="shorter training",
            says=(
                f"Training 1/{factor} as long makes {runs * factor} runs of the same night. Whether short runs rank "
                "candidates as long ones do, `overnight plan` tells from the curves of six candidates and more; a "
                "claim would hold at the short training alone: "
                f"`overnight transfer --budget {factor}x` then trains what was certified, and the baseline, for the "
                "full time."
            ),
            runs=runs * factor,
        ),
        Offer(
            kind="past runs",
            says=(
                f"Baseline runs of earlier nights can plan this one and save {min(floor.seeds, runs)} runs; they are "
                "never part of a claim."
            ),
            runs=runs,
        ),
        Offer(
            kind="search only",
            says="Search without a claim: the morning says what was kept, and how many more runs would decide.",
            runs=runs,
        ),
    )
