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
the same machine gives the same weights, bit for bit.
"""

import json
import os
import sys
import time
import warnings
from collections import namedtuple
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from overnight.guest.train import Training, limit_threads, load, write_tensors

TRAINING = Training(load()) if __name__ == "__main__" else None
if TRAINING is not None:
    limit_threads(TRAINING.order.cores)
    if TRAINING.order.device == "cpu":
        os.environ["JAX_PLATFORMS"] = "cpu"

import jax  # noqa: E402 - the limits above are read by these imports
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402

from overnight.rl.envs import batched  # noqa: E402


@dataclass(frozen=True, kw_only=True)
class Parameters:
    """What a proposer may change; `ppo.space.json` says the same, as data."""

    learning_rate: float = 0.00025
    """Step size of the Adam optimiser."""
    anneal_learning_rate: bool = True
    """Whether the step size falls to zero over the budget."""
    num_envs: int = 4
    """Environments that are stepped side by side."""
    rollout_steps: int = 128
    """Steps of each environment between two updates."""
    num_minibatches: int = 4
    """Parts into which one rollout is split for the updates."""
    update_epochs: int = 4
    """Passes over one rollout."""
    gamma: float = 0.99
    """Discount of later rewards."""
    gae_lambda: float = 0.95
    """Balance of bias and variance in the advantage estimate."""
    clip_range: float = 0.2
    """How far one update may move the policy's probabilities."""
    clip_value_loss: bool = True
    """Whether the value update is clipped like the policy's."""
    normalize_advantage: bool = True
    """Whether advantages are normalised in each minibatch."""
    entropy_weight: float = 0.01
    """Weight of the entropy bonus."""
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
    initial_log_std: float = 0.0
    """Logarithm of the first spread of continuous actions."""


METRICS = (
    *("episodic_return", "episodic_length", "policy_loss", "value_loss", "entropy", "approx_kl", "clip_fraction"),
    *("gradient_norm", "explained_variance", "learning_rate", "steps_per_second"),
)
CLIP = 10.0  # of normalised observations and rewards
Array = Any  # of NumPy or of JAX: the same lines serve both
Activation = Callable[[Array], Array]


def parameters(given: Mapping[str, Any]) -> Parameters:
    """The defaults with what the order changes, or the process ends with one sentence."""
    kinds: dict[str, type] = {field.name: type(field.default) for field in fields(Parameters)}
    for name, value in given.items():
        if name not in kinds:
            sys.exit(f"params: `{name}` is not a parameter of ppo")
        if type(value) is not kinds[name] and (kinds[name], type(value)) != (float, int):
            sys.exit(f"params: `{name}` is {value!r}, but {kinds[name].__name__} is needed")
    return Parameters(**{name: kinds[name](value) for name, value in given.items()})


# The network: actor and critic in one flat vector, which NumPy and JAX see as layers.

Net = namedtuple("Net", "actor critic log_std")
NUMPY: dict[str, Activation] = {"tanh": np.tanh, "relu": lambda x: np.maximum(x, np.float32(0))}
JAX: dict[str, Activation] = {"tanh": jnp.tanh, "relu": lambda x: jnp.maximum(x, 0)}


class Sizes(NamedTuple):
    """What the network's shapes depend on."""

    observation: int
    action: int
    hidden: int
    discrete: bool

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


def mlp(layers: list[tuple[Array, Array]], x: Array, activate: Activation) -> Array:
    """Run one tower of the network."""
    for weight, bias in layers[:-1]:
        x = activate(x @ weight + bias)
    return x @ layers[-1][0] + layers[-1][1]


# Learning: one compiled call for each rollout of T steps in N environments.

Rollout = namedtuple("Rollout", "observations actions rewards terminated ended counted")
"""`[T+1, N, D]` observations, then `[T, N]`: `ended` is terminated or truncated, `counted` is not a reset."""
Sample = namedtuple("Sample", "observation action log_prob advantage target value counted")
Learner = namedtuple("Learner", "weights first_moment second_moment count")
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


