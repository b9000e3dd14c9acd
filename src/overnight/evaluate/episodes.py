"""Episodes in lockstep: the environment, its seeds, its horizon, its reward and the sum are all here.

A policy is a function from a batch of observations to a batch of actions. Everything it
returns is checked before it reaches an environment: the number, the type, the range, and
that it is finite.
"""

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from overnight.evaluate.sketch import sketch
from overnight.guest.box2d import spare_pygame
from overnight.records.env import EnvSpec

Array = NDArray[Any]
Policy = Callable[[Array, Array], Array]
MAX_LANES = 64
AHEAD_SECONDS = 1e-4
"""How long before a question a policy in another process is told that it comes: as long as it takes to wake up."""


class PolicyError(Exception):
    """What the policy did wrong, as a full sentence. A measurement ends here, without a score."""


class Episode(NamedTuple):
    """One episode from its seed to its end."""

    seed: int
    total: float
    steps: int


def make(spec: EnvSpec, *, render: bool = False) -> Any:  # noqa: ANN401 - Gymnasium's environments are generic
    """Build the environment from installed packages; observations that are not one block of numbers are flattened."""
    import gymnasium

    spare_pygame()
    options: dict[str, Any] = dict(spec.kwargs)
    if spec.max_episode_steps is not None:
        options["max_episode_steps"] = spec.max_episode_steps
    if render:
        options["render_mode"] = "rgb_array"
    made = gymnasium.make(spec.id, **options)
    plain = isinstance(made.observation_space, gymnasium.spaces.Box)
    return made if plain else gymnasium.wrappers.FlattenObservation(made)


def play(spec: EnvSpec, policy: Policy, seeds: Sequence[int], *, lanes: int) -> list[Episode]:
    """Play one episode for each seed, many at a time, and return them in the order of the seeds."""
    environments = {lane: make(spec) for lane in range(min(lanes, len(seeds)))}
    try:
        found: list[Episode] = []
        for start in range(0, len(seeds), len(environments)):
            wave = dict(enumerate(seeds[start : start + len(environments)]))
            found += _wave(spec, environments, policy, wave, len(environments))
        return found
    finally:
        for environment in environments.values():
            environment.close()


def repeat(spec: EnvSpec, policy: Policy, seeds: Mapping[int, int], *, lanes: int) -> list[Episode]:
    """Play some episodes of the first wave again, each in the lane that it had, with the other lanes idle.

    The batch has the size that it had, and the environments are as new as they were, so a policy that
    depends on nothing but its observations does exactly the same.
    """
    environments = {lane: make(spec) for lane in seeds}
    try:
        return _wave(spec, environments, policy, seeds, lanes)
    finally:
        for environment in environments.values():
            environment.close()


def _wave(
    spec: EnvSpec, environments: Mapping[int, Any], policy: Policy, seeds: Mapping[int, int], lanes: int
) -> list[Episode]:
    """One episode in each lane that has a seed, all at once."""
    space, actions_of = next((one.observation_space, one.action_space) for one in environments.values())
    observations = np.zeros((lanes, *space.shape), space.dtype)
    for lane, seed in seeds.items():
        observations[lane], _ = environments[lane].reset(seed=int(seed))
    totals, steps = np.zeros(lanes), np.zeros(lanes, int)
    alive = np.isin(np.arange(lanes), list(seeds))
    reset = np.ones(lanes, bool)
    announce, ahead = getattr(policy, "announce", lambda: None), 1
    while alive.any():
        actions = checked(policy(observations, reset), actions_of, lanes, clip=spec.clip_actions)
        reset = np.zeros(lanes, bool)
        playing = np.flatnonzero(alive).tolist()
        began, announced_at = time.perf_counter(), playing[-min(ahead, len(playing))]
        for lane in playing:
            if lane == announced_at:
                announce()
            observations[lane], reward, terminated, truncated, _ = environments[lane].step(actions[lane])
            totals[lane] += float(reward)
            steps[lane] += 1
            alive[lane] = not (terminated or truncated)
        ahead = 1 + int(AHEAD_SECONDS * len(playing) / (time.perf_counter() - began))
    if not np.isfinite(totals).all():
        raise PolicyError("An episode under this policy gave a return that is not finite.")
    return [Episode(int(seed), float(totals[lane]), int(steps[lane])) for lane, seed in seeds.items()]


def checked(actions: Any, space: Any, lanes: int, *, clip: bool) -> Any:  # noqa: ANN401 - whatever a policy returns
    """Actions that the environment can take, or what is wrong with them."""
    found = np.array(actions)  # a copy of plain type: nothing the policy holds can change it afterwards
    if found.dtype == object or not np.issubdtype(found.dtype, np.number):
        raise PolicyError("The policy returned something that is not numbers.")
    if not np.isfinite(found).all():
        raise PolicyError("The policy returned an action that is not finite.")
    if hasattr(space, "n"):
        if found.shape != (lanes,) or not np.issubdtype(found.dtype, np.integer):
            raise PolicyError(
                f"The policy returned actions of shape {found.shape}, but {lanes} whole numbers are needed."
            )
        low, high = int(space.start), int(space.start + space.n)
        if ((found < low) | (found >= high)).any():
            raise PolicyError(f"The policy returned an action outside {low} to {high - 1}.")
        return found
    if found.ndim and found.shape[0] == lanes and found.size == lanes * int(np.prod(space.shape)):
        found = found.reshape((lanes, *space.shape))  # a flat action is the same action
    if found.shape != (lanes, *space.shape):
        raise PolicyError(f"The policy returned actions of shape {found.shape}, not {(lanes, *space.shape)}.")
    if hasattr(space, "nvec"):
        if (
            not np.issubdtype(found.dtype, np.integer)
            or ((found < space.start) | (found >= space.start + space.nvec)).any()
        ):
            raise PolicyError(f"The policy returned an action outside {space}.")
        return found.astype(space.dtype)
    found = found.astype(space.dtype)
    return np.clip(found, space.low, space.high) if clip else found


def record(spec: EnvSpec, policy: Policy, seed: int) -> tuple[Episode, list[Array]]:
    """Play one episode with its pictures: the environment's own, or a sketch where it cannot draw itself."""
    environment = make(spec, render=True)
    frames: list[Array] = []
    try:
        observation, _ = environment.reset(seed=int(seed))
        total, steps, over, reset = 0.0, 0, False, np.ones(1, bool)
        picture = _painter(environment)
        while not over:
            frames.append(picture())
            batch = np.asarray(observation)[None]
            action = checked(policy(batch, reset), environment.action_space, 1, clip=spec.clip_actions)[0]
            observation, reward, terminated, truncated, _ = environment.step(action)
            total, steps, over, reset = total + float(reward), steps + 1, terminated or truncated, np.zeros(1, bool)
        return Episode(int(seed), total, steps), frames
    finally:
        environment.close()


def _painter(environment: Any) -> Callable[[], Array]:  # noqa: ANN401 - Gymnasium's environments are generic
    """What draws this environment, which was reset: its own pictures, or sketches where its first one fails."""

    def own() -> Array:
        return np.asarray(environment.render(), np.uint8)

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a library that looks for a screen, before its error
            own()
    except Exception:  # whatever its library raises where there is no screen, no OpenGL or no pygame
        if sketch(environment) is None:
            raise
        return lambda: cast(Array, sketch(environment))
    return own
