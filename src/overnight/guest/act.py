"""The policy's side of an evaluation: `python act.py POLICY_FOLDER`, observations on fd 3, actions on fd 4.

Loads the candidate's own policy in the candidate's own process, and answers frames. It
knows no seed, no reward and no score, and nothing it does here can reach the referee.
"""

import importlib.util
import json
import select
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from . import wire  # this folder is copied next to the run, where it has no other name

OBSERVATIONS, ACTIONS = 3, 4


def load_policy(folder: Path) -> Callable[[Any, Any], Any]:
    """Call the entry that policy.json names, `module:function`, with the policy's folder."""
    entry = json.loads((folder / "policy.json").read_text())["entry"]
    module_name, _, function = entry.partition(":")
    sys.path.insert(0, str(folder))
    spec = importlib.util.spec_from_file_location(module_name, folder / f"{module_name}.py")
    if spec is None or spec.loader is None:
        raise ImportError(f"{module_name}.py is not in the policy's folder")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    act: Callable[[Any, Any], Any] = getattr(module, function)(folder)
    return act


def serve(folder: Path) -> None:
    """Answer questions until the referee closes the pipe."""
    import numpy as np

    size = wire.LENGTH.unpack(wire.read_exactly(OBSERVATIONS, wire.LENGTH.size))[0]
    shapes = json.loads(wire.read_exactly(OBSERVATIONS, size))
    lanes, shape = shapes["lanes"], tuple(shapes["observation_shape"])
    observation_type, action_type = np.dtype(shapes["observation_type"]), np.dtype(shapes["action_type"])
    body = lanes * int(np.prod(shape, dtype=int)) * observation_type.itemsize
    act = load_policy(folder)
    wire.write_all(ACTIONS, wire.LOADED)
    ready = select.poll()
    ready.register(OBSERVATIONS, select.POLLIN)
    while True:
        try:
            head = wire.read_exactly(OBSERVATIONS, wire.HEAD.size)
            wire.comes_soon(ready)
            frame = wire.read_exactly(OBSERVATIONS, lanes + body)
        except EOFError:
            return
        mask = np.frombuffer(frame, np.uint8, lanes).astype(bool)
        observations = np.frombuffer(frame, observation_type, offset=lanes).reshape((lanes, *shape))
        actions = np.ascontiguousarray(act(observations.copy(), mask), dtype=action_type)
        wire.write_all(ACTIONS, head + actions.tobytes())


if __name__ == "__main__":
    serve(Path(sys.argv[1]))
