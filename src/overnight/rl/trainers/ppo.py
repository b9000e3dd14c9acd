"""PPO in one file, to be read from top to bottom: `python -m overnight.rl.trainers.ppo`.

The algorithm and its defaults are CleanRL's `ppo.py`. What differs, and why:

- Rollouts act in NumPy; one compiled JAX call makes all updates of a rollout. Step size, discount and
  the like are arguments of that call, so runs that differ only in them share a compiled program.
- The step in which an environment resets is no experience: it has weight 0 in every mean.
- A truncated episode is bootstrapped from the value of its last observation, a terminated one from 0.
- The step size falls with the spent share of the budget, whatever the budget's unit is.
- The network is one flat vector, and so are Adam's moments: it compiles in two thirds of the time.

A rollout that would exceed the budget is not started, so 30,000 steps end after 29,696 where a rollout
has 512; every step of every environment counts, resets too. With a budget of steps, the same order on
the same machine gives the same weights, bit for bit, also where it was killed and went on (`course.py`).
"""

import math
import sys
from collections import namedtuple
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from overnight.guest.train import Order, Training
from overnight.rl.command import begin

TRAINING = begin(__file__) if __name__ == "__main__" else None

import jax  # noqa: E402 - the number of threads, which `begin` sets, is read by these imports
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402

from overnight.rl import stopwatch  # noqa: E402
from overnight.rl.course import MOST_AUDITIONS, Course, run  # noqa: E402
from overnight.rl.files import write_policy  # noqa: E402
from overnight.rl.lanes import Lanes  # noqa: E402
from overnight.rl.moments import Moments  # noqa: E402
from overnight.rl.networks import JAX, NUMPY, Activation, Array, borders, drawer, mlp  # noqa: E402
from overnight.rl.settings import Neutral, settings  # noqa: E402


@dataclass(frozen=True, kw_only=True)
class Parameters(Neutral):
    """What a proposer may change; `ppo.space.json` says the same, as data."""

    learning_rate: float = 0.00025
    """Step size of the Adam optimiser."""
    anneal_learning_rate: bool = True
    """Whether the step size falls to zero over the budget."""
    num_envs: int = 4
    """Environments that are stepped side by side."""
    rollout_steps: int = 128
    """Steps of each environment between two updates."""
    rollout_growth: int = 1
    """Factor by which rollouts are longer at the end of the budget than at first; it grows in doublings."""
    num_minibatches: int = 4
    """Parts into which one rollout is split for the updates; fewer where a part would have less than 8 samples."""
    update_epochs: int = 4
    """Passes over one rollout."""
    gamma: float = 0.99
    """Discount of later rewards."""
    horizon_growth: float = 1.0
    """Factor by which the discount sees further at the end of the budget than at first; most of it comes late."""
    gae_lambda: float = 0.95
    """Balance of bias and variance in the advantage estimate."""
    clip_range: float = 0.2
    """How far one update may move the policy's probabilities."""
    target_kl: float = 0.0
    """Divergence from the policy that acted to which the step size is steered; 0 steers nothing."""
    clip_value_loss: bool = True
    """Whether the value update is clipped like the policy's."""
    normalize_advantage: bool = True
    """Whether advantages are normalised in each minibatch."""
    entropy_weight: float = 0.01
    """Weight of the entropy bonus."""
    anneal_entropy: bool = False
    """Whether the entropy bonus falls to zero over the budget."""
    value_weight: float = 0.5
    """Weight of the value loss."""
    max_grad_norm: float = 0.5
    """Norm to which gradients are clipped."""
    hidden_units: int = 64
    """Width of each hidden layer."""
    activation: str = "tanh"
    """Non-linearity of the hidden layers."""
    normalize_observations: bool = False
    """Whether observations are shifted and scaled by their running mean and spread."""
    normalize_rewards: bool = False
    """Whether rewards are divided by the running spread of the discounted return."""
    reward_clip: float = 10.0
    """Size to which divided rewards are cut, so that one rare blow does not drown what is earned step by step."""
    initial_log_std: float = 0.0
    """Logarithm of the first spread of continuous actions."""
    averaging: float = 0.0
    """Share of the updates so far over which the network that is kept is averaged; 0 keeps it as it is."""
    rehearsal_episodes: int = 0
    """Greedy episodes that the policy rehearses now and then, to keep the best; 0 keeps the last."""
    rehearsals: int = 10
    """Parts of the budget after which a policy rehearses; fewer where that would take more than a tenth of it."""
    auditions: int = 0
    """Beginnings that a training that rehearses tries for a twentieth of the budget each, to go on with the best."""
    attempt_steps: int = 0
    """Steps after which a training that rehearses begins anew, to keep the best of several; 0 for never."""
    checkpoints: int = 0
    """Parts of the budget after which the whole training is saved, to go on from after a kill; 0 saves none."""


