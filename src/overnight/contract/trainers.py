"""The built-in trainers, as data: their declared spaces, read without importing any of them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from overnight.errors import UserError, did_you_mean
from overnight.records import strict_json
from overnight.records.codec import decode, loads
from overnight.records.limits import Name, Scalar, Sentence
from overnight.records.space import Space

BUILT_IN = ("ppo", "sac", "dqn")
DEFAULT = "ppo"
ACTIONS: dict[str, tuple[str, ...]] = {
    "ppo": ("one list", "several lists", "bounded numbers", "numbers"),
    "sac": ("bounded numbers",),
    "dqn": ("one list",),
}
"""The kinds of action that each trainer can learn to choose."""


def command(trainer: str) -> tuple[str, ...]:
    """The command that runs a built-in trainer."""
    return ("python", "-m", f"overnight.rl.trainers.{trainer}")


def space(trainer: str) -> Space:
    """The declared space of a built-in trainer."""
    if trainer not in BUILT_IN:
        raise _not_built_in(trainer)
    name = f"{trainer}.space.json"
    return loads(Space, files("overnight.rl.trainers").joinpath(name).read_bytes(), where=name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """A setting that does well on a whole family of environments."""

    family: Name
    """What the environments have in common."""
    envs: tuple[Name, ...]
    """Their names, without the version."""
    source: Sentence
    """How it was found."""
    params: Mapping[str, Scalar]
    """The setting."""


def recipe(trainer: str, env: str) -> Recipe | None:
    """The recipe of a trainer for the family of an environment, or None where there is none."""
    base = re.sub(r"-v[0-9]+$", "", env)
    return next((one for one in _recipes().get(trainer, ()) if base in one.envs), None)


def need_recipe(trainer: str, env: str) -> Recipe:
    """The recipe for an environment, or a sentence that says for which there are any."""
    found = recipe(trainer, env)
    if found is None:
        known = sorted(name for one in _recipes().get(trainer, ()) for name in one.envs)
        hint = f"{trainer} has recipes for {', '.join(known)}" if known else f"{trainer} has no recipes"
        raise UserError("--recipe", f"there is none of {trainer} for {env}", hint=hint)
    return found


@cache
def _recipes() -> Mapping[str, tuple[Recipe, ...]]:
    name = "recipes.json"
    table = strict_json.parse(files("overnight.rl.trainers").joinpath(name).read_bytes(), where=name)
    return decode(dict[str, tuple[Recipe, ...]], table, where=name)


def check_actions(trainer: str, actions: str | None) -> None:
    """Refuse a trainer that cannot learn this kind of action; None is a kind that is not known yet."""
    if trainer not in ACTIONS:
        raise _not_built_in(trainer)
    if actions is not None and actions not in ACTIONS[trainer]:
        able = [name for name in BUILT_IN if actions in ACTIONS[name]]
        hint = f"these can: {', '.join(able)}" if able else "none of the built-in trainers can; bring your own"
        raise UserError("--trainer", f"{trainer} cannot learn actions that are {actions}", hint=hint)


def _not_built_in(trainer: str) -> UserError:
    hint = did_you_mean(trainer, BUILT_IN) or f"built in are {', '.join(BUILT_IN)}"
    return UserError("trainer", f"is {trainer[:80]!r}, which is not built in", hint=hint)


def trainer_of(command_words: tuple[str, ...]) -> str | None:
    """The built-in trainer that a command runs, or None."""
    return next((name for name in BUILT_IN if command_words == command(name)), None)
