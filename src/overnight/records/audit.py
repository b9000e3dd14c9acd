"""A second look at one claim, from the files alone."""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from overnight.records.limits import CandidateId, Items, Name, Sentence


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultAudit:
    """Whether a claimed gain can be computed again from the evidence it names."""

    SCHEMA: ClassVar[str] = "overnight/result-audit/1"

    candidate: CandidateId
    """Whose claim."""
    claimed_gain: float
    """What was claimed."""
    recomputed_gain: float | None
    """What the evidence gives, or null where it gives nothing."""
    verdict: Literal["passed", "failed"]
    """Whether the two agree."""
    because: Sentence
    """The sentence."""
    evidence_paths: Annotated[tuple[Name, ...], Items(1, 10_000)]
    """The files that were read."""
