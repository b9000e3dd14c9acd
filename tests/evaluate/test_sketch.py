"""Episodes can be watched without pygame: what is drawn follows the state."""

from pathlib import Path

import gymnasium
import numpy as np
import pytest

from overnight.evaluate.sketch import HEIGHT, WIDTH, sketch

CLASSIC = ("CartPole-v1", "MountainCar-v0", "MountainCarContinuous-v0", "Pendulum-v1", "Acrobot-v1")
MUJOCO = (
    "Hopper-v5",
    "Walker2d-v5",
    "HalfCheetah-v5",
    "Ant-v5",
    "Humanoid-v5",
    "Swimmer-v5",
    "Reacher-v5",
    "Pusher-v5",
)


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """MuJoCo writes a log wherever it stands."""
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("name", [*CLASSIC, *MUJOCO])
def test_a_classic_task_is_drawn_and_moves_when_it_moves(name: str) -> None:
    environment = gymnasium.make(name)
    environment.reset(seed=3)
    first = sketch(environment)
    for _ in range(8):
        environment.step(environment.action_space.low if hasattr(environment.action_space, "low") else 0)
    then = sketch(environment)
    assert first is not None
    assert then is not None
    assert first.shape == (HEIGHT, WIDTH, 3)
    assert (first != then).any(), "the picture follows the state"
    assert len(np.unique(then.reshape(-1, 3), axis=0)) >= 3, "there is something to see"


def test_the_pole_leans_where_the_state_says() -> None:
    environment = gymnasium.make("CartPole-v1")
    environment.reset(seed=0)
    world = environment.unwrapped
    sides = []
    for angle in (-0.4, 0.4):
        world.state = np.array([0.0, 0.0, angle, 0.0])  # type: ignore[attr-defined]
        picture = sketch(environment)
        assert picture is not None
        pole = np.argwhere((picture == (201, 122, 64)).all(axis=2))
        sides.append(pole[:, 1].mean() - WIDTH / 2)
    assert sides[0] < -5 < 5 < sides[1]


def test_what_we_do_not_know_is_not_drawn() -> None:
    environment = gymnasium.make("FrozenLake-v1")
    environment.reset(seed=0)
    assert sketch(environment) is None
