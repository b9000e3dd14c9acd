"""The rules that can be replayed. Each plays a whole study in a laboratory and says what became of it."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Protocol

from overnight.decide.certify import Arm as Side
from overnight.decide.certify import Certification
from overnight.decide.events import Attempted, Entered, Left, Ran
from overnight.decide.guards import mean_gain_interval
from overnight.decide.intervals import Interval
from overnight.decide.looks import SeedsWanted, attempt
from overnight.decide.plan import StudyPlan, plan_study
from overnight.decide.race import Race
from overnight.decide.spending import Mode
from overnight.errors import UserError, did_you_mean
from overnight.records.decision import Verdict
from overnight.records.metric import Direction, Guardrail, MetricSpec
from overnight.simulate.lab import Arm, Idea, Lab, OutOfBudget, lineage

_TUNING, _AUDIT, _FRESH = 0, 1_000_000, 10
_NO_GAIN = 1e-9
METRIC = MetricSpec(
    name="score",
    unit="standard deviations",
    direction=Direction.HIGHER,
    source="outcome",
    lowest=None,
    highest=None,
    least_gain=0.0,
    guardrails=(Guardrail(name="unmoved", direction=Direction.HIGHER, margin=0.0),),
    rollback_drop=0.0,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """What became of one study."""

    gain: float
    """The true gain of what is claimed at the end, over the baseline."""
    tip_gain: float
    """The true gain of what was kept at the end, claimed or not."""
    claimed: float
    """The gain that the rule tells."""
    covered: bool | None
    """Whether the told interval holds the true gain; None where no interval is told."""
    claims: int
    """How often the rule claimed a gain."""
    false_claims: int
    """How many of these were none."""
    runs: float
    """What the study cost."""
    passengers: int
    """Changes in the claimed code that are no improvement by themselves."""
    changes: int
    """Changes in the claimed code."""
    verdicts: tuple[str, ...] = ()
    """The verdicts in the order in which they fell, as short words; two equal studies have equal ones."""


class Rule(Protocol):
    """A way to decide. It may run arms of the laboratory and may not look at their truth."""

    @property
    def name(self) -> str:
        """What the rule is called."""

    def play(self, lab: Lab, ideas: Sequence[Idea], *, idea_cost: float = 0.0) -> Played:
        """Play a study until ideas or runs are used up."""


@dataclass(frozen=True, slots=True)
class Greedy:
    """Keep whatever beats the record, by the mean of a few seeds: the loops of the field."""

    seeds: int = 1
    name: str = "greedy"

    def play(self, lab: Lab, ideas: Sequence[Idea], *, idea_cost: float = 0.0) -> Played:
        """Play a study."""
        budget, tip = lab.budget, lab.root()
        root, steps = tip, []
        try:
            first = record = fmean(lab.runs(root, _TUNING, range(self.seeds)))
            for number, idea in enumerate(ideas, start=1):
                lab.budget -= idea_cost
                arm = lab.child(number, tip, idea)
                score = fmean(lab.runs(arm, _TUNING, range(self.seeds)))
                if score > record:
                    steps.append(arm.mean - tip.mean)
                    tip, record = arm, score
        except OutOfBudget:
            pass
        return _played(root, tip, tip, steps, claimed=record - first, covered=None, runs=budget - lab.budget)


@dataclass(frozen=True, slots=True)
class RaceCertify:
    """Overnight's own rule: the race moves the tip, certification on fresh seeds claims."""

    name: str = "race-certify"
    idea_cost: float = 1.0
    """What the rule is told that an idea costs, in runs."""
    total_error: float = 0.05
    mode: Mode = "family"
    nights: int = 1
    """Into how many sittings the study is cut: between two of them everything is folded anew from what was stored."""

    def play(self, lab: Lab, ideas: Sequence[Idea], *, idea_cost: float = 0.0) -> Played:
        """Play a study."""
        plan = plan_study(lab.budget, idea_cost=self.idea_cost, total_error=self.total_error, mode=self.mode)
        study = _Study(lab, plan, sittings=self.nights)
        study.search(ideas, idea_cost)
        return study.ended()


