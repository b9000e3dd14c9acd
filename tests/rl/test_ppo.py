"""PPO: its numbers against a hand's, its parameters against their file, and whole runs of it as a process."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from numpy.typing import NDArray

from overnight.evaluate import architectures, episodes
from overnight.guest.train import Env
from overnight.records.codec import decode, dumps
from overnight.records.env import EnvSpec
from overnight.records.order import RunOrder
from overnight.rl.envs import batched
from overnight.rl.lanes import Lanes
from overnight.rl.moments import Moments

jax = pytest.importorskip("jax")

from overnight.rl.networks import mlp  # noqa: E402
from overnight.rl.trainers import ppo  # noqa: E402 - it imports JAX

FAST = {
    "learning_rate": 0.0025,
    "num_envs": 8,
    "rollout_steps": 64,
    "update_epochs": 10,
    "clip_value_loss": False,
    "entropy_weight": 0.0,
}


class TwoSteps(gymnasium.Env[Any, Any]):
    """Observations 0, 1, 2 and rewards 1, 2; then the episode is over, in the one way or the other."""

    observation_space = gymnasium.spaces.Box(0.0, 2.0, (1,))
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, terminates: bool) -> None:
        self.terminates = terminates
        self.at = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.at = 0
        return np.zeros(1, np.float32), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.at += 1
        over = self.at == 2
        return (
            np.full(1, self.at, np.float32),
            float(self.at),
            over and self.terminates,
            over and not self.terminates,
            {},
        )


gymnasium.register("overnight-tests/TwoSteps-v0", lambda **kwargs: TwoSteps(**kwargs))


def sampler(*, terminates: bool, **params: Any) -> ppo.Sampler:
    p = ppo.parameters({"num_envs": 1, "rollout_steps": 5, "hidden_units": 16, **params})
    env = Env("gymnasium", "overnight-tests/TwoSteps-v0", {"terminates": terminates}, None, clip_actions=True)
    return ppo.Sampler(Lanes((batched.make(env, [1] * p.num_envs, threads=1),)), p, np.random.default_rng(0))


SIZES = ppo.Sizes(1, 2, 16, discrete=True)
WEIGHTS = ppo.initial(np.random.default_rng(0), SIZES, 0.0)
NET = ppo.unpack(WEIGHTS, SIZES)


def rollout(**how: Any) -> ppo.Rollout:
    one = sampler(**how)
    found = one.play(NET, one.p.rollout_steps, lambda: False)
    assert found is not None
    return found


def gains(found: ppo.Rollout) -> list[float]:
    """Advantages with discount and lambda 0.5, where the observations 0, 1, 2 are worth 10, 20, 30."""
    values = 10 + 10 * found.observations[..., 0]
    return [float(gain) for gain in ppo.advantages(found, values, 0.5, 0.5)[:, 0]]


def learnt(found: ppo.Rollout, **dials: Any) -> tuple[NDArray[Any], dict[str, float]]:
    """The weights after one epoch of one minibatch, and the metrics."""
    p = ppo.parameters(dials)
    numbers = {field.name: np.float32(getattr(p, field.name)) for field in fields(p) if field.name != "activation"}
    learner = ppo.Learner(WEIGHTS, np.zeros_like(WEIGHTS), np.zeros_like(WEIGHTS), np.float32(0))
    shuffles = np.arange(found.rewards.size, dtype=np.int32).reshape(1, 1, -1)
    after, metrics = ppo.update(learner, found, shuffles, numbers, SIZES, "tanh")
    return np.asarray(after.weights), dict(zip(ppo.METRICS[2:9], map(float, metrics), strict=True))


def test_a_rollout_holds_the_steps_in_order_with_the_reset_marked() -> None:
    found = rollout(terminates=True)
    assert found.observations[:, 0, 0].tolist() == [0, 1, 2, 0, 1, 2]
    assert found.rewards[:, 0].tolist() == [1, 2, 0, 1, 2]
    assert found.terminated[:, 0].tolist() == found.ended[:, 0].tolist() == [0, 1, 0, 0, 1]
    assert found.counted[:, 0].tolist() == [1, 1, 0, 1, 1]


def test_a_terminated_episode_is_worth_nothing_after_its_end() -> None:
    # 2 - 20 = -18 for the last step; 1 + 0.5 * 20 - 10 = 1, and 1 + 0.25 * -18 = -3.5 for the first.
    first, last, _, again, end = gains(rollout(terminates=True))
    assert (first, last, again, end) == (-3.5, -18.0, -3.5, -18.0)


def test_a_truncated_episode_is_worth_what_its_last_observation_is_worth() -> None:
    # 2 + 0.5 * 30 - 20 = -3 for the last step; 1 + 0.25 * -3 = 0.25 for the first.
    first, last, _, again, end = gains(rollout(terminates=False))
    assert (first, last, again, end) == (0.25, -3.0, 0.25, -3.0)


def test_a_rollout_that_ends_inside_an_episode_is_bootstrapped() -> None:
    # 1 + 0.5 * 20 - 10 = 1, and nothing is known of what follows.
    assert gains(rollout(terminates=True, rollout_steps=4))[3] == 1.0


def test_what_happens_in_a_reset_changes_nothing_that_is_learnt() -> None:
    found = rollout(terminates=False)
    reset = found.counted == 0
    other = found._replace(
        actions=np.where(reset, 1 - found.actions, found.actions).astype(np.int32),
        rewards=np.where(reset, 1000, found.rewards).astype(np.float32),
    )
    (one, metrics), (two, same) = learnt(found), learnt(other)
    np.testing.assert_array_equal(one, two)
    assert metrics == same
    assert (one != WEIGHTS).any()


def test_before_the_first_step_the_policy_is_its_own_old_self() -> None:
    _, metrics = learnt(rollout(terminates=True))
    assert metrics["approx_kl"] == pytest.approx(0, abs=1e-6)
    assert metrics["clip_fraction"] == 0
    assert metrics["entropy"] == pytest.approx(np.log(2), abs=1e-3)


def test_the_value_loss_is_half_the_mean_squared_error_of_the_counted_steps() -> None:
    found = rollout(terminates=True)
    values = mlp(NET.critic, found.observations, np.tanh)[..., 0]
    error = np.asarray(ppo.advantages(found, values, 0.99, 0.95))[[0, 1, 3, 4], 0]
    _, metrics = learnt(found)
    assert metrics["value_loss"] == pytest.approx(0.5 * (error**2).mean(), rel=1e-5)


def test_adam_is_optax_s_adam() -> None:
    optax = pytest.importorskip("optax")
    rng = np.random.default_rng(1)
    start = rng.standard_normal(50).astype(np.float32)
    theirs = optax.chain(optax.clip_by_global_norm(0.5), optax.adam(0.01, eps=1e-5))
    weights, state = start, theirs.init(start)
    ours = ppo.Learner(start, np.zeros_like(start), np.zeros_like(start), np.float32(0))
    adam, update = jax.jit(ppo.adam), jax.jit(theirs.update)
    for scale in np.linspace(0.001, 1, 40):
        gradient = (scale * rng.standard_normal(50)).astype(np.float32)
        ours, norm = adam(ours, gradient, 0.01, 0.5)
        assert float(norm) == pytest.approx(np.linalg.norm(gradient), rel=1e-5)
        steps, state = update(gradient, state)
        weights = optax.apply_updates(weights, steps)
    np.testing.assert_allclose(ours.weights, weights, atol=1e-6)


def test_continuous_actions_have_the_density_of_a_normal_distribution() -> None:
    sizes = ppo.Sizes(1, 2, 16, discrete=False)
    net = ppo.unpack(ppo.initial(np.random.default_rng(0), sizes, -0.5), sizes)
    x = np.ones((1, 1), np.float32)
    mean = mlp(net.actor, x, np.tanh)
    log_prob, entropy = ppo.log_prob_and_entropy(net, x, mean + np.exp(-0.5), np.tanh, sizes)
    # Each number is one spread away from the mean: -1/2 - log spread - log √(2π), twice.
    assert float(log_prob[0]) == pytest.approx(2 * (-0.5 + 0.5 - 0.9189385), abs=1e-5)
    assert float(entropy[0]) == pytest.approx(2 * (-0.5 + 1.4189385), abs=1e-5)


def test_running_moments_are_those_of_all_samples_together() -> None:
    samples = np.random.default_rng(0).normal(3, 2, (1000, 2))
    moments = Moments(2)
    for part in np.split(samples, [10, 500]):
        moments.absorb(part)
    np.testing.assert_allclose(moments.mean, samples.mean(0), atol=1e-5)
    np.testing.assert_allclose(moments.variance, samples.var(0), atol=1e-4)


def test_normalised_rewards_are_divided_by_the_spread_of_the_discounted_return() -> None:
    # Rewards 1, 2, then a reset: with discount 0.8 the running returns are 1, 2.8, 0, 1, 2.8.
    found = rollout(terminates=True, normalize_rewards=True, gamma=0.8)
    spread = np.std([1, 2.8, 0, 1, 2.8])
    assert found.rewards[:, 0] == pytest.approx(np.array([1, 2, 0, 1, 2]) / spread, rel=1e-3)


def test_divided_rewards_are_cut_to_the_size_that_was_asked_for() -> None:
    spread = np.std([1, 2.8, 0, 1, 2.8])
    found = rollout(terminates=True, normalize_rewards=True, gamma=0.8, reward_clip=float(1.5 / spread))
    assert found.rewards[:, 0] == pytest.approx(np.array([1, 1.5, 0, 1, 1.5]) / spread, rel=1e-3)


def test_normalised_observations_have_no_mean_and_a_spread_of_one() -> None:
    found = rollout(terminates=True, normalize_observations=True).observations[:-1]
    assert found.mean() == pytest.approx(0, abs=1e-3)
    assert found.std() == pytest.approx(1, abs=1e-3)


def test_a_rollout_stops_inside_when_the_training_is_over() -> None:
    assert sampler(terminates=True).play(NET, 5, lambda: True) is None


@pytest.mark.parametrize(
    ("given", "says"),
    [
        pytest.param({"learning_rat": 0.1}, "`learning_rat` is not a parameter of ppo", id="misspelt"),
        pytest.param({"num_envs": 4.0}, "`num_envs` is 4.0, but int is needed", id="half a whole number"),
        pytest.param({"gamma": True}, "`gamma` is True, but float is needed", id="a switch for a number"),
    ],
)
def test_a_parameter_that_does_not_fit_ends_the_process_with_a_sentence(given: dict[str, Any], says: str) -> None:
    with pytest.raises(SystemExit, match=says):
        ppo.parameters(given)


# Whole runs, each in a process of its own, as the supervisor starts them.

Start = Callable[..., Path]


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Compiled programs, shared by the runs of this file."""
    return tmp_path_factory.mktemp("compiled")


