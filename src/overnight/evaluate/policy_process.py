"""A candidate's own policy code, in a process of its own, behind frames of fixed length.

The referee asks, waits until a deadline, and takes exactly the bytes that it expects. An
answer that comes early, late, with the wrong number, of the wrong length or not at all is
the policy's error and never an exception in the referee.

The policy has no descriptor but its two pipes, no capability even where the user is root, and
cannot open the referee's memory or descriptors. It dies with the referee, and every process that it
started is ended with it. From tier T2 on it reads only its own folder and the installed packages,
writes nowhere, has no sockets, and cannot signal the referee. At T1 it can: then there is no result,
and the engine asks again.
"""

import json
import os
import secrets
import select
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from overnight.evaluate.episodes import Array, PolicyError
from overnight.guest import wire
from overnight.sandbox.bounds import bounds_for
from overnight.sandbox.meter import Meter, cap_tasks, most_tasks, physical_bytes
from overnight.sandbox.processes import end_tree
from overnight.sandbox.standstill import Standstill
from overnight.sandbox.start import start
from overnight.sandbox.tiers import Child, Tier, user_for

LOAD_SECONDS = 30.0
FIRST_SECONDS = 10.0
STEP_SECONDS = 2.0
ALL_SECONDS = 1200.0
"""How long a policy may take for all its answers: less than the engine waits for a referee."""
MOST_MEMORY = physical_bytes() // 2
MOST_PROCESSES = 64
_LOOK_SECONDS = 0.2
_STILL_SECONDS = 1.0
"""Waits are shorter than this by far: whoever was away for longer stood still, and no policy is late for that."""
_NONCES = 256
_START = """
import fcntl, os, runpy, sys
questions, answers = (fcntl.fcntl(int(sys.argv.pop(1)), fcntl.F_DUPFD, 10) for _ in range(2))
os.dup2(questions, 3), os.dup2(answers, 4), os.closerange(5, 256)
runpy.run_module("overnight.guest.act", run_name="__main__")
"""


class Folders(NamedTuple):
    """Where a policy is."""

    run: Path
    """The run that left it."""
    policy: Path
    """What was taken of it."""


