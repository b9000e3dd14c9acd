"""An evaluator as many are: `python -m overnight.attack.naive POLICY_FOLDER RESULT`, and the policy is imported here.

It is the tier T0 of the gallery and of nothing else. Every shortcut in it is one that evaluators in the field take:
the policy shares the process, its pickle is loaded, its folder is first on the path, the score is a printed line,
and the result is a file that stays open to whoever comes later.
"""

import importlib
import json
import pickle
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

Act = Callable[[Any, Any], Any]


def load(folder: Path) -> Act:
    """Import the policy, and unpickle its weights where it has any."""
    if (folder / "model.pkl").exists():
        act: Act = pickle.loads((folder / "model.pkl").read_bytes())  # noqa: S301 - the shortcut that is shown
        return act
    entry = json.loads((folder / "policy.json").read_bytes())["entry"]
    module, _, function = entry.partition(":")
    found: Act = getattr(importlib.import_module(module), function)(folder)
    return found


def play(request: dict[str, Any], act: Act) -> list[float]:
    """Every episode's return, with the list in plain sight of the policy."""
    returns = [0.0] * len(request["seeds"])
    environments = [gymnasium.make(request["env"], **request["kwargs"]) for _ in returns]
    observations = [one.reset(seed=seed)[0] for one, seed in zip(environments, request["seeds"], strict=True)]
    alive, reset = [True] * len(returns), np.ones(len(returns), bool)
    while any(alive):
        actions = act(np.array(observations), reset)
        reset = np.zeros(len(returns), bool)
        for lane, environment in enumerate(environments):
            if alive[lane]:
                observations[lane], reward, terminated, truncated, _ = environment.step(actions[lane])
                returns[lane] += float(reward)
                alive[lane] = not (terminated or truncated)
    return returns


def main(words: list[str]) -> None:
    """Measure one policy."""
    request = json.loads(sys.stdin.buffer.read())
    returns = play(request, load(Path(words[1])))
    Path(words[2]).write_text(json.dumps(returns))
    sys.stdout.write(f"score: {sum(returns) / len(returns)}\n")


if __name__ == "__main__":
    main(sys.argv)
