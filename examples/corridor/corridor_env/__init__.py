"""A sled in a corridor: push it left or right so that it comes to rest at a flag.

Importing this package registers `Corridor-v0`; Overnight imports it when the environment is
called `corridor_env:Corridor-v0`.
"""

from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

PUSH = (-1.0, 0.0, 1.0)
"""What each of the three actions does."""


class Corridor(gymnasium.Env[NDArray[np.float32], np.int64]):
    """Observes place, speed and the flag's place; loses the distance to the flag in every step."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 25}  # noqa: RUF012 - Gymnasium's own form

    def __init__(self, render_mode: str | None = None) -> None:
        """Make the corridor; it is drawn only when asked for pictures."""
        self.render_mode = render_mode
        self.observation_space = gymnasium.spaces.Box(-10.0, 10.0, (3,), np.float32)
        self.action_space = gymnasium.spaces.Discrete(len(PUSH))
        self._place = self._speed = self._flag = 0.0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        """Put the sled in the middle and the flag somewhere."""
        super().reset(seed=seed, options=options)
        self._place, self._speed = 0.0, 0.0
        self._flag = float(self.np_random.uniform(-3.0, 3.0))
        return self._seen(), {}

    def step(self, action: np.int64) -> tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        """Push, slide, and look how far the flag is; the episode ends where the sled rests at the flag."""
        self._speed = 0.9 * self._speed + 0.1 * PUSH[int(action)]
        self._place = float(np.clip(self._place + 0.3 * self._speed, -4.0, 4.0))
        distance = abs(self._flag - self._place)
        return self._seen(), -distance, distance < 0.1 and abs(self._speed) < 0.1, False, {}

    def render(self) -> NDArray[np.uint8]:
        """Draw the corridor from above: the flag green, the sled dark."""
        picture = np.full((60, 320, 3), 245, np.uint8)
        for place, colour, half in ((self._flag, (0, 140, 90), 3), (self._place, (40, 40, 60), 8)):
            centre = int(160 + 36 * place)
            picture[20:40, max(centre - half, 0) : centre + half] = colour
        return picture

    def _seen(self) -> NDArray[np.float32]:
        return np.array([self._place, self._speed, self._flag], np.float32)


gymnasium.register("Corridor-v0", entry_point=Corridor, max_episode_steps=100)
