"""EnvPool and Gymnasium are the same world: from the same state and action, the same step."""

import importlib.util
import sys
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest
from numpy.typing import NDArray

from overnight.guest.train import Env
from overnight.rl.envs.batched import COMPARED, Batch, make

pytestmark = pytest.mark.skipif(importlib.util.find_spec("envpool") is None, reason="EnvPool is not installed")

State = Callable[[NDArray[Any]], NDArray[Any]]


def angles(seen: NDArray[Any]) -> NDArray[Any]:
    """Acrobot's state from what it shows: two angles as cosine and sine, and their speeds."""
    return np.array([np.arctan2(seen[1], seen[0]), np.arctan2(seen[3], seen[2]), seen[4], seen[5]])


CLASSIC: dict[str, State] = {
    "CartPole-v1": lambda seen: seen,
    "Acrobot-v1": angles,
    "MountainCar-v0": lambda seen: seen,
    "MountainCarContinuous-v0": lambda seen: seen,
    "Pendulum-v1": lambda seen: np.array([np.arctan2(seen[1], seen[0]), seen[2]]),
}
"""How a state of Gymnasium's environment follows from an observation."""


def batch(env: str, seeds: list[int], limit: int | None = None) -> Batch:
    return make(Env("gymnasium", env, {}, limit, clip_actions=True), seeds, threads=1)


def random_actions(one: Batch, rng: np.random.Generator) -> NDArray[Any]:
    if one.discrete:
        return rng.integers(0, one.action_size, one.num_envs)
    low, high = one.bounds()
    return rng.uniform(1.2 * low, 1.2 * high, (one.num_envs, one.action_size))  # some beyond the bounds


@pytest.mark.parametrize("env", CLASSIC)
def test_one_step_from_the_same_state_is_the_same_in_both_backends(env: str) -> None:
    pool, rng = batch(env, [1, 2, 3, 4]), np.random.default_rng(0)
    assert pool.backend == "envpool"
    one: Any = gymnasium.make(env).unwrapped
    one.reset(seed=0)
    compared = 0
    seen = pool.reset()
    for _ in range(150):
        actions, resetting = random_actions(pool, rng), pool.resetting
        step = pool.step(actions)
        for lane in np.flatnonzero(~resetting):
            one.state = CLASSIC[env](seen[lane].astype(float))
            one.steps_beyond_terminated = None  # CartPole counts them
            action = int(actions[lane]) if pool.discrete else np.clip(actions[lane], *pool.bounds()).astype(np.float32)
            observation, reward, terminated, _, _ = one.step(action)
            np.testing.assert_allclose(step.observations[lane], observation, atol=1e-5)
            assert step.rewards[lane] == pytest.approx(float(reward), abs=1e-5)
            assert step.terminated[lane] == terminated
            compared += 1
        seen = step.observations
    assert compared > 500
    pool.close()


@pytest.mark.parametrize("env", CLASSIC)
def test_both_backends_cut_and_begin_episodes_at_the_same_steps(env: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for backend in ("envpool", "gymnasium"):
        if backend == "gymnasium":
            monkeypatch.setitem(sys.modules, "envpool", None)
        one, rng = batch(env, [1, 2], limit=6), np.random.default_rng(0)
        assert one.backend == backend
        one.reset()
        steps = [(*one.step(random_actions(one, rng))[2:], one.resetting) for _ in range(16)]
        found.append(np.array(steps))
        one.close()
    np.testing.assert_array_equal(found[0], found[1])
    assert found[0][:, 1, 0].nonzero()[0].tolist() == [5, 12]


@pytest.mark.parametrize("env", CLASSIC)
def test_both_backends_have_the_same_spaces_and_the_same_limit(env: str, monkeypatch: pytest.MonkeyPatch) -> None:
    facts = []
    for backend in ("envpool", "gymnasium"):
        if backend == "gymnasium":
            monkeypatch.setitem(sys.modules, "envpool", None)
        one = batch(env, [1])
        bounds = [] if one.discrete else [end.tolist() for end in one.bounds()]
        facts.append((one.choices, one.action_size, one.observation_size, bounds))
        one.close()
    assert facts[0] == facts[1]


def test_every_task_of_classic_control_that_envpool_may_step_is_compared_here() -> None:
    entries = {env: str(gymnasium.spec(env).entry_point) for env in COMPARED}
    assert CLASSIC.keys() == {env for env, entry in entries.items() if ".classic_control" in entry}
