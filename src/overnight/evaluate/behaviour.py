"""What a policy does, counted while the referee plays: which actions it takes, and how they scatter."""

from typing import Any, NamedTuple

import numpy as np

from overnight.evaluate.episodes import Array, Policy

_MOST_LISTED = 20


class Actions(NamedTuple):
    """The actions of some episodes, summed up."""

    steps: int
    """How many were taken."""
    shares: tuple[float, ...] = ()
    """The share of each choice, for actions that are chosen from a list."""
    mean: float = 0.0
    """The mean of all numbers, for actions that are numbers."""
    spread: float = 0.0
    """Their standard deviation."""


class Tally:
    """A policy that plays as the one it was made of, and counts. Meant for one lane: idle lanes would count too."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._taken: list[Array] = []

    def __call__(self, observations: Array, reset: Array) -> Array:
        """Ask the policy, and note what it answers; whether that is an action is for the caller to check."""
        actions = self._policy(observations, reset)
        self._taken.append(np.array(actions).ravel())
        return actions

    def told(self) -> dict[str, Any]:
        """Everything that was counted, as plain numbers."""
        taken = np.concatenate(self._taken) if self._taken else np.zeros(0)
        if np.issubdtype(taken.dtype, np.integer):
            low, high = (int(taken.min()), int(taken.max())) if len(taken) else (0, 0)
            if low >= 0 and high < _MOST_LISTED:
                counts = np.bincount(taken, minlength=high + 1)
                return {"steps": len(self._taken), "shares": [float(one) for one in counts / max(len(taken), 1)]}
        numbers = taken.astype(np.float64)
        return {"steps": len(self._taken), "mean": float(numbers.mean()), "spread": float(numbers.std())}