@dataclass(slots=True)
class _Study:
    """One study of the race-certify rule: the part of the loop that asks, runs and tells."""

    lab: Lab
    plan: StudyPlan
    sittings: int = 1
    race: Race = field(init=False)
    arms: dict[str, Arm] = field(init=False)
    events: list[Entered | Ran | Attempted | Left] = field(default_factory=list)
    past: list[bool] = field(default_factory=list)
    steps: list[float] = field(default_factory=list)
    shown: Interval = field(default_factory=lambda: Interval(0.0, 0.0, 0.0))
    baseline: list[float] = field(default_factory=list)
    budget: float = field(init=False)

    def __post_init__(self) -> None:
        self.budget = self.lab.budget
        self.arms = {"0": self.lab.root()}
        self.race = Race(self.plan.rule, "0")

    def search(self, ideas: Sequence[Idea], idea_cost: float) -> None:
        """Race the ideas, certify on the way, and once more at the end."""
        try:
            self._run_wanted()
            for number, idea in enumerate(ideas, start=1):
                past, left = tuple(self.past), self.lab.budget
                if self.plan.is_time(self.race, past, left):
                    self._attempt()
                self.lab.budget -= idea_cost
                name = str(number)
                self.arms[name] = self.lab.child(number, self.arms[self.race.tip.candidate], idea)
                self._tell(Entered(name))
                self._run_wanted()
        except OutOfBudget:
            self.race.cut_short()
        try:
            left = self.lab.budget
            if self.plan.should_certify(self.race, tuple(self.past), ending=True, runs_left=left):
                self._attempt(runs_left=left)
        except OutOfBudget:
            pass

    def ended(self) -> Played:
        """What became of the study."""
        root, incumbent = self.arms["0"], self.arms[self.race.incumbent.candidate]
        told = self._audited(incumbent) if self.steps else Interval(0.0, 0.0, 0.0)
        true = incumbent.mean - root.mean
        return _played(
            root,
            incumbent,
            self.arms[self.race.tip.candidate],
            self.steps,
            claimed=told.estimate,
            covered=told.low <= true <= told.high if self.steps else None,
            runs=self.budget - self.lab.budget,
            verdicts=tuple(f"{one.candidate} {one.verdict}" for one in self.race.verdicts),
        )

    def _audited(self, incumbent: Arm) -> Interval:
        """The gain over the baseline on seeds that selected nothing, or what the certifications showed."""
        try:
            found = self.lab.runs(incumbent, _AUDIT, range(self.plan.audit_seeds))
        except OutOfBudget:
            found = []
        return mean_gain_interval(found, self.baseline) if len(found) > 1 else self.shown

    def _tell(self, event: Entered | Ran | Attempted | Left) -> None:
        self.events.append(event)
        self.race.tell(event)

    def _run_wanted(self) -> None:
        self._sit_down()
        while wants := self.race.wants():
            if self.plan.is_in_the_way(self.race, tuple(self.past), self.lab.budget, len(wants)):
                self._tell(Left(wants[0].candidate))
                return
            if self.lab.budget < len(wants) + (self.plan.audit_seeds if self.steps else 0):
                raise OutOfBudget
            for want in wants:
                score = self.lab.run(self.arms[want.candidate], _TUNING, want.number)
                if want.candidate == "0" and len(self.baseline) < self.plan.rule.baseline_seeds:
                    self.baseline.append(score)
                self._tell(Ran(want.candidate, want.number, score))

    def _sit_down(self) -> None:
        """At the beginning of another night, believe nothing but what was stored."""
        spent = self.budget - self.lab.budget
        if self.sittings > 1 and spent >= self.budget / self.sittings:
            self.race = Race(self.plan.rule, "0")
            for event in self.events:
                self.race.tell(event)

    def _attempt(self, runs_left: float | None = None) -> None:
        looks, alpha = self.plan.attempt_plan(self.race, runs_left=runs_left), self.plan.alpha(tuple(self.past))
        if looks is None:
            return
        tip, incumbent = self.arms[self.race.tip.candidate], self.arms[self.race.incumbent.candidate]
        phase, scores = _FRESH + len(self.past), ([], [])  # type: tuple[int, tuple[list[float], list[float]]]
        self.past.append(False)
        found: Certification | SeedsWanted = SeedsWanted(looks.looks[0])
        while isinstance(found, SeedsWanted):
            numbers = range(len(scores[0]), found.seeds)
            if self.lab.budget < 2 * len(numbers):
                raise OutOfBudget
            scores[0].extend(self.lab.runs(tip, phase, numbers))
            scores[1].extend(self.lab.runs(incumbent, phase, numbers))
            found = attempt(METRIC, looks, _side(scores[0]), _side(scores[1]), alpha=alpha)
        if found.verdict is Verdict.CERTIFIED:
            self.past[-1] = True
            self.steps.append(tip.mean - incumbent.mean)
            self.shown = _added(self.shown, found.gain)
        self._tell(Attempted(found.verdict, tuple(scores[0])))


def rule(name: str, *, idea_cost: float = 1.0, total_error: float = 0.05) -> Rule:
    """A shipped rule by its name."""
    shipped: dict[str, Rule] = {
        "greedy": Greedy(),
        "greedy-3": Greedy(3, "greedy-3"),
        "race-certify": RaceCertify(idea_cost=idea_cost, total_error=total_error),
        "race-certify-fdr": RaceCertify("race-certify-fdr", idea_cost, total_error, "discovery"),
    }
    if name not in shipped:
        raise UserError("--rule", f"`{name[:60]}` is not a rule", hint=did_you_mean(name, shipped))
    return shipped[name]


def _side(scores: Sequence[float]) -> Side:
    return Side(scores=tuple(scores), guardrails={"unmoved": (0.0,) * len(scores)})


def _added(one: Interval, other: Interval) -> Interval:
    """Gains of releases on top of one another: their uncertainties add up as squares."""
    estimate = one.estimate + other.estimate
    down = ((one.estimate - one.low) ** 2 + (other.estimate - other.low) ** 2) ** 0.5
    up = ((one.high - one.estimate) ** 2 + (other.high - other.estimate) ** 2) ** 0.5
    return Interval(estimate, estimate - down, estimate + up)


def _played(root: Arm, claimed_arm: Arm, tip: Arm, steps: Sequence[float], **told: object) -> Played:
    parts = list(lineage(claimed_arm))
    idle = sum(part.parent is not None and part.mean - part.parent.mean <= _NO_GAIN for part in parts)
    return Played(
        gain=claimed_arm.mean - root.mean,
        tip_gain=tip.mean - root.mean,
        claims=len(steps),
        false_claims=sum(step <= _NO_GAIN for step in steps),
        passengers=idle,
        changes=len(parts),
        **told,  # type: ignore[arg-type]
    )
