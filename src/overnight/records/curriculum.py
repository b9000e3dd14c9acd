"""A change to what the agent practises on, while what it is tested on stays fixed."""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from overnight.records.limits import CandidateId, Digest, Items, Sentence


@dataclass(frozen=True, slots=True, kw_only=True)
class CurriculumCandidate:
    """The five things that a curriculum or environment change must state before it may run."""

    SCHEMA: ClassVar[str] = "overnight/curriculum-candidate/1"

    candidate: CandidateId
    """Which candidate."""
    mode: Literal["sampling", "schedule", "generation"]
    """Re-weighted sampling, a difficulty schedule, or generated environments."""
    learnability: Sentence
    """What shows that the new tasks can be learnt."""
    difficulty_bridge: Sentence
    """How they lead from the incumbent's failures to the target cases."""
    diversity: Annotated[tuple[Sentence, ...], Items(1, 20)]
    """What keeps them from collapsing to one."""
    held_out: Digest
    """Digest of the held-out evaluation set, which must not change."""
    rollback_rule: Sentence
    """When the change is undone."""
