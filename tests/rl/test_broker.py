"""The broker's own side, asked in the same process: what it answers, and what it never does."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from overnight.guest import steps
from overnight.guest.train import Budget, Env, Order
from overnight.rl.envs import batched, broker
from overnight.rl.envs.broker import Broker, serve


def order(env: str, amount: float = 10_000) -> Order:
    spec = Env("gymnasium", env, {}, None, clip_actions=True)
    return Order("r-0001", spec, 7, Budget("env_steps", amount), {}, 1, "cpu", None)


@contextmanager
def counting(path: Path) -> Iterator[int]:
    fd = os.open(path, os.O_RDWR | os.O_CREAT)
    try:
        yield fd
    finally:
        os.close(fd)


@contextmanager
def served(env: str, count: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    asked, questions = os.pipe()
    answered, answers = os.pipe()
    serving = threading.Thread(target=serve, args=(Broker(order(env), count), asked, answers))
    serving.start()
    monkeypatch.setenv(steps.VARIABLE, f"{answered},{questions}")
    try:
        yield
    finally:
        monkeypatch.delenv(steps.VARIABLE)
        os.close(questions)
        serving.join()
        for fd in (asked, answered, answers):
            os.close(fd)


class Pick(gymnasium.Env[Any, Any]):
    """Two lists to choose from, the second of which begins at 1; what was chosen is seen, after a number of its own."""

    observation_space = gymnasium.spaces.Box(-9, 9, (3,), np.float64)
    action_space = gymnasium.spaces.MultiDiscrete([2, 3], start=[0, 1])

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed, options=options)
        return np.array([self.np_random.uniform(), 0, 0]), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        assert self.action_space.contains(action)
        return np.array([self.np_random.uniform(), *action]), float(action[1]), bool(action[0]), False, {}


gymnasium.register("overnight-tests/Lists-v0", lambda **_: Pick(), max_episode_steps=20)
ENVS = ("CartPole-v1", "Pendulum-v1", "MountainCarContinuous-v0", "overnight-tests/Lists-v0")


@pytest.mark.parametrize("env", ENVS)
def test_asking_a_broker_is_the_same_as_stepping(env: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seeds, spec, rng = [3, 4, 5], order(env).env, np.random.default_rng(0)
    plain = batched.make(spec, seeds, threads=1)
    with counting(tmp_path / "steps") as count:
        monkeypatch.setattr(steps, "is_metered", lambda: False)  # the broker is in this process, and steps for itself
        with served(env, count, monkeypatch):
            metered = batched.Metered(spec, seeds)
            assert (metered.choices, metered.firsts, metered.discrete) == (plain.choices, plain.firsts, plain.discrete)
            assert (metered.observation_size, metered.action_size) == (plain.observation_size, plain.action_size)
            if not plain.discrete:
                assert np.array_equal(metered.bounds(), plain.bounds())
            assert np.array_equal(metered.reset(), plain.reset())
            for _ in range(60):
                size = (3, *plain.no_action.shape)
                most = plain.choices[0] if len(plain.choices) == 1 else plain.choices
                actions = rng.integers(most, size=size) if plain.discrete else rng.normal(size=size)
                for one, other in zip(metered.step(actions), plain.step(actions), strict=True):
                    assert one.dtype == other.dtype
                    assert np.array_equal(one, other)
                assert np.array_equal(metered.resetting, plain.resetting)
        assert int.from_bytes(os.pread(count, 8, 0), "little") == 180


@given(asked=st.lists(st.tuples(st.integers(0, 255), st.binary(max_size=40)), max_size=6))
@example(asked=[(steps.MAKE, b"\xff" * 16)])
def test_whatever_is_asked_is_answered_or_refused_and_never_taken_beyond_the_budget(
    asked: list[tuple[int, bytes]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    with counting(tmp_path_factory.mktemp("broker") / "steps") as count:
        one = Broker(order("CartPole-v1", amount=3), count)
        for kind, body in [(steps.MAKE, bytes(8)), (steps.RESET, b""), *asked]:
            try:
                one.answer(kind, body)
            except (broker._Wrong, batched.UnsupportedEnv, ValueError, TypeError, OverflowError):
                continue
        assert int.from_bytes(os.pread(count, 8, 0), "little") <= 3
