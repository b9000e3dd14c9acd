"""What a rule said no to, and why."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from overnight.records.limits import CandidateId, Items, Sentence, Slug
from overnight.records.text import sentence


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """One rule's no, as a full sentence that reports print unchanged."""

    rule: Slug
    """The rule's name, which is also its file in `gate/rules`."""
    says: Sentence
    """The sentence."""

    def __post_init__(self) -> None:
        """Make the sentence fit to be shown: it may quote a candidate's own words."""
        object.__setattr__(self, "says", sentence(self.says))


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Everything the gate had against one candidate, or against opening the study."""

    SCHEMA: ClassVar[str] = "overnight/refusal/1"

    candidate: CandidateId | None
    """The refused candidate; null when the study itself may not start."""
    reasons: Annotated[tuple[Reason, ...], Items(1, 100)]
    """Every rule that said no; none is skipped after the first."""
