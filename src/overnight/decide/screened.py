"""The lines of the race, and the verdict on one candidate with its sentence."""

from dataclasses import dataclass
from math import inf, log

from overnight.decide.telling import decimals, told
from overnight.records.decision import Decision, LoopDecision, Verdict
from overnight.records.metric import Direction, MetricSpec

_SIMPLER_SEEDS = 3
"""A simplification needs this many seeds before it may join."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RaceRule:
    """The lines of the race. Gains are in noises, the standard deviation over the tip's train seeds."""

    idea_cost: float = 1.0
    """What one idea costs, in runs. About 20 where ideas are scarce and not runs."""
    baseline_seeds: int = 8
    """On how many tuning seeds the baseline is measured."""
    fresh_seeds: int = 3
    """On how many unused tuning seeds a candidate that leads is checked before it joins the tip."""
    least_seeds: int = 2
    """How many seeds a candidate needs before it can lead."""
    keep_level: float = 0.2
    """A candidate leads from a mean gain of this …"""
    keep_slope: float = 1.2
    """… plus this over its seeds, and is rejected …"""
    reject_level: float = 0.4
    """… below a mean gain of this, less what a dear idea is given over its seeds."""
    prior_gain: float = -0.5
    """The gain that is expected of an idea of which nothing is known …"""
    prior_spread: float = 0.5
    """… and how much ideas differ."""
    pairing: bool = True
    """Whether the luck that arms share on one seed is taken off."""

    watches_tip: bool = True
    """Whether the tip is run again while its level is not well known; not where every run is dear."""
    simpler_drop: float = 0.25
    """How far behind a simplification may seem and still join."""

    def lines(self, seeds: int, *, simpler: bool = False) -> tuple[float, float]:
        """The mean gains from which a candidate leads and below which it is rejected, after so many seeds.

        Where the two have met, one of them decides: no candidate races for ever.
        """
        if simpler:
            keep = -self.simpler_drop if seeds >= _SIMPLER_SEEDS else inf
            return keep, -self.simpler_drop - 1 / seeds if seeds < _SIMPLER_SEEDS else keep
        keep = self.keep_level + self.keep_slope / seeds
        reject = self.reject_level - (0.75 * log(1 + self.idea_cost) - 0.28) / seeds
        if reject >= keep:
            return keep, keep
        return (keep if seeds >= self.least_seeds else inf), reject

    def well_known(self) -> float:
        """The variance of the tip's mean, in squared noises, from which the tip is measured no further."""
        return 1 / 8 if self.idea_cost < 5 else 1 / 16

    def told(self) -> str:
        """The rule in one sentence."""
        return (
            "Race on tuning seeds shared with the tip, one at a time: leads from "
            f"{self.keep_level:g} + {self.keep_slope:g}/n standard deviations over n ≥ {self.least_seeds} seeds, "
            f"rejected below {self.lines(1)[1]:.2g} after one seed and {self.lines(3)[1]:.2g} after three; "
            f"joins the tip when {self.fresh_seeds} fresh seeds agree."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Screened:
    """How the race ended for one candidate, with the figures that its sentence tells."""

    candidate: str
    verdict: Verdict
    seeds: int
    """On how many selecting tuning seeds it ran."""
    gain: float
    """Its estimated mean gain over the tip, winsorised and with shared luck taken off, in the metric's unit."""
    line: float
    """The gain that was needed, in the metric's unit."""
    noise: float
    """The standard deviation over train seeds at that moment."""
    tip_mean: float
    """What the tip was believed to score."""
    lost: int = 0
    """How many seeds it lost by its own fault."""
    tip_lost: int = 0
    """How many of the same seeds the tip lost."""
    simpler: bool = False
    """It takes away more than it adds."""
    undone: bool = False
    """It led, joined for the check on fresh seeds, and was taken back because it did not lead there."""
    overtaken: bool = False
    """The tip moved on while it waited, so it is compared with the tip that it was built on."""
    fresh_mean: float | None = None
    """What it scored on the fresh seeds, on average."""
    numbers: tuple[int, ...] = ()
    """The tuning seeds that were looked at, selecting ones first."""

    def decision(self, metric: MetricSpec, rule: RaceRule, *, evidence: tuple[str, ...]) -> Decision:
        """The verdict as a record, with its sentence."""
        return Decision(
            candidate=self.candidate,
            verdict=self.verdict,
            because=self.because(metric),
            loop=LoopDecision.ROLLBACK if self.undone else LoopDecision.CONTINUE,
            rule=rule.told(),
            gain=self.gain if self.seeds else None,
            evidence=evidence,
            seeds=len(self.numbers),
            details=self.details(),
        )

    def details(self) -> str:
        """The same in noises, for whoever asks."""
        if not self.noise:
            return "The noise is unknown: one run of the baseline shows none."
        return (
            f"{self.gain / self.noise:+.2f} σ over {self.seeds} tuning seeds, with the line at "
            f"{self.line / self.noise:+.2f} σ; σ = {self.noise:.3g}. Screening spends no error and claims nothing."
        )

    def leads(self, metric: MetricSpec, fresh: int) -> str:
        """The sentence of a lead that fresh seeds have not checked yet."""
        places = decimals(self.noise or self.gain or 1.0, digits=2)
        seeds = f"{self.seeds} tuning seed{'' if self.seeds == 1 else 's'}"
        size = (
            f"{told(self.gain, places, sign=True)} {metric.unit} against the tip's {told(self._level(metric), places)}"
        )
        return (
            f"{self.candidate} leads by {size} over {seeds}; it joins the tip until "
            f"{fresh} fresh seed{' has' if fresh == 1 else 's have'} spoken."
        )

    def because(self, metric: MetricSpec) -> str:
        """The sentence that reports print, in the metric's own unit."""
        seeds = f"{self.seeds} tuning seed{'' if self.seeds == 1 else 's'}"
        if self.lost > self.tip_lost:
            return (
                f"{self.candidate} lost {self.lost} of {seeds} by its own fault where the tip lost {self.tip_lost}, "
                "and a lost seed ranks below every score."
            )
        places = decimals(self.noise or self.gain or 1.0, digits=2)
        gain, line = told(self.gain, places, sign=True), told(self.line, places, sign=True)
        size = f"{gain} {metric.unit} against the tip's {told(self._level(metric), places)}"
        if self.verdict is Verdict.INCONCLUSIVE and self.overtaken:
            return f"{self.candidate} was at {size} after {seeds} when another candidate joined the tip before it."
        if self.verdict is Verdict.INCONCLUSIVE:
            return (
                f"{self.candidate} was at {size} after {seeds} and was left there, because the remaining runs were "
                f"needed to certify the tip; {line} would have led."
            )
        if self.undone:
            fresh = self._fresh(metric, places)
            return f"{self.candidate} led by {size} over {seeds}, but not on {fresh}, so it was undone."
        if self.verdict is Verdict.KEEP:
            simpler = ", and is simpler" if self.simpler else ""
            return (
                f"{self.candidate} gained {size} over {seeds}{simpler}; {line} was needed, and "
                f"{self._fresh(metric, places)} agreed."
            )
        return f"{self.candidate} was stopped after {seeds}: {size}, and less than {line} is not worth another run."

    def _level(self, metric: MetricSpec) -> float:
        return self.tip_mean if metric.direction is Direction.HIGHER else -self.tip_mean

    def _fresh(self, metric: MetricSpec, places: int) -> str:
        count = len(self.numbers) - self.seeds
        if self.fresh_mean is None or not count:
            return "no fresh seeds"
        mean = self.fresh_mean if metric.direction is Direction.HIGHER else -self.fresh_mean
        return f"{count} fresh seed{'' if count == 1 else 's'} (mean {told(mean, places)})"
