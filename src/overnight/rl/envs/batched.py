"""Many copies of one environment, stepped side by side: EnvPool where it can, Gymnasium where it must.

Where a training is metered, a broker holds them (`broker`), and they are stepped by asking it. All reset on the next
step, and this is the whole of the rule:

- The step that ends an episode returns that episode's last observation, with `terminated`
  or `truncated` set, and marks the environment in `resetting`.
- The next step ignores that environment's action and returns the first observation of a new
  episode, with reward 0 and both flags unset. That transition is not experience: mask it.

Observations are flattened to float32. The same seed, number of environments and backend give
the same episodes, whatever the number of threads.
"""

import importlib
import math
import sys
import warnings
from collections.abc import Mapping, Sequence
from itertools import pairwise
from types import ModuleType, SimpleNamespace
from typing import Any, NamedTuple, Protocol

import gymnasium
import numpy as np
from numpy.typing import NDArray

from overnight.guest import steps
from overnight.guest.box2d import spare_pygame

Floats = NDArray[np.float32]
Flags = NDArray[np.bool_]

_FAMILIES = ("classic_control", "box2d", "mujoco.gym")
COMPARED = frozenset(
    {
        *("Acrobot-v1", "CartPole-v1", "MountainCar-v0", "MountainCarContinuous-v0", "Pendulum-v1"),
        *("BipedalWalker-v3", "BipedalWalkerHardcore-v3", "LunarLander-v3", "LunarLanderContinuous-v3"),
        *("Ant-v5", "HalfCheetah-v5", "Hopper-v5", "Humanoid-v5", "HumanoidStandup-v5", "InvertedDoublePendulum-v5"),
        *("InvertedPendulum-v5", "Pusher-v5", "Reacher-v5", "Swimmer-v5", "Walker2d-v5"),
    }
)
"""The environments in which EnvPool was compared with Gymnasium, and is used: a test holds each of them to it."""


class Spec(Protocol):
    """What is asked of an environment; `overnight.guest.train.Env` is one."""

    @property
    def id(self) -> str:
        """The id under which Gymnasium knows it."""

    @property
    def kwargs(self) -> Mapping[str, Any]:
        """What it is made with."""

    @property
    def max_episode_steps(self) -> int | None:
        """Where an episode is cut, or None for the environment's own limit."""

    @property
    def clip_actions(self) -> bool:
        """Whether continuous actions are clipped to their space."""


class UnsupportedEnv(Exception):
    """An environment that the built-in trainers cannot train in, as one sentence."""


class Step(NamedTuple):
    """What one step of all environments returned."""

    observations: Floats
    rewards: Floats
    terminated: Flags
    truncated: Flags


class Batch:
    """The environments, as one thing to reset and to step."""

    def __init__(self, made: Any, spec: Spec, seeds: Sequence[int], backend: str, why: str) -> None:  # noqa: ANN401
        self.backend = backend
        """`envpool`, `gymnasium`, or `broker`."""
        self.why = why
        """One sentence on the choice, for a person."""
        self.num_envs = len(seeds)
        self.resetting: Flags = np.zeros(len(seeds), bool)
        """The environments whose next step is a reset."""
        self._made, self._seeds, self._clip = made, list(seeds), spec.clip_actions
        # EnvPool's spaces are those of one environment, Gymnasium's are of all of them.
        one = "" if backend == "envpool" else "single_"
        self._actions = getattr(made, f"{one}action_space")
        self.choices = _choices(self._actions, spec.id)
        """The lengths of the lists from which an action is chosen: one, several, or none where it is numbers."""
        self.firsts = tuple(map(int, np.atleast_1d(self._actions.start))) if self.choices else ()
        """The number of the first action in each list, which is not always 0."""
        self.discrete = bool(self.choices)
        """Whether actions are chosen from lists."""
        self.action_size = sum(self.choices) or int(np.prod(self._actions.shape))
        """The length of all lists together, or the numbers in one action."""
        several = (len(self.choices),) if len(self.choices) > 1 else ()
        self.no_action = np.zeros(several, np.int32) if self.discrete else np.zeros(self.action_size, np.float32)
        """One action of the shape and type in which a trainer keeps them."""
        self.action_shape = tuple(map(int, self._actions.shape))
        """The shape of one action, before it is flattened."""
        self.observation_shape = _observation_shape(getattr(made, f"{one}observation_space"), spec.id)
        """The shape of one observation, before it is flattened."""
        self.observation_size = math.prod(self.observation_shape)
        """Numbers in one flattened observation."""

    def reset(self) -> Floats:
        """Begin an episode in every environment."""
        found = self._made.reset() if self.backend == "envpool" else self._made.reset(seed=self._seeds)
        self.resetting = np.zeros(self.num_envs, bool)
        return self._flat(found[0])

    def step(self, actions: NDArray[Any]) -> Step:
        """Take one action in every environment: whole numbers `[N]` or `[N, lists]`, or numbers `[N, K]`."""
        fresh = self.resetting
        observations, rewards, terminated, truncated, _ = self._made.step(self._fitted(actions))
        found = Step(
            self._flat(observations),
            np.where(fresh, 0, rewards).astype(np.float32),
            terminated & ~fresh,
            truncated & ~fresh,
        )
        self.resetting = found.terminated | found.truncated
        return found

    def bounds(self) -> tuple[Floats, Floats]:
        """The least and the greatest number at each place of a flattened continuous action."""
        low, high = (np.asarray(end, np.float32).ravel() for end in (self._actions.low, self._actions.high))
        return low, high

    def close(self) -> None:
        """Let the environments go."""
        self._made.close()

    def _flat(self, observations: NDArray[Any]) -> Floats:
        return np.asarray(observations, np.float32).reshape(self.num_envs, self.observation_size)

    def _fitted(self, actions: NDArray[Any]) -> NDArray[Any]:
        if self.discrete:
            first = self.firsts[0] if len(self.firsts) == 1 else np.array(self.firsts)
            named = (actions + first).astype(np.int32 if self.backend == "envpool" else np.int64)
            return named.reshape(self.num_envs, *self._actions.shape)
        space = self._actions
        shaped = actions.reshape(self.num_envs, *space.shape).astype(space.dtype)
        return np.clip(shaped, space.low, space.high) if self._clip else shaped


