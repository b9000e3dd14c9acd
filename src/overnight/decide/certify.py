"""Certification: whether the tip beats the incumbent on fresh seeds. The only verdict a claim may rest on."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import ceil, isfinite, pi, sqrt
from statistics import NormalDist, fmean
from types import MappingProxyType

from overnight.decide.intervals import (
    Interval,
    Score,
    attained_level,
    rank_sum_p,
    shift_interval,
    smallest_p,
    student_t,
    wins,
)
from overnight.decide.telling import decimals, told
from overnight.records.contract import Budget
from overnight.records.decision import Decision, GuardrailFinding, LoopDecision, Verdict
from overnight.records.metric import Direction, Guardrail, MetricSpec

SHOWN_LEVEL = 0.95
"""The level of the interval that every claim shows."""
POWER = 0.8
"""The chance of certifying on which plans are made."""
MEANING = (
    "Certified means better than the baseline on fresh seeds at this budget; "
    "it says nothing about safety, real hardware or longer training."
)
"""The line that stands under every claim."""
_MOST_PLANNED = 200
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
    """How probable a rank sum at least this high is when the gain is not above the least gain."""
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
            loop=LoopDecision.ROLLBACK if self.verdict is Verdict.REFUTED else LoopDecision.CONTINUE,
            rule=self.rule,
            gain=_number(self.gain.estimate),
            gain_low=_number(self.gain.low),
            gain_high=_number(self.gain.high),
            guardrails=self.guardrails,
            evidence=evidence,
            audit=audit,
        )

    def claim(self, budget: Budget) -> str:
        """The claim as one sentence. `MEANING` belongs under it, always.

        The two levels are means over the seeds that brought a score. The gain is the Hodges-Lehmann
        estimate, the median over all pairs of seeds; where that is not their difference, the claim says so.
        """
        if self.verdict is not Verdict.CERTIFIED:
            raise ValueError(f"Only a certified gain is a claim, and this one is {self.verdict}.")
        amount = f"{budget.stop_amount:,.0f} {_UNITS[budget.stop_unit]}"
        return f"{headline(self.metric, self.gain, self.candidate, self.incumbent)}, {amount} of training."


def certify(metric: MetricSpec, candidate: Arm, incumbent: Arm, *, alpha: float) -> Certification:
    """Say whether the candidate, the tip, is better than the incumbent by more than the least gain.

    Certified when all of this holds:

    * the exact one-sided permutation test on mid-ranks, with the least gain taken off the candidate's
      scores, has a p-value of at most `alpha` (a lost seed ranks below every score);
    * the whole 95 % interval of the gain lies above the least gain (implied while `alpha` is at most 0.025);
    * every guardrail was measured and its estimated loss is within its margin.

    Refuted when the estimated gain is not above the least gain, or when the 95 % interval of a guardrail's
    loss lies beyond its margin as a whole. Otherwise inconclusive, with the number of fresh seeds that the
    next attempt would need at this gain.

    A guardrail's `worse_by` is the Hodges-Lehmann estimate of its loss and not the interval's far end: six
    seeds can hardly ever show non-inferiority at the far end. So a guardrail that is truly worse by exactly
    its margin still holds about every second time.

    Does not: look at the same attempt twice. Seeds must be fresh, and `alpha` is this attempt's share alone
    (`error_for_attempt`); adding seeds and testing again is a new attempt.
    """
    if not 0 < alpha <= 0.5:
        raise ValueError(f"An attempt's error lies above 0 and is at most 0.5, but it is {alpha}.")
    ours, theirs = (
        better_is_higher(metric.direction, candidate.scores),
        better_is_higher(metric.direction, incumbent.scores),
    )
    p_value = rank_sum_p(ours, theirs, shift=metric.least_gain)
    gain = shift_interval(ours, theirs, level=SHOWN_LEVEL)
    rails = _Rails.of(metric, candidate, incumbent)
    sure = p_value <= alpha and gain.low > metric.least_gain and isfinite(gain.low)
    if gain.estimate <= metric.least_gain or rails.broken:
        verdict = Verdict.REFUTED
    elif sure and not rails.open and not rails.silent:
        verdict = Verdict.CERTIFIED
    else:
        verdict = Verdict.INCONCLUSIVE
    wanted = None if verdict is not Verdict.INCONCLUSIVE or sure else _seeds_wanted(metric, ours, theirs, alpha)
    chance = f"p = {p_value:.2g} where {alpha:.2g} is allowed"
    tail = _why(metric, verdict, gain, rails, wanted)
    return Certification(
        metric=metric,
        verdict=verdict,
        because=f"{headline(metric, gain, candidate, incumbent)}; {chance}{tail}.",
        rule=_rule(metric, alpha),
        p_value=p_value,
        gain=gain,
        candidate=candidate,
        incumbent=incumbent,
        guardrails=rails.findings,
        seeds_wanted=wanted,
    )


def error_for_attempt(attempt: int, total: float = 0.05) -> float:
    """The chance of a false claim that one attempt may spend: half of what the earlier ones left of `total`.

    So all attempts together, however many, stay within it: 0.025, 0.0125, 0.00625, … for a total of 0.05. Attempts
    are counted from 1 over the whole study, the failed ones too.
    """
    if attempt < 1 or not 0 < total <= 0.5:
        raise ValueError(f"Attempts count from 1 and the total is at most 0.5, but they are {attempt} and {total}.")
    return float(total * 0.5**attempt)


def attempts_possible(seeds: int, others: int, total: float = 0.05) -> int:
    """How many attempts of this size can certify at all: later ones may spend less than the least p-value."""
    least, attempts = smallest_p(seeds, others), 0
    while error_for_attempt(attempts + 1, total) >= least:
        attempts += 1
    return attempts


def detectable_gain(noise_sd: float, seeds: int, others: int, alpha: float) -> float | None:
    """The gain that such a certification finds four times in five, or None when it cannot certify anything.

    A planning figure: the two-sample t approximation for normal scores of this standard deviation over
    train seeds, at the level that the steps of the test really reach, widened by the rank test's relative
    efficiency of 3/π. In simulation such a gain is found 76 to 80 times in a hundred for 4 to 12 seeds each, and
    69 times where only the least p-value will do. Two-humped scores need more.
    """
    if not (isfinite(noise_sd) and noise_sd >= 0 and 0 < alpha <= 0.5):
        raise ValueError(f"A noise of at least 0 and an error up to 0.5 are needed, not {noise_sd} and {alpha}.")
    level = attained_level(seeds, others, alpha)
    if level is None:
        return None
    freedom = max(1, seeds + others - 2)
    reach = student_t(1 - level, freedom) + student_t(POWER, freedom)
    return reach * noise_sd * sqrt(1 / seeds + 1 / others) * sqrt(pi / 3)


@dataclass(frozen=True, slots=True)
class _Rails:
    """The guardrails, sorted by what was found: shown worse, perhaps worse, not measured."""

    findings: tuple[GuardrailFinding, ...]
    broken: tuple[str, ...]
    open: tuple[str, ...]
    silent: tuple[str, ...]

    @classmethod
    def of(cls, metric: MetricSpec, candidate: Arm, incumbent: Arm) -> "_Rails":
        findings, broken, unsure, silent = [], [], [], []
        for rail in metric.guardrails:
            loss = _loss(rail, candidate, incumbent)
            if loss is None or not isfinite(loss.estimate):
                silent.append(rail.name)
                continue
            findings.append(GuardrailFinding(name=rail.name, worse_by=loss.estimate, margin=rail.margin))
            if loss.low > rail.margin:
                broken.append(rail.name)
            elif loss.estimate > rail.margin:
                unsure.append(rail.name)
        return cls(tuple(findings), tuple(broken), tuple(unsure), tuple(silent))


def _loss(rail: Guardrail, candidate: Arm, incumbent: Arm) -> Interval | None:
    """How much worse the candidate is; None where an arm has no measure for each of its seeds."""
    ours, theirs = candidate.guardrails.get(rail.name, ()), incumbent.guardrails.get(rail.name, ())
    if len(ours) != len(candidate.scores) or len(theirs) != len(incumbent.scores):
        return None
    gain = shift_interval(
        better_is_higher(rail.direction, ours), better_is_higher(rail.direction, theirs), level=SHOWN_LEVEL
    )
    return Interval(0.0 - gain.estimate, 0.0 - gain.high, 0.0 - gain.low)


def better_is_higher(direction: Direction, scores: tuple[Score, ...]) -> tuple[Score, ...]:
    """Scores with the sign turned where lower is better."""
    sign = 1.0 if direction is Direction.HIGHER else -1.0
    return tuple(None if score is None else sign * score for score in scores)


def _seeds_wanted(metric: MetricSpec, ours: tuple[Score, ...], theirs: tuple[Score, ...], alpha: float) -> int | None:
    """Noether's sample size for the rank-sum test at the next attempt's error, which is half of this one's."""
    normal, ahead = NormalDist(), wins(ours, theirs, shift=metric.least_gain) - 0.5
    if ahead <= 0:
        return None
    reach = normal.inv_cdf(1 - alpha / 2) + normal.inv_cdf(POWER)
    wanted = max(ceil(reach**2 / (6 * ahead**2)), 1)
    while wanted <= _MOST_PLANNED and smallest_p(wanted, wanted) > alpha / 2:
        wanted += 1
    return wanted if wanted <= _MOST_PLANNED else None


