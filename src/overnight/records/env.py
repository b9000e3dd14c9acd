"""Which environment the referee measures in."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Annotated, Literal

from overnight.records.limits import AtLeast, Scalar, Shape

EnvId = Annotated[
    str,
    Shape(
        r"(?:[A-Za-z_][A-Za-z0-9_.]{0,99}:)?(?:[A-Za-z0-9_.-]{1,60}/)?[A-Za-z0-9_.-]{1,80}",
        "a Gymnasium id such as `CartPole-v1` or `package.module:MyEnv-v0`",
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvSpec:
    """One environment, as the referee builds it from installed packages, never from a candidate's tree."""

    backend: Literal["gymnasium"]
    """The library that makes the environment."""
    id: EnvId
    """The environment's registered id; `package.module:Id` imports the module first."""
    kwargs: Mapping[str, Scalar] = field(default_factory=lambda: MappingProxyType({}))
    """Arguments given to the environment when it is made."""
    max_episode_steps: Annotated[int, AtLeast(1)] | None = None
    """Where the referee cuts an episode; null keeps the environment's own limit."""
    clip_actions: bool = True
    """Whether continuous actions are clipped to the action space before each step."""
