"""Gymnasium's Box2D environments where pygame is not installed.

Gymnasium imports all of them at once, and one of them, CarRacing, cannot be imported without pygame. The others
need it only to draw. Standard library only, like all of `guest/`.
"""

import sys
from importlib.util import find_spec
from types import ModuleType

_CAR_RACING = "gymnasium.envs.box2d.car_racing"


def spare_pygame() -> None:
    """Let BipedalWalker and LunarLander be made without pygame, and CarRacing say what it needs.

    Call it before the first environment is made. Where pygame is installed it does nothing.
    """
    if _CAR_RACING in sys.modules or find_spec("pygame") is not None:
        return
    stand_in = ModuleType(_CAR_RACING)
    stand_in.CarRacing = _CarRacing  # type: ignore[attr-defined]
    sys.modules[_CAR_RACING] = stand_in


class _CarRacing:
    """In the place of the environment that pygame's absence leaves out."""

    def __init__(self, **_options: object) -> None:
        raise ImportError("CarRacing needs pygame, which is not installed: pip install pygame-ce")