FEWEST = 8
"""Samples in a minibatch: advantages that are normalised among very few say little, and one alone says nothing."""
METRICS = (
    *("episodic_return", "episodic_length", "policy_loss", "value_loss", "entropy", "approx_kl", "clip_fraction"),
    *("gradient_norm", "explained_variance", "learning_rate", *stopwatch.METRICS),
)


def parameters(given: Mapping[str, Any]) -> Parameters:
    """The defaults with what the order changes, or the process ends with one sentence."""
    p = settings(Parameters, given, trainer="ppo")
    for name in ("rollout_growth", "rehearsals"):
        if getattr(p, name) < 1:
            sys.exit(f"params: `{name}` is {getattr(p, name)}, but 1 or more is needed")
    if p.auditions > MOST_AUDITIONS:
        sys.exit(f"params: `auditions` is {p.auditions}, but {MOST_AUDITIONS} is the most")
    return p


# The network: actor and critic in one flat vector, which NumPy and JAX see as layers.

Net = namedtuple("Net", "actor critic log_std")


class Sizes(NamedTuple):
    """What the network's shapes depend on."""

    observation: int
    action: int
    hidden: int
    discrete: bool
    lists: tuple[int, ...] = ()
    """The lengths of the lists of a discrete action, where it is chosen from more than one."""

    def layers(self) -> tuple[tuple[int, int], ...]:
        """Rows and columns of each layer: three of the actor, then three of the critic."""
        return tuple(pair for out in (self.action, 1) for pair in pairwise((*self[:1], self.hidden, self.hidden, out)))


def unpack(flat: Array, sizes: Sizes) -> Net:
    """See a flat vector as a network; nothing is copied."""
    layers, at = [], 0
    for rows, columns in sizes.layers():
        end = at + rows * columns
        layers.append((flat[at:end].reshape(rows, columns), flat[end : end + columns]))
        at = end + columns
    return Net(layers[:3], layers[3:], flat[at:])


def initial(rng: np.random.Generator, sizes: Sizes, log_std: float) -> Array:
    """Orthogonal weights: gain √2 inside, 0.01 for the policy's output, 1 for the value's."""
    parts = []
    for (rows, columns), gain in zip(sizes.layers(), (2**0.5, 2**0.5, 0.01, 2**0.5, 2**0.5, 1.0), strict=True):
        q, r = np.linalg.qr(rng.standard_normal((max(rows, columns), min(rows, columns))))
        q = q * np.sign(np.diag(r))
        parts += [gain * (q if rows >= columns else q.T).ravel(), np.zeros(columns)]
    return np.concatenate([*parts, np.full(0 if sizes.discrete else sizes.action, log_std)]).astype(np.float32)


# Learning: one compiled call for each rollout of T steps in N environments.

Rollout = namedtuple("Rollout", "observations actions rewards terminated ended counted")
"""`[T+1, N, D]` observations, then `[T, N]`: `ended` is terminated or truncated, `counted` is not a reset."""
Sample = namedtuple("Sample", "observation action log_prob advantage target value counted")
Learner = namedtuple("Learner", "weights first_moment second_moment count pace", defaults=(np.float32(1),))
"""The network, Adam's moments and steps, and by how much the step size was steered."""
Dials = dict[str, Array]  # the numbers and switches of `Parameters`, by name


