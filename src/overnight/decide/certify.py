"""What an attempt to certify comes to, and how it is told. The only verdict a claim may rest on."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isfinite
from statistics import fmean
from types import MappingProxyType

from overnight.decide.intervals import Interval, Score
from overnight.decide.telling import decimals, told
from overnight.records.contract import Budget
from overnight.records.decision import Decision, GuardrailFinding, LoopDecision, Verdict
from overnight.records.metric import Direction, MetricSpec

POWER = 0.8
"""The chance of certifying on which plans are made."""
MEANING = (
    "Certified means better than the baseline on fresh seeds at this budget; "
    "it says nothing about safety, real hardware or longer training."
)
"""The line that stands under every claim."""
_LOOP = {Verdict.REFUTED: LoopDecision.ROLLBACK, Verdict.INCONCLUSIVE: LoopDecision.NARROW}
"""A refuted tip is rolled back; an undecided one narrows the search to what is built on it."""
_UNITS = {"env_steps": "env steps", "cpu_seconds": "CPU seconds", "wall_seconds": "seconds"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """One side of a certification: what its fresh seeds brought, in the metric's own direction."""

    scores: tuple[Score, ...]
    """The score of each train seed; None for a seed lost by this side's own fault."""
    guardrails: Mapping[str, tuple[Score, ...]] = field(default_factory=lambda: MappingProxyType({}))
    """The guarded measures of the same seeds, by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Certification:
    """The outcome of one certification, with every number that a claim needs."""

    metric: MetricSpec
    """What was measured."""
    verdict: Verdict
    """Certified, refuted or inconclusive."""
    because: str
    """The full sentence with the numbers in it."""
    rule: str
    """The rule that was applied, with its bar."""
    p_value: float
    """How probable a mean at least this far ahead is when the gain is not above the least gain."""
    gain: Interval
    """The estimated gain with its 95 % interval; infinite where lost seeds leave no number."""
    candidate: Arm
    """What the candidate's seeds brought."""
    incumbent: Arm
    """What the incumbent's seeds brought."""
    guardrails: tuple[GuardrailFinding, ...]
    """How the guarded measures fared; one without a number is left out and keeps the verdict from being certified."""
    seeds_wanted: int | None
    """About how many fresh seeds each side the next attempt needs; None when decided, or when far too many."""
    improvement: float | None = None
    """The chance that a seed of the candidate beats one of the incumbent; ties are half."""
    error_spent: float | None = None
    """The chance of a false claim that this attempt was given."""
    paired: bool = False
    """Whether the arms were compared seed by seed."""
    details: str = ""
    """What a statistician asks for and nobody else: p-value, bar, error spent."""

    def before(self) -> float | None:
        """The incumbent's mean score over the seeds that brought one, in the metric's own direction."""
        return _mean(self.incumbent.scores)

    def after(self) -> float | None:
        """The candidate's mean score over the seeds that brought one, in the metric's own direction."""
        return _mean(self.candidate.scores)

    def decision(self, *, candidate: str, evidence: tuple[str, ...], audit: str | None = None) -> Decision:
        """The verdict as a record. A certified one needs the audit that it passed."""
        return Decision(
            candidate=candidate,
            verdict=self.verdict,
            because=self.because,
            loop=_LOOP.get(self.verdict, LoopDecision.CONTINUE),
            rule=self.rule,
            gain=_number(self.gain.estimate),
            gain_low=_number(self.gain.low),
            gain_high=_number(self.gain.high),
            guardrails=self.guardrails,
            evidence=evidence,
            audit=audit,
            seeds=len(self.candidate.scores),
            paired=self.paired,
            improvement=self.improvement,
            error_spent=self.error_spent,
            seeds_wanted=self.seeds_wanted,
            details=self.details,
        )

    def claim(self, budget: Budget) -> str:
        """The claim as one sentence. `MEANING` belongs under it, always.

        The two levels are means over the seeds that brought a score, and the gain is their difference.
        """
        if self.verdict is not Verdict.CERTIFIED:
            raise ValueError(f"Only a certified gain is a claim, and this one is {self.verdict}.")
        amount = f"{budget.stop_amount:,.0f} {_UNITS[budget.stop_unit]}"
        shown = headline(self.metric, self.gain, self.candidate, self.incumbent)
        return f"{shown}, {amount} of training, this machine."


def better_is_higher(direction: Direction, scores: tuple[Score, ...]) -> tuple[Score, ...]:
    """Scores with the sign turned where lower is better."""
    sign = 1.0 if direction is Direction.HIGHER else -1.0
    return tuple(None if score is None else sign * score for score in scores)


def headline(metric: MetricSpec, gain: Interval, candidate: Arm, incumbent: Arm) -> str:
    """`Return 212 → 305 (+93, 95 % interval 71 to 118), 6 fresh seeds each`."""
    width = gain.high - gain.low
    places = decimals(width if isfinite(width) else gain.estimate, digits=2)
    unit = metric.unit[0].upper() + metric.unit[1:]
    levels = f"{unit} {_level(incumbent, places)} → {_level(candidate, places)}"
    size = _size(metric, gain.estimate, places)
    return f"{levels} ({size}, 95 % interval {_span(gain, places)}), {_seeds(candidate, incumbent)}"


def _size(metric: MetricSpec, estimate: float, places: int) -> str:
    if not isfinite(estimate):
        return "no number for the gain"
    better = "" if metric.direction is Direction.HIGHER else " better"
    return told(estimate, places, sign=True) + better


def _mean(scores: tuple[Score, ...]) -> float | None:
    measured = [score for score in scores if score is not None]
    return fmean(measured) if measured else None


def _level(one: Arm, places: int) -> str:
    mean = _mean(one.scores)
    return told(mean, places) if mean is not None else "crash"


def _span(gain: Interval, places: int) -> str:
    low = told(gain.low, places) if isfinite(gain.low) else "unknown"
    high = told(gain.high, places) if isfinite(gain.high) else "unknown"
    return f"{low} to {high}"


def _seeds(candidate: Arm, incumbent: Arm) -> str:
    ours, theirs = len(candidate.scores), len(incumbent.scores)
    seeds = f"{ours} fresh seeds each" if ours == theirs else f"{ours} fresh seeds against {theirs}"
    lost = [(one.scores.count(None), who) for one, who in ((candidate, "candidate"), (incumbent, "incumbent"))]
    return seeds + "".join(f", {count} of the {who}'s lost" for count, who in lost if count)


def _number(value: float) -> float | None:
    return value if isfinite(value) else None
