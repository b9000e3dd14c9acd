"""Every record that may stand in a file of its own, by its schema name."""

from typing import Any

from overnight.records.ablation import Ablation
from overnight.records.agent import Answered, Asked, Errand, Returned
from overnight.records.approval import Approval, LoopEntry, Permit
from overnight.records.audit import ResultAudit
from overnight.records.calibration import Calibration
from overnight.records.candidate import Candidate
from overnight.records.contract import Contract, ContractLock
from overnight.records.curriculum import CurriculumCandidate
from overnight.records.decision import Decision, Turn
from overnight.records.entry import Created, Entry, Note, Validation
from overnight.records.evidence import Evidence, Verification
from overnight.records.handed import Handed, Heard
from overnight.records.job import Exit, Job
from overnight.records.ladder import Promoted
from overnight.records.metric import MetricSpec
from overnight.records.order import RunOrder
from overnight.records.probe import RandomizationProbe
from overnight.records.proposal import Proposal, View
from overnight.records.queue import QueueManifest
from overnight.records.reflection import RewardReflection
from overnight.records.refusal import Refusal
from overnight.records.run import Run, RunEnd
from overnight.records.schedule import LookSchedule
from overnight.records.sitting import HandedOff, StoodStill
from overnight.records.space import Space
from overnight.records.transfer import Transfer
from overnight.study.state import StudyState

STORED: dict[str, Any] = {
    kind.SCHEMA: kind
    for kind in (
        Ablation,
        Answered,
        Approval,
        Asked,
        Calibration,
        Candidate,
        Contract,
        ContractLock,
        Created,
        CurriculumCandidate,
        Decision,
        Entry,
        Errand,
        Evidence,
        Exit,
        Handed,
        Heard,
        HandedOff,
        Job,
        LookSchedule,
        LoopEntry,
        MetricSpec,
        Note,
        Permit,
        Promoted,
        Proposal,
        QueueManifest,
        RandomizationProbe,
        Refusal,
        ResultAudit,
        Returned,
        RewardReflection,
        Run,
        RunEnd,
        RunOrder,
        Space,
        StoodStill,
        StudyState,
        Turn,
        Transfer,
        Validation,
        Verification,
        View,
    )
}
