"""The built-in trainers, as data: their declared spaces, read without importing any of them."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files

from overnight.errors import UserError, did_you_mean
from overnight.records import strict_json
from overnight.records.codec import decode, loads
from overnight.records.contract import Contract
from overnight.records.limits import Name, Scalar, Sentence
from overnight.records.space import Space, StartingPoint

BUILT_IN = ("ppo", "sac", "dqn", "any")
DEFAULT = "ppo"
ACTIONS: dict[str, tuple[str, ...]] = {
    "ppo": ("one list", "several lists", "bounded numbers", "numbers"),
    "sac": ("bounded numbers",),
    "dqn": ("one list",),
    "any": ("one list", "several lists", "bounded numbers", "numbers"),
}
"""The kinds of action that each trainer can learn to choose."""

FAMILIES: dict[str, tuple[str, ...]] = {
    "classic control": ("CartPole", "Acrobot", "MountainCar", "MountainCarContinuous", "Pendulum"),
    "Box2D": ("BipedalWalker", "BipedalWalkerHardcore", "LunarLander", "LunarLanderContinuous", "CarRacing"),
    "MuJoCo": (
        *("Ant", "HalfCheetah", "Hopper", "Humanoid", "HumanoidStandup", "InvertedDoublePendulum"),
        *("InvertedPendulum", "Pusher", "Reacher", "Swimmer", "Walker2d"),
    ),
}
"""Environments that are alike enough for a setting of one to tell about another, by their names without version."""


def command(trainer: str) -> tuple[str, ...]:
    """The command that runs a built-in trainer."""
    return ("python", "-m", f"overnight.rl.trainers.{trainer}")


def space(trainer: str) -> Space:
    """The declared space of a built-in trainer."""
    if trainer not in BUILT_IN:
        raise _not_built_in(trainer)
    name = f"{trainer}.space.json"
    return loads(Space, files("overnight.rl.trainers").joinpath(name).read_bytes(), where=name)


def fitting(space: Space, params: Mapping[str, object]) -> dict[str, Scalar]:
    """The parameters as they are, or a sentence about the first that the trainer does not declare or allow."""
    for key, value in params.items():
        one = space.find(key)
        if one is None:
            hint = did_you_mean(key, [known.name for known in space.parameters])
            raise UserError("--set", f"`{key[:60]}` is not a parameter of {space.trainer}", hint=hint)
        if (wrong := one.why_not(value)) is not None:
            raise UserError("--set", f"`{key}` {wrong}")
    return dict(params)  # type: ignore[arg-type] # what fits a parameter is a scalar


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
    base = base_name(env)
    return next((one for one in _recipes().get(trainer, ()) if base in one.envs), None)


def family(env: str) -> str | None:
    """The family of an environment, or None for one that belongs to none that we know."""
    base = base_name(env)
    return next((name for name, envs in FAMILIES.items() if base in envs), None)


def starting_points(trainer: str, contract: Contract) -> tuple[StartingPoint, ...]:
    """The settings that search may begin from under this contract, the nearest to its environment first.

    A warm night knows the recipe of its environment, or else the one that serves the most environments; then what was
    published for its environment and for its family, or for every family where its own is none that we know. A cold
    night knows only what was published for other families: everything about its own is withheld, as if nobody had
    ever seen it, and so are all recipes, because those of one family began from what did well on another.
    """
    if trainer == "any":
        plain = starting_points("ppo", contract)
        return (*(replace(one, params={"algorithm": "ppo", **one.params}) for one in plain), *_algorithms())
    env, published = contract.task.env.id, _published().get(trainer, ())
    own, ours = family(env), recipe(trainer, env)
    if contract.experiments.start == "cold":
        return tuple(point for point in published if point.family != own)
    known = [_point(ours, near=True)] if ours is not None else _broadest(trainer)
    known += [replace(one, near=one.called == base_name(env)) for one in published if own in (None, one.family)]
    return tuple(sorted(known, key=lambda point: not point.near))


def _broadest(trainer: str) -> list[StartingPoint]:
    """The recipe that serves the most environments.

    Those for one body are for long trainings of that body: on FrozenLake, Taxi, Reacher and InvertedDoublePendulum,
    with 100,000 steps and three seeds each, they did worse than this one, and what diagnostics call for did as well.
    """
    recipes = _recipes().get(trainer, ())
    return [_point(max(recipes, key=lambda one: len(one.envs)), near=False)] if recipes else []


def _point(one: Recipe, *, near: bool) -> StartingPoint:
    whole = one.family.partition(",")[0]
    return StartingPoint(called=one.family, family=whole, source=one.source, params=one.params, near=near)


def _algorithms() -> Iterator[StartingPoint]:
    """The other algorithms of the trainer `any`, each with its own default settings."""
    for name in ("sac", "dqn"):
        found = space(name)
        params: dict[str, Scalar] = {"algorithm": name, **found.defaults()}
        yield StartingPoint(called=name, family="algorithms", source=found.source, params=params, near=True)


def what_search_knows(contract: Contract) -> str:
    """Whether a night is warm or cold and what that leaves to begin from, in one sentence; empty without search."""
    trainer = trainer_of(contract.baseline.command)
    if trainer is None or "search" not in contract.experiments.proposers:
        return ""
    names = "; ".join(point.called for point in starting_points(trainer, contract))
    begins = f"search begins from known settings for {names}" if names else "search begins from no known setting"
    if contract.experiments.start == "warm":
        return f"Warm: {begins}."
    withheld = family(contract.task.env.id)
    kept_back = f"what is known of {withheld} is withheld" if withheld else "nothing is known of this family"
    return f"Cold: {kept_back}; {begins}."


def base_name(env: str) -> str:
    """An environment's name without its version."""
    return re.sub(r"-v[0-9]+$", "", env)


@cache
def _published() -> Mapping[str, tuple[StartingPoint, ...]]:
    name = "starting_points.json"
    table = strict_json.parse(files("overnight.contract").joinpath(name).read_bytes(), where=name)
    return decode(dict[str, tuple[StartingPoint, ...]], table, where=name)


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