def advantages(rollout: Rollout, values: Array, gamma: Array, gae_lambda: Array) -> Array:
    """Generalised advantage estimates `[T, N]` from the values `[T+1, N]` of all observations.

    After a step that ends an episode, the next observation is that episode's last one. It is
    bootstrapped from unless the episode terminated, and nothing later reaches back over it.
    """

    def back(later: Array, now: tuple[Array, ...]) -> tuple[Array, Array]:
        reward, value, next_value, terminated, ended = now
        surprise = reward + gamma * next_value * (1 - terminated) - value
        here = surprise + gamma * gae_lambda * (1 - ended) * later
        return here, here

    steps = (rollout.rewards, values[:-1], values[1:], rollout.terminated, rollout.ended)
    return jax.lax.scan(back, jnp.zeros_like(values[0]), steps, reverse=True)[1]


def chosen_from_list(scores: Array, chosen: Array) -> tuple[Array, Array]:
    """The log-probability of what was chosen from one list, and the entropy of the choice."""
    logs = jax.nn.log_softmax(scores)
    return jnp.take_along_axis(logs, chosen[:, None], 1)[:, 0], -(jnp.exp(logs) * logs).sum(-1)


def log_prob_and_entropy(net: Net, x: Array, actions: Array, activate: Activation, sizes: Sizes) -> tuple[Array, Array]:
    """How likely the actions are under the policy, and how undecided it is."""
    out = mlp(net.actor, x, activate)
    if sizes.lists:
        each = [
            chosen_from_list(part, actions[:, i]) for i, part in enumerate(jnp.split(out, borders(sizes.lists), axis=1))
        ]
        return sum(one for one, _ in each), sum(one for _, one in each)
    if sizes.discrete:
        return chosen_from_list(out, actions)
    half_log_tau, z = 0.5 * np.log(2 * np.pi), (actions - out) * jnp.exp(-net.log_std)
    log_prob = (-0.5 * z * z - net.log_std - half_log_tau).sum(-1)
    return log_prob, jnp.full_like(log_prob, (net.log_std + 0.5 + half_log_tau).sum())


def loss(weights: Array, batch: Sample, dials: Dials, sizes: Sizes, activation: str) -> Array:
    """PPO's clipped loss over the counted samples of a minibatch, and its parts."""
    net, activate, clip = unpack(weights, sizes), JAX[activation], dials["clip_range"]
    share = batch.counted / jnp.maximum(batch.counted.sum(), 1.0)

    log_prob, entropies = log_prob_and_entropy(net, batch.observation, batch.action, activate, sizes)
    centred = batch.advantage - (share * batch.advantage).sum()
    spread = jnp.sqrt((share * centred**2).sum())
    advantage = jnp.where(dials["normalize_advantage"], centred / (spread + 1e-8), batch.advantage)
    ratio = jnp.exp(log_prob - batch.log_prob)
    policy_loss = (share * jnp.maximum(-advantage * ratio, -advantage * jnp.clip(ratio, 1 - clip, 1 + clip))).sum()

    value = mlp(net.critic, batch.observation, activate)[:, 0]
    error, near = (value - batch.target) ** 2, batch.value + jnp.clip(value - batch.value, -clip, clip)
    error = jnp.where(dials["clip_value_loss"], jnp.maximum(error, (near - batch.target) ** 2), error)
    value_loss = 0.5 * (share * error).sum()

    entropy = (share * entropies).sum()
    approx_kl = (share * (ratio - 1 - (log_prob - batch.log_prob))).sum()
    clip_fraction = (share * (jnp.abs(ratio - 1) > clip)).sum()
    total = policy_loss + dials["value_weight"] * value_loss - dials["entropy_weight"] * entropy
    return total, (policy_loss, value_loss, entropy, approx_kl, clip_fraction)


