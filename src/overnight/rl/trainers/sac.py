"""Soft actor-critic in one file, to be read from top to bottom: `python -m overnight.rl.trainers.sac`.

The algorithm is that of Haarnoja and others (2018, with the learnt temperature): a Gaussian policy
squashed by tanh, two critics of which the lower counts, and target critics that follow slowly. It needs
far fewer steps than PPO and far more computing for each. What differs from most implementations, and why:

- A lap plays a few steps in all environments, in NumPy; then one compiled JAX call makes all updates of
  that lap, on minibatches that were drawn beforehand. Nothing is done in Python for each update.
- The step in which an environment resets is no experience, and is not remembered.
- A truncated episode is bootstrapped from its last observation, a terminated one from nothing.
- Step sizes, the discount and the like are arguments of the compiled call, so that runs which differ only
  in them share a program.

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
    """What a proposer may change; `sac.space.json` says the same, as data."""

    learning_rate: float = 0.0003
    """Step size of the Adam optimiser, for the policy, the critics and the temperature."""
    anneal_learning_rate: bool = False
    """Whether the step size falls to zero over the budget."""
    num_envs: int = 8
    """Environments that are stepped side by side."""
    lap_steps: int = 8
    """Steps of each environment between two rounds of updates."""
    updates_per_step: float = 1.0
    """Updates for each step of one environment."""
    batch_size: int = 128
    """Transitions in one minibatch."""
    replay_size: int = 300000
    """Transitions that are remembered."""
    random_steps: int = 1000
    """Steps with random actions before anything is learnt."""
    gamma: float = 0.99
    """Discount of later rewards."""
    target_rate: float = 0.005
    """Share of the way that the target critics move towards the critics in each update."""
    initial_temperature: float = 1.0
    """Weight of the entropy at the beginning; from then on it is learnt."""
    target_entropy: float = -1.0
    """Entropy that the temperature aims at, for each number of an action."""
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
    *("episodic_return", "episodic_length", "critic_loss", "actor_loss", "entropy", "mean_value", "temperature"),
    *("learning_rate", *stopwatch.METRICS),
)
REPORT_STEPS = 1024  # at least so many steps lie between two reports
LOG_STD = (-10.0, 2.0)  # the narrowest and the widest policy
Dials = dict[str, Array]  # the numbers of `Parameters`, by name


def parameters(given: Mapping[str, Any]) -> Parameters:
    """The defaults with what the order changes, or the process ends with one sentence."""
    return settings(Parameters, given, trainer="sac")


# The networks.


class Nets(NamedTuple):
    """Everything that is learnt by gradients."""

    actor: Layers
    """From an observation to the mean and the logarithm of the spread, before squashing."""
    critics: tuple[Layers, Layers]
    """From an observation and an action within ±1 to its value."""
    log_temperature: Array


class Learner(NamedTuple):
    """The networks, the critics that follow them, and Adam's moments."""

    nets: Nets
    targets: tuple[Layers, Layers]
    adam: Any


ADAM = optax.scale_by_adam()


def initial(rng: np.random.Generator, observation: int, action: int, p: Parameters) -> Learner:
    """Networks that know nothing, and targets that are their critics' equals."""
    inside = (p.hidden_units, p.hidden_units)
    actor = uniform_layers(rng, (observation, *inside, 2 * action))
    first, second = (uniform_layers(rng, (observation + action, *inside, 1)) for _ in range(2))
    nets = Nets(actor, (first, second), np.float32(np.log(p.initial_temperature)))
    return Learner(nets, nets.critics, ADAM.init(nets))


# Learning: one compiled call for each lap.


def squashed(actor: Layers, x: Array, noise: Array, activation: str) -> tuple[Array, Array]:
    """Actions within ±1 and their log-probabilities, from noise of a standard normal distribution.

    The density of `tanh(u)` is that of `u` divided by `1 - tanh(u)²`, whose logarithm is written
    as `2 (log 2 - u - softplus(-2u))`, so that it stays exact where tanh is nearly 1.
    """
    mean, log_std = jnp.split(mlp(actor, x, JAX[activation]), 2, axis=-1)
    log_std = jnp.clip(log_std, *LOG_STD)
    u = mean + jnp.exp(log_std) * noise
    normal = -0.5 * noise**2 - log_std - 0.5 * np.log(2 * np.pi)
    return jnp.tanh(u), (normal - 2 * (np.log(2) - u - jax.nn.softplus(-2 * u))).sum(-1)


