"""The environment that was built from the brief."""

import random

LENGTH = 9


class Corridor:
    """Nine cells; the walker slips now and then."""

    def __init__(self, max_steps, seed):
        self.max_steps = max_steps
        self.chance = random.Random(seed)
        self.cell = self.steps = 0

    def reset(self):
        """Back to the left end."""
        self.cell = self.steps = 0
        return self.cell

    def step(self, action):
        """Move left (0) or right (1), unless the walker slips."""
        self.steps += 1
        if self.chance.random() > 0.4:
            self.cell = min(max(self.cell + (1 if action == 1 else -1), 0), LENGTH - 1)
        success = self.cell == LENGTH - 1
        return self.cell, (1.0 if success else -0.01), success or self.steps >= self.max_steps, {"success": success}


def create_env(max_steps, seed):
    """The environment for one seed."""
    return Corridor(max_steps, seed)
