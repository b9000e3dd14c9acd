"""One training with one train seed: what was launched, and how it ended."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, ClassVar, Literal

from overnight.records.limits import AtLeast, CandidateId, Digest, Items, Name, ObjectId, RunId, Sentence
from overnight.records.tier import Tier


class Outcome(StrEnum):
    """How a run ended. A crash is an outcome without a number."""

    COMPLETED = "completed"
    CRASHED = "crashed"
    OVER_BUDGET = "over_budget"
    INFRASTRUCTURE = "infrastructure"
    LOST = "lost"
    STOPPED = "stopped"

    def is_candidates_fault(self) -> bool:
        """Whether the candidate, and not the machine, is to blame."""
        return self in (Outcome.CRASHED, Outcome.OVER_BUDGET)

    def is_machines_fault(self) -> bool:
        """Whether the machine, or somebody who killed a process on it, is to blame: no budget of runs counts it."""
        return self in (Outcome.INFRASTRUCTURE, Outcome.LOST)

    def is_repeated(self) -> bool:
        """Whether the run says nothing about the candidate, and is run again."""
        return self in (Outcome.INFRASTRUCTURE, Outcome.LOST, Outcome.STOPPED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """The intent to train one candidate on one seed, written before anything starts."""

    SCHEMA: ClassVar[str] = "overnight/run/1"

    id: RunId
    """Given by the engine, in order."""
    candidate: CandidateId
    """What is trained."""
    tree: ObjectId
    """The tree that is exported and run."""
    command: Annotated[tuple[Name, ...], Items(1, 200)]
    """The exact command."""
    phase: Literal["screen", "confirm"]
    """What the run is for: screening a candidate, or certifying the tip."""
    round: Annotated[int, AtLeast(0)]
    """Which reign of the incumbent, or which attempt at certification, its seeds belong to."""
    number: Annotated[int, AtLeast(0)]
    """Which of the round's train seeds it has."""
    train_seed: Annotated[int, AtLeast(0)]
    """The seed given to the trainer."""
    contract: Digest
    """The contract in force at launch."""
    comparability: Digest
    """Budget, hardware, protocol and referee: results with other keys are never compared."""
    rung: Annotated[int, AtLeast(0)] = 0
    """Which rung of the ladder of budgets it is run on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnd:
    """How a run ended, as its supervisor saw it."""

    SCHEMA: ClassVar[str] = "overnight/run-end/1"

    run: RunId
    """Which run."""
    outcome: Outcome
    """How it ended."""
    because: Sentence
    """The sentence; for a crash, its failure signature."""
    wall_seconds: Annotated[float, AtLeast(0)]
    """How long it took, by the supervisor's clock."""
    cpu_seconds: Annotated[float, AtLeast(0)] = 0.0
    """Processor time of the whole process tree."""
    exit_status: int | None = None
    """The process's exit status, or null where there was none."""
    tier: Tier | None = None
    """How strongly its trainer was held, or null where nobody was left to tell."""
    env_steps: Annotated[int, AtLeast(0)] | None = None
    """The steps that a broker counted, or null where the run was not metered."""
