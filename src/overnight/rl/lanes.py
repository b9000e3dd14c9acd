"""A rollout played by several threads: each has environments of its own, and waits for the others once, at the end.

The same seeds, noise and policy give the same rollout, whichever thread is faster, because every lane writes into
places of its own. How many lanes there are decides how many observations a policy sees at a time, which can change
the last bit of an action.
"""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from overnight.rl.envs import batched

Array = NDArray[Any]
Act = Callable[[Array, Array], Array]
"""From observations and noise to actions."""


class Lane:
    """Some of the environments, with what lasts from one rollout to the next."""

    def __init__(self, envs: batched.Batch, first: int) -> None:
        self.envs, self.observations, self.place = envs, envs.reset(), slice(first, first + envs.num_envs)
        self.totals = np.zeros((2, envs.num_envs))
        self.finished: list[Array] = []  # return and length of each episode that ended in the last rollout
        self.env_seconds = 0.0  # spent inside the environments in the last rollout

    def play(self, act: Act, noise: Array, into: tuple[Array, ...], over: Callable[[], bool]) -> bool:
        """Play these environments' part of a rollout; False where the training is over before its end."""
        envs, noise = self.envs, noise[:, self.place]
        observations, actions, rewards, terminated, ended, counted = (part[:, self.place] for part in into)
        self.finished, self.env_seconds = [], 0.0
        for t in range(len(rewards)):
            if over():
                return False
            observations[t], counted[t] = self.observations, ~envs.resetting
            actions[t] = act(self.observations, noise[t])
            began = time.perf_counter()
            self.observations, rewards[t], terminated[t], _ = envs.step(actions[t])
            self.env_seconds += time.perf_counter() - began
            ended[t] = envs.resetting
            self.totals += (rewards[t], counted[t])
            if envs.resetting.any():
                self.finished += list(self.totals.T[envs.resetting])
                self.totals[:, envs.resetting] = 0
        observations[-1] = self.observations
        return True


class Lanes:
    """All environments of a training."""

    def __init__(self, batches: tuple[batched.Batch, ...]) -> None:
        self.like = batches[0]
        """What the environments of every lane are like."""
        firsts = accumulate((envs.num_envs for envs in batches[:-1]), initial=0)
        self._lanes = [Lane(envs, first) for envs, first in zip(batches, firsts, strict=True)]
        self._threads = ThreadPoolExecutor(len(batches))

    def play(self, act: Act, noise: Array, into: tuple[Array, ...], over: Callable[[], bool]) -> bool:
        """Play one rollout into `[T+1, N, D]` observations and then `[T, N]` actions, rewards and marks.

        False where the training is over before its end.
        """
        return all(list(self._threads.map(lambda lane: lane.play(act, noise, into, over), self._lanes)))

    def episodes(self) -> Array:
        """The mean return and length of the episodes that ended in the last rollout."""
        found = [one for lane in self._lanes for one in lane.finished]
        return np.mean(found, axis=0) if found else np.full(2, np.nan)

    def env_seconds(self) -> float:
        """Time inside the environments in the last rollout, in the middle of the lanes."""
        return float(np.mean([lane.env_seconds for lane in self._lanes]))

    def close(self) -> None:
        """Let the environments go."""
        self._threads.shutdown()
        for lane in self._lanes:
            lane.envs.close()
