"""What a trainer is told: the file that `OVERNIGHT_RUN` names."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from overnight.records.env import EnvSpec
from overnight.records.limits import Above, AtLeast, Name, RunId, Scalar


@dataclass(frozen=True, slots=True, kw_only=True)
class RunBudget:
    """How much one training run gets, in the unit that the trainer obeys."""

    unit: Literal["env_steps", "cpu_seconds", "wall_seconds"]
    """The unit."""
    amount: Annotated[float, Above(0)]
    """How much of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOrder:
    """One training, as the trainer reads it. It never holds an episode seed."""

    SCHEMA: ClassVar[str] = "overnight/run-order/1"

    run: RunId
    """Which run."""
    env: EnvSpec
    """The environment to train in."""
    train_seed: Annotated[int, AtLeast(0)]
    """The seed of everything random in the training."""
    budget: RunBudget
    """When to stop."""
    params: Mapping[str, Scalar]
    """The parameters of `params.json`; empty for a repository's own command."""
    cores: Annotated[int, AtLeast(1)]
    """How many cores the run is pinned to."""
    device: Name
    """`cpu`, or the accelerator."""
    compile_cache: str | None = None
    """A folder with compiled programs that may be read, or null."""