def adam(learner: Learner, gradient: Array, learning_rate: Array, max_norm: Array) -> tuple[Learner, Array]:
    """One step of Adam on the clipped gradient, and the gradient's norm before clipping."""
    norm = jnp.sqrt((gradient * gradient).sum())
    gradient = gradient * jnp.minimum(1.0, max_norm / jnp.maximum(norm, 1e-12))
    count = learner.count + 1
    first = 0.9 * learner.first_moment + 0.1 * gradient
    second = 0.999 * learner.second_moment + 0.001 * gradient * gradient
    step = (first / (1 - 0.9**count)) / (jnp.sqrt(second / (1 - 0.999**count)) + 1e-5)
    return learner._replace(
        weights=learner.weights - learning_rate * step, first_moment=first, second_moment=second, count=count
    ), norm


def steer(pace: Array, kl: Array, target: Array) -> Array:
    """Slow down where the policy has moved twice too far, speed up where it has not moved half as far as it may."""
    turn = jnp.where(kl > 2 * target, 1 / 1.5, jnp.where((kl > 0) & (kl < target / 2), 1.5, 1.0))
    return jnp.where(target > 0, jnp.clip(pace * turn, 0.1, 10.0), 1.0)


@partial(jax.jit, static_argnames=("sizes", "activation"))
def update(
    learner: Learner, rollout: Rollout, shuffles: Array, dials: Dials, sizes: Sizes, activation: str
) -> tuple[Learner, Array]:
    """All epochs over one rollout; returns the learner, and the mean metrics of the last epoch.

    `shuffles[E, M, size]` names the samples of each minibatch of each epoch. The old
    log-probabilities and values are computed here, from the weights that acted.
    """
    net, activate = unpack(learner.weights, sizes), JAX[activation]
    values = mlp(net.critic, rollout.observations, activate)[..., 0]
    gains = advantages(rollout, values, dials["gamma"], dials["gae_lambda"])
    x, actions = (part.reshape(-1, *part.shape[2:]) for part in (rollout.observations[:-1], rollout.actions))
    log_prob, _ = log_prob_and_entropy(net, x, actions, activate, sizes)
    others = (gains, gains + values[:-1], values[:-1], rollout.counted)
    samples = Sample(x, actions, log_prob, *(part.ravel() for part in others))

    def minibatch(learner: Learner, chosen: Array) -> tuple[Learner, Array]:
        batch = Sample(*(part[chosen] for part in samples))
        gradient, parts = jax.grad(loss, has_aux=True)(learner.weights, batch, dials, sizes, activation)
        learner = learner._replace(pace=steer(learner.pace, parts[3], dials["target_kl"]))
        learner, norm = adam(learner, gradient, dials["learning_rate"] * learner.pace, dials["max_grad_norm"])
        return learner, jnp.stack([*parts, norm])

    learner, metrics = jax.lax.scan(minibatch, learner, shuffles.reshape(-1, shuffles.shape[2]))
    share = samples.counted / jnp.maximum(samples.counted.sum(), 1.0)
    known = (samples.target, samples.target - samples.value)
    spread, left = ((share * (part - (share * part).sum()) ** 2).sum() for part in known)
    return learner, jnp.append(metrics[-shuffles.shape[1] :].mean(0), 1 - left / jnp.maximum(spread, 1e-8))


# Experience: the policy acts in NumPy, with the statistics of what it has seen.


