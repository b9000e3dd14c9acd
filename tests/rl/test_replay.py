"""What off-policy trainers remember, and what they must not."""

from typing import Any

import gymnasium
import numpy as np
import pytest
from numpy.typing import NDArray

from overnight.guest.train import Env
from overnight.rl.envs import batched
from overnight.rl.replay import Player, Replay, Transitions, rounds_of


class Count(gymnasium.Env[Any, Any]):
    """Observations 0, 1, 2, … and rewards 1, 2, …; the third step ends the episode, in the one way or the other."""

    observation_space = gymnasium.spaces.Box(0.0, 10.0, (1,))
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, terminates: bool) -> None:
        self.terminates, self.at = terminates, 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.at = 0
        return np.zeros(1, np.float32), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.at += 1
        over = self.at == 3
        seen = np.full(1, self.at, np.float32)
        return seen, float(self.at), over and self.terminates, over and not self.terminates, {}


gymnasium.register("overnight-tests/Count-v0", lambda **kwargs: Count(**kwargs))


def rows(*rewards: float) -> Transitions:
    """Transitions that can be told apart by their rewards."""
    numbers = np.array(rewards, np.float32)
    wide = numbers[:, None]
    return Transitions(wide, numbers.astype(np.int32), numbers, wide + 1, np.zeros_like(numbers))


def player(*, terminates: bool, normalize: bool = False) -> Player:
    env = Env("gymnasium", "overnight-tests/Count-v0", {"terminates": terminates}, None, clip_actions=True)
    return Player(batched.make(env, [1], threads=1), Replay(20, 1, np.zeros((), np.int32)), normalize=normalize)


def zeros(x: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    return np.zeros(len(x), np.int32), np.zeros(len(x), np.int32)


def test_a_ring_that_this_machine_cannot_hold_is_refused_with_a_sentence() -> None:
    with pytest.raises(batched.UnsupportedEnv, match=r"`replay_size` of 1,000,000,000 takes .* GiB"):
        Replay(1_000_000_000, 27_648, np.zeros(3, np.float32))


def test_a_full_ring_forgets_the_oldest_first() -> None:
    replay = Replay(5, 1, np.zeros((), np.int32))
    replay.add(rows(1, 2, 3))
    assert (replay.size, sorted(replay.rows.reward[:3])) == (3, [1, 2, 3])
    replay.add(rows(4, 5, 6, 7))
    assert (replay.size, sorted(replay.rows.reward)) == (5, [3, 4, 5, 6, 7])


def test_every_transition_is_drawn_as_often_as_any_other_and_stays_whole() -> None:
    replay = Replay(8, 1, np.zeros((), np.int32))
    replay.add(rows(0, 1, 2, 3))
    drawn = replay.sample(np.random.default_rng(0), (100, 80))
    assert drawn.reward.shape == (100, 80)
    assert np.bincount(drawn.action.ravel(), minlength=4) / 8000 == pytest.approx([0.25] * 4, abs=0.02)
    np.testing.assert_array_equal(drawn.following, drawn.observation + 1)
    np.testing.assert_array_equal(drawn.observation[..., 0], drawn.reward)


def test_a_ring_that_was_packed_goes_on_where_it_was() -> None:
    one, two = (Replay(5, 1, np.zeros((), np.int32)) for _ in range(2))
    one.add(rows(1, 2, 3, 4, 5, 6))
    two.unpack({name: part.copy() for name, part in one.packed().items()})
    for replay in (one, two):
        replay.add(rows(7))
    for a, b in zip(one.rows, two.rows, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("terminates", [True, False])
def test_the_reset_is_not_remembered_and_only_a_terminated_episode_has_no_future(terminates: bool) -> None:
    one = player(terminates=terminates)
    assert one.play(8, zeros, lambda: False)
    # Eight steps: three of an episode, its reset, three of the next, its reset.
    found = Transitions(*(part[: one.replay.size] for part in one.replay.rows))
    assert found.observation[:, 0].tolist() == [0, 1, 2, 0, 1, 2]
    assert found.following[:, 0].tolist() == [1, 2, 3, 1, 2, 3]
    assert found.reward.tolist() == [1, 2, 3, 1, 2, 3]
    assert found.terminated.tolist() == [0, 0, float(terminates)] * 2
    assert one.episodes().tolist() == [6.0, 3.0]
    assert np.isnan(one.episodes()).all()


def test_observations_are_normalised_by_what_was_seen_and_remembered_as_they_were() -> None:
    one = player(terminates=True, normalize=True)
    one.play(8, zeros, lambda: False)
    assert one.seen.mean == pytest.approx([1.0], abs=1e-3)
    assert one.normaliser()(np.array([[1.0]], np.float32)) == pytest.approx(np.zeros((1, 1)), abs=1e-3)
    assert one.replay.rows.observation[:3, 0].tolist() == [0, 1, 2]


def test_a_lap_stops_inside_when_the_training_is_over() -> None:
    one = player(terminates=True)
    assert not one.play(8, zeros, lambda: one.replay.size == 2)
    assert one.replay.size == 2


@pytest.mark.parametrize(
    ("updates", "rounds"), [(0.1, [1]), (64.0, [64]), (256.0, [256]), (257.0, [129, 129]), (1000.0, [250] * 4)]
)
def test_the_updates_of_a_lap_are_made_in_few_calls_that_are_alike(updates: float, rounds: list[int]) -> None:
    assert rounds_of(updates) == rounds
