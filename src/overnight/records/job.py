"""What a supervisor is told, and what it tells when the run is over."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar

from overnight.records.limits import Above, AtLeast, Digest, Items, Name, Sentence
from overnight.records.run import Outcome
from overnight.records.tier import Tier

LIBRARY = "library"
"""The folder of a run from which a trainer imports `guest`; Python must be able to list it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """The limits of one run, as its supervisor holds them. The trainer never sees this file's authority."""

    SCHEMA: ClassVar[str] = "overnight/job/1"

    command: Annotated[tuple[Name, ...], Items(1, 200)]
    """The exact command."""
    env: Mapping[str, str]
    """The variables that the trainer gets, besides the supervisor's own."""
    fresh_bytecode: bool
    """Whether compiled Python files are made anew: for code of a candidate's, never believed from its tree."""
    cores: tuple[int, ...]
    """The processor cores that the run is pinned to; empty for no pinning."""
    wall_seconds: Annotated[float, Above(0)]
    """The hard limit."""
    silence_seconds: Annotated[float, Above(0)]
    """How long the trainer may neither print nor report."""
    disk_bytes: Annotated[int, AtLeast(1)]
    """How much the trainer may write."""
    memory_bytes: Annotated[int, AtLeast(1)] | None = None
    """How much memory the trainer and its children may use together; null for nine tenths of the machine's."""
    processes: Annotated[int, AtLeast(1)] = 512
    """How many processes it may have at a time."""
    tier: Tier = "T1"
    """How strongly the trainer is held."""
    hidden: tuple[str, ...] = ()
    """Folders that the trainer may not reach, although they may lie inside of one that it may."""
    network: bool = False
    """Whether the trainer may speak to other machines."""
    metered: bool = False
    """Whether a broker holds the environments and counts their steps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exit:
    """How a run ended, as its supervisor saw it."""

    SCHEMA: ClassVar[str] = "overnight/exit/1"

    outcome: Outcome
    """How it ended."""
    because: Sentence
    """The sentence."""
    exit_status: int
    """The process's status; negative for a signal."""
    wall_seconds: Annotated[float, AtLeast(0)]
    """By the supervisor's monotonic clock."""
    cpu_seconds: Annotated[float, AtLeast(0)]
    """Of the whole process tree."""
    policy: Digest | None
    """Digest of the policy that was taken, or null."""
    log_bytes: Annotated[int, AtLeast(0)]
    """How much the trainer printed."""
    tier: Tier | None = None
    """How strongly it was held; null where it never began, or where nobody was left to tell."""
    env_steps: Annotated[int, AtLeast(0)] | None = None
    """The steps that a broker counted; null where the run was not metered."""
