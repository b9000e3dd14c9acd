"""Rollouts that several threads play."""

import threading
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from overnight.guest.train import Env
from overnight.rl.envs.batched import make, make_lanes
from overnight.rl.lanes import Lanes

pytest.importorskip("envpool")

ENV = Env("gymnasium", "LunarLander-v3", {}, None, clip_actions=True)
SEEDS = [3, 1, 4, 1, 5]


def rollout(steps: int) -> tuple[NDArray[Any], ...]:
    marks = np.empty((4, steps, len(SEEDS)), np.float32)
    return np.empty((steps + 1, len(SEEDS), 8), np.float32), np.empty((steps, len(SEEDS)), np.int32), *marks


def pushed(observations: NDArray[Any], noise: NDArray[Any]) -> NDArray[Any]:
    """A policy of which every action depends on its own observation and noise, and on nothing else."""
    chosen: NDArray[Any] = ((observations[:, 0] + noise[:, 0]) > 0).astype(np.int32) + 1
    return chosen


def test_lanes_play_the_rollouts_that_one_batch_plays() -> None:
    noise = np.random.default_rng(0).standard_normal((120, len(SEEDS), 1))
    lanes = Lanes(make_lanes(ENV, SEEDS, cores=2))
    whole = Lanes((make(ENV, SEEDS, threads=1),))
    ended = 0.0
    for _ in range(3):  # so that episodes end, and go on from one rollout into the next
        one, other = rollout(120), rollout(120)
        assert lanes.play(pushed, noise, one, lambda: False)
        assert whole.play(pushed, noise, other, lambda: False)
        for a, b in zip(one, other, strict=True):
            np.testing.assert_array_equal(a, b)
        np.testing.assert_allclose(lanes.episodes(), whole.episodes())
        ended += one[4].sum()
    assert ended > 0
    lanes.close()
    whole.close()


def test_lanes_are_played_by_threads_at_the_same_time() -> None:
    lanes, meeting = Lanes(make_lanes(ENV, SEEDS, cores=2)), threading.Barrier(2, timeout=20)

    def together(observations: NDArray[Any], noise: NDArray[Any]) -> NDArray[Any]:
        meeting.wait()  # breaks where one lane is played after the other
        return pushed(observations, noise)

    assert lanes.play(together, np.zeros((2, len(SEEDS), 1)), rollout(2), lambda: False)
    lanes.close()


def test_every_lane_stops_inside_a_rollout_when_the_training_is_over() -> None:
    lanes, asked = Lanes(make_lanes(ENV, SEEDS, cores=2)), []

    def over() -> bool:
        asked.append(1)
        return len(asked) > 20

    assert not lanes.play(pushed, np.zeros((4000, len(SEEDS), 1)), rollout(4000), over)
    assert len(asked) <= 22
    lanes.close()


def test_what_goes_wrong_in_a_lane_is_not_lost_in_its_thread() -> None:
    lanes = Lanes(make_lanes(ENV, SEEDS, cores=2))

    def broken(_observations: NDArray[Any], _noise: NDArray[Any]) -> NDArray[Any]:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        lanes.play(broken, np.zeros((2, len(SEEDS), 1)), rollout(2), lambda: False)
    lanes.close()
