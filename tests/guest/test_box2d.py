"""Box2D's environments without pygame: they are made, and the one that needs it says so."""

import subprocess
import sys

import pytest

pytest.importorskip("Box2D")

_TRY = """
import sys, warnings
warnings.simplefilter("ignore")
sys.modules["pygame"] = None  # as where it is not installed
from importlib import util
found = util.find_spec
import overnight.guest.box2d as box2d
box2d.find_spec = lambda name: None if name == "pygame" else found(name)
box2d.spare_pygame()
import gymnasium
environment = gymnasium.make(sys.argv[1])
environment.reset(seed=1)
print(len(environment.step(environment.action_space.sample())))
"""


@pytest.mark.parametrize("env", ["BipedalWalker-v3", "LunarLander-v3"])
def test_an_environment_that_only_draws_with_pygame_is_made_without_it(env: str) -> None:
    found = subprocess.run([sys.executable, "-c", _TRY, env], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "5"


def test_car_racing_says_what_it_needs() -> None:
    found = subprocess.run([sys.executable, "-c", _TRY, "CarRacing-v3"], capture_output=True, text=True, check=False)
    assert found.returncode == 1
    assert "CarRacing needs pygame, which is not installed: pip install pygame-ce" in found.stderr