def log_prob_and_entropy(net: Net, x: Array, actions: Array, activate: Activation, sizes: Sizes) -> tuple[Array, Array]:
    """How likely the actions are under the policy, and how undecided it is."""
    out = mlp(net.actor, x, activate)
    if sizes.discrete:
        logs = jax.nn.log_softmax(out)
        return jnp.take_along_axis(logs, actions[:, None], 1)[:, 0], -(jnp.exp(logs) * logs).sum(-1)
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
    return Learner(learner.weights - learning_rate * step, first, second, count), norm


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
        learner, norm = adam(learner, gradient, dials["learning_rate"], dials["max_grad_norm"])
        return learner, jnp.stack([*parts, norm])

    learner, metrics = jax.lax.scan(minibatch, learner, shuffles.reshape(-1, shuffles.shape[2]))
    share = samples.counted / jnp.maximum(samples.counted.sum(), 1.0)
    known = (samples.target, samples.target - samples.value)
    spread, left = ((share * (part - (share * part).sum()) ** 2).sum() for part in known)
    return learner, jnp.append(metrics[-shuffles.shape[1] :].mean(0), 1 - left / jnp.maximum(spread, 1e-8))


# Experience: the policy acts in NumPy, with the statistics of what it has seen.


class Moments:
    """A running mean and variance."""

    def __init__(self, size: int) -> None:
        self.mean, self.variance, self.count = np.zeros(size), np.ones(size), 1e-4

    def absorb(self, samples: Array) -> None:
        """Take in samples `[n, size]`, by the formula of Chan and others for two sets."""
        n, count = len(samples), self.count + len(samples)
        shift, within = samples.mean(0, dtype=float) - self.mean, samples.var(0, dtype=float) * n
        self.variance = (self.variance * self.count + within + shift**2 * self.count * n / count) / count
        self.mean, self.count = self.mean + shift * n / count, count

    def scale(self) -> Array:
        """What to multiply with for a spread of 1."""
        return (1 / np.sqrt(self.variance + 1e-8)).astype(np.float32)


class Sampler:
    """Plays the environments, and keeps what lasts from one rollout to the next."""

    def __init__(self, envs: batched.Batch, p: Parameters, rng: np.random.Generator) -> None:
        self.envs, self.p, self.rng = envs, p, rng
        self.observations = envs.reset()
        self.seen, self.returns = Moments(envs.observation_size), Moments(1)
        self.running, self.totals = np.zeros(p.num_envs), np.zeros((2, p.num_envs))
        self.finished: list[Array] = []  # return and length of each episode that ended in the last rollout

    def normalised(self, observations: Array) -> Array:
        """Observations as the network sees them."""
        if not self.p.normalize_observations:
            return observations
        return np.clip((observations - self.seen.mean.astype(np.float32)) * self.seen.scale(), -CLIP, CLIP)

    def play(self, net: Net, over: Callable[[], bool]) -> Rollout | None:
        """Play one rollout, or stop inside it and return None when the training is over.

        The rollout's own observations and returns join the statistics before it is learnt from.
        """
        p, envs, shape = self.p, self.envs, (self.p.rollout_steps, self.p.num_envs)
        noise = (self.rng.gumbel if envs.discrete else self.rng.standard_normal)(size=(*shape, envs.action_size))
        observations = np.empty((shape[0] + 1, shape[1], envs.observation_size), np.float32)
        actions = np.empty(shape if envs.discrete else noise.shape, np.int32 if envs.discrete else np.float32)
        rewards, terminated, ended, counted = np.empty((4, *shape), np.float32)
        spread, self.finished = np.exp(net.log_std), []
        for t in range(shape[0]):
            if over():
                return None
            observations[t], counted[t] = self.observations, ~envs.resetting
            out = mlp(net.actor, self.normalised(self.observations), NUMPY[p.activation])
            actions[t] = (out + noise[t]).argmax(1) if envs.discrete else out + spread * noise[t]
            self.observations, rewards[t], terminated[t], _ = envs.step(actions[t])
            ended[t] = envs.resetting
            self.totals += (rewards[t], counted[t])
            self.finished += list(self.totals.T[envs.resetting])
            self.totals[:, envs.resetting] = 0
        observations[-1] = self.observations
        if p.normalize_observations:
            self.seen.absorb(observations[:-1].reshape(-1, envs.observation_size))
        scaled = self._scaled(rewards, ended) if p.normalize_rewards else rewards
        return Rollout(self.normalised(observations), actions, scaled, terminated, ended, counted)

    def _scaled(self, rewards: Array, ended: Array) -> Array:
        found = np.empty(rewards.shape)
        for t, reward in enumerate(rewards):
            found[t] = self.running = self.running * self.p.gamma + reward
            self.running = self.running * (1 - ended[t])
        self.returns.absorb(found.reshape(-1, 1))
        return np.clip(rewards * self.returns.scale(), -CLIP, CLIP)


# The training, in the order in which it happens.


