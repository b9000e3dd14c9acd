"""Deep Q-learning in one file, to be read from top to bottom: `python -m overnight.rl.trainers.dqn`.

The algorithm is double DQN (van Hasselt and others, 2016): one network gives a value for each action, the
best action of what follows is chosen by it and valued by an older copy of it. For environments whose
actions are one list. What differs from most implementations, and why:

- A lap plays a few steps in all environments, in NumPy; then one compiled JAX call makes all updates of
  that lap, on minibatches that were drawn beforehand. Nothing is done in Python for each update.
- The step in which an environment resets is no experience, and is not remembered.
- A truncated episode is bootstrapped from its last observation, a terminated one from nothing.
- Random actions become rarer with the spent share of the budget, whatever the budget's unit is.
- Step size, discount and the like are arguments of the compiled call, so that runs which differ only in
  them share a program.

A lap that would exceed the budget is not started. With a budget of steps, the same order on the same
machine gives the same weights, bit for bit, also where it was killed and went on (`course.py`).
"""

import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from overnight.guest.train import Order, Training
from overnight.rl.command import begin

TRAINING = begin(__file__) if __name__ == "__main__" else None

import jax  # noqa: E402 - the number of threads, which `begin` sets, is read by these imports
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
import optax  # type: ignore[import-untyped]  # noqa: E402

from overnight.rl import stopwatch  # noqa: E402
from overnight.rl.course import Course, run  # noqa: E402
from overnight.rl.envs import batched  # noqa: E402
from overnight.rl.files import write_policy  # noqa: E402
from overnight.rl.networks import JAX, NUMPY, Array, Layers, mlp, uniform_layers  # noqa: E402
from overnight.rl.replay import Player, Replay, Transitions, is_due, rounds_of  # noqa: E402
from overnight.rl.settings import Neutral, settings  # noqa: E402


@dataclass(frozen=True, kw_only=True)
class Parameters(Neutral):
    """What a proposer may change; `dqn.space.json` says the same, as data."""

    learning_rate: float = 0.0005
    """Step size of the Adam optimiser."""
    anneal_learning_rate: bool = False
    """Whether the step size falls to zero over the budget."""
    num_envs: int = 8
    """Environments that are stepped side by side."""
    lap_steps: int = 8
    """Steps of each environment between two rounds of updates."""
    updates_per_step: float = 0.25
    """Updates for each step of one environment."""
    batch_size: int = 128
    """Transitions in one minibatch."""
    replay_size: int = 100000
    """Transitions that are remembered."""
    random_steps: int = 1000
    """Steps with random actions before anything is learnt."""
    gamma: float = 0.99
    """Discount of later rewards."""
    target_period: int = 200
    """Updates after which the older copy of the network is renewed."""
    double: bool = True
    """Whether the network itself, and not its older copy, chooses the action that is valued."""
    first_epsilon: float = 1.0
    """Share of random actions at the beginning."""
    last_epsilon: float = 0.05
    """Share of random actions when exploration is over."""
    exploration: float = 0.3
    """Share of the budget after which random actions are no longer made rarer."""
    max_grad_norm: float = 10.0
    """Norm to which gradients are clipped."""
    hidden_units: int = 128
    """Width of each hidden layer."""
    activation: str = "relu"
    """Non-linearity of the hidden layers."""
    normalize_observations: bool = False
    """Whether observations are shifted and scaled by their running mean and spread."""
    reward_scale: float = 1.0
    """What rewards are multiplied with before they are learnt from."""
    rehearsal_episodes: int = 0
    """Greedy episodes that the policy rehearses now and then, to keep the best; 0 keeps the last."""
    checkpoints: int = 0
    """Parts of the budget after which the whole training is saved, to go on from after a kill; 0 saves none."""


METRICS = (
    *("episodic_return", "episodic_length", "value_loss", "mean_value", "gradient_norm", "epsilon"),
    *("learning_rate", *stopwatch.METRICS),
)
REPORT_STEPS = 1024  # at least so many steps lie between two reports
Dials = dict[str, Array]  # the numbers of `Parameters`, by name


def parameters(given: Mapping[str, Any]) -> Parameters:
    """The defaults with what the order changes, or the process ends with one sentence."""
    return settings(Parameters, given, trainer="dqn")


# The network.


class Learner(NamedTuple):
    """The network, its older copy, Adam's moments, and how many updates there were."""

    net: Layers
    target: Layers
    adam: Any
    count: Array


