"""What the parts of a certified stack are worth, and which of them were taken out again."""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from overnight.records.codec import Misfit
from overnight.records.limits import AtLeast, CandidateId, Items, Name, RunId, Sentence


@dataclass(frozen=True, slots=True, kw_only=True)
class PartFinding:
    """What one part of the stack is worth."""

    part: Name
    """Its name: a candidate of the stack, or a parameter of a bundle."""
    word: Literal["carries", "dead weight", "unclear"]
    """Whether it was shown to carry a part of the gain, was taken out, or neither."""
    loss: float
    """What the stack loses without it on average; higher is worse always."""
    loss_low: float | None
    """The low end of the loss's interval, which holds for all parts together; null where there is none."""
    loss_high: float | None
    """The high end."""
    says: Sentence
    """The finding in one sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ablation:
    """The end of an ablation: a certified stack, knocked out part by part. It changes no claim."""

    SCHEMA: ClassVar[str] = "overnight/ablation/1"

    candidate: CandidateId
    """The certified tip that was taken apart."""
    parts: Annotated[tuple[PartFinding, ...], Items(2, 1000)]
    """Each part, in the stack's order."""
    margin: Annotated[float, AtLeast(0)]
    """A removal that loses this much or more is not made."""
    removed: tuple[Name, ...] = ()
    """The parts that were taken out, in the stack's order."""
    leaner: CandidateId | None = None
    """The candidate that is the stack without them, and the tip from now on; null where nothing was taken out."""
    loss: float | None = None
    """What the removal of all of them together loses on fresh seeds; null where nothing was taken out."""
    loss_high: float | None = None
    """The high end of its 95 % interval."""
    says: Sentence
    """The result in one sentence."""
    evidence: Annotated[tuple[RunId, ...], Items(1, 10_000)]
    """The runs behind it."""

    def __post_init__(self) -> None:
        """Nothing is taken out without a leaner candidate and a loss below the margin."""
        if bool(self.removed) is not (self.leaner is not None):
            raise Misfit(("leaner",), "goes with parts that were taken out, and with nothing else")
        if self.removed and (self.loss is None or not self.loss < self.margin):
            raise Misfit(("loss",), f"is {self.loss}, but what is taken out loses less than {self.margin:g}")