def train(training: Training) -> None:
    """Train until the budget is spent, and save after every tenth of it and at the end."""
    order, p = training.order, parameters(training.order.params)
    for_envs, *others = np.random.SeedSequence(order.train_seed).spawn(4)
    for_weights, for_actions, for_shuffles = (np.random.default_rng(seed) for seed in others)
    seeds = [int(seed >> 1) for seed in for_envs.generate_state(p.num_envs)]
    envs = batched.make(order.env, seeds, threads=order.cores)
    sys.stderr.write(f"{envs.why}\n")
    sizes = Sizes(envs.observation_size, envs.action_size, p.hidden_units, envs.discrete)
    weights = initial(for_weights, sizes, p.initial_log_std)
    learner = Learner(weights, np.zeros_like(weights), np.zeros_like(weights), np.float32(0))
    dials = {name: np.float32(value) for name, value in asdict(p).items() if isinstance(value, float | bool)}
    batch, parts = p.num_envs * p.rollout_steps, min(p.num_minibatches, p.num_envs * p.rollout_steps)
    training.ready(backend=envs.backend, why=envs.why)  # what compiles from here on is part of the budget
    sampler = Sampler(envs, p, for_actions)
    steps, saved, policy = 0, 0.0, partial(save, sampler=sampler, sizes=sizes)
    while training.has_room(steps, batch):
        began, share = time.monotonic(), training.share(steps)
        rollout = sampler.play(unpack(weights, sizes), partial(training.spent, steps))
        if rollout is None:
            break  # SIGTERM, or the end of the time
        steps += batch
        rate = np.float32(p.learning_rate * (1 - share if p.anneal_learning_rate else 1))
        shuffles = np.stack([for_shuffles.permutation(batch)[: batch - batch % parts] for _ in range(p.update_epochs)])
        shuffles = shuffles.reshape(p.update_epochs, parts, -1).astype(np.int32)
        learner, metrics = update(learner, rollout, shuffles, dials | {"learning_rate": rate}, sizes, p.activation)
        weights = np.asarray(learner.weights)
        if not np.isfinite(weights).all():
            sys.exit(f"The training diverged: after {steps:,} steps the weights are not finite")
        episodes = np.mean(sampler.finished, axis=0) if sampler.finished else (np.nan, np.nan)
        numbers = (*episodes, *np.asarray(metrics), rate, batch / (time.monotonic() - began))
        training.report(steps, **dict(zip(METRICS, numbers, strict=True)))
        if training.share(steps) >= saved + 0.1:
            saved = training.share(steps)
            training.save_policy(partial(policy, weights=weights))
    if steps == 0:
        sys.stderr.write(f"The budget ended before the first rollout of {batch:,} steps: the policy is untrained.\n")
    training.save_policy(partial(policy, weights=weights))
    envs.close()


def save(folder: Path, *, weights: Array, sampler: Sampler, sizes: Sizes) -> None:
    """Write the policy as a registered architecture: no code of ours is needed to run it."""
    head = "categorical" if sizes.discrete else "gaussian"
    spec: dict[str, object] = {"schema": "overnight/policy/1", "kind": "weights", "architecture": "mlp", "head": head}
    spec |= {"activation": sampler.p.activation, "hidden": [sizes.hidden, sizes.hidden]}
    spec |= {"observation_size": sizes.observation, "action_size": sizes.action}
    spec |= {"normalizer": sampler.p.normalize_observations, "normalizer_clip": CLIP}
    seen = sampler.seen
    arrays: dict[str, Array] = {"obs_mean": seen.mean, "obs_scale": seen.scale()} if spec["normalizer"] else {}
    for i, (weight, bias) in enumerate(unpack(weights, sizes).actor):
        arrays |= {f"layer{i}.weight": weight, f"layer{i}.bias": bias}
    (folder / "policy.json").write_text(json.dumps(spec, indent=2) + "\n")
    tensors = {name: ("F32", array.shape, array.astype("<f4").tobytes()) for name, array in arrays.items()}
    write_tensors(folder / "model.safetensors", tensors)


if TRAINING is not None:
    if TRAINING.order.compile_cache is not None:
        jax.config.update("jax_compilation_cache_dir", TRAINING.order.compile_cache)  # type: ignore[no-untyped-call]
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)  # type: ignore[no-untyped-call]
        warnings.filterwarnings("ignore", "Error .* persistent compilation cache")  # it may be read-only
    try:
        train(TRAINING)
    except batched.UnsupportedEnv as error:
        sys.exit(str(error))
