"""What the installed packages prove about an environment: `python -m overnight.evaluate.describe ID`.

Runs in a process of its own, because making an environment known may import a
stranger's module. Prints one JSON object.
"""

import importlib
import json
import os
import sys
from difflib import get_close_matches

from overnight.guest.box2d import spare_pygame


def describe(env_id: str) -> dict[str, object]:
    """The facts, or why there are none."""
    try:
        import gymnasium
    except ImportError:
        return {"proven": False, "why": "Gymnasium is not installed"}
    module, _, name = env_id.rpartition(":")
    if module and (found := _import(module)) is not None:
        return found
    try:
        spec = gymnasium.spec(name)
    except gymnasium.error.Error as error:
        near = get_close_matches(name, list(gymnasium.registry), n=1)
        hint = f"did you mean `{near[0]}`?" if near else "install the package that registers it"
        if not module and not near:
            hint += ", and name it with its module: `package.module:MyEnv-v0`"
        return _missing(str(error).splitlines()[0][:300].rstrip("."), hint)
    return {
        "proven": True,
        "max_episode_steps": spec.max_episode_steps,
        "reward_threshold": spec.reward_threshold,
        "actions": _actions(env_id),
    }


def _import(module: str) -> dict[str, object] | None:
    """Import the module that registers an environment; None when that went well."""
    try:
        importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is not None and (module == error.name or module.startswith(f"{error.name}.")):
            install = "`pip install -e .` in its folder, with the pip of the environment that has `overnight`"
            return _missing(f"the module `{module}` is not installed beside Overnight", install)
        return _missing(f"importing `{module}` failed: {error}"[:300], "install what it needs")
    except Exception as error:  # noqa: BLE001 - a stranger's module may raise anything
        return _missing(f"importing `{module}` failed: {type(error).__name__}: {error}"[:300], "")
    return None


def _missing(why: str, hint: str) -> dict[str, object]:
    return {"proven": False, "missing": True, "why": why, "hint": hint}


def _actions(env_id: str) -> str | None:
    """The kind of its actions, or None where it cannot be made here or has actions of a kind of its own."""
    import gymnasium

    spare_pygame()
    try:
        space = gymnasium.make(env_id).action_space
    except Exception:  # noqa: BLE001 - a stranger's constructor may raise anything, and then nothing is proven
        return None
    if isinstance(space, gymnasium.spaces.Discrete):
        return "one list"
    if isinstance(space, gymnasium.spaces.MultiDiscrete):
        return "several lists"
    if isinstance(space, gymnasium.spaces.Box):
        return "bounded numbers" if space.is_bounded() else "numbers"
    return None


if __name__ == "__main__":
    # What a stranger's module prints is not the answer.
    answer = os.dup(1)
    os.dup2(2, 1)
    os.write(answer, (json.dumps(describe(sys.argv[1])) + "\n").encode())
