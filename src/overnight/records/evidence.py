"""What the referee measured, and what was verified about it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from overnight.records.codec import Misfit
from overnight.records.limits import AtLeast, CandidateId, Digest, Items, Length, ObjectId, OneLine, RunId, Sentence
from overnight.records.tier import Tier


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """The score of one run's policy, measured by the referee. Without such a run it does not exist."""

    SCHEMA: ClassVar[str] = "overnight/evidence/1"

    run: RunId
    """The run whose policy was measured."""
    candidate: CandidateId
    """The candidate that was trained."""
    tree: ObjectId
    """The tree that was run."""
    phase: Literal["dev", "screen", "confirm"]
    """Which episode seeds were used."""
    score: float | None
    """The mean over the phase's episodes; null when the policy could not be measured, by its own fault."""
    error: Annotated[str, Length(2000)] = ""
    """What the policy did wrong; empty when there is a score."""
    episodes: Annotated[int, AtLeast(1)]
    """How many episodes."""
    guardrails: Mapping[str, float]
    """Each guarded measure, by name."""
    comparability: Digest
    """Results with other keys are never compared."""
    artefact: Digest
    """The object that holds every episode's result."""
    tier: Tier | None = None
    """How strongly the policy was held while it was measured; null in records from before that was told."""
    repeated: Annotated[int, AtLeast(0)] = 0
    """How many of the episodes were played again, to see whether the same comes of them."""
    different: Annotated[int, AtLeast(0)] = 0
    """How many of those came out differently."""
    quarantined: Annotated[str, Length(2000), OneLine()] = ""
    """Why a first measurement was set aside and this one made on fresh episodes; empty where none was."""
    set_aside: Digest | None = None
    """The object that holds the episodes of the measurement that was set aside."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """A verdict on the evidence against the metric, with behaviour inspected and not only the reward."""

    SCHEMA: ClassVar[str] = "overnight/verification/1"

    candidate: CandidateId
    """Whose evidence was verified."""
    verdict: Literal["improved", "not improved", "insufficient evidence"]
    """What the evidence supports."""
    because: Sentence
    """The sentence with the numbers in it."""
    behaviour: tuple[Sentence, ...]
    """What was seen in episodes; without any, the verdict cannot be `improved`."""
    evidence: Annotated[tuple[RunId, ...], Items(1, 1000)]
    """The runs whose evidence was used."""

    def __post_init__(self) -> None:
        """A reward curve alone is not proof."""
        if self.verdict == "improved" and not self.behaviour:
            raise Misfit(
                ("verdict",),
                "is `improved`, but no behaviour was inspected",
                hint="without behaviour it is `insufficient evidence`",
            )
