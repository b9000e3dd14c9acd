"""A candidate's own policy code, in a process of its own, behind frames of fixed length.

The referee asks, waits until a deadline, and takes exactly the bytes that it expects. An
answer that comes early, late, with the wrong number, of the wrong length or not at all is
the policy's error and never an exception in the referee.
"""

import json
import os
import secrets
import select
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from overnight.evaluate.episodes import Array, PolicyError
from overnight.guest import wire

LOAD_SECONDS = 30.0
FIRST_SECONDS = 10.0
STEP_SECONDS = 2.0
_START = """
import fcntl, os, runpy, sys
asked, answered = (fcntl.fcntl(int(sys.argv.pop(1)), fcntl.F_DUPFD, 10) for _ in range(2))
os.dup2(asked, 3), os.dup2(answered, 4), os.closerange(5, 64)
sys.path.insert(0, sys.argv.pop(1))
runpy.run_module("guest.act", run_name="__main__")
"""
"""Whatever numbers the pipes have, they become 3 and 4; moved aside first, because they may be 3 and 4 themselves."""


class PolicyProcess:
    """A policy that can be called like a function."""

    def __init__(self, run_folder: Path, policy: Path, environment: Any, lanes: int) -> None:  # noqa: ANN401
        space, actions = environment.observation_space, environment.action_space
        self._lanes, self._number = lanes, 0
        self._action_shape = (lanes,) if hasattr(actions, "n") else (lanes, *actions.shape)
        self._action_type = np.dtype(np.int64 if hasattr(actions, "n") else np.float32)
        self._answer_bytes = wire.HEAD.size + int(np.prod(self._action_shape)) * self._action_type.itemsize
        self._process, self._questions, self._answers = _start(run_folder, policy)
        shapes = {
            "lanes": lanes,
            "observation_shape": list(space.shape),
            "observation_type": np.dtype(space.dtype).str,
            "action_type": self._action_type.str,
        }
        text = json.dumps(shapes).encode()
        self._send(wire.LENGTH.pack(len(text)) + text)
        self._receive(1, LOAD_SECONDS, "did not load")

    def __call__(self, observations: Array, reset: Array) -> Array:
        """Ask for one batch of actions."""
        if select.select([self._answers], [], [], 0)[0]:
            raise PolicyError("The policy answered before it was asked.")
        self._number += 1
        head = wire.HEAD.pack(self._number, secrets.token_bytes(8))
        self._send(head + reset.astype(np.uint8).tobytes() + np.ascontiguousarray(observations).tobytes())
        limit = FIRST_SECONDS if self._number == 1 else STEP_SECONDS
        answer = self._receive(self._answer_bytes, limit, "did not answer")
        if answer[: wire.HEAD.size] != head:
            raise PolicyError("The policy answered another question than it was asked.")
        return np.frombuffer(answer, self._action_type, offset=wire.HEAD.size).reshape(self._action_shape).copy()

    def close(self) -> None:
        """End the policy's process and everything that it started in its session."""
        os.close(self._questions)
        os.close(self._answers)
        try:
            os.killpg(self._process.pid, 9)
        except ProcessLookupError:
            return
        finally:
            self._process.wait()

    def _send(self, data: bytes) -> None:
        try:
            wire.write_all(self._questions, data)
        except (BrokenPipeError, BlockingIOError) as error:
            raise PolicyError("The policy's process ended before it was asked.") from error

    def _receive(self, size: int, limit: float, what: str) -> bytes:
        until = time.monotonic() + limit
        found = bytearray()
        while len(found) < size:
            left = until - time.monotonic()
            if left <= 0 or not select.select([self._answers], [], [], left)[0]:
                raise PolicyError(f"The policy {what} within {limit:g} s.")
            data = os.read(self._answers, size - len(found))
            if not data:
                raise PolicyError("The policy's process ended while it was asked.")
            found += data
        return bytes(found)


def _start(run_folder: Path, policy: Path) -> tuple["subprocess.Popen[bytes]", int, int]:
    ask_read, ask_write = os.pipe()
    answer_read, answer_write = os.pipe()
    process = subprocess.Popen(
        (sys.executable, "-I", "-B", "-c", _START, str(ask_read), str(answer_write), str(run_folder), str(policy)),
        cwd="/",
        env={"PATH": os.defpath, "HOME": "/nonexistent", "LC_ALL": "C", "OMP_NUM_THREADS": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        pass_fds=(ask_read, answer_write),
        start_new_session=True,
    )
    os.close(ask_read)
    os.close(answer_write)
    return process, ask_write, answer_read