ADAM = optax.scale_by_adam()


def initial(rng: np.random.Generator, observation: int, actions: int, p: Parameters) -> Learner:
    """A network that knows nothing, and a copy of it."""
    net = uniform_layers(rng, (observation, p.hidden_units, p.hidden_units, actions))
    return Learner(net, net, ADAM.init(net), np.int32(0))


# Learning: one compiled call for each lap.


def target_values(net: Layers, target: Layers, batch: Transitions, dials: Dials, activation: str) -> Array:
    """What the network should say: the reward, and the discounted value of what follows unless nothing does."""
    values = mlp(target, batch.following, JAX[activation])
    chooses = jnp.where(dials["double"], mlp(net, batch.following, JAX[activation]), values)
    value = jnp.take_along_axis(values, chooses.argmax(-1)[:, None], 1)[:, 0]
    return dials["reward_scale"] * batch.reward + dials["gamma"] * (1 - batch.terminated) * value


def value_loss(net: Layers, batch: Transitions, targets: Array, activation: str) -> Array:
    """The mean of Huber's loss: half the square of a small error, and the size of a great one less a half."""
    values = mlp(net, batch.observation, JAX[activation])
    error = jnp.abs(jnp.take_along_axis(values, batch.action[:, None], 1)[:, 0] - targets)
    return jnp.where(error < 1, 0.5 * error**2, error - 0.5).mean()


def one_update(learner: Learner, batch: Transitions, dials: Dials, activation: str) -> tuple[Learner, Array]:
    """One step of Adam, and a new copy of the network where it is time for one."""
    net, target, adam, count = learner
    targets = target_values(net, target, batch, dials, activation)
    loss, gradient = jax.value_and_grad(value_loss)(net, batch, targets, activation)
    norm = jnp.sqrt(sum((part * part).sum() for part in jax.tree.leaves(gradient)))
    clip = jnp.minimum(1.0, dials["max_grad_norm"] / jnp.maximum(norm, 1e-12))
    steps, adam = ADAM.update(jax.tree.map(lambda part: part * clip, gradient), adam)
    net = jax.tree.map(lambda weight, step: weight - dials["learning_rate"] * step, net, steps)
    renew = (count + 1) % dials["target_period"] == 0
    target = jax.tree.map(lambda old, new: jnp.where(renew, new, old), target, net)
    return Learner(net, target, adam, count + 1), jnp.stack([loss, targets.mean(), norm])


@partial(jax.jit, static_argnames=("activation",))
def update(learner: Learner, batches: Transitions, dials: Dials, activation: str) -> tuple[Learner, Array]:
    """All updates of a lap, one after the other, and their mean metrics."""

    def step(now: Learner, batch: Transitions) -> tuple[Learner, Array]:
        return one_update(now, batch, dials, activation)

    learner, metrics = jax.lax.scan(step, learner, batches)
    return learner, metrics.mean(0)


def epsilon(p: Parameters, share: float) -> float:
    """The share of random actions when this share of the budget is spent: a line, then flat."""
    done = min(share / p.exploration, 1.0) if p.exploration > 0 else 1.0
    return p.first_epsilon + done * (p.last_epsilon - p.first_epsilon)


# The training, in the order in which it happens.


