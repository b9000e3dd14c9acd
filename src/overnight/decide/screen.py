"""Screening: whether a candidate joins the tip, on a few paired seeds. It claims nothing and may be wrong."""

from dataclasses import dataclass
from math import isfinite

from overnight.decide.intervals import Interval, paired_interval
from overnight.decide.telling import decimals, told
from overnight.records.decision import Decision, LoopDecision, Verdict
from overnight.records.metric import Direction, MetricSpec

KEEP_LEVEL = 0.8
"""How sure the lower limit of the mean gain is; simulated to move the tip fastest without many passengers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """One train seed on which both the candidate and the tip were trained and measured."""

    train_seed: int
    """The seed that both were given."""
    run: str
    """The candidate's run."""
    candidate_score: float | None
    """What it scored; None when the seed was lost by the candidate's own fault."""
    tip_run: str
    """The tip's run."""
    tip_score: float | None
    """What it scored; None when the seed was lost by the tip's own fault."""


def screen(
    metric: MetricSpec, pairs: tuple[Pair, ...], *, candidate: str, wanted: int, patience: int = 1
) -> Decision | None:
    """Say whether a candidate joins the tip, or return None while more paired seeds are wanted.

    The gain of a train seed is the candidate's score minus the tip's on that same seed, with the sign
    turned where lower is better. A seed lost by a side's own fault ranks below every score. In this order:

    1. Reject as soon as the candidate has lost more seeds than the tip.
    2. Reject early, from the `patience`-th seed on, when the mean gain so far is not above the contract's
       least gain. Being behind after one seed is enough where ideas are free; give ideas that were dear 2.
    3. Want more until `wanted` seeds are in.
    4. Keep when the 80 % one-sided lower limit of the mean gain (Student's t on the paired gains) is above
       the least gain. Where the tip lost more seeds than the candidate, or one seed is all that is wanted,
       the mean gain alone decides.
    5. Otherwise it is inconclusive: ahead, but not clearly.

    Does not: look at guardrails, spend any of the allowed false claims, or support a claim. About four in
    ten kept candidates of a mixed stream are no improvement; certification is what decides about the tip.
    """
    _check(pairs, wanted)
    if not pairs:
        return None
    counted = _count(metric, pairs)
    verdict, because = _judge(metric, counted, wanted, patience)
    if verdict is None:
        return None
    found = counted.interval
    return Decision(
        candidate=candidate,
        verdict=verdict,
        because=f"{candidate} {because}",
        loop=LoopDecision.CONTINUE,
        rule=_rule(metric, wanted, patience),
        gain=found.estimate if found is not None else None,
        gain_low=found.low if found is not None and isfinite(found.low) else None,
        gain_high=found.high if found is not None and isfinite(found.high) else None,
        evidence=tuple(dict.fromkeys([pair.run for pair in pairs] + [pair.tip_run for pair in pairs])),
    )


@dataclass(frozen=True, slots=True)
class _Count:
    seeds: int
    gains: tuple[float, ...]
    lost: int
    tip_lost: int
    interval: Interval | None


def _count(metric: MetricSpec, pairs: tuple[Pair, ...]) -> _Count:
    sign = 1.0 if metric.direction is Direction.HIGHER else -1.0
    gains = tuple(
        sign * (pair.candidate_score - pair.tip_score)
        for pair in pairs
        if pair.candidate_score is not None and pair.tip_score is not None
    )
    return _Count(
        seeds=len(pairs),
        gains=gains,
        lost=sum(pair.candidate_score is None for pair in pairs),
        tip_lost=sum(pair.tip_score is None for pair in pairs),
        interval=paired_interval(gains, level=KEEP_LEVEL) if gains else None,
    )


def _judge(metric: MetricSpec, found: _Count, wanted: int, patience: int) -> tuple[Verdict | None, str]:
    if found.lost > found.tip_lost:
        return Verdict.REJECT, (
            f"lost {found.lost} of {found.seeds} train seeds by its own fault and the tip {found.tip_lost}, "
            "and a lost seed ranks below every score."
        )
    if found.interval is None:
        return _without_gains(found) if found.seeds >= wanted else (None, "")
    numbers, needed = _numbers(metric, found), f"more than {metric.least_gain:g} is needed"
    if found.interval.estimate <= metric.least_gain:
        if found.seeds >= wanted:
            return Verdict.REJECT, f"{numbers}, but {needed}."
        if found.seeds >= patience:
            return (
                Verdict.REJECT,
                f"was stopped after {found.seeds} of {wanted} train seeds: it {numbers}, but {needed}.",
            )
    if found.seeds < wanted:
        return None, ""
    sure = told(found.interval.low, _places(found)) if isfinite(found.interval.low) else None
    if found.lost < found.tip_lost:
        return Verdict.KEEP, f"{numbers}, and lost {found.lost} seeds where the tip lost {found.tip_lost}; {needed}."
    if sure is None:
        return (Verdict.KEEP if wanted == 1 else Verdict.INCONCLUSIVE), f"{numbers}; one seed shows no noise."
    if found.interval.low > metric.least_gain:
        return Verdict.KEEP, f"{numbers}, and more than {sure} with 80 % confidence; {needed}."
    return Verdict.INCONCLUSIVE, f"{numbers}, but only more than {sure} is sure at 80 %, and {needed}."


def _without_gains(found: _Count) -> tuple[Verdict, str]:
    if found.lost < found.tip_lost:
        return Verdict.KEEP, f"lost {found.lost} of {found.seeds} train seeds where the tip lost {found.tip_lost}."
    return Verdict.REJECT, f"lost {found.lost} of {found.seeds} train seeds, as the tip did, so no gain was measured."


def _numbers(metric: MetricSpec, found: _Count) -> str:
    places = _places(found)
    listed = ", ".join(told(gain, places, sign=True) for gain in found.gains)
    seeds = f"{len(found.gains)} paired train seed{'s' if len(found.gains) > 1 else ''}"
    mean = found.interval.estimate if found.interval is not None else 0.0
    return f"gained {told(mean, places)} {metric.unit} on average over {seeds} ({listed})"


def _places(found: _Count) -> int:
    return decimals(max(map(abs, found.gains)), digits=3)


def _rule(metric: MetricSpec, wanted: int, patience: int) -> str:
    return (
        f"Screening on {wanted} train seeds shared with the tip: keep when the 80 % lower limit of the mean gain is "
        f"above {metric.least_gain:g} {metric.unit}; reject when the mean gain is not above it, from seed {patience} "
        "on, or when more seeds are lost than the tip lost; otherwise inconclusive."
    )


def _check(pairs: tuple[Pair, ...], wanted: int) -> None:
    if wanted < 1:
        raise ValueError(f"At least one train seed must be wanted, not {wanted}.")
    seeds = [pair.train_seed for pair in pairs]
    if len(set(seeds)) < len(seeds):
        raise ValueError(f"A train seed is paired twice: {sorted(seeds)}.")
    for pair in pairs:
        for score in (pair.candidate_score, pair.tip_score):
            if score is not None and not isfinite(score):
                raise ValueError(
                    f"A score must be finite or None for a lost seed, but train seed {pair.train_seed} has {score}."
                )
