"""What a policy returns is checked before it reaches an environment."""

from typing import Any

import gymnasium
import numpy as np
import pytest

from overnight.evaluate.episodes import PolicyError, checked

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
