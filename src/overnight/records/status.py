"""Where a study stands, derived from its ledger: what `state.json` holds."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar

from overnight.records.codec import AtLeast, Digest, ObjectId, Sentence, Slug
from overnight.records.lifecycle import State


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateLine:
    """One candidate in one line."""

    state: State
    """Where it stands."""
    kept: bool
    """Whether it joined the tip."""
    hypothesis: Sentence
    """Its idea."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """The fold of a ledger up to one entry. It may be deleted at any time."""

    SCHEMA: ClassVar[str] = "overnight/status/1"

    task: Slug
    """The task's name."""
    study: Slug
    """The study's name."""
    entries: Annotated[int, AtLeast(0)]
    """How many ledger entries it is folded from."""
    head: Digest
    """The hash of the last of them: how fresh this is."""
    tip: ObjectId
    """What the next candidate is built on."""
    incumbent: ObjectId
    """The last certified tip."""
    approved: Mapping[str, Digest]
    """The digest under which each clause was last approved."""
    entered: Digest | None
    """The contract for which the loop was entered, or null."""
    runs: Annotated[int, AtLeast(0)]
    """Training runs launched so far."""
    wall_seconds: Annotated[float, AtLeast(0)]
    """Wall time that runs took, added up."""
    candidates: Mapping[str, CandidateLine]
    """Every candidate by id."""
    open_runs: tuple[str, ...] = ()
    """Runs that were launched and have not ended."""
