"""Jobs that wait for their turn, and what each must pass before it is promoted."""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from overnight.records.codec import Misfit
from overnight.records.limits import AtLeast, CandidateId, Items, Name, Sentence


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuedJob:
    """One candidate's run in one phase of the execution discipline."""

    candidate: CandidateId
    """What runs."""
    phase: Literal["smoke", "short", "multi-seed", "incumbent"]
    """Which step of smoke, short trial, multi-seed validation and incumbent validation it is."""
    train_seed: Annotated[int, AtLeast(0)]
    """The seed."""
    device: Name
    """Where it runs."""
    expects: Sentence
    """The output that must be there afterwards."""
    promote_when: Sentence
    """What it must show before the next phase."""
    after: tuple[CandidateId, ...] = ()
    """Candidates that must have ended first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueManifest:
    """The jobs of one batch, in order."""

    SCHEMA: ClassVar[str] = "overnight/queue-manifest/1"

    jobs: Annotated[tuple[QueuedJob, ...], Items(1, 10_000)]
    """The jobs."""

    def __post_init__(self) -> None:
        """Refuse a job that waits for itself."""
        for index, job in enumerate(self.jobs):
            if job.candidate in job.after:
                raise Misfit(("jobs", str(index), "after"), f"makes {job.candidate} wait for itself")