@pytest.fixture
def ordered(tmp_path: Path, cache: Path) -> Start:
    """Write an order, and return its folder."""

    def order(
        name: str,
        amount: float,
        *,
        env: str = "CartPole-v1",
        compiled: str = "",
        device: str = "cpu",
        **params: Any,
    ) -> Path:
        data = {
            "run": "r-0001",
            "env": {"backend": "gymnasium", "id": env},
            "train_seed": 2**63 + 5,
            "budget": {"unit": "env_steps", "amount": amount},
            "params": params,
            "cores": 1,
            "device": device,
            "compile_cache": compiled or str(cache),
        }
        (tmp_path / name / "out").mkdir(parents=True)
        (tmp_path / name / "run.json").write_bytes(dumps(decode(RunOrder, data, where="order")))
        return tmp_path / name

    return order


def start(folder: Path) -> "subprocess.Popen[str]":
    told = {"OVERNIGHT_RUN": str(folder / "run.json"), "OVERNIGHT_OUT": str(folder / "out")}
    command = [sys.executable, "-m", "overnight.rl.trainers.ppo"]
    return subprocess.Popen(command, env=os.environ | told, cwd=folder, stderr=subprocess.PIPE, text=True)


def finish(folder: Path) -> str:
    process = start(folder)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 0, said
    return said