class Metered(Batch):
    """The same, where a broker holds the environments and counts their steps."""

    def __init__(self, spec: Spec, seeds: Sequence[int]) -> None:
        self._broker = asked = steps.Environments(seeds)
        seen = gymnasium.spaces.Box(-np.inf, np.inf, asked.observation_shape, np.float32)
        spaces = SimpleNamespace(single_action_space=_space(asked), single_observation_space=seen)
        super().__init__(spaces, spec, seeds, "broker", f"a broker counts the steps; training on {asked.backend}")

    def reset(self) -> Floats:
        """See `Batch`."""
        self.resetting = np.zeros(self.num_envs, bool)
        found: Floats = self._broker.reset()
        return found

    def step(self, actions: NDArray[Any]) -> Step:
        """See `Batch`."""
        found = Step(*self._broker.step(actions))
        self.resetting = found.terminated | found.truncated
        return found

    def close(self) -> None:
        """Nothing to do: the broker lets old environments go when new ones are made, or when the training ends."""


def _space(asked: steps.Environments) -> Any:  # noqa: ANN401
    """The space of actions that a broker told of."""
    if len(asked.choices) == 1:
        return gymnasium.spaces.Discrete(asked.choices[0], start=asked.firsts[0])
    if asked.choices:
        return gymnasium.spaces.MultiDiscrete(list(asked.choices), start=list(asked.firsts))
    low, high = (end.reshape(asked.action_shape) for end in (asked.low, asked.high))
    return gymnasium.spaces.Box(low, high, dtype=np.float32)


def make(spec: Spec, seeds: Sequence[int], *, threads: int) -> Batch:
    """Make one environment for each seed: by the broker of a metered training, in EnvPool, or in Gymnasium.

    EnvPool is passed over where the environment takes arguments or comes from a module of
    its own: it would silently train in something else than the referee measures.
    """
    if steps.is_metered():
        try:
            return Metered(spec, seeds)
        except steps.Refused as error:
            raise UnsupportedEnv(str(error)) from error
    pool, why = _pool(spec)
    if pool is not None:
        return Batch(_in_envpool(pool, spec, seeds, threads), spec, seeds, "envpool", why)
    return Batch(_in_gymnasium(spec, len(seeds)), spec, seeds, "gymnasium", why)


def make_lanes(spec: Spec, seeds: Sequence[int], *, cores: int) -> tuple[Batch, ...]:
    """The same environments as `make` makes, in a batch for each core, so that threads can play them side by side.

    One batch with two threads waits for the slower thread at every step; two batches meet once a rollout. There
    is only one batch where a broker or Python steps, because neither steps two at a time, and where a step is quick.
    """
    if steps.is_metered() or _pool(spec)[0] is None or _is_quick(spec):
        return (make(spec, seeds, threads=cores),)
    count, rest = divmod(len(seeds), lanes := min(cores, len(seeds)))
    ends = [count * lane + min(lane, rest) for lane in range(lanes + 1)]
    return tuple(make(spec, seeds[first:end], threads=1) for first, end in pairwise(ends))


