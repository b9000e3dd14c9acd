"""A proposal that was handed in while another process holds the study, and what became of it."""

from dataclasses import dataclass
from typing import ClassVar

from overnight.records.limits import CandidateId, ObjectId, Sentence
from overnight.records.proposal import Proposal


@dataclass(frozen=True, slots=True, kw_only=True)
class Handed:
    """A proposal in the inbox, with the edited copy beside it where it is one."""

    SCHEMA: ClassVar[str] = "overnight/handed/1"

    proposal: Proposal
    """The idea."""
    base: ObjectId | None = None
    """The tip that the copy beside it was made from; null where parameters change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """What became of an idea when it was put before the gate."""

    SCHEMA: ClassVar[str] = "overnight/heard/1"

    candidate: CandidateId | None
    """The candidate that it became; null where it was not even drafted."""
    refused: tuple[Sentence, ...] = ()
    """What stood against it; empty where it passed the gate."""
