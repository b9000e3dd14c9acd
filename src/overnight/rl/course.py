"""What every built-in trainer does alike: count its steps, save what it learnt, and go on after a kill.

No environment can be written to disk. So a training is divided into legs, and each leg has new
environments from seeds of its own, whether the training is killed between two of them or not:
that is why one that goes on ends exactly like one that never stopped.
"""

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from overnight.guest.steps import Refused, is_metered
from overnight.guest.train import Order, Training
from overnight.rl.envs import batched
from overnight.rl.files import Checkpoint, read_checkpoint, write_checkpoint
from overnight.rl.settings import prepare_device

Array = NDArray[Any]
_COUNTERS = (
    *("steps", "saved", "leg", "best", "rehearsal_share", "whole_share", "rehearsal_episodes"),
    *("attempt", "attempt_from_step", "attempt_from_share", "interruptions"),
)
_REHEARSING = 0.1
"""The share of what is spent that rehearsals may have taken when another one begins."""
_AUDITION = 0.05
"""The share of the budget that each beginning gets where several are tried."""
MOST_AUDITIONS = 10
"""With so many, beginnings and their rehearsals take most of the budget."""
_LONGEST_REHEARSAL = 0.05
"""The share of the budget at which a rehearsal is given up."""
_MORE = 3
"""How many times as many further episodes a policy plays that is about to be kept: with 16 of them, one that falls in
every sixteenth is seen to fall only two times in three."""
_FIRST, _FURTHER = (4,), (5,)
"""What the seeds of the episodes of a rehearsal come from."""
_SPENT = ("wall_seconds", "cpu_seconds")


class Settings(Protocol):
    """What every built-in trainer declares."""

    @property
    def num_envs(self) -> int:
        """Environments that are stepped side by side."""

    @property
    def checkpoints(self) -> int:
        """Parts of the budget after which the whole training is saved; 0 saves none."""

    @property
    def rehearsal_episodes(self) -> int:
        """Greedy episodes that a policy rehearses before it replaces the one that is kept; 0 keeps the last."""


