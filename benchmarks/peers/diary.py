"""What every peer does alike: it obeys the same budget as our trainers, and leaves its policy in the same format.

A peer runs in an environment of its own, as any guest does: `OVERNIGHT_RUN` names its order, `OVERNIGHT_OUT` the
folder for its results. So one clock starts and ends all learners, and one referee measures all their policies.
"""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from overnight.guest.train import Training, limit_threads, load, write_tensors

Array = NDArray[Any]
SNAPSHOTS = 10
"""How often the policy is saved over the budget; our trainers do the same."""


class Policy(NamedTuple):
    """A network from observations to scores of actions, or to the mean of them, with a frozen normaliser."""

    layers: Sequence[tuple[Array, Array]]
    """Weights `[inputs, outputs]` and biases."""
    activation: str
    """`tanh` or `relu`."""
    discrete: bool
    mean: Array | None = None
    """What is subtracted from an observation, or None where it is taken as it is."""
    scale: Array | None = None
    """What the difference is multiplied with, before it is clipped."""
    clip: float = 10.0

    def act(self, observations: Array) -> Array:
        """The greedy actions, by the formula of the referee."""
        x = observations.reshape(len(observations), -1).astype(np.float32)
        if self.mean is not None and self.scale is not None:
            x = np.clip((x - self.mean) * self.scale, -self.clip, self.clip)
        for weight, bias in self.layers[:-1]:
            x = x @ weight + bias
            x = np.tanh(x) if self.activation == "tanh" else np.maximum(x, 0)
        x = x @ self.layers[-1][0] + self.layers[-1][1]
        return x.argmax(-1) if self.discrete else x

    def write(self, folder: Path) -> None:
        """Write it as the referee reads it."""
        spec: dict[str, object] = {"schema": "overnight/policy/1", "kind": "weights", "architecture": "mlp"}
        spec |= {"observation_size": self.layers[0][0].shape[0], "action_size": self.layers[-1][0].shape[1]}
        spec |= {"hidden": [bias.size for _, bias in self.layers[:-1]], "activation": self.activation}
        spec |= {"head": "categorical" if self.discrete else "gaussian"}
        spec |= {"normalizer": self.mean is not None, "normalizer_clip": self.clip}
        arrays = {f"layer{i}.{n}": a for i, pair in enumerate(self.layers) for n, a in zip(("weight", "bias"), pair)}  # noqa: B905 - two names, and two arrays in each pair
        if self.mean is not None and self.scale is not None:
            arrays |= {"obs_mean": self.mean, "obs_scale": self.scale}
        tensors = {name: ("F32", array.shape, array.astype("<f4").tobytes()) for name, array in arrays.items()}
        (folder / "policy.json").write_text(json.dumps(spec, indent=2) + "\n")
        write_tensors(folder / "model.safetensors", tensors)


class Diary:
    """One training of a peer: its order, its clock, its reports and its snapshots."""

    def __init__(self) -> None:
        self.training = Training(load())
        self.order = self.training.order
        self._saved = 0
        limit_threads(self.order.cores)

    def begin(self, **facts: str) -> None:
        """Start the clock: everything is imported and made."""
        self.training.ready(**facts)

    def spent(self) -> bool:
        """Whether the budget is used up."""
        return self.training.spent(0)

    def left(self) -> float:
        """The share of the budget that is left, by which step sizes fall."""
        return 1.0 - self.training.share(0)

    def report(self, env_steps: int) -> None:
        """Say how many steps were learnt from until now."""
        self.training.report(env_steps)

    def keep(self, policy: Callable[[], Policy]) -> None:
        """Save the policy where another tenth of the budget is spent."""
        part = int(self.training.share(0) * SNAPSHOTS)
        if self._saved < part < SNAPSHOTS:
            self._saved = part
            self.training.save_policy(policy().write)

    def end(self, policy: Policy) -> None:
        """Save the last policy."""
        self.training.save_policy(policy.write)
