"""What off-policy trainers remember: a ring of transitions, and the vector environments that fill it."""

import os
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from overnight.rl.envs import batched
from overnight.rl.moments import Moments

Array = NDArray[Any]


class Transitions(NamedTuple):
    """Steps of an environment, one in a row of each array."""

    observation: Array
    action: Array
    reward: Array
    following: Array
    """The observation after the step; of an ended episode, its last one."""
    terminated: Array
    """1 where nothing follows. A truncated episode has 0: it would have gone on."""


class Replay:
    """A ring that forgets the oldest transition first."""

    def __init__(self, capacity: int, observation_size: int, action: Array) -> None:
        """Make room for so many transitions with actions like this one, or say that no machine like this one has it."""
        needed = capacity * 4 * (2 * observation_size + action.size + 2)
        if needed > (there := os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")):
            raise batched.UnsupportedEnv(
                f"params: a `replay_size` of {capacity:,} takes {needed / 2**30:.0f} GiB with observations of "
                f"{observation_size:,} numbers, but this machine has {there / 2**30:.0f} GiB"
            )
        numbers, wide = np.zeros((2, capacity), np.float32), (2, capacity, observation_size)
        seen = np.zeros(wide, np.float32)
        actions = np.zeros((capacity, *action.shape), action.dtype)
        self.rows = Transitions(seen[0], actions, numbers[0], seen[1], numbers[1])
        self.capacity, self.size, self.next = capacity, 0, 0

    def add(self, found: Transitions) -> None:
        """Take in transitions, over the oldest ones where the ring is full."""
        count = len(found.reward)
        places = (self.next + np.arange(count)) % self.capacity
        for kept, new in zip(self.rows, found, strict=True):
            kept[places] = new
        self.next = (self.next + count) % self.capacity
        self.size = min(self.size + count, self.capacity)

    def sample(self, rng: np.random.Generator, shape: tuple[int, int]) -> Transitions:
        """Draw `[updates, batch]` transitions, each as likely as any other."""
        chosen = rng.integers(0, self.size, shape)
        return Transitions(*(part[chosen] for part in self.rows))

    def packed(self) -> dict[str, Array]:
        """What is remembered, for a checkpoint."""
        filled = {f"replay.{name}": part[: self.size] for name, part in self.rows._asdict().items()}
        return {**filled, "replay.next": np.array(self.next)}

    def unpack(self, arrays: dict[str, Array]) -> None:
        """Go on where `packed` was called."""
        self.next, self.size = int(arrays["replay.next"]), len(arrays["replay.reward"])
        for name, part in self.rows._asdict().items():
            part[: self.size] = arrays[f"replay.{name}"]


def is_due(updates_per_step: float, steps: int, lap: int) -> bool:
    """Whether a lap that ended with so many steps is learnt from: each, or every so many that earn one update."""
    return updates_per_step * lap >= 1 or int(updates_per_step * steps) > int(updates_per_step * (steps - lap))


MOST_UPDATES = 256


def rounds_of(updates: float) -> list[int]:
    """So many updates, at least one, as the updates of each compiled call.

    All calls are alike, so that one program serves, and none is so long that the minibatches
    which are drawn for it beforehand fill the memory. The sum may be rounded up.
    """
    whole = max(1, round(updates))
    calls = -(-whole // MOST_UPDATES)
    return [-(-whole // calls)] * calls


class Player:
    """Plays the environments into the replay, and keeps what lasts from one lap to the next."""

    def __init__(self, envs: batched.Batch, replay: Replay, *, normalize: bool) -> None:
        self.replay, self.normalize, self.seen = replay, normalize, Moments(envs.observation_size)
        self.finished: list[Array] = []  # return and length of each episode that ended, until they are reported
        self.env_seconds = 0.0  # spent inside the environments in the last lap
        self.enter(envs)

    def enter(self, envs: batched.Batch) -> None:
        """Begin an episode in every one of these environments."""
        self.envs, self.observations = envs, envs.reset()
        self.totals = np.zeros((2, envs.num_envs))

    def normaliser(self) -> Callable[[Array], Array]:
        """What makes observations into what the network sees, with the statistics of this moment."""
        return self.seen.normaliser() if self.normalize else lambda observations: observations

    def play(self, steps: int, act: Callable[[Array], tuple[Array, Array]], over: Callable[[], bool]) -> bool:
        """Take so many steps in each environment; False where the training is over before that.

        `act` returns what the replay keeps of the actions, and what the environments take. The
        step in which an environment resets is no experience, so the replay never sees it.
        """
        envs, normalise, self.env_seconds = self.envs, self.normaliser(), 0.0
        for _ in range(steps):
            if over():
                return False
            before, counted = self.observations, ~envs.resetting
            kept, taken = act(normalise(before))
            began = time.perf_counter()
            found = envs.step(taken)
            self.env_seconds += time.perf_counter() - began
            self.observations = found.observations
            rows = (before, kept, found.rewards, found.observations, found.terminated)
            self.replay.add(Transitions(*(part[counted] for part in rows)))
            self.totals += (found.rewards, counted)
            if envs.resetting.any():
                self.finished += list(self.totals.T[envs.resetting])
                self.totals[:, envs.resetting] = 0
            if self.normalize and counted.any():
                self.seen.absorb(before[counted])
        return True

    def episodes(self) -> Array:
        """The mean return and length of the episodes that ended since the last call."""
        found, self.finished = self.finished, []
        return np.mean(found, axis=0) if found else np.full(2, np.nan)