def headline(metric: MetricSpec, gain: Interval, candidate: Arm, incumbent: Arm) -> str:
    """`Return 212 → 305 (+93, 95 % interval 71 to 118), 6 fresh seeds each`."""
    width = gain.high - gain.low
    places = decimals(width if isfinite(width) else gain.estimate, digits=2)
    unit = metric.unit[0].upper() + metric.unit[1:]
    levels = f"{unit} {_level(incumbent, places)} → {_level(candidate, places)}"
    size = _size(metric, gain.estimate, candidate, incumbent, places)
    return f"{levels} ({size}, 95 % interval {_span(gain, places)}), {_seeds(candidate, incumbent)}"


def _size(metric: MetricSpec, estimate: float, candidate: Arm, incumbent: Arm, places: int) -> str:
    if not isfinite(estimate):
        return "no number for the gain"
    better = "" if metric.direction is Direction.HIGHER else " better"
    ours, theirs = (better_is_higher(metric.direction, one.scores) for one in (candidate, incumbent))
    apart = (_mean(ours) or 0.0) - (_mean(theirs) or 0.0)
    median = " in the median pair" if abs(apart - estimate) > 10.0**-places else ""
    return told(estimate, places, sign=True) + better + median


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


def _why(metric: MetricSpec, verdict: Verdict, gain: Interval, rails: _Rails, wanted: int | None) -> str:
    if verdict is Verdict.CERTIFIED:
        return ""
    if rails.broken:
        return f", and {', '.join(rails.broken)} got worse than its margin"
    if verdict is Verdict.REFUTED:
        return f", and a gain above {metric.least_gain:g} is needed"
    if rails.silent:
        return f", and nothing can be said about the guardrail {', '.join(rails.silent)}"
    if rails.open:
        return f", and {', '.join(rails.open)} seems worse than its margin"
    if not isfinite(gain.low) and gain.low > 0:
        return ", and the incumbent lost too many seeds for the gain to have a number"
    if wanted is None:
        return f", and more than {_MOST_PLANNED} fresh seeds each would be needed at this gain"
    return f", and about {wanted} fresh seeds each would decide at this gain"


def _rule(metric: MetricSpec, alpha: float) -> str:
    return (
        f"Certification: exact one-sided rank-sum test of a gain above {metric.least_gain:g} {metric.unit} on fresh "
        f"seeds at {alpha:.2g}, with the 95 % interval above it as a whole and every guardrail's estimated loss within "
        "its margin; refuted when the estimated gain is not above it or a guardrail is shown worse."
    )


def _number(value: float) -> float | None:
    return value if isfinite(value) else None
