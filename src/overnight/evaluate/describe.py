"""What the installed packages prove about an environment: `python -m overnight.evaluate.describe ID`.

Runs in a process of its own, because making an environment known may import a
stranger's module. Prints one JSON object.
"""

import json
import sys
from contextlib import redirect_stdout
from difflib import get_close_matches


def describe(env_id: str) -> dict[str, object]:
    """The facts, or why there are none."""
    try:
        import gymnasium
    except ImportError:
        return {"proven": False, "why": "Gymnasium is not installed"}
    try:
        spec = gymnasium.spec(env_id)
    except (gymnasium.error.Error, ImportError) as error:
        near = get_close_matches(env_id, list(gymnasium.registry), n=1)
        hint = f"did you mean `{near[0]}`?" if near else "install the package that registers it"
        return {"proven": False, "missing": True, "why": str(error).splitlines()[0][:300], "hint": hint}
    return {
        "proven": True,
        "max_episode_steps": spec.max_episode_steps,
        "reward_threshold": spec.reward_threshold,
        "actions": _actions(env_id),
    }


def _actions(env_id: str) -> str | None:
    """The kind of its actions, or None where it cannot be made here or has actions of a kind of its own."""
    import gymnasium

    try:
        with redirect_stdout(sys.stderr):  # our stdout holds one JSON object, whatever a stranger prints
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
    sys.stdout.write(json.dumps(describe(sys.argv[1])) + "\n")
