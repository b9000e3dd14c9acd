"""A trained policy at work. It needs NumPy; to play episodes it needs Gymnasium too, and nothing else.

`python act.py` plays the seeds of expected.json and says of each return whether it is the one that was measured.

    import act

    policy = act.load(".")
    action = act.fit(policy(observation), environment.action_space)
"""

import importlib.util
import json
import struct
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent


def load(folder: str | Path = HERE) -> Callable[..., Any]:
    """Return the function from one observation to one action.

    Its second argument says whether an episode begins; only a policy with a memory needs it.
    """
    where = Path(folder)
    if (where / "policy").is_dir():
        where = where / "policy"
    spec = json.loads((where / "policy.json").read_text())
    return load_code(where, spec["entry"]) if spec["kind"] == "code" else load_weights(where, spec)


def load_weights(where: Path, spec: dict[str, Any]) -> Callable[..., Any]:
    """A plain network: normalise, then one matrix after another, then the best action or the mean."""
    arrays = read_tensors(where / "model.safetensors")
    depth = len(spec.get("hidden", ())) + 1
    layers = [(arrays[f"layer{i}.weight"], arrays[f"layer{i}.bias"]) for i in range(depth)]
    clip = np.float32(spec.get("normalizer_clip", 10.0))

    def policy(observation: Any, reset: bool = False) -> Any:
        x = np.asarray(observation).reshape(1, -1).astype(np.float32)
        if spec.get("normalizer", False):
            x = np.clip((x - arrays["obs_mean"]) * arrays["obs_scale"], -clip, clip)
        for weight, bias in layers[:-1]:
            x = x @ weight + bias
            x = np.tanh(x) if spec["activation"] == "tanh" else np.maximum(x, np.float32(0))
        out = (x @ layers[-1][0] + layers[-1][1])[0]
        if spec["head"] == "squashed":
            return np.tanh(out) * arrays["action_scale"] + arrays["action_shift"]
        return choose(out, spec) if spec["head"] == "categorical" else out

    return policy


def choose(scores: Any, spec: dict[str, Any]) -> Any:
    """The action of the greatest score, or one of each list where an action is chosen from several."""
    lists = spec.get("lists") or [len(scores)]
    firsts = spec.get("firsts") or [0] * len(lists)
    parts = np.split(scores, np.cumsum(lists)[:-1])
    chosen = [int(part.argmax()) + first for part, first in zip(parts, firsts, strict=True)]
    return chosen[0] if len(chosen) == 1 else np.array(chosen)


def load_code(where: Path, entry: str) -> Callable[..., Any]:
    """The policy's own code: `module:function`, whose result takes a batch of observations."""
    module_name, _, function = entry.partition(":")
    sys.path.insert(0, str(where))
    spec = importlib.util.spec_from_file_location(module_name, where / f"{module_name}.py")
    if spec is None or spec.loader is None:
        raise ImportError(f"{module_name}.py is not in {where}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    act = getattr(module, function)(where)
    return lambda observation, reset=False: np.asarray(act(np.asarray(observation)[None], np.array([reset])))[0]


def read_tensors(path: Path) -> dict[str, Any]:
    """The named arrays of a safetensors file; all of a policy's are float32."""
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header, body = json.loads(data[8 : 8 + length]), data[8 + length :]
    found = {}
    for name, entry in header.items():
        if name != "__metadata__":
            begin, end = entry["data_offsets"]
            found[name] = np.frombuffer(body[begin:end], "<f4").reshape(entry["shape"])
    return found


def fit(action: Any, space: Any, clip: bool = True) -> Any:
    """An action as the environment takes it: a whole number, or numbers of its shape within its bounds."""
    if hasattr(space, "n"):
        return int(action)
    if hasattr(space, "nvec"):
        return np.asarray(action, space.dtype).reshape(space.shape)
    found = np.asarray(action, np.float32).reshape(space.shape).astype(space.dtype)
    return np.clip(found, space.low, space.high) if clip else found


def play(environment: Any, policy: Callable[..., Any], seed: int, clip: bool = True) -> float:
    """The return of one episode."""
    observation, _ = environment.reset(seed=seed)
    total, over, first = 0.0, False, True
    while not over:
        seen = np.asarray(observation, environment.observation_space.dtype)
        action = fit(policy(seen, first), environment.action_space, clip)
        observation, reward, terminated, truncated, _ = environment.step(action)
        total, over, first = total + float(reward), terminated or truncated, False
    return total


def main() -> int:
    """Play every seed of expected.json, and compare."""
    try:
        import gymnasium
    except ImportError:
        sys.exit("act.py: Gymnasium is not installed here, and playing needs it: pip install gymnasium")
    expected = json.loads((HERE / "expected.json").read_text())
    spec = expected["env"]
    options = dict(spec.get("kwargs") or {})
    if spec.get("max_episode_steps") is not None:
        options["max_episode_steps"] = spec["max_episode_steps"]
    environment = gymnasium.make(spec["id"], **options)
    if not isinstance(environment.observation_space, gymnasium.spaces.Box):
        environment = gymnasium.wrappers.FlattenObservation(environment)
    policy, right = load(HERE), 0
    for episode in expected["episodes"]:
        found = play(environment, policy, episode["seed"], spec.get("clip_actions", True))
        right += found == episode["return"]
        told = "as expected" if found == episode["return"] else f"but {episode['return']!r} was expected"
        print(f"seed {episode['seed']}: {found!r}, {told}")
    print(f"{right} of {len(expected['episodes'])} returns are as expected.")
    return 0 if right == len(expected["episodes"]) else 1


if __name__ == "__main__":
    sys.exit(main())