class Sampler:
    """Plays the environments, and keeps what lasts from one rollout to the next."""

    def __init__(self, envs: Lanes, p: Parameters, rng: np.random.Generator) -> None:
        self.p, self.rng, self.gamma = p, rng, p.gamma
        self.seen, self.returns = Moments(envs.like.observation_size), Moments(1)
        self.enter(envs)

    def enter(self, envs: Lanes) -> None:
        """Go on in these environments, in each of which an episode begins."""
        self.envs, self.running = envs, np.zeros(self.p.num_envs)

    def normaliser(self) -> Callable[[Array], Array]:
        """What makes observations into what the network sees, with the statistics of this moment."""
        return self.seen.normaliser() if self.p.normalize_observations else lambda observations: observations

    def play(self, net: Net, steps: int, over: Callable[[], bool]) -> Rollout | None:
        """Play one rollout of so many steps, or stop inside it and return None when the training is over.

        The rollout's own observations and returns join the statistics before it is learnt from.
        """
        p, like, shape = self.p, self.envs.like, (steps, self.p.num_envs)
        noise = (self.rng.gumbel if like.discrete else self.rng.standard_normal)(size=(*shape, like.action_size))
        observations = np.empty((shape[0] + 1, shape[1], like.observation_size), np.float32)
        actions = np.empty((*shape, *like.no_action.shape), like.no_action.dtype)
        found = Rollout(observations, actions, *np.empty((4, *shape), np.float32))
        draw, normalise = drawer(like.choices, np.exp(net.log_std)), self.normaliser()

        def act(seen: Array, noise: Array) -> Array:
            return draw(mlp(net.actor, normalise(seen), NUMPY[p.activation]), noise)

        if not self.envs.play(act, noise, found, over):
            return None
        if p.normalize_observations:
            self.seen.absorb(observations[:-1].reshape(-1, like.observation_size))
        scaled = self._scaled(found.rewards, found.ended) if p.normalize_rewards else found.rewards
        return found._replace(observations=self.normaliser()(observations), rewards=scaled)

    def _scaled(self, rewards: Array, ended: Array) -> Array:
        found = np.empty(rewards.shape)
        for t, reward in enumerate(rewards):
            found[t] = self.running = self.running * self.gamma + reward
            self.running = self.running * (1 - ended[t])
        self.returns.absorb(found.reshape(-1, 1))
        return np.clip(rewards * self.returns.scale(), -self.p.reward_clip, self.p.reward_clip)


# The training, in the order in which it happens.


class State(Course):
    """Everything that changes while it trains."""

    def __init__(self, order: Order, p: Parameters) -> None:
        super().__init__(order, p)
        self.p, envs = p, Lanes(self.new_lanes())
        like, lists = envs.like, envs.like.choices if len(envs.like.choices) > 1 else ()
        self.sizes = Sizes(like.observation_size, like.action_size, p.hidden_units, like.discrete, lists)
        self.offers, self.auditions, self.attempt_steps = p.rehearsals, p.auditions, p.attempt_steps
        self.know_nothing(envs, self.for_weights)

    def know_nothing(self, envs: Lanes, rng: np.random.Generator) -> None:
        """Begin with new weights, in these environments."""
        weights = initial(rng, self.sizes, self.p.initial_log_std)
        self.learner = Learner(weights, np.zeros_like(weights), np.zeros_like(weights), np.float32(0))
        self.average = weights
        self.sampler = Sampler(envs, self.p, self.for_actions)

    def begin_anew(self) -> None:
        """Forget what was learnt, and begin with new weights in new environments."""
        self.sampler.envs.close()
        seed = np.random.SeedSequence(self.order.train_seed, spawn_key=(6, self.attempt))
        self.know_nothing(Lanes(self.new_lanes()), np.random.default_rng(seed))

    def arrays(self) -> dict[str, Array]:
        """What a checkpoint holds."""
        learnt = {name: np.asarray(part) for name, part in self.learner._asdict().items()}
        seen = {"seen": self.sampler.seen.packed(), "returns": self.sampler.returns.packed()}
        return learnt | seen | {"average": self.average}

    def take(self, arrays: dict[str, Array]) -> None:
        """Go on from a checkpoint."""
        self.learner, self.average = Learner(*(arrays[name] for name in Learner._fields)), arrays["average"]
        self.sampler.seen.unpack(arrays["seen"])
        self.sampler.returns.unpack(arrays["returns"])

    def greedy(self, observations: Array) -> Array:
        """The means, or the likeliest choices."""
        actor = unpack(self.average, self.sizes).actor
        out = mlp(actor, self.sampler.normaliser()(observations), NUMPY[self.p.activation])
        return drawer(self.sampler.envs.like.choices, 0.0)(out, 0.0)

    def enter_new_envs(self) -> None:
        """Leave the environments for those of this leg and attempt."""
        self.sampler.envs.close()
        self.sampler.enter(Lanes(self.new_lanes()))

    def save(self, folder: Path) -> None:
        """Write the policy."""
        head, firsts = "categorical" if self.sizes.discrete else "gaussian", self.sampler.envs.like.firsts
        says = {"head": head, "activation": self.p.activation, "lists": self.sizes.lists, "firsts": firsts}
        actor = unpack(self.average, self.sizes).actor
        write_policy(folder, actor, self.sampler.seen if self.p.normalize_observations else None, {}, **says)


