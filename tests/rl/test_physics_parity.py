"""MuJoCo and Box2D are the same in both backends: each step where a state can be put in, else whole episodes."""

import importlib.util
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from numpy.typing import NDArray

from overnight.guest.box2d import spare_pygame
from overnight.guest.train import Env
from overnight.rl.envs.batched import COMPARED, Batch, make

pytestmark = [
    pytest.mark.skipif(importlib.util.find_spec("envpool") is None, reason="EnvPool is not installed"),
    pytest.mark.skipif(importlib.util.find_spec("mujoco") is None, reason="MuJoCo is not installed"),
]


State = Callable[[NDArray[Any]], NDArray[Any] | None]
"""From what an observation shows to positions and speeds, or to None where it does not show all of them."""


def behind(hidden: int, most: float = np.inf) -> State:
    """All but so many positions, taken as 0 because they only say where the body stands.

    An observation that reaches `most` may be cut there, and shows less.
    """
    return lambda seen: None if np.abs(seen).max() >= most else np.concatenate([np.zeros(hidden), seen])


def two_joints(seen: NDArray[Any]) -> NDArray[Any] | None:
    """A cart, two angles as sines and cosines, three speeds up to 10, and a force."""
    angles, speeds = np.arctan2(seen[1:3], seen[3:5]), seen[5:8]
    return None if np.abs(speeds).max() >= 10 else np.concatenate([seen[:1], angles, speeds])


MUJOCO = {
    "Hopper-v5": behind(1, 10),
    "Walker2d-v5": behind(1, 10),
    "HalfCheetah-v5": behind(1),
    "Swimmer-v5": behind(2),
    "InvertedPendulum-v5": behind(0),
    "InvertedDoublePendulum-v5": two_joints,
}
"""Environments whose state follows from an observation."""
BY_EPISODES = (
    *("BipedalWalker-v3", "BipedalWalkerHardcore-v3", "LunarLander-v3", "LunarLanderContinuous-v3"),
    *("Ant-v5", "Humanoid-v5", "HumanoidStandup-v5", "Pusher-v5", "Reacher-v5"),
)
"""Environments into which no whole state can be put: their episodes are compared instead."""


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """MuJoCo writes a log wherever it stands."""
    monkeypatch.chdir(tmp_path)


def batch(env: str, seeds: list[int]) -> Batch:
    return make(Env("gymnasium", env, {}, None, clip_actions=True), seeds, threads=2)


@pytest.mark.parametrize("env", MUJOCO)
def test_one_step_from_the_same_state_is_the_same_in_both_backends(env: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pool, rng = batch(env, list(range(8))), np.random.default_rng(0)
    assert pool.backend == "envpool"
    one: Any = gymnasium.make(env).unwrapped
    one.reset(seed=0)
    places = one.model.nq
    monkeypatch.setattr(pool, "_flat", lambda observations: observations)  # as doubles: a stiff contact needs them
    compared, seen = 0, pool.reset()
    for _ in range(60):
        actions, resetting = rng.uniform(*pool.bounds(), (pool.num_envs, pool.action_size)), pool.resetting
        step = pool.step(actions)
        for lane in np.flatnonzero(~resetting):
            state = MUJOCO[env](seen[lane])
            if state is None:
                continue
            one.set_state(state[:places], state[places:])
            observation, reward, terminated, _, _ = one.step(actions[lane])
            np.testing.assert_allclose(step.observations[lane], observation, atol=1e-5, rtol=1e-5)
            assert step.rewards[lane] == pytest.approx(float(reward), abs=1e-5, rel=1e-5)
            assert step.terminated[lane] == terminated
            compared += 1
        seen = step.observations
    assert compared > 100
    pool.close()


def episodes(env: str, count: int) -> NDArray[Any]:
    """Return and length of each episode under one policy that is better than chance, and worse than good."""
    one = batch(env, list(range(count)))
    rng = np.random.default_rng(7)
    weights = rng.standard_normal((one.observation_size, one.action_size)) / one.observation_size**0.5
    noise = np.random.default_rng(8)
    totals, running, seen = np.zeros((count, 2)), np.ones(count, bool), one.reset()
    for _ in range(120):  # a longer episode is compared by its first steps
        wanted = np.clip(seen, -5, 5) @ weights + 0.5 * noise.standard_normal((count, one.action_size))
        step = one.step(wanted.argmax(1) if one.discrete else np.tanh(wanted))
        totals[running] += np.stack([step.rewards, np.ones(count)], 1)[running]
        running &= ~(step.terminated | step.truncated)
        if not running.any():
            break
        seen = step.observations
    one.close()
    return totals


@pytest.mark.parametrize("env", BY_EPISODES)
def test_the_same_policy_has_the_same_episodes_in_both_backends(env: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Box2D's own warning at its import, as an error, would crash the interpreter
        spare_pygame()
        gymnasium.make(env).close()
    pool = episodes(env, 48)
    monkeypatch.setitem(sys.modules, "envpool", None)
    one = episodes(env, 48)
    apart = pool.mean(0) - one.mean(0)
    noise = np.sqrt((pool.var(0) + one.var(0)) / 48)
    assert (np.abs(apart) <= 4 * noise + 1e-9).all(), f"{env}: {pool.mean(0)} and {one.mean(0)}, noise {noise}"
    assert 0.5 <= (pool.std(0)[0] + 1e-3) / (one.std(0)[0] + 1e-3) <= 2


@pytest.mark.filterwarnings("ignore:.*out of date")
def test_every_simulated_world_that_envpool_may_step_is_compared_here_and_no_other_is_stepped_by_it() -> None:
    entries = {env: str(gymnasium.spec(env).entry_point) for env in COMPARED}
    assert {*MUJOCO, *BY_EPISODES} == {env for env, entry in entries.items() if ".classic_control" not in entry}
    one = batch("Hopper-v4", [1])
    assert (one.backend, one.why) == (
        "gymnasium",
        "EnvPool was not compared with Gymnasium in Hopper-v4; training on Gymnasium",
    )
    one.close()