class Course(ABC):
    """One training on its way; a trainer's own state is a subclass."""

    def __init__(self, order: Order, p: Settings) -> None:
        self.order, self._num_envs, self._checkpoints = order, p.num_envs, p.checkpoints
        self.steps = 0
        """Environment steps so far."""
        self.saved = 0.0
        """The spent share of the budget when the policy was last saved."""
        self.leg = 0
        """How many checkpoints there were."""
        self.best: float | None = None
        """The mean return of the policy that is kept, where policies rehearse."""
        self.rehearsal_share = 0.0
        """The share of the budget that rehearsals have taken."""
        self.whole_share = 0.0
        """The share that it takes with its further episodes."""
        self.rehearsal_episodes = p.rehearsal_episodes
        """Episodes of the next rehearsal; 0 where there is none, or none any more."""
        self.offers = 10
        """Parts of the budget after which a policy is saved, or rehearses first."""
        self.auditions = 0
        """Beginnings that a trainer that can do so tries, to go on with the best of them; 0 for none."""
        self.attempt_steps = 0
        """Steps after which a trainer that can do so begins anew, to keep the best attempt; 0 for never."""
        self.attempt = 0
        """How many auditions and attempts there were before this one."""
        self._leader: dict[str, Array] = {}
        """What the best audition so far had learnt."""
        self._audition_from_share = 0.0
        """The spent share of the budget at which this audition began."""
        self.interruptions = 0
        """How many rehearsals took a metered training out of its environments."""
        self.attempt_from_step, self.attempt_from_share = 0, 0.0
        """The steps, and the spent share of the budget, at which this attempt began."""
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

    def begin_anew(self) -> None:
        """Forget what was learnt, and begin in new environments, with new weights; for a trainer that can do so."""
        raise TypeError(f"{type(self).__module__} does not begin anew")

    @abstractmethod
    def enter_new_envs(self) -> None:
        """Leave the environments for those of this leg and attempt: `new_envs`, or `new_lanes`."""

    @abstractmethod
    def save(self, folder: Path) -> None:
        """Write the policy into an empty folder, as a registered architecture: no code of ours is needed to run it."""

    @abstractmethod
    def greedy(self, observations: Array) -> Array:
        """What the policy does when it tries nothing out."""

    def new_envs(self) -> batched.Batch:
        """The environments of this leg and attempt, as one batch."""
        return self._told(batched.make(self.order.env, self._leg_seeds(), threads=self.order.cores))

    def new_lanes(self) -> tuple[batched.Batch, ...]:
        """The same environments, as batches that threads play side by side."""
        lanes = batched.make_lanes(self.order.env, self._leg_seeds(), cores=self.order.cores)
        self._told(lanes[0])
        return lanes

    def _told(self, made: batched.Batch) -> batched.Batch:
        self.stepped_by = {"backend": made.backend, "why": made.why}
        return made

    def _leg_seeds(self) -> list[int]:
        key = [0, self.leg, self.attempt, self.interruptions]
        while len(key) > 1 and not key[-1]:
            key.pop()
        return self._seeds(tuple(key), self._num_envs)

    def _seeds(self, key: tuple[int, ...], count: int) -> list[int]:
        """Seeds of so many environments, which only this key gives."""
        source = np.random.SeedSequence(self.order.train_seed, spawn_key=key)
        return [int(seed >> 1) for seed in source.generate_state(count)]

    def begin(self, training: Training) -> None:
        """Start the budget's clock, and go on from the last checkpoint if there is one."""
        training.ready(**self.stepped_by)
        folder = training.checkpoint()
        if folder is None:
            return
        facts, arrays = read_checkpoint(folder)
        asked, before = _asked(self.order), facts.get("asked", {})  # an older version did not say
        other = sorted(name for name in asked.keys() | before.keys() if asked.get(name) != before.get(name))
        if other or arrays.keys() != self.arrays().keys():
            what = ", ".join(other) or "trainer"
            sys.exit(f"checkpoint/ is of a training with another {what}; delete it, or write elsewhere")
        for name in _COUNTERS:
            setattr(self, name, facts[name])
        self.for_actions.bit_generator.state, self.for_updates.bit_generator.state = facts["random"]
        self.take(arrays)
        self.enter_new_envs()
        training.resume(self.steps, **{name: facts[name] for name in _SPENT})

    def has_room(self, training: Training, lap_steps: int) -> bool:
        """Whether one more lap fits into the budget, with what the last rehearsal needs set aside."""
        return training.has_room(self.steps, lap_steps, aside=1.2 * self.whole_share)

    def progress(self, training: Training) -> float:
        """How far this attempt's schedules have come, from 0 to 1: by its steps, or by what it found of the budget.

        Whichever is further counts. Attempts are compared by rehearsing, so where nothing rehearses, there is one.
        Auditions belong to the first of them, whose steps are counted from their end.
        """
        found = 1 - self.attempt_from_share
        of_budget = (training.share(self.steps) - self.attempt_from_share) / found if found > 0 else 1.0
        if not self.attempt_steps or not self.rehearsal_episodes or self.is_auditioning():
            return of_budget
        return min(max(of_budget, (self.steps - self.attempt_from_step) / self.attempt_steps), 1.0)

    def is_auditioning(self) -> bool:
        """Whether beginnings are being tried. They are compared by rehearsing, so where nothing rehearses, none are."""
        return bool(self.rehearsal_episodes) and self.attempt < self.auditions

    def stint_is_over(self, training: Training) -> bool:
        """Whether an audition has had its share, or an attempt its steps, and some of the budget is left."""
        if training.spent(self.steps):
            return False
        if self.is_auditioning():
            return training.share(self.steps) >= self._audition_from_share + _AUDITION
        return self.progress(training) >= 1

    def end_stint(self, training: Training) -> None:
        """Offer what was learnt, and begin anew; after the last audition, go on with what the best of them had learnt.

        Where an audition shows that rehearsing takes too long to choose by, what is there goes on; and so it does
        where the training is over meanwhile, because new weights would be all that is left of it.
        """
        auditioned = self.is_auditioning()
        if self.offer(training) and auditioned:
            self._leader = self.arrays()
        self.saved = self._audition_from_share = training.share(self.steps)
        if training.spent(self.steps) or (auditioned and not self.is_auditioning()):
            return
        self.attempt += 1
        if not self.is_auditioning():
            self.attempt_from_step = self.steps
        if not auditioned:
            self.attempt_from_share = self.saved
        if not auditioned or self.is_auditioning():
            self.begin_anew()
        else:
            self.take(self._leader)
            self.enter_new_envs()

    def keep(self, training: Training) -> None:
        """Save the policy where another part of the budget is spent, and everything where a leg is over.

        Nothing of an audition is saved before its end: one that is killed begins with the first of them. Rehearsals
        take about a tenth of the budget: none begins while those before it have taken more than that.
        """
        if self.is_auditioning():
            return
        share = training.share(self.steps)
        if share >= self.saved + 1 / self.offers and self.rehearsal_share <= _REHEARSING * share:
            self.offer(training)
            self.saved = share = training.share(self.steps)
        if share < 1 and int(share * self._checkpoints) > self.leg:
            self.leg = int(share * self._checkpoints)
            training.save_checkpoint(lambda folder: write_checkpoint(folder, self._checkpoint(training)))
            self.enter_new_envs()

    def offer(self, training: Training) -> bool:
        """Save the policy, unless it rehearses and does worse than the one that is kept; whether it was saved."""
        found = self._rehearsed(training) if self.rehearsal_episodes else None
        if self.best is not None and (found is None or found < self.best):
            return False
        self.best = found
        training.save_policy(self.save)
        return True

    def _rehearsed(self, training: Training) -> float | None:
        """The mean return of some greedy episodes, and of more where it would be kept for those; None for no answer.

        It is paid for out of the budget. One that takes a twentieth of it is given up. Where it had earned as much as
        the best by then, or is the first, there are no others from then on, and the last policy is kept; else it has
        shown to be worse. Further episodes that would take as much are left out.
        """
        first, before = self.steps, training.share(self.steps)
        found = self._played(training, _FIRST, self.rehearsal_episodes)
        took = training.share(self.steps) - before
        self.whole_share = took * (1 + _MORE) if took * (1 + _MORE) < _LONGEST_REHEARSAL else took
        leads = found is not None and (self.best is None or found >= self.best)
        if found is not None and leads and self.whole_share > took:
            further = self._played(training, _FURTHER, _MORE * self.rehearsal_episodes)
            found = None if further is None else (found + _MORE * further) / (1 + _MORE)
        if is_metered():
            self.interruptions += 1
            self.enter_new_envs()  # the broker has let the old ones go
        self.rehearsal_share += training.share(self.steps) - before
        if not self.rehearsal_episodes:
            self.rehearsal_share = self.whole_share = 0.0
        training.report(
            self.steps, rehearsal_return=np.nan if found is None else found, rehearsal_steps=self.steps - first
        )
        return found

    def _played(self, training: Training, key: tuple[int, ...], episodes: int) -> float | None:
        """The mean return of one greedy episode in each of some environments, the same ones for the same key."""
        envs = batched.make(self.order.env, self._seeds(key, episodes), threads=self.order.cores)
        before = training.share(self.steps)
        observations, totals, playing = envs.reset(), np.zeros(envs.num_envs), np.ones(envs.num_envs, bool)
        while playing.any() and not training.spent(self.steps + envs.num_envs - 1):
            if training.share(self.steps) - before > _LONGEST_REHEARSAL:
                if self.best is None or totals.mean() >= self.best:
                    self.rehearsal_episodes, self.best = 0, None
                break
            observations, rewards, _, _ = envs.step(self.greedy(observations))
            self.steps += envs.num_envs
            totals += rewards * playing
            playing &= ~envs.resetting
        envs.close()
        return None if playing.any() else float(totals.mean())

    def _checkpoint(self, training: Training) -> Checkpoint:
        facts: dict[str, Any] = {name: getattr(self, name) for name in _COUNTERS}
        facts |= {"wall_seconds": training.wall_seconds(), "cpu_seconds": training.cpu_seconds()}
        facts["asked"] = _asked(self.order)
        facts["random"] = [rng.bit_generator.state for rng in (self.for_actions, self.for_updates)]
        return Checkpoint(facts, self.arrays())


def _asked(order: Order) -> dict[str, Any]:
    """What decides how a training ends: one that goes on must be asked for the same."""
    env, budget = order.env, order.budget
    about = {"environment": [env.id, dict(env.kwargs), env.max_episode_steps, env.clip_actions]}
    return about | {"train seed": order.train_seed, "budget": [budget.amount, budget.unit], **order.params}


def run(train: Callable[[Training], None], training: Training) -> None:
    """Train on the device that the order names; an environment that does not fit ends the process with one sentence."""
    prepare_device(training.order)
    try:
        train(training)
    except (batched.UnsupportedEnv, Refused) as error:
        sys.exit(str(error))
