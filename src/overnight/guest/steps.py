"""The environments of a metered training: they live with a broker, and every step is asked for and counted there.

NumPy and the standard library only, like the rest of this folder. A run is metered where the contract says so; then
the variable `OVERNIGHT_BROKER` is set, and the environment's own code is out of the trainer's reach.

    envs = Environments(seeds)                 # one environment for each seed
    observations = envs.reset()                # float32 [N, observation_size]
    observations, rewards, terminated, truncated = envs.step(actions)

The step that ends an episode returns its last observation; the next step of that environment ignores its action and
returns the first observation of a new episode, with reward 0. Every step of every environment counts, those too.

Frames, on two pipes, little endian: `u8 kind | u32 length | body`. Question and answer follow each other in turn.

    make     u64 seeds [N]                     answered by JSON: what the environments are like
    reset    nothing                           answered by observations
    step     i32 [N] or [N, lists], f32 [N, K] answered by observations | f32 rewards | u8 terminated | u8 truncated
"""

import json
import math
import os
import struct
from collections.abc import Sequence
from typing import Any

from . import wire  # this folder is copied next to the run, where it has no other name

VARIABLE = "OVERNIGHT_BROKER"
"""The variable that holds the numbers of two descriptors: for answers, and for questions."""
HEAD = struct.Struct("<BI")
MAKE, RESET, STEP = 1, 2, 3
"""Kinds of questions; an answer that is one repeats the kind."""
SPENT, REFUSED = 4, 5
"""Kinds of answers besides: the budget holds no such step, and a sentence that says what is wrong."""
MOST_ENVS = 4096


class Spent(Exception):
    """The budget does not hold the step that was asked for. It was not taken, and none will be."""


class Refused(Exception):
    """What the broker cannot or will not do, as one sentence."""


def is_metered() -> bool:
    """Whether this training has a broker."""
    return bool(os.environ.get(VARIABLE))


class Environments:
    """Many copies of the run's environment, stepped side by side by the broker. New ones take the place of old ones."""

    def __init__(self, seeds: Sequence[int]) -> None:
        import numpy as np

        self._numbers = np
        self._answers, self._questions = map(int, os.environ[VARIABLE].split(","))
        self.num_envs = len(seeds)
        told = json.loads(self._ask(MAKE, struct.pack(f"<{len(seeds)}Q", *seeds)))
        self.backend: str = told["backend"]
        """The library that steps them."""
        self.choices = tuple(told["choices"])
        """The lengths of the lists from which an action is chosen, each counted from 0; none where it is numbers."""
        self.firsts = tuple(told["firsts"])
        """What the first action of each list is called outside of here."""
        self.action_shape = tuple(told["action_shape"])
        """The shape of one action of numbers; it is sent flat."""
        self.low, self.high = (np.array(told[end], np.float32) for end in ("low", "high"))
        """The least and the greatest number at each place of a flat action."""
        self.observation_shape = tuple(told["observation_shape"])
        """The shape of one observation; it comes flat."""
        self._observation_size = math.prod(self.observation_shape)

    def reset(self) -> Any:  # noqa: ANN401 - an array, where NumPy is there
        """Begin an episode in every environment."""
        return self._observations(bytearray(self._ask(RESET, b"")))

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any]:  # noqa: ANN401 - an array, where NumPy is there
        """Take one action in every environment, or raise `Spent` where the budget does not hold that many steps."""
        np = self._numbers
        flat = np.ascontiguousarray(actions, "<i4" if self.choices else "<f4")
        data = bytearray(self._ask(STEP, flat.tobytes()))
        observations, at = self._observations(data), len(data) - 6 * self.num_envs
        rewards = np.frombuffer(data, "<f4", self.num_envs, at)
        terminated, truncated = np.frombuffer(data, np.bool_, offset=at + 4 * self.num_envs).reshape(2, -1)
        return observations, rewards, terminated, truncated

    def _observations(self, data: bytearray) -> Any:  # noqa: ANN401 - as above
        size = self.num_envs * self._observation_size
        return self._numbers.frombuffer(data, "<f4", size).reshape(self.num_envs, self._observation_size)

    def _ask(self, kind: int, body: bytes) -> bytes:
        wire.write_all(self._questions, HEAD.pack(kind, len(body)) + body)
        answered, length = HEAD.unpack(wire.read_exactly(self._answers, HEAD.size))
        answer = wire.read_exactly(self._answers, length)
        if answered == SPENT:
            raise Spent("the budget holds no more steps")
        if answered == REFUSED:
            raise Refused(answer.decode(errors="replace"))
        return answer
