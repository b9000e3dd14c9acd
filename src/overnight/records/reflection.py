"""What a reward's parts did during a run, before anyone changes another weight."""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from overnight.records.limits import AtLeast, AtMost, Items, Name, RunId, Sentence


@dataclass(frozen=True, slots=True, kw_only=True)
class ComponentTrend:
    """One part of the reward over a run."""

    name: Name
    """The part's name."""
    share: Annotated[float, AtLeast(0), AtMost(1)]
    """Its part of the sum of absolute values."""
    trend: Literal["rising", "falling", "flat"]
    """Which way it went."""
    saturated: bool
    """Whether it sits at its bound."""
    dominates: bool
    """Whether it is more than the allowed share of the whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RewardReflection:
    """The reading of one run's reward parts against its task metrics."""

    SCHEMA: ClassVar[str] = "overnight/reward-reflection/1"

    run: RunId
    """The run that was read."""
    components: Annotated[tuple[ComponentTrend, ...], Items(1, 200)]
    """Each part of the reward."""
    hacking_risk: Literal["low", "medium", "high"]
    """How likely the reward rises without the task being done."""
    because: Sentence
    """The sentence behind the risk."""