def lower_value(critics: tuple[Layers, Layers], x: Array, actions: Array, activation: str) -> Array:
    """What the less hopeful critic thinks of actions."""
    both = jnp.concatenate([x, actions], axis=-1)
    return jnp.minimum(*(mlp(critic, both, JAX[activation])[..., 0] for critic in critics))


def target_values(learner: Learner, batch: Transitions, noise: Array, dials: Dials, activation: str) -> Array:
    """What the critics should say: the reward, and the discounted soft value of what follows unless nothing does."""
    actions, log_prob = squashed(learner.nets.actor, batch.following, noise, activation)
    value = lower_value(learner.targets, batch.following, actions, activation)
    soft = value - jnp.exp(learner.nets.log_temperature) * log_prob
    return dials["reward_scale"] * batch.reward + dials["gamma"] * (1 - batch.terminated) * soft


def critic_loss(critics: tuple[Layers, Layers], batch: Transitions, targets: Array, activation: str) -> Array:
    """Half the mean squared error, summed over both critics."""
    both = jnp.concatenate([batch.observation, batch.action], axis=-1)
    return sum(0.5 * ((mlp(critic, both, JAX[activation])[..., 0] - targets) ** 2).mean() for critic in critics)


def actor_loss(actor: Layers, nets: Nets, x: Array, noise: Array, activation: str) -> tuple[Array, Array]:
    """How far the policy is from high values and high entropy; and its log-probabilities."""
    actions, log_prob = squashed(actor, x, noise, activation)
    value = lower_value(nets.critics, x, actions, activation)
    return (jnp.exp(nets.log_temperature) * log_prob - value).mean(), log_prob


def temperature_loss(log_temperature: Array, log_prob: Array, target_entropy: Array) -> Array:
    """Falls with a higher temperature where the entropy is below its target, and rises where it is above."""
    return -(log_temperature * (log_prob + target_entropy)).mean()


def one_update(
    learner: Learner, batch: Transitions, noise: Array, dials: Dials, activation: str
) -> tuple[Learner, Array]:
    """One step of Adam for everything, then one of the targets towards the critics.

    All three gradients are taken at the same weights: those before the step.
    """
    nets = learner.nets
    targets = jax.lax.stop_gradient(target_values(learner, batch, noise[0], dials, activation))
    loss, for_critics = jax.value_and_grad(critic_loss)(nets.critics, batch, targets, activation)
    (cost, log_prob), for_actor = jax.value_and_grad(actor_loss, has_aux=True)(
        nets.actor, nets, batch.observation, noise[1], activation
    )
    aim = dials["target_entropy"] * batch.action.shape[-1]
    for_temperature = jax.grad(temperature_loss)(nets.log_temperature, log_prob, aim)
    steps, adam = ADAM.update(Nets(for_actor, for_critics, for_temperature), learner.adam)
    nets = jax.tree.map(lambda weight, step: weight - dials["learning_rate"] * step, nets, steps)
    followed = jax.tree.map(lambda old, new: old + dials["target_rate"] * (new - old), learner.targets, nets.critics)
    metrics = jnp.stack([loss, cost, -log_prob.mean(), targets.mean(), jnp.exp(nets.log_temperature)])
    return Learner(nets, followed, adam), metrics


@partial(jax.jit, static_argnames=("activation",))
def update(
    learner: Learner, batches: Transitions, noise: Array, dials: Dials, activation: str
) -> tuple[Learner, Array]:
    """All updates of a lap, one after the other, and their mean metrics."""

    def step(now: Learner, one: tuple[Transitions, Array]) -> tuple[Learner, Array]:
        return one_update(now, *one, dials, activation)

    learner, metrics = jax.lax.scan(step, learner, (batches, noise))
    return learner, metrics.mean(0)


# The training, in the order in which it happens.


