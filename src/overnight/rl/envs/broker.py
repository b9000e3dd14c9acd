"""The environments of a metered training, in a process that the trainer cannot reach.

`python -m overnight.rl.envs.broker QUESTIONS ANSWERS COUNT`, three descriptors that the supervisor opened. The trainer
asks in the frames of `guest/steps`; here the environments are made, reset and stepped. Every step of every environment
is counted before it is taken, and none is taken beyond the budget. The count stands in a file of the supervisor's: a
run that goes on after a kill goes on counting.

Whatever a trainer sends is a number, checked, or the end of the conversation. Does not: notice a trainer that brings a
simulator of its own.
"""

import json
import os
import struct
import sys
import warnings
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from overnight.guest import steps, wire
from overnight.guest.train import Order, load
from overnight.rl.envs import batched

_COUNT = struct.Struct("<Q")
_MOST_BYTES = 1 << 26
"""The longest question; what is longer is no action of any environment."""
_MOST_SAID = 4096


class _Wrong(Exception):
    """What the trainer asked for that nobody can do, as one sentence."""


class Broker:
    """The environments, and how many steps were taken in them."""

    def __init__(self, order: Order, count: int) -> None:
        self._order, self._count = order, count
        self._envs: batched.Batch | None = None
        stored = os.pread(count, _COUNT.size, 0)
        self._steps = _COUNT.unpack(stored)[0] if len(stored) == _COUNT.size else 0

    def answer(self, kind: int, body: bytes) -> tuple[int, bytes]:
        """The answer to one question."""
        if kind == steps.MAKE:
            return kind, self._make(body)
        if self._envs is None:
            raise _Wrong("environments are reset and stepped after they were made")
        if kind == steps.RESET:
            return kind, self._envs.reset().tobytes()
        if kind != steps.STEP:
            raise _Wrong(f"there is no question of kind {kind}")
        actions = _actions(self._envs, body)
        return (kind, self._step(self._envs, actions)) if self._count_on(self._envs.num_envs) else (steps.SPENT, b"")

    def _make(self, body: bytes) -> bytes:
        if not body or len(body) % 8 or len(body) > 8 * steps.MOST_ENVS:
            raise _Wrong(f"1 to {steps.MOST_ENVS} seeds of 8 bytes are needed")
        if self._envs is not None:
            self._envs.close()
        seeds = struct.unpack(f"<{len(body) // 8}Q", body)
        self._envs = envs = batched.make(self._order.env, seeds, threads=self._order.cores)
        ends = ((), ()) if envs.discrete else envs.bounds()
        low, high = ([float(number) for number in end] for end in ends)
        told = {
            "backend": envs.backend,
            "observation_shape": envs.observation_shape,
            "action_shape": [] if envs.discrete else envs.action_shape,
            "choices": envs.choices,
            "firsts": envs.firsts,
            "low": low,
            "high": high,
        }
        return json.dumps(told).encode()

    def _count_on(self, wanted: int) -> bool:
        """Whether the budget holds so many more steps; they are counted before the first one is taken."""
        if self._steps + wanted > self._order.budget.amount:
            return False
        self._steps += wanted
        os.pwrite(self._count, _COUNT.pack(self._steps), 0)
        return True

    @staticmethod
    def _step(envs: batched.Batch, actions: NDArray[Any]) -> bytes:
        found = envs.step(actions)
        flags = found.terminated.tobytes() + found.truncated.tobytes()
        return found.observations.tobytes() + found.rewards.tobytes() + flags


def _actions(envs: batched.Batch, body: bytes) -> NDArray[Any]:
    """Actions that the environments have, or what is wrong with them."""
    if len(body) != envs.num_envs * envs.no_action.nbytes:
        raise _Wrong(f"{len(body)} bytes are not one action for each of {envs.num_envs} environments")
    found = np.frombuffer(body, envs.no_action.dtype).reshape(envs.num_envs, *envs.no_action.shape)
    lengths: Any = envs.choices[0] if len(envs.choices) == 1 else envs.choices
    if envs.discrete and not ((found >= 0) & (found < lengths)).all():
        raise _Wrong("an action is none of its list")
    if not envs.discrete and not np.isfinite(found).all():
        raise _Wrong("an action is not finite")
    return found


def serve(broker: Broker, questions: int, answers: int) -> None:
    """Answer until the trainer is gone, or until it asks for what nobody can do."""
    answered = 0
    while answered != steps.REFUSED:
        try:
            answered, body = broker.answer(*_question(questions))
        except EOFError:
            return
        except (_Wrong, batched.UnsupportedEnv) as error:
            answered, body = steps.REFUSED, _said(str(error))
        except Exception as error:  # noqa: BLE001 - an environment may raise anything, and the trainer is told
            answered, body = steps.REFUSED, _said(f"{type(error).__name__}: {error}")
        wire.write_all(answers, steps.HEAD.pack(answered, len(body)) + body)


def _question(questions: int) -> tuple[int, bytes]:
    kind, length = steps.HEAD.unpack(wire.read_exactly(questions, steps.HEAD.size))
    if length > _MOST_BYTES:
        raise _Wrong(f"a question of {length} bytes is too long")
    return kind, wire.read_exactly(questions, length)


def _said(sentence: str) -> bytes:
    return sentence.encode()[:_MOST_SAID]


def main(words: list[str]) -> int:
    """Serve one training."""
    questions, answers, count = map(int, words)
    warnings.simplefilter("ignore")  # there is nobody who reads them
    with suppress(BrokenPipeError):  # a trainer may go without hearing the answer
        serve(Broker(load(), count), questions, answers)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
