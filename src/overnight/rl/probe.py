"""What only an import can tell, told by a process of its own: `python -m overnight.rl.probe devices` or `env SPEC`.

Prints one JSON object. Runs apart, because importing JAX may hang on a broken driver, and making an environment
may import a stranger's module.
"""

import json
import sys
import warnings
from collections.abc import Mapping
from typing import Any, NamedTuple

_EXTRAS = {"box2d": "box2d", "mujoco": "mujoco", "toy_text": "toy-text", "phys2d": "jax", "tabular": "jax"}
"""The part of Gymnasium that brings what a family of environments needs."""


class Asked(NamedTuple):
    """The environment that is asked about."""

    id: str
    kwargs: Mapping[str, Any]
    max_episode_steps: int | None
    clip_actions: bool


def devices() -> dict[str, object]:
    """The devices that JAX can compute on."""
    import jax

    return {"devices": [f"{one.platform}:{one.id}" for one in jax.devices()]}


def backend(spec: Asked) -> dict[str, object]:
    """Whether the referee can make the environment, and on which library a built-in trainer will step it."""
    import gymnasium

    from overnight.guest.box2d import spare_pygame

    spare_pygame()
    try:
        gymnasium.make(spec.id, disable_env_checker=True, **spec.kwargs).close()
    except (gymnasium.error.Error, ImportError) as error:
        return {"error": str(error).splitlines()[0][:300], "extra": _extra(spec.id)}
    from overnight.rl.envs.batched import UnsupportedEnv, make

    try:
        made = make(spec, [0], threads=1)
    except UnsupportedEnv as error:
        return {"error": str(error)[:300], "extra": ""}
    made.close()
    return {"backend": made.backend, "why": made.why}


def _extra(env_id: str) -> str:
    """The part of Gymnasium that an environment needs, as `pip` names it; empty where it needs none of them."""
    import gymnasium

    try:
        entry = str(gymnasium.spec(env_id).entry_point)
    except (gymnasium.error.Error, ImportError):
        return ""
    return next((extra for family, extra in _EXTRAS.items() if entry.startswith(f"gymnasium.envs.{family}.")), "")


def main(words: list[str]) -> int:
    """Answer one question."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what libraries say about themselves is not the answer
        found = devices() if words[0] == "devices" else backend(Asked(**json.loads(words[1])))
    sys.stdout.write(json.dumps(found) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