class State(Course):
    """Everything that changes while it trains."""

    def __init__(self, order: Order, p: Parameters) -> None:
        super().__init__(order, p)
        self.p, envs = p, self.new_envs()
        self.reported, self.rate, self.metrics = 0, np.float32(np.nan), np.full(5, np.nan)
        if envs.discrete or not all(np.isfinite(end).all() for end in envs.bounds()):
            raise batched.UnsupportedEnv(f"{order.env.id}: sac needs continuous actions within bounds; ppo does not")
        low, high = envs.bounds()
        self.scale, self.shift = (high - low) / 2, (high + low) / 2
        self.learner = initial(self.for_weights, envs.observation_size, envs.action_size, p)
        replay = Replay(p.replay_size, envs.observation_size, envs.no_action)
        self.player = Player(envs, replay, normalize=p.normalize_observations)

    def act(self, x: Array) -> tuple[Array, Array]:
        """Draw actions: within ±1 for the replay, and within their bounds for the environments."""
        shape = (len(x), len(self.scale))
        if self.steps < self.p.random_steps:
            actions = self.for_actions.uniform(-1, 1, shape).astype(np.float32)
        else:
            mean, log_std = np.split(mlp(self.actor, x, NUMPY[self.p.activation]), 2, axis=-1)
            noise = self.for_actions.standard_normal(shape, np.float32)
            actions = np.tanh(mean + np.exp(np.clip(log_std, *LOG_STD)) * noise)
        return actions, actions * self.scale + self.shift

    def greedy(self, observations: Array) -> Array:
        """The means, within their bounds."""
        out = mlp(self.actor, self.player.normaliser()(observations), NUMPY[self.p.activation])
        return np.tanh(out[:, : len(self.scale)]) * self.scale + self.shift

    @property
    def learner(self) -> Learner:
        """What has been learnt."""
        return self._learner

    @learner.setter
    def learner(self, learner: Learner) -> None:
        self._learner, self.actor = learner, jax.tree.map(np.asarray, learner.nets.actor)

    def drawn(self, updates: int) -> tuple[Transitions, Array]:
        """Minibatches and noise for so many updates."""
        p, normalise = self.p, self.player.normaliser()
        found = self.player.replay.sample(self.for_updates, (updates, p.batch_size))
        seen = found._replace(observation=normalise(found.observation), following=normalise(found.following))
        return seen, self.for_updates.standard_normal((updates, 2, p.batch_size, len(self.scale)), np.float32)

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
        (*inside, (weight, bias)), half = self.actor, len(self.scale)
        greedy = [*inside, (weight[:, :half], bias[:half])]
        extra = {"action_scale": self.scale, "action_shift": self.shift}
        seen = self.player.seen if self.p.normalize_observations else None
        write_policy(folder, greedy, seen, extra, head="squashed", activation=self.p.activation)


def train(training: Training) -> None:
    """Train until the budget is spent; the policy is offered after every tenth of it and at the end."""
    order, p = training.order, parameters(training.order.params)
    state = State(order, p)
    sys.stderr.write(f"{state.player.envs.why}\n")
    dials = {name: np.float32(value) for name, value in asdict(p).items() if isinstance(value, float)}
    lap, rounds = p.num_envs * p.lap_steps, rounds_of(p.updates_per_step * p.num_envs * p.lap_steps)
    state.begin(training)  # imports are done; what compiles from here on is part of the budget
    watch = stopwatch.Stopwatch(order.cores)
    while state.has_room(training, lap):
        share = training.share(state.steps)
        if not state.player.play(p.lap_steps, state.act, partial(training.spent, state.steps)):
            break  # SIGTERM, or the end of the time
        state.steps += lap
        watch.environment += state.player.env_seconds
        if state.steps >= p.random_steps and is_due(p.updates_per_step, state.steps, lap):
            state.rate = np.float32(p.learning_rate * (1 - share if p.anneal_learning_rate else 1))
            with watch.learning():
                told = dials | {"learning_rate": state.rate}
                for updates in rounds:
                    state.learner, metrics = update(state.learner, *state.drawn(updates), told, p.activation)
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
    if not all(np.isfinite(part).all() for part in jax.tree.leaves(state.actor)):
        sys.exit(f"The training diverged: after {state.steps:,} steps the weights are not finite")
    numbers = (*state.player.episodes(), *state.metrics, state.rate, *watch.lap(state.steps - state.reported))
    training.report(state.steps, **dict(zip(METRICS, numbers, strict=True)))
    state.reported = state.steps


if TRAINING is not None:
    run(train, TRAINING)
