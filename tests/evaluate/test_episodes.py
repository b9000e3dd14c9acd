"""What a policy returns is checked before it reaches an environment."""

import importlib.util
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

from overnight.evaluate.episodes import PolicyError, checked
from overnight.evaluate.measure import measure_reference
from overnight.machine import RealMachine
from overnight.records.env import EnvSpec

LISTS = gymnasium.spaces.MultiDiscrete([2, 3])


def test_an_action_chosen_from_several_lists_is_taken_as_it_is() -> None:
    found = checked(np.array([[1, 2], [0, 1]], np.int32), LISTS, 2, clip=True)
    assert found.tolist() == [[1, 2], [0, 1]]
    assert all(LISTS.contains(action) for action in found)


@pytest.mark.parametrize(
    "actions",
    [
        pytest.param([[2, 0]], id="beyond the first list"),
        pytest.param([[0, -1]], id="before the second list"),
        pytest.param([[0.0, 1.0]], id="not whole numbers"),
        pytest.param([[0]], id="one number too few"),
    ],
)
def test_an_action_outside_its_lists_ends_the_measurement(actions: Any) -> None:
    with pytest.raises(PolicyError, match=r"The policy returned"):
        checked(np.array(actions), LISTS, 1, clip=True)


@pytest.mark.skipif(importlib.util.find_spec("mujoco") is None, reason="MuJoCo is not installed")
def test_a_measurement_leaves_no_log_of_the_simulator_where_the_user_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    env = EnvSpec(backend="gymnasium", id="HalfCheetah-v5", max_episode_steps=2)
    gymnasium.make(env.id).close()
    log = tmp_path / "MUJOCO_LOG.TXT"
    assert log.exists(), "this environment is one whose log is written"
    log.unlink()
    assert measure_reference(RealMachine(), env, "random", [1]).episodes
    assert not log.exists()
    assert not Path("/MUJOCO_LOG.TXT").exists()
