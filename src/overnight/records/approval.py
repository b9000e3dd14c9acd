"""Who agreed to what, and how strongly that is known."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, ClassVar

from overnight.records.contract import Clause
from overnight.records.limits import CandidateId, Digest, Length, Name, ObjectId


class Strength(StrEnum):
    """What an approval proves about who gave it.

    Only `signed` proves anything about the person: the other two record how the
    word was given, and any program with the user's rights could have given it.
    """

    SIGNED = "signed"
    TERMINAL = "terminal"
    UNATTENDED = "unattended"


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """One clause, approved as it stood. Editing the clause voids exactly this approval."""

    SCHEMA: ClassVar[str] = "overnight/approval/1"

    clause: Clause
    """Which of the eight."""
    digest: Digest
    """SHA-256 of the clause's canonical form."""
    terms: Mapping[str, object]
    """The clause as it was approved, in full."""
    approver: Name
    """The login name of whoever approved."""
    strength: Strength
    """How the approval was given."""
    replaces: Digest | None = None
    """What the same clause said when it was approved before: the trail of an amendment."""
    signed: Annotated[str, Length(20_000)] | None = None
    """The text that was signed: study, contract, and every clause of that sitting with its digest."""
    signature: Annotated[str, Length(10_000)] | None = None
    """An SSH signature over that text; null where none was given."""
    calibration: Digest | None = None
    """The calibration that was shown with the eighth clause: its plan is approved with it; null where none was."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopEntry:
    """The explicit word to enter the loop. A complete plan alone starts nothing."""

    SCHEMA: ClassVar[str] = "overnight/loop-entry/1"

    contract: Digest
    """Digest of the whole contract under which the loop may run."""
    approver: Name
    """The login name of whoever started it."""
    strength: Strength
    """How the word was given."""
    calibrating: bool = False
    """Whether only the baseline may run, so that the eighth clause can be approved with figures."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Permit:
    """One candidate, approved by itself: what the standing approval does not cover."""

    SCHEMA: ClassVar[str] = "overnight/permit/1"

    candidate: CandidateId
    """Which candidate."""
    tree: ObjectId
    """The tree that was approved; no other is."""
    contract: Digest
    """The contract under which it was approved."""
    approver: Name
    """The login name of whoever approved."""
    strength: Strength
    """How the approval was given."""
    signed: Annotated[str, Length(20_000)] | None = None
    """The text that was signed: study, contract, candidate and tree."""
    signature: Annotated[str, Length(10_000)] | None = None
    """An SSH signature over that text; null where none was given."""