def train(training: Training) -> None:
    """Train until the budget is spent; the policy is offered now and then and at the end."""
    p = parameters(training.order.params)
    state = State(training.order, p)
    sys.stderr.write(f"{state.sampler.envs.like.why}\n")
    dials = {name: np.float32(value) for name, value in asdict(p).items() if isinstance(value, float | bool)}
    parts = min(p.num_minibatches, max(1, p.num_envs * p.rollout_steps // FEWEST))
    state.begin(training)  # imports are done; what compiles from here on is part of the budget
    weights, watch = np.asarray(state.learner.weights), stopwatch.Stopwatch(training.order.cores)
    while state.has_room(training, batch := p.num_envs * rollout_length(p, state.progress(training))):
        share = state.progress(training)
        dials["gamma"], state.sampler.gamma = np.float32(discount(p, share)), discount(p, share)
        rollout = state.sampler.play(
            unpack(weights, state.sizes), batch // p.num_envs, partial(training.spent, state.steps)
        )
        if rollout is None:
            break  # SIGTERM, or the end of the time
        state.steps += batch
        watch.environment += state.sampler.envs.env_seconds()
        left = 1 - share if p.anneal_learning_rate else 1.0
        dials["learning_rate"] = np.float32(p.learning_rate * left)
        dials["entropy_weight"] = np.float32(p.entropy_weight * (1 - share if p.anneal_entropy else 1.0))
        dials["target_kl"] = np.float32(p.target_kl * left**2)  # divergence grows with the square of the step
        with watch.learning():
            shuffles = minibatches(state.for_updates, batch, parts, p.update_epochs)
            state.learner, metrics = update(state.learner, rollout, shuffles, dials, state.sizes, p.activation)
            weights = np.asarray(state.learner.weights)  # waits until the update is done
            updates = float(state.learner.count) / (p.update_epochs * parts)
            state.average = averaged(state.average, weights, updates, p.averaging)
        if not np.isfinite(weights).all():
            sys.exit(f"The training diverged: after {state.steps:,} steps the weights are not finite")
        numbers = (*state.sampler.envs.episodes(), *np.asarray(metrics), dials["learning_rate"], *watch.lap(batch))
        training.report(state.steps, **dict(zip(METRICS, numbers, strict=True)))
        if state.stint_is_over(training):
            state.end_stint(training)
            weights = np.asarray(state.learner.weights)
        state.keep(training)
    if state.steps == 0:
        sys.stderr.write(f"The budget ended before the first rollout of {batch:,} steps: the policy is untrained.\n")
    state.offer(training)
    state.sampler.envs.close()


def discount(p: Parameters, share: float) -> float:
    """The discount when this share of the budget is spent: speed is learnt with a short horizon, and then to last."""
    return 1 - (1 - p.gamma) / math.pow(p.horizon_growth, share**3)


def rollout_length(p: Parameters, share: float) -> int:
    """Steps of each environment in a rollout that begins when this share of the budget is spent."""
    doublings = math.ceil(math.log2(p.rollout_growth))
    return p.rollout_steps * min(1 << int(share * (doublings + 1)), p.rollout_growth)


def averaged(average: Array, weights: Array, updates: float, share: float) -> Array:
    """The running mean of the weights over the last share of so many updates; over one update, just the weights."""
    return weights if share * updates <= 1 else average + (weights - average) / np.float32(share * updates)


def minibatches(rng: np.random.Generator, batch: int, parts: int, epochs: int) -> Array:
    """The samples of each minibatch of each epoch; what does not divide is left out, each time anew."""
    shuffles = np.stack([rng.permutation(batch)[: batch - batch % parts] for _ in range(epochs)])
    return shuffles.reshape(epochs, parts, -1).astype(np.int32)


if TRAINING is not None:
    run(train, TRAINING)
