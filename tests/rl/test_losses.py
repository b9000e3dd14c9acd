"""Every loss against a second implementation, written here in NumPy from the papers, to five digits."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

jax = pytest.importorskip("jax")

from overnight.rl.replay import Transitions  # noqa: E402 - what follows needs JAX
from overnight.rl.trainers import dqn, ppo, sac  # noqa: E402

Array = NDArray[Any]
RNG = np.random.default_rng(7)
OBSERVATION, BATCH = 3, 32


def floats(*shape: int) -> Array:
    return RNG.standard_normal(shape).astype(np.float32)


def network(layers: Any, x: Array, bend: Any) -> Array:
    """Another network in double precision."""
    x = x.astype(float)
    for i, (weight, bias) in enumerate(layers):
        x = np.einsum("bi,io->bo", x, np.asarray(weight, float)) + np.asarray(bias, float)
        x = bend(x) if i < len(layers) - 1 else x
    return x


def log_softmax(scores: Array) -> Array:
    found: Array = scores - np.log(np.exp(scores).sum(1, keepdims=True))
    return found


# PPO


def ppo_terms(kind: str, net: ppo.Net, x: Array, actions: Array) -> tuple[Array, Array]:
    """Log-probabilities and entropies, by the definitions."""
    out = network(net.actor, x, np.tanh)
    if kind == "numbers":
        spread = np.exp(np.asarray(net.log_std, float))
        log_prob = np.log(np.exp(-((actions - out) ** 2) / (2 * spread**2)) / (spread * np.sqrt(2 * np.pi))).sum(1)
        return log_prob, np.full(len(x), np.log(spread * np.sqrt(2 * np.pi * np.e)).sum())
    lists = [out] if kind == "one list" else [out[:, :2], out[:, 2:]]
    chosen = actions[:, None] if kind == "one list" else actions
    logs = [log_softmax(part) for part in lists]
    rows = np.arange(len(x))
    return (
        np.sum([part[rows, chosen[:, i]] for i, part in enumerate(logs)], axis=0),
        -np.sum([(np.exp(part) * part).sum(1) for part in logs], axis=0),
    )


LOSS = jax.jit(ppo.loss, static_argnums=(3, 4))


@pytest.mark.parametrize(("clip_value_loss", "normalize_advantage"), [(True, False), (False, True)])
@pytest.mark.parametrize("kind", ["one list", "several lists", "numbers"])
def test_ppo_s_loss_is_that_of_an_independent_implementation(
    kind: str, normalize_advantage: bool, clip_value_loss: bool
) -> None:
    lists = (2, 3) if kind == "several lists" else ()
    sizes = ppo.Sizes(OBSERVATION, 5, 8, kind != "numbers", lists)
    weights = 0.3 * floats(ppo.initial(RNG, sizes, 0.0).size)
    net, x = ppo.unpack(weights, sizes), floats(BATCH, OBSERVATION)
    choices: dict[str, Array] = {
        "one list": RNG.integers(0, 5, BATCH),
        "several lists": RNG.integers(0, (2, 3), (BATCH, 2)),
        "numbers": floats(BATCH, 5),
    }
    actions = choices[kind].astype(np.float32 if kind == "numbers" else np.int32)
    log_prob, entropies = ppo_terms(kind, net, x, actions)
    old, gain, target, value_then = log_prob + 0.3 * floats(BATCH), floats(BATCH), floats(BATCH), floats(BATCH)
    counted = (RNG.random(BATCH) < 0.8).astype(np.float32)
    batch = ppo.Sample(x, actions, old.astype(np.float32), gain, target, value_then, counted)
    dials = {"clip_range": 0.2, "value_weight": 0.7, "entropy_weight": 0.01}
    dials |= {"normalize_advantage": normalize_advantage, "clip_value_loss": clip_value_loss}

    on = counted == 1
    if normalize_advantage:
        gain = (gain - gain[on].mean()) / gain[on].std()
    ratio = np.exp(log_prob - old)
    policy_loss = -np.minimum(ratio * gain, np.clip(ratio, 0.8, 1.2) * gain)[on].mean()
    value = network(net.critic, x, np.tanh)[:, 0]
    errors = (value - target) ** 2
    if clip_value_loss:
        errors = np.maximum(errors, (value_then + np.clip(value - value_then, -0.2, 0.2) - target) ** 2)
    expected = policy_loss + 0.7 * 0.5 * errors[on].mean() - 0.01 * entropies[on].mean()

    total, (found_policy, found_value, found_entropy, _, clipped) = LOSS(weights, batch, dials, sizes, "tanh")
    assert float(total) == pytest.approx(expected, abs=1e-5)
    assert float(found_policy) == pytest.approx(policy_loss, abs=1e-5)
    assert float(found_value) == pytest.approx(0.5 * errors[on].mean(), abs=1e-5)
    assert float(found_entropy) == pytest.approx(entropies[on].mean(), abs=1e-5)
    assert float(clipped) == pytest.approx((np.abs(ratio - 1) > 0.2)[on].mean(), abs=1e-5)


def test_advantages_are_the_sums_of_discounted_surprises_written_out() -> None:
    steps, lanes, gamma, lam = 6, 2, 0.9, 0.8
    values, rewards = floats(steps + 1, lanes), floats(steps, lanes)
    terminated, ended = np.zeros((steps, lanes)), np.zeros((steps, lanes))
    terminated[2, 0] = ended[2, 0] = ended[3, 1] = 1  # the first lane terminates, the second is truncated
    rollout = ppo.Rollout(None, None, rewards, terminated, ended, None)
    surprise = rewards + gamma * values[1:] * (1 - terminated) - values[:-1]
    expected = np.zeros((steps, lanes))
    for lane in range(lanes):
        for t in range(steps):
            weight = 1.0
            for later in range(t, steps):
                expected[t, lane] += weight * surprise[later, lane]
                weight *= gamma * lam * (1 - ended[later, lane])
    np.testing.assert_allclose(ppo.advantages(rollout, values, gamma, lam), expected, atol=1e-5)


# SAC

ACTION = 2
SAC = sac.parameters({"hidden_units": 8, "initial_temperature": 0.4})
LEARNER = sac.initial(np.random.default_rng(1), OBSERVATION, ACTION, SAC)
OTHER = sac.initial(np.random.default_rng(2), OBSERVATION, ACTION, SAC).nets.critics
TRANSITIONS = Transitions(
    floats(BATCH, OBSERVATION),
    np.tanh(floats(BATCH, ACTION)),
    floats(BATCH),
    floats(BATCH, OBSERVATION),
    (RNG.random(BATCH) < 0.3).astype(np.float32),
)
DIALS = {"gamma": 0.9, "reward_scale": 2.0, "target_rate": 0.25, "target_entropy": -1.0, "learning_rate": 0.01}


def relu(x: Array) -> Array:
    return np.maximum(x, 0)


def drawn(actor: Any, x: Array, noise: Array) -> tuple[Array, Array]:
    """Squashed actions and the log of their density, by the change of variables with the derivative of tanh."""
    mean, log_std = np.split(network(actor, x, relu), 2, axis=1)
    spread = np.exp(np.clip(log_std, -10, 2))
    action = np.tanh(mean + spread * noise)
    normal = np.exp(-0.5 * noise.astype(float) ** 2) / (spread * np.sqrt(2 * np.pi))
    return action, np.log(normal / (1 - action**2)).sum(1)


def lower(critics: Any, x: Array, action: Array) -> Array:
    both = np.concatenate([x, action], axis=1)
    found: Array = np.minimum(network(critics[0], both, relu)[:, 0], network(critics[1], both, relu)[:, 0])
    return found


def test_sac_s_losses_are_those_of_an_independent_implementation() -> None:
    noise, nets = floats(2, BATCH, ACTION), LEARNER.nets
    learner = LEARNER._replace(targets=OTHER)
    following, log_prob = drawn(nets.actor, TRANSITIONS.following, noise[0])
    soft = lower(OTHER, TRANSITIONS.following, following) - 0.4 * log_prob
    targets = 2.0 * TRANSITIONS.reward + 0.9 * (1 - TRANSITIONS.terminated) * soft
    both = np.concatenate([TRANSITIONS.observation, TRANSITIONS.action], axis=1)
    critic_loss = sum(0.5 * ((network(one, both, relu)[:, 0] - targets) ** 2).mean() for one in nets.critics)
    actions, log_prob = drawn(nets.actor, TRANSITIONS.observation, noise[1])
    actor_loss = (0.4 * log_prob - lower(nets.critics, TRANSITIONS.observation, actions)).mean()
    temperature_loss = -np.log(0.4) * (log_prob + -2.0).mean()

    found = sac.target_values(learner, TRANSITIONS, noise[0], DIALS, "relu")
    np.testing.assert_allclose(found, targets, atol=1e-5)
    assert float(sac.critic_loss(nets.critics, TRANSITIONS, found, "relu")) == pytest.approx(critic_loss, abs=1e-5)
    cost, logs = sac.actor_loss(nets.actor, nets, TRANSITIONS.observation, noise[1], "relu")
    assert float(cost) == pytest.approx(actor_loss, abs=1e-5)
    assert float(sac.temperature_loss(nets.log_temperature, logs, -2.0)) == pytest.approx(temperature_loss, abs=1e-5)


@pytest.mark.parametrize(("mean", "log_std"), [(0.0, 0.0), (0.8, -1.0), (-1.5, 0.5)])
def test_the_density_of_squashed_actions_is_one_in_all(mean: float, log_std: float) -> None:
    # The first layer is zero, so the last bias is the output: the mean and the logarithm of the spread.
    actor = [(np.zeros((1, 1)), np.zeros(1)), (np.zeros((1, 2)), np.array([mean, log_std]))]
    u = np.linspace(-9, 9, 20_001)
    noise = (u - mean) / np.exp(log_std)
    actions, log_prob = sac.squashed(actor, np.zeros((len(u), 1)), noise[:, None].astype(np.float32), "relu")
    action = np.tanh(u)
    np.testing.assert_allclose(np.asarray(actions)[:, 0], action, atol=1e-5)
    assert np.trapezoid(np.exp(np.asarray(log_prob, float)), action) == pytest.approx(1, abs=2e-3)


def test_the_density_stays_finite_where_tanh_is_one() -> None:
    actor = [(np.zeros((1, 1)), np.zeros(1)), (np.zeros((1, 2)), np.zeros(2))]
    _, log_prob = sac.squashed(actor, np.zeros((2, 1)), np.array([[40.0], [-40.0]], np.float32), "relu")
    # log φ(40) - log(1 - tanh²(40)), where 1 - tanh²(u) is 4 exp(-2u) for great u.
    assert np.asarray(log_prob) == pytest.approx([-800 - 0.9189385 - np.log(4) + 80] * 2, rel=1e-5)


def test_target_critics_go_a_share_of_the_way_to_the_critics() -> None:
    learner = LEARNER._replace(targets=OTHER)
    after, _ = jax.jit(sac.one_update, static_argnums=4)(learner, TRANSITIONS, floats(2, BATCH, ACTION), DIALS, "relu")
    for old, new, moved in zip(*map(jax.tree.leaves, (OTHER, after.nets.critics, after.targets)), strict=True):
        np.testing.assert_allclose(moved, 0.75 * old + 0.25 * np.asarray(new), atol=1e-6)


def test_the_temperature_rises_where_the_entropy_is_below_its_target() -> None:
    slope = jax.grad(sac.temperature_loss)
    assert slope(0.0, np.array([3.0]), -2.0) < 0  # entropy -3 is below -2: a step against the slope goes up
    assert slope(0.0, np.array([1.0]), -2.0) > 0


# DQN


@pytest.mark.parametrize("double", [True, False])
def test_dqn_s_loss_is_that_of_an_independent_implementation(double: bool) -> None:
    p = dqn.parameters({"hidden_units": 8})
    net = dqn.initial(np.random.default_rng(1), OBSERVATION, 4, p).net
    older = dqn.initial(np.random.default_rng(2), OBSERVATION, 4, p).net
    actions = RNG.integers(0, 4, BATCH).astype(np.int32)
    batch = TRANSITIONS._replace(action=actions, reward=3 * TRANSITIONS.reward)
    rows = np.arange(BATCH)
    best = network(net if double else older, batch.following, relu).argmax(1)
    later = network(older, batch.following, relu)[rows, best]
    targets = 2.0 * batch.reward + 0.9 * np.where(batch.terminated == 1, 0, later)
    errors = np.abs(network(net, batch.observation, relu)[rows, actions] - targets)
    assert (errors < 1).any()
    assert (errors > 1).any()
    expected = np.mean([0.5 * e * e if e < 1 else e - 0.5 for e in errors])

    found = dqn.target_values(net, older, batch, {**DIALS, "double": double}, "relu")
    np.testing.assert_allclose(found, targets, atol=1e-5)
    assert float(dqn.value_loss(net, batch, found, "relu")) == pytest.approx(expected, abs=1e-5)


def test_the_older_copy_is_renewed_after_every_period_and_not_between() -> None:
    p = dqn.parameters({"hidden_units": 8})
    learner = dqn.initial(np.random.default_rng(1), OBSERVATION, 4, p)
    batch = TRANSITIONS._replace(action=RNG.integers(0, 4, BATCH).astype(np.int32))
    dials = {**DIALS, "double": True, "max_grad_norm": 10.0, "target_period": np.int32(3)}
    renewed, once = [], jax.jit(dqn.one_update, static_argnums=3)
    for _ in range(7):
        learner, _ = once(learner, batch, dials, "relu")
        pairs = zip(*map(jax.tree.leaves, (learner.target, learner.net)), strict=True)
        renewed.append(all(np.array_equal(older, net) for older, net in pairs))
    assert renewed == [False, False, True, False, False, True, False]


def test_random_actions_become_rarer_along_a_line_and_then_stay() -> None:
    p = dqn.parameters({"first_epsilon": 1.0, "last_epsilon": 0.1, "exploration": 0.5})
    assert [dqn.epsilon(p, share) for share in (0, 0.25, 0.5, 1)] == pytest.approx([1, 0.55, 0.1, 0.1])
    assert dqn.epsilon(dqn.parameters({"exploration": 0.0}), 0.0) == pytest.approx(0.05)