def metrics(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "out" / "metrics.jsonl").read_text().splitlines()]


def score(folder: Path) -> float:
    """The mean greedy return over 20 episodes in Gymnasium."""
    act = architectures.load(folder / "out" / "policy")
    totals = []
    for seed in range(20):
        env = gymnasium.make("CartPole-v1")
        observation, _ = env.reset(seed=seed)
        total, over = 0.0, False
        while not over:
            action = int(act(observation[None], np.zeros(1, bool))[0])
            observation, reward, terminated, truncated, _ = env.step(action)
            total, over = total + float(reward), terminated or truncated
        totals.append(total)
    return float(np.mean(totals))


def test_two_runs_of_one_order_give_the_same_weights_within_the_budget(ordered: Start) -> None:
    one, two = (ordered(name, 1700, normalize_observations=True, normalize_rewards=True) for name in ("one", "two"))
    for folder in (one, two):
        assert "training on" in finish(folder)
    for name in ("policy.json", "model.safetensors"):
        assert (one / "out/policy" / name).read_bytes() == (two / "out/policy" / name).read_bytes()
    assert [line["env_steps"] for line in metrics(one)] == [512, 1024, 1536]
    assert [line["learning_rate"] for line in metrics(one)] == pytest.approx(
        [0.00025 * (1 - steps / 1700) for steps in (0, 512, 1024)]
    )
    assert set(metrics(one)[0]) == {"env_steps", "wall_seconds", *ppo.METRICS}


