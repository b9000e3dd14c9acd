"""One line of the ledger: a fact, who wrote it, and when."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, ClassVar

from overnight.records.ablation import Ablation
from overnight.records.agent import Answered, Asked
from overnight.records.approval import Approval, LoopEntry, Permit
from overnight.records.calibration import Calibration
from overnight.records.candidate import Candidate
from overnight.records.decision import Decision, Turn
from overnight.records.evidence import Evidence, Verification
from overnight.records.ladder import Promoted
from overnight.records.lifecycle import Actor
from overnight.records.limits import AtLeast, CandidateId, Digest, Name, ObjectId, Sentence, Slug
from overnight.records.refusal import Refusal
from overnight.records.run import Run, RunEnd
from overnight.records.schedule import LookSchedule
from overnight.records.sitting import HandedOff, StoodStill


class Kind(StrEnum):
    """What sort of fact an entry holds. Intents come before an effect, results after it."""

    CREATED = "created"
    APPROVED = "approved"
    ENTERED = "entered"
    CALIBRATED = "calibrated"
    DRAFTED = "drafted"
    PERMITTED = "permitted"
    REFUSED = "refused"
    VALIDATED = "validated"
    LAUNCHED = "launched"
    ENDED = "ended"
    MEASURED = "measured"
    SCHEDULED = "scheduled"
    VERIFIED = "verified"
    DECIDED = "decided"
    ABLATED = "ablated"
    ASKED = "asked"
    ANSWERED = "answered"
    PROMOTED = "promoted"
    STOOD_STILL = "stood_still"
    HANDED_OFF = "handed_off"
    TURNED = "turned"
    NOTED = "noted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Created:
    """The first entry: which study this ledger belongs to, and what it starts from."""

    SCHEMA: ClassVar[str] = "overnight/created/1"

    task: Slug
    """The task's name."""
    study: Slug
    """The study's name."""
    commit: ObjectId
    """The baseline's commit in the candidate store: the first tip and the first incumbent."""
    tree: ObjectId
    """The baseline's tree."""
    version: Name
    """The version of Overnight that created the study."""
    seed_commitment: Digest | None = None
    """What commits the study to its hidden seed key, before anything was measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Validation:
    """The gate's yes to one candidate, as it stood at that moment."""

    SCHEMA: ClassVar[str] = "overnight/validation/1"

    candidate: CandidateId
    """Who may run."""
    tree: ObjectId
    """The tree that was checked."""
    contract: Digest
    """The contract under which it was checked."""
    rules: Digest
    """Digest of the gate's own source, so that a yes is bound to the rules that gave it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """Something worth remembering that changes no state."""

    SCHEMA: ClassVar[str] = "overnight/note/1"

    says: Sentence
    """The sentence."""


PAYLOADS: dict[Kind, Any] = {
    Kind.CREATED: Created,
    Kind.APPROVED: Approval,
    Kind.ENTERED: LoopEntry,
    Kind.CALIBRATED: Calibration,
    Kind.DRAFTED: Candidate,
    Kind.PERMITTED: Permit,
    Kind.REFUSED: Refusal,
    Kind.VALIDATED: Validation,
    Kind.LAUNCHED: Run,
    Kind.ENDED: RunEnd,
    Kind.MEASURED: Evidence,
    Kind.SCHEDULED: LookSchedule,
    Kind.VERIFIED: Verification,
    Kind.DECIDED: Decision,
    Kind.ABLATED: Ablation,
    Kind.ASKED: Asked,
    Kind.ANSWERED: Answered,
    Kind.PROMOTED: Promoted,
    Kind.STOOD_STILL: StoodStill,
    Kind.HANDED_OFF: HandedOff,
    Kind.TURNED: Turn,
    Kind.NOTED: Note,
}
"""The record that each kind of entry holds."""

KIND_OF: dict[type, Kind] = {payload: kind for kind, payload in PAYLOADS.items()}

Payload = (
    Created
    | Approval
    | LoopEntry
    | Calibration
    | Candidate
    | Permit
    | Refusal
    | Validation
    | Run
    | RunEnd
    | Evidence
    | LookSchedule
    | Verification
    | Decision
    | Ablation
    | Asked
    | Answered
    | Promoted
    | StoodStill
    | HandedOff
    | Turn
    | Note
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One fact. Order is `seq`; `at` is an annotation for people and may jump with the clock."""

    SCHEMA: ClassVar[str] = "overnight/entry/1"

    seq: Annotated[int, AtLeast(0)]
    """Its place in the ledger, from 0."""
    epoch: Annotated[int, AtLeast(1)]
    """Which opening of the ledger wrote it; never goes down."""
    at: Name
    """When, in UTC."""
    actor: Actor
    """Who wrote it."""
    kind: Kind
    """What sort of fact it is."""
    data: Mapping[str, object]
    """The record that this kind of entry holds."""