class PolicyProcess:
    """A policy that can be called like a function."""

    def __init__(self, folders: "Folders", environment: Any, lanes: int, tier: Tier = "T1") -> None:  # noqa: ANN401
        space, actions = environment.observation_space, environment.action_space
        self._lanes, self._number = lanes, 0
        self._action_shape = (lanes,) if hasattr(actions, "n") else (lanes, *actions.shape)
        self._action_type = np.dtype(np.int64 if hasattr(actions, "n") else np.float32)
        self._answer_bytes = wire.HEAD.size + int(np.prod(self._action_shape)) * self._action_type.itemsize
        self._left = ALL_SECONDS
        self._meter, self._next_look = Meter(), 0.0
        self._nonces = self._head = b""
        self._process, self._questions, self._answers = _start(folders, tier)
        self._readable, self._writable = select.poll(), select.poll()
        self._readable.register(self._answers, select.POLLIN)
        self._writable.register(self._questions, select.POLLOUT)
        self._still = Standstill(_STILL_SECONDS)
        self._load_until = self._now() + LOAD_SECONDS
        try:
            self._greet(space)
        except PolicyError:
            self.close()
            raise

    def _greet(self, space: Any) -> None:  # noqa: ANN401
        """Tell the shapes. The policy loads while the environments are made; the first question waits for it."""
        shapes = {
            "lanes": self._lanes,
            "observation_shape": list(space.shape),
            "observation_type": np.dtype(space.dtype).str,
            "action_type": self._action_type.str,
        }
        text = json.dumps(shapes).encode()
        self._send(wire.LENGTH.pack(len(text)) + text, LOAD_SECONDS)

    def _wait_until_loaded(self) -> None:
        if self._receive(1, self._load_until, f"did not load within {LOAD_SECONDS:g} s") != wire.LOADED:
            raise PolicyError("The policy answered before it was asked.")

    def announce(self) -> None:
        """Send the head of the next question, so that the policy is awake when the rest comes."""
        if not self._head and self._number:
            self._ask_next(STEP_SECONDS)

    def __call__(self, observations: Array, reset: Array) -> Array:
        """Ask for one batch of actions."""
        if self._number == 0:
            self._wait_until_loaded()
        if self._readable.poll(0):
            raise PolicyError("The policy answered before it was asked.")
        limit = STEP_SECONDS if self._number else FIRST_SECONDS
        began = self._now()
        if not self._head:
            self._ask_next(limit)
        head, self._head = self._head, b""
        self._look_at(began)
        self._send(b"".join((reset.astype(np.uint8).tobytes(), observations.tobytes())), limit)
        answer = self._receive(self._answer_bytes, began + limit, f"did not answer within {limit:g} s")
        self._left -= self._now() - began
        if self._left < 0:
            raise PolicyError(f"The policy took more than {ALL_SECONDS:g} s for its answers.")
        if answer[: wire.HEAD.size] != head:
            raise PolicyError("The policy answered another question than it was asked.")
        return np.frombuffer(answer, self._action_type, offset=wire.HEAD.size).reshape(self._action_shape)

    def _ask_next(self, limit: float) -> None:
        self._number += 1
        self._head = wire.HEAD.pack(self._number, self._nonce())
        self._send(self._head, limit)

    def close(self) -> None:
        """End the policy's process and every process that came from it."""
        os.close(self._questions)
        os.close(self._answers)
        end_tree(self._process.pid)
        self._process.wait()

    def _now(self) -> float:
        """The time that policies are given: what the whole machine stood still does not count."""
        self._still.look()
        return self._still.running()

    def _nonce(self) -> bytes:
        """Eight bytes that nobody can know; many are drawn at once."""
        if not self._nonces:
            self._nonces = secrets.token_bytes(8 * _NONCES)
        nonce, self._nonces = self._nonces[:8], self._nonces[8:]
        return nonce

    def _send(self, data: bytes, limit: float) -> None:
        """Write a part of a question; a policy that does not read it cannot hold the referee up."""
        view, until = memoryview(data), 0.0
        while True:
            try:
                view = view[os.write(self._questions, view) :]
            except BrokenPipeError as error:
                raise PolicyError("The policy's process ended before it was asked.") from error
            except BlockingIOError:
                pass
            if not view:
                return
            until = until or self._now() + limit
            if not self._wait(self._writable, until):
                raise PolicyError(f"The policy did not read its question within {limit:g} s.")

    def _receive(self, size: int, until: float, what: str) -> bytes:
        found = b""
        while len(found) < size:
            if not wire.comes_soon(self._readable) and not self._wait(self._readable, until):
                raise PolicyError(f"The policy {what}.")
            data = os.read(self._answers, size - len(found))
            if not data:
                raise PolicyError("The policy's process ended while it was asked.")
            found += data
        return found

    def _wait(self, ready: "select.poll", until: float) -> bool:
        """Wait for one end of a pipe until a moment, and look meanwhile what the policy takes of the machine."""
        while True:
            now = self._now()
            self._look_at(now)
            if ready.poll(max(min(until - now, _LOOK_SECONDS), 0) * 1000):
                return True
            if now >= until:
                return False

    def _look_at(self, now: float) -> None:
        """Now and then, look what the policy takes of the machine."""
        if now >= self._next_look:
            self._next_look = now + _LOOK_SECONDS
            self._check_caps()

    def _check_caps(self) -> None:
        used = self._meter.look(memory_cap=MOST_MEMORY, most=MOST_PROCESSES)
        if used.memory_bytes > MOST_MEMORY:
            raise PolicyError(f"The policy used more than {MOST_MEMORY / 1e6:,.0f} MB of memory.")
        if used.processes > MOST_PROCESSES:
            raise PolicyError(f"The policy had more than {MOST_PROCESSES} processes.")


def _start(folders: Folders, tier: Tier) -> tuple["subprocess.Popen[bytes]", int, int]:
    ask_read, ask_write = os.pipe()
    answer_read, answer_write = os.pipe()
    os.set_blocking(ask_write, False)
    most = most_tasks(user_for(tier) or os.getuid(), MOST_PROCESSES)
    child = Child(
        command=(sys.executable, "-I", "-B", "-c", _START, str(ask_read), str(answer_write), str(folders.policy)),
        cwd="/",
        env={
            "PATH": os.defpath,
            "HOME": "/nonexistent",
            "LC_ALL": "C",
            "OMP_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1",
            "OVERNIGHT_RUN": str(folders.run / "run.json"),  # by this, what a killed referee left is found
        },
        pass_fds=(ask_read, answer_write),
        first=lambda: cap_tasks(most),
    )
    try:
        process = start(child, bounds_for((str(folders.policy),), hidden=(str(folders.run),)), tier)
    except OSError:
        os.close(ask_write)
        os.close(answer_read)
        raise
    finally:
        os.close(ask_read)
        os.close(answer_write)
    return process, ask_write, answer_read
