"""The settings of the peers: our own recipe for them to follow, or their own from the tables of rl-zoo3."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Self

OURS_ALONE = frozenset({"checkpoints"})
"""Settings of our trainer that have no part in learning or speed."""


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """Our recipe as a peer follows it; the fields are those of our own `ppo.py`, and so are the defaults."""

    learning_rate: float = 0.00025
    anneal_learning_rate: bool = True
    num_envs: int = 4
    rollout_steps: int = 128
    num_minibatches: int = 4
    update_epochs: int = 4
    gamma: float = 0.99
    gae_lambda: float = 0.95
    clip_range: float = 0.2
    clip_value_loss: bool = True
    normalize_advantage: bool = True
    entropy_weight: float = 0.01
    value_weight: float = 0.5
    max_grad_norm: float = 0.5
    hidden_units: int = 64
    activation: str = "tanh"
    normalize_observations: bool = False
    normalize_rewards: bool = False
    reward_clip: float = 10.0
    initial_log_std: float = 0.0

    @classmethod
    def of(cls, params: Mapping[str, object]) -> Self:
        """What the order says, as far as a peer can follow it."""
        given: Any = params["recipe"]
        known = {field.name for field in fields(cls)}
        return cls(**{name: value for name, value in given.items() if name in known})

    def minibatch(self) -> int:
        """Samples in one minibatch."""
        return self.num_envs * self.rollout_steps // self.num_minibatches


def not_followed(params: Mapping[str, object]) -> list[str]:
    """The settings of a recipe that the peers do not know, for the page to name."""
    known = {field.name for field in fields(Recipe)}
    return sorted(params.keys() - known - OURS_ALONE)


def zoo_settings(env: str) -> dict[str, Any]:
    """The entry of rl-zoo3's table of PPO for an environment, as the installed package holds it.

    MuJoCo's fifth version is not in the table; the fourth, which has the same observations and actions, stands in.
    """
    import yaml

    found = find_spec("rl_zoo3")
    if found is None or found.origin is None:
        raise SystemExit("rl_zoo3 is not installed: run `make peers`")
    table = yaml.safe_load((Path(found.origin).parent / "hyperparams" / "ppo.yml").read_text())
    name = env if env in table else re.sub(r"-v5$", "-v4", env)
    if name not in table:
        raise SystemExit(f"rl-zoo3 has no settings of PPO for {env}")
    return dict(table[name])


def schedule(value: object) -> float | Callable[[float], float]:
    """A number, or where it is `lin_0.001` the line that falls from there to zero."""
    if isinstance(value, str) and value.startswith("lin_"):
        start = float(value.removeprefix("lin_"))
        return lambda left: left * start
    return float(value)  # type: ignore[arg-type]