def _pool(spec: Spec) -> tuple[ModuleType | None, str]:
    """EnvPool, or None where it does not step this environment, and a sentence on the choice."""
    if ":" in spec.id or spec.kwargs:
        return None, "EnvPool is not used for environments from a module or with arguments; training on Gymnasium"
    try:
        pool = _import_envpool()
    except ImportError:
        return None, "EnvPool is not installed; training on Gymnasium"
    if spec.id not in COMPARED:
        return None, f"EnvPool was not compared with Gymnasium in {spec.id}; training on Gymnasium"
    if spec.id not in pool.list_all_envs():
        return None, f"The installed EnvPool has no {spec.id}; training on Gymnasium"
    return pool, "training on EnvPool"


def _is_quick(spec: Spec) -> bool:
    """Whether a step is over before another thread is awake: a few operations, and no simulator."""
    return str(gymnasium.spec(spec.id).entry_point).startswith("gymnasium.envs.classic_control")


def _import_envpool() -> ModuleType:
    """Import EnvPool with the families of the environments that were compared with Gymnasium's.

    EnvPool's module `entry` registers every family, which takes 0.9 s and draws in
    matplotlib; these take 0.15 s. An empty module in its place leaves the others out.
    """
    if "envpool" not in sys.modules:
        sys.modules["envpool.entry"] = ModuleType("envpool.entry")
    pool = importlib.import_module("envpool")
    for family in _FAMILIES:
        importlib.import_module(f"envpool.{family}.registration")
    return pool


def _in_envpool(pool: ModuleType, spec: Spec, seeds: Sequence[int], threads: int) -> Any:  # noqa: ANN401
    # The referee measures in Gymnasium, so its limit holds where the two libraries differ.
    limit = spec.max_episode_steps or gymnasium.spec(spec.id).max_episode_steps
    options = {} if limit is None else {"max_episode_steps": limit}
    threads = 1 if _is_quick(spec) else min(threads, len(seeds))
    fitting = [seed % (1 << 31) for seed in seeds]  # it takes no greater ones, and a train seed may be one
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # EnvPool's spaces are doubles, and Gymnasium warns of rounding them
        made = pool.make_gymnasium(spec.id, num_envs=len(seeds), num_threads=threads, seed=fitting, **options)
        _ = made.observation_space, made.action_space  # made here, once, so that the warnings end here
    return made


def _in_gymnasium(spec: Spec, count: int) -> Any:  # noqa: ANN401
    options = dict(spec.kwargs)
    if spec.max_episode_steps is not None:
        options["max_episode_steps"] = spec.max_episode_steps

    def one() -> gymnasium.Env[Any, Any]:
        spare_pygame()
        made = gymnasium.make(spec.id, disable_env_checker=True, **options)
        # What is not one block of numbers is flattened as the referee flattens it: one-hot, then end to end.
        plain = isinstance(made.observation_space, gymnasium.spaces.Box)
        return made if plain else gymnasium.wrappers.FlattenObservation(made)

    try:
        return gymnasium.vector.SyncVectorEnv([one] * count, autoreset_mode=gymnasium.vector.AutoresetMode.NEXT_STEP)
    except (gymnasium.error.Error, ImportError) as error:
        raise UnsupportedEnv(f"{spec.id} cannot be made: {error}") from error


def _choices(space: Any, env_id: str) -> tuple[int, ...]:  # noqa: ANN401
    """The lengths of the lists from which an action is chosen; none where it is numbers."""
    if isinstance(space, gymnasium.spaces.Discrete):
        return (int(space.n),)
    if isinstance(space, gymnasium.spaces.MultiDiscrete) and space.nvec.ndim == 1:
        return tuple(int(length) for length in space.nvec)
    if isinstance(space, gymnasium.spaces.Box):
        return ()
    raise UnsupportedEnv(f"{env_id} takes actions of {space}, but Discrete, MultiDiscrete or Box is needed")


def _observation_shape(space: Any, env_id: str) -> tuple[int, ...]:  # noqa: ANN401
    if isinstance(space, gymnasium.spaces.Box):
        return tuple(map(int, space.shape))
    raise UnsupportedEnv(f"{env_id} gives observations of {space}, but what Gymnasium can flatten is needed")
