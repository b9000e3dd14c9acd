"""Many environments as one: both backends keep the same rule for the end of an episode."""

import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from numpy.typing import NDArray

from overnight.guest.train import Env
from overnight.rl.envs.batched import Batch, UnsupportedEnv, make, make_lanes


class Echo(gymnasium.Env[Any, Any]):
    """Shows the last action, so that a test can see what reached the environment."""

    def __init__(self, observation_space: Any = None, action_space: Any = None) -> None:
        self.action_space = action_space or gymnasium.spaces.Box(-1.0, 1.0, (2, 1))
        self.observation_space = observation_space or gymnasium.spaces.Box(-10.0, 10.0, (2, 1))

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        return np.zeros((2, 1), np.float32), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        return np.reshape(action, (2, 1)), 0.0, False, False, {}


class One(Echo):
    """Shows the one number of the last action, and wants it as an array."""

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        return super().reset(seed=seed, options=options)[0][0], {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        assert self.action_space.contains(action)
        return action.astype(np.float32), 0.0, False, False, {}


gymnasium.register("overnight-tests/One-v0", lambda **kwargs: One(**kwargs))
gymnasium.register("overnight-tests/Echo-v0", lambda **kwargs: Echo(**kwargs))


@pytest.fixture
def _no_envpool(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "envpool", None)


@pytest.fixture(params=["envpool", "gymnasium"])
def backend(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "gymnasium":
        monkeypatch.setitem(sys.modules, "envpool", None)
    elif importlib.util.find_spec("envpool") is None:
        pytest.skip("EnvPool is not installed")
    return str(request.param)


def env(name: str = "CartPole-v1", limit: int | None = None, *, clip: bool = True, **kwargs: Any) -> Env:
    return Env("gymnasium", name, kwargs, limit, clip_actions=clip)


def played(batch: Batch, steps: int) -> Sequence[tuple[NDArray[Any], ...]]:
    """What a fixed policy sees: always to the left."""
    batch.reset()
    found = [(*batch.step(np.zeros(batch.num_envs, int)), batch.resetting) for _ in range(steps)]
    batch.close()
    return found


def test_an_episode_that_terminates_ends_with_its_last_observation_and_then_resets(backend: str) -> None:
    batch = make(env(), [5, 6], threads=1)
    assert (batch.backend, batch.discrete, batch.action_size, batch.observation_size) == (backend, True, 2, 4)
    steps = played(batch, 30)
    end = next(t for t, step in enumerate(steps) if step[2][0])
    observations, rewards, terminated, truncated, resetting = (part[0] for part in steps[end])
    assert abs(observations[2]) > 0.2095
    assert (rewards, terminated, truncated, resetting) == (1, True, False, True)
    observations, rewards, terminated, truncated, resetting = (part[0] for part in steps[end + 1])
    assert np.abs(observations).max() <= 0.05
    assert (rewards, terminated, truncated, resetting) == (0, False, False, False)
    assert steps[end + 2][1][0] == 1


def test_an_episode_that_is_cut_is_truncated_and_not_terminated(backend: str) -> None:
    steps = played(make(env(limit=5), [5], threads=1), 12)
    assert [bool(step[3][0]) for step in steps] == [t in (4, 10) for t in range(12)]
    assert not any(step[2][0] for step in steps)
    assert [float(step[1][0]) for step in steps] == [0.0 if t in (5, 11) else 1.0 for t in range(12)]


def test_the_same_seeds_give_the_same_episodes_whatever_the_threads(backend: str) -> None:
    first, second, other = (
        played(make(env(), seeds, threads=threads), 60)
        for seeds, threads in (([1, 2, 3], 1), ([1, 2, 3], 2), ([1, 2, 9], 1))
    )
    for one, two in zip(first, second, strict=True):
        for a, b in zip(one, two, strict=True):
            np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(first[0][0][:2], other[0][0][:2])
    assert (first[0][0][2] != other[0][0][2]).any()


def test_a_seed_may_be_as_great_as_a_train_seed(backend: str) -> None:
    great, other = (played(make(env(), [2**63 + seed], threads=1), 30) for seed in (5, 6))
    assert (great[0][0] != other[0][0]).any()
    again = played(make(env(), [2**63 + 5], threads=1), 30)
    np.testing.assert_array_equal(great[0][0], again[0][0])


def test_lanes_are_the_same_environments_as_one_batch() -> None:
    pytest.importorskip("envpool")
    seeds, rng = [1, 2, 3, 4, 5], np.random.default_rng(0)
    whole, lanes = make(env("LunarLander-v3"), seeds, threads=2), make_lanes(env("LunarLander-v3"), seeds, cores=2)
    assert [lane.num_envs for lane in lanes] == [3, 2]
    np.testing.assert_array_equal(np.concatenate([lane.reset() for lane in lanes]), whole.reset())
    for _ in range(200):
        actions = rng.integers(0, 4, 5)
        parts = [lane.step(part) for lane, part in zip(lanes, np.split(actions, [3]), strict=True)]
        for one, all_ in zip(zip(*parts, strict=True), whole.step(actions), strict=True):
            np.testing.assert_array_equal(np.concatenate(one), all_)
    for batch in (whole, *lanes):
        batch.close()


@pytest.mark.parametrize(
    ("name", "kwargs", "cores"),
    [
        pytest.param("CartPole-v1", {}, 2, id="a step that is over at once"),
        pytest.param("HalfCheetah-v5", {"ctrl_cost_weight": 0.2}, 2, id="stepped by Python"),
        pytest.param("LunarLander-v3", {}, 1, id="one core"),
    ],
)
def test_one_lane_is_all_where_a_second_thread_would_only_wait(name: str, kwargs: dict[str, Any], cores: int) -> None:
    (lane,) = make_lanes(Env("gymnasium", name, kwargs, None, clip_actions=True), [1, 2, 3], cores=cores)
    assert lane.num_envs == 3
    lane.close()


def test_both_backends_describe_a_continuous_environment_alike(backend: str) -> None:
    batch = make(env("Pendulum-v1"), [1, 2], threads=1)
    assert (batch.backend, batch.discrete, batch.action_size, batch.observation_size) == (backend, False, 1, 3)
    assert batch.reset().dtype == np.float32
    found = batch.step(np.full((2, 1), 100.0))
    assert found.observations.shape == (2, 3)
    assert found.rewards.dtype == np.float32
    batch.close()


@pytest.mark.usefixtures("_no_envpool")
def test_without_envpool_training_goes_on_in_gymnasium_and_says_so() -> None:
    batch = make(env(), [1], threads=1)
    assert batch.backend == "gymnasium"
    assert batch.why == "EnvPool is not installed; training on Gymnasium"
    batch.close()


def test_an_environment_with_arguments_is_not_made_by_envpool() -> None:
    batch = make(env(sutton_barto_reward=True), [1], threads=1)
    assert batch.backend == "gymnasium"
    batch.reset()
    assert batch.step(np.zeros(1, int)).rewards.tolist() == [0.0]
    batch.close()


def test_an_environment_of_a_module_is_imported_and_made_by_gymnasium(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "my_pole.py").write_text(
        "import gymnasium\n"
        "gymnasium.register('MyPole-v0', 'gymnasium.envs.classic_control.cartpole:CartPoleEnv', max_episode_steps=3)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    steps = played(make(env("my_pole:MyPole-v0"), [1], threads=1), 4)
    assert [bool(step[3][0]) for step in steps] == [False, False, True, False]


@pytest.mark.parametrize(("clip", "reaches"), [(True, 1.0), (False, 3.0)])
@pytest.mark.usefixtures("_no_envpool")
def test_continuous_actions_get_their_shape_and_are_clipped_if_asked(clip: bool, reaches: float) -> None:
    batch = make(env("overnight-tests/Echo-v0", clip=clip), [1], threads=1)
    assert (batch.action_size, batch.observation_size) == (2, 2)
    batch.reset()
    assert batch.step(np.array([[0.5, 3.0]])).observations.tolist() == [[0.5, reaches]]
    batch.close()


@pytest.mark.usefixtures("_no_envpool")
def test_an_action_may_be_chosen_from_several_lists() -> None:
    batch = make(env("overnight-tests/Echo-v0", action_space=gymnasium.spaces.MultiDiscrete([2, 3])), [1, 2], threads=1)
    assert (batch.discrete, batch.choices, batch.action_size) == (True, (2, 3), 5)
    batch.reset()
    assert batch.step(np.array([[1, 2], [0, 1]], np.int32)).observations.tolist() == [[1, 2], [0, 1]]
    batch.close()


@pytest.mark.usefixtures("_no_envpool")
def test_a_list_of_one_list_is_given_as_a_list_of_one() -> None:
    space = gymnasium.spaces.MultiDiscrete([3], start=[1])
    shape = gymnasium.spaces.Box(-10.0, 10.0, (1,))
    batch = make(env("overnight-tests/One-v0", action_space=space, observation_space=shape), [1, 2], threads=1)
    batch.reset()
    assert (batch.choices, batch.no_action.shape) == ((3,), ())
    assert batch.step(np.array([2, 0], np.int32)).observations.tolist() == [[3], [1]]
    batch.close()


@pytest.mark.parametrize(
    "spaces",
    [
        pytest.param({"observation_space": gymnasium.spaces.Sequence(gymnasium.spaces.Discrete(2))}, id="observations"),
        pytest.param({"action_space": gymnasium.spaces.MultiBinary(2)}, id="actions"),
    ],
)
@pytest.mark.usefixtures("_no_envpool")
def test_a_space_that_no_network_here_fits_is_refused_with_a_sentence(spaces: dict[str, Any]) -> None:
    with pytest.raises(UnsupportedEnv, match="is needed"):
        make(env("overnight-tests/Echo-v0", **spaces), [1], threads=1)


@pytest.mark.usefixtures("_no_envpool")
def test_lists_that_do_not_begin_at_0_are_counted_from_their_first() -> None:
    space = gymnasium.spaces.MultiDiscrete([2, 3], start=[0, 1])
    batch = make(env("overnight-tests/Echo-v0", action_space=space), [1], threads=1)
    batch.reset()
    assert batch.step(np.array([[1, 2]], np.int32)).observations.tolist() == [[1, 3]]
    batch.close()
    assert make(
        env("overnight-tests/Echo-v0", action_space=gymnasium.spaces.Discrete(3, start=1)), [1], threads=1
    ).firsts == (1,)


@pytest.mark.usefixtures("_no_envpool")
def test_an_unknown_environment_is_refused_with_a_sentence() -> None:
    with pytest.raises(UnsupportedEnv, match="NoSuchThing-v0 cannot be made"):
        make(env("NoSuchThing-v0"), [1], threads=1)