class State(Course):
    """Everything that changes while it trains."""

    def __init__(self, order: Order, p: Parameters) -> None:
        super().__init__(order, p)
        self.p, envs = p, self.new_envs()
        self.reported, self.rate, self.metrics = 0, np.float32(np.nan), np.full(3, np.nan)
        self.epsilon = p.first_epsilon
        if len(envs.choices) != 1:
            raise batched.UnsupportedEnv(f"{order.env.id}: dqn needs actions that are one list; ppo takes others too")
        self.learner = initial(self.for_weights, envs.observation_size, envs.action_size, p)
        replay = Replay(p.replay_size, envs.observation_size, envs.no_action)
        self.player = Player(envs, replay, normalize=p.normalize_observations)

    def act(self, x: Array) -> tuple[Array, Array]:
        """The best action, or a random one with the probability `epsilon`; replay and environments take the same."""
        guesses = self.for_actions.integers(0, self.net[-1][1].size, len(x), np.int32)
        guessing = self.for_actions.random(len(x)) < (1.0 if self.steps < self.p.random_steps else self.epsilon)
        best = mlp(self.net, x, NUMPY[self.p.activation]).argmax(1).astype(np.int32)
        actions = np.where(guessing, guesses, best)
        return actions, actions

    def greedy(self, observations: Array) -> Array:
        """The actions of the greatest value."""
        return mlp(self.net, self.player.normaliser()(observations), NUMPY[self.p.activation]).argmax(1)

    @property
    def learner(self) -> Learner:
        """What has been learnt."""
        return self._learner

    @learner.setter
    def learner(self, learner: Learner) -> None:
        self._learner, self.net = learner, jax.tree.map(np.asarray, learner.net)

    def drawn(self, updates: int) -> Transitions:
        """Minibatches for so many updates."""
        normalise = self.player.normaliser()
        found = self.player.replay.sample(self.for_updates, (updates, self.p.batch_size))
        return found._replace(observation=normalise(found.observation), following=normalise(found.following))

    def arrays(self) -> dict[str, Array]:
        """What a checkpoint holds."""
        learnt = {f"learner.{i}": np.asarray(part) for i, part in enumerate(jax.tree.leaves(self.learner))}
        return learnt | {"seen": self.player.seen.packed()} | self.player.replay.packed()

    def take(self, arrays: dict[str, Array]) -> None:
        """Go on from a checkpoint."""
        parts, shape = jax.tree.flatten(self.learner)
        self.learner = jax.tree.unflatten(shape, [arrays[f"learner.{i}"] for i in range(len(parts))])
        self.player.seen.unpack(arrays["seen"])
        self.player.replay.unpack(arrays)
        self.reported = self.steps

    def enter_new_envs(self) -> None:
        """Leave the environments for those of this leg."""
        self.player.envs.close()
        self.player.enter(self.new_envs())

    def save(self, folder: Path) -> None:
        """Write the policy."""
        seen = self.player.seen if self.p.normalize_observations else None
        says = {"head": "categorical", "activation": self.p.activation, "firsts": self.player.envs.firsts}
        write_policy(folder, self.net, seen, {}, **says)


def train(training: Training) -> None:
    """Train until the budget is spent; the policy is offered after every tenth of it and at the end."""
    order, p = training.order, parameters(training.order.params)
    state = State(order, p)
    sys.stderr.write(f"{state.player.envs.why}\n")
    dials: Dials = {name: np.float32(value) for name, value in asdict(p).items() if isinstance(value, float | bool)}
    dials["target_period"] = np.int32(p.target_period)
    lap, rounds = p.num_envs * p.lap_steps, rounds_of(p.updates_per_step * p.num_envs * p.lap_steps)
    state.begin(training)  # imports are done; what compiles from here on is part of the budget
    watch = stopwatch.Stopwatch(order.cores)
    while state.has_room(training, lap):
        share = training.share(state.steps)
        state.epsilon = epsilon(p, share)
        if not state.player.play(p.lap_steps, state.act, partial(training.spent, state.steps)):
            break  # SIGTERM, or the end of the time
        state.steps += lap
        watch.environment += state.player.env_seconds
        if state.steps >= p.random_steps and is_due(p.updates_per_step, state.steps, lap):
            state.rate = np.float32(p.learning_rate * (1 - share if p.anneal_learning_rate else 1))
            with watch.learning():
                told = dials | {"learning_rate": state.rate}
                for updates in rounds:
                    state.learner, metrics = update(state.learner, state.drawn(updates), told, p.activation)
                    if training.spent(state.steps - lap):
                        break  # SIGTERM, or the end of the time
                state.metrics = np.asarray(metrics)  # waits until the updates are done
        if state.steps - state.reported >= REPORT_STEPS:
            report(training, state, watch)
        state.keep(training)
    if state.steps > state.reported:
        report(training, state, watch)
    if state.steps < max(p.random_steps, 1):
        sys.stderr.write(f"The budget ended before anything was learnt, after {state.steps:,} steps.\n")
    state.offer(training)
    state.player.envs.close()


def report(training: Training, state: State, watch: stopwatch.Stopwatch) -> None:
    """Say how it goes, or end the process where the training has diverged."""
    if not all(np.isfinite(part).all() for part in jax.tree.leaves(state.net)):
        sys.exit(f"The training diverged: after {state.steps:,} steps the weights are not finite")
    dials, speed = (state.epsilon, state.rate), watch.lap(state.steps - state.reported)
    numbers = (*state.player.episodes(), *state.metrics, *dials, *speed)
    training.report(state.steps, **dict(zip(METRICS, numbers, strict=True)))
    state.reported = state.steps


if TRAINING is not None:
    run(train, TRAINING)
