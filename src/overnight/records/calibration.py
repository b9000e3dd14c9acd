"""What the baseline's first runs showed, and the plan that was frozen on them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from overnight.records.codec import Misfit
from overnight.records.limits import Above, AtLeast, AtMost, Digest, Items, RunId, Scalar, Sentence


@dataclass(frozen=True, slots=True, kw_only=True)
class FrozenPlan:
    """Where the runs of a study go: the race, the looks of an attempt to certify, and the error it may spend."""

    race: Mapping[str, Scalar]
    """The lines of the race, by name."""
    looks: tuple[Annotated[int, AtLeast(1)], ...]
    """Fresh seeds a side at each look of an attempt; empty where the study can claim nothing."""
    shares: tuple[Annotated[float, Above(0), AtMost(1)], ...]
    """The part of an attempt's error that each look may spend."""
    audit_seeds: Annotated[int, AtLeast(0)] = 0
    """Fresh seeds from which the last incumbent's gain over the baseline is told; 0 for none."""
    total_error: Annotated[float, Above(0), AtMost(0.5)] = 0.05
    """The chance that the study claims a gain that is not there."""
    mode: Literal["family", "discovery"] = "family"
    """What that chance is about: any false claim, or the share of false ones."""

    def __post_init__(self) -> None:
        """Refuse looks without shares."""
        if len(self.looks) != len(self.shares):
            raise Misfit(("shares",), f"has {len(self.shares)} parts for {len(self.looks)} looks")


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """The noise of the baseline, what the budget can prove, and the frozen plan. The eighth approval names it."""

    SCHEMA: ClassVar[str] = "overnight/calibration/1"

    comparability: Digest
    """The key of the results that it rests on."""
    evidence: Annotated[tuple[RunId, ...], Items(1, 1000)]
    """The baseline's runs."""
    seeds: Annotated[int, AtLeast(0)]
    """How many of them brought a score."""
    lost: Annotated[int, AtLeast(0)]
    """How many were lost by the baseline's own fault."""
    mean: float | None
    """The baseline's mean score; null without one."""
    noise: float | None
    """The standard deviation over train seeds; null below two scores."""
    shape: Literal["unknown", "constant", "even", "skewed", "two groups"]
    """What the scatter looks like."""
    run_seconds: Annotated[float, AtLeast(0)] | None
    """What one run takes, with its measurement; null when nobody measured it."""
    references: Mapping[str, float]
    """What policies score that learned nothing, by name."""
    runs: Annotated[int, AtLeast(1)]
    """The runs that fit into the whole study."""
    max_runs: Annotated[int, AtLeast(1)]
    """The budget's runs at that moment."""
    max_wall_hours: Annotated[float, Above(0)]
    """The budget's hours at that moment."""
    candidates: Annotated[int, AtLeast(0)]
    """About how many experiments fit."""
    provable: float | None
    """The gain that is proven four times in five; null where the study can claim nothing."""
    saturated: Sentence | None = None
    """Why there is little left to gain, where that is so."""
    sentences: Annotated[tuple[Sentence, ...], Items(1, 50)]
    """Everything above in plain words, most important first; shown with the eighth approval."""
    plan: FrozenPlan
    """The plan."""