def test_a_budget_that_is_a_whole_number_of_rollouts_is_used_up_exactly(ordered: Start) -> None:
    folder = ordered("exact", 1024)
    finish(folder)
    assert [line["env_steps"] for line in metrics(folder)] == [512, 1024]


def test_a_budget_below_one_rollout_leaves_an_untrained_policy_and_says_so(ordered: Start) -> None:
    folder = ordered("small", 511)
    assert "ended before the first rollout of 512 steps: the policy is untrained" in finish(folder)
    assert not (folder / "out" / "metrics.jsonl").exists()
    assert score(folder) > 0


def test_it_learns_to_balance_a_pole_in_a_few_steps(ordered: Start) -> None:
    folder = ordered("learns", 15_000, **FAST)
    finish(folder)
    assert score(folder) > 250


def test_continuous_actions_run_in_gymnasium_with_a_cache_that_cannot_be_used(ordered: Start) -> None:
    folder = ordered("pendulum", 512, env="gymnasium.envs:Pendulum-v1", compiled="/proc/nothing", activation="relu")
    said = finish(folder)
    assert said == "EnvPool is not used for environments from a module or with arguments; training on Gymnasium\n"
    act = architectures.load(folder / "out" / "policy")
    assert act(np.zeros((3, 3)), np.ones(3, bool)).shape == (3, 1)


def test_sigterm_ends_a_run_with_a_policy_and_without_an_error(ordered: Start) -> None:
    folder = ordered("stopped", 10**9, **FAST)
    process = start(folder)
    until = time.monotonic() + 100
    while not (folder / "out" / "metrics.jsonl").exists() and time.monotonic() < until:
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 0, said
    assert (folder / "out" / "ready").exists()
    assert score(folder) > 0


def test_an_environment_that_does_not_fit_ends_the_run_with_one_sentence(ordered: Start) -> None:
    process = start(ordered("nothing", 512, env="NoSuchThing-v0"))
    _, said = process.communicate(timeout=60)
    assert process.returncode == 1
    assert said.splitlines()[-1].startswith("NoSuchThing-v0 cannot be made")


@pytest.mark.feature("H100")
def test_a_run_whose_contract_requires_a_gpu_fails_without_one(ordered: Start) -> None:
    folder = ordered("gpu", 1024, device="cuda")
    process = start(folder)
    _, said = process.communicate(timeout=120)
    assert (process.returncode, said) == (1, "device: `cuda` is asked for, but JAX finds only cpu here\n")
    assert not any((folder / "out").iterdir()), "nothing was trained on another device"


def test_observations_that_are_no_block_of_numbers_are_flattened_for_trainer_and_referee_alike(ordered: Start) -> None:
    folder = ordered("cards", 512, env="Blackjack-v1")
    process = start(folder)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 0, said
    policy = architectures.load(folder / "out" / "policy")
    assert len(episodes.play(EnvSpec(backend="gymnasium", id="Blackjack-v1"), policy, range(20), lanes=4)) == 20


@pytest.mark.parametrize(
    ("kl", "target", "pace"),
    [
        pytest.param(0.03, 0.01, 2 / 1.5, id="twice too far"),
        pytest.param(0.004, 0.01, 3.0, id="not half as far as it may"),
        pytest.param(0.012, 0.01, 2.0, id="about right"),
        pytest.param(0.0, 0.01, 2.0, id="has not moved yet"),
        pytest.param(0.03, 0.0, 1.0, id="not steered"),
    ],
)
def test_the_step_size_is_steered_by_how_far_the_policy_moved(kl: float, target: float, pace: float) -> None:
    assert float(ppo.steer(np.float32(2), np.float32(kl), np.float32(target))) == pytest.approx(pace)
