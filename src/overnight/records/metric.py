"""What is measured, which way is better, and what must not get worse."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, ClassVar, Literal

from overnight.records.codec import Misfit, show
from overnight.records.limits import Above, AtLeast, Items, Length, Name


class Direction(StrEnum):
    """Which way a metric gets better."""

    HIGHER = "higher"
    LOWER = "lower"


@dataclass(frozen=True, slots=True, kw_only=True)
class Guardrail:
    """A measure that may not get worse by more than its margin (non-inferiority).

    A claim needs it shown, not only seen, that less than the margin is lost. With a margin of 0 that means that the
    measure is shown to be better: the strictest guardrail there is, and the one that a draft begins with.
    """

    name: Name
    """What is guarded, as the referee reports it."""
    direction: Direction
    """Which way is better."""
    margin: Annotated[float, AtLeast(0)]
    """How much worse than the incumbent is still accepted, in the measure's own unit; 0 asks that it improve too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricSpec:
    """The primary metric with its guardrails, and the rules for success, regression and roll-back."""

    SCHEMA: ClassVar[str] = "overnight/metric-spec/1"

    name: Name
    """What the referee reports as the score."""
    unit: Name
    """The unit in which gains are told, such as `return`."""
    direction: Direction
    """Which way is better."""
    source: Literal["episode_return", "outcome", "training_reward"]
    """Who computes it: the referee from episodes, the referee from outcomes, or the training itself."""
    lowest: float | None
    """The least plausible score, or null; a score below it is quarantined."""
    highest: float | None
    """The greatest plausible score, or null; a score above it is quarantined."""
    least_gain: Annotated[float, AtLeast(0)]
    """Success: the gain that must be exceeded before anything counts as better."""
    guardrails: Annotated[tuple[Guardrail, ...], Items(1, 20)]
    """Regression: what may not get worse while the score rises."""
    rollback_drop: Annotated[float, AtLeast(0)]
    """Roll-back: a tip measured worse than the incumbent by more than this is undone."""
    precision: Annotated[float, Above(0)] = 0.01
    """The step to which gains are rounded before a proposer sees them; never more than three digits of them."""
    solved: float | None = None
    """The score at which the task counts as solved, or null; drawn in the report, and never decided on."""
    justification: Annotated[str, Length(2000)] = ""
    """Why the training reward itself is the objective; needed only for that source."""

    def __post_init__(self) -> None:
        """Refuse an empty range, and the training reward as a silent objective."""
        if self.lowest is not None and self.highest is not None and self.lowest >= self.highest:
            raise Misfit(("lowest",), f"is {show(self.lowest)}, but it must be below `highest`, {show(self.highest)}")
        if self.source == "training_reward" and not self.justification.strip():
            raise Misfit(
                ("justification",),
                "is empty, but the training reward is the objective",
                hint="say why the training reward is the goal itself, or measure `episode_return`",
            )
        names = [guardrail.name for guardrail in self.guardrails]
        if len(set(names)) < len(names):
            raise Misfit(("guardrails",), "names one measure twice")
