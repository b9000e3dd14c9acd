"""What every built-in trainer does alike: count its steps, save what it learnt, and go on after a kill.

No environment can be written to disk. So a training is divided into legs, and each leg has new
environments from seeds of its own, whether the training is killed between two of them or not:
that is why one that goes on ends exactly like one that never stopped.
"""

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from overnight.guest.train import Order, Training
from overnight.rl.envs import batched
from overnight.rl.files import Checkpoint, read_checkpoint, write_checkpoint
from overnight.rl.settings import prepare_device

Array = NDArray[Any]
_COUNTERS = ("steps", "saved", "leg")
_SPENT = ("wall_seconds", "cpu_seconds")


class Course(ABC):
    """One training on its way; a trainer's own state is a subclass."""

    def __init__(self, order: Order, *, num_envs: int, checkpoints: int) -> None:
        self.order, self._num_envs, self._checkpoints = order, num_envs, checkpoints
        self.steps = 0
        """Environment steps so far."""
        self.saved = 0.0
        """The spent share of the budget when the policy was last saved."""
        self.leg = 0
        """How many checkpoints there were."""
        self.stepped_by: dict[str, str] = {}
        """What steps the environments, and why."""
        seeds = np.random.SeedSequence(order.train_seed).spawn(4)[1:]
        self.for_weights, self.for_actions, self.for_updates = (np.random.default_rng(seed) for seed in seeds)

    @abstractmethod
    def arrays(self) -> dict[str, Array]:
        """Everything that was learnt and seen, for a checkpoint."""

    @abstractmethod
    def take(self, arrays: dict[str, Array]) -> None:
        """Take over what `arrays` returned."""

    @abstractmethod
    def enter(self, envs: batched.Batch) -> None:
        """Leave the environments for these."""

    @abstractmethod
    def save(self, folder: Path) -> None:
        """Write the policy into an empty folder, as a registered architecture: no code of ours is needed to run it."""

    def new_envs(self) -> batched.Batch:
        """The environments of this leg."""
        source = np.random.SeedSequence(self.order.train_seed, spawn_key=(0, self.leg) if self.leg else (0,))
        seeds = [int(seed >> 1) for seed in source.generate_state(self._num_envs)]
        made = batched.make(self.order.env, seeds, threads=self.order.cores)
        self.stepped_by = {"backend": made.backend, "why": made.why}
        return made

    def begin(self, training: Training) -> None:
        """Start the budget's clock, and go on from the last checkpoint if there is one."""
        training.ready(**self.stepped_by)
        folder = training.checkpoint()
        if folder is None:
            return
        facts, arrays = read_checkpoint(folder)
        self.steps, self.saved, self.leg = (facts[name] for name in _COUNTERS)
        self.for_actions.bit_generator.state, self.for_updates.bit_generator.state = facts["random"]
        self.take(arrays)
        self.enter(self.new_envs())
        training.resume(self.steps, **{name: facts[name] for name in _SPENT})

    def keep(self, training: Training) -> None:
        """Save the policy where another tenth of the budget is spent, and everything where a leg is over."""
        share = training.share(self.steps)
        if share >= self.saved + 0.1:
            self.saved = share
            training.save_policy(self.save)
        if share < 1 and int(share * self._checkpoints) > self.leg:
            self.leg = int(share * self._checkpoints)
            training.save_checkpoint(lambda folder: write_checkpoint(folder, self._checkpoint(training)))
            self.enter(self.new_envs())

    def _checkpoint(self, training: Training) -> Checkpoint:
        facts: dict[str, Any] = {name: getattr(self, name) for name in _COUNTERS}
        facts |= {"wall_seconds": training.wall_seconds(), "cpu_seconds": training.cpu_seconds()}
        facts["random"] = [rng.bit_generator.state for rng in (self.for_actions, self.for_updates)]
        return Checkpoint(facts, self.arrays())


def run(train: Callable[[Training], None], training: Training) -> None:
    """Train on the device that the order names; an environment that does not fit ends the process with one sentence."""
    prepare_device(training.order)
    try:
        train(training)
    except batched.UnsupportedEnv as error:
        sys.exit(str(error))
