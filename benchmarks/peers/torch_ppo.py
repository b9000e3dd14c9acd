"""PPO in eager PyTorch, in the manner of single-file implementations: `python -m peers.torch_ppo`.

The algorithm, the schedule and the settings are those of our own `ppo.py`, read from the same order; the engine is
what most people write: a module with two networks, `torch.distributions`, one Python loop over steps and one over
minibatches. It steps Gymnasium's `SyncVectorEnv`, or EnvPool where `params.library` says so. Both reset on the next
step, so the step in which an environment resets is left out of the minibatches, and a truncated episode is
bootstrapped from its last observation.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from peers.diary import Diary, Policy
from peers.settings import Recipe

DIARY = Diary() if __name__ == "__main__" else None

import gymnasium  # noqa: E402 - the number libraries read their limits when they are imported
import torch  # type: ignore[import-not-found] # noqa: E402 - it is in the peers' environment only
from torch import nn  # noqa: E402

from peers import threads  # noqa: E402

Array = NDArray[Any]
CLIP = 10.0


class Running:
    """A mean and a variance that take in each step's samples."""

    def __init__(self, size: int) -> None:
        self.mean, self.variance, self.count = np.zeros(size), np.ones(size), 1e-4

    def absorb(self, samples: Array) -> None:
        """Take in samples `[n, size]`."""
        n = len(samples)
        total = self.count + n
        shift = samples.mean(0) - self.mean
        squares = self.variance * self.count + samples.var(0) * n + shift**2 * self.count * n / total
        self.mean, self.variance, self.count = self.mean + shift * n / total, squares / total, total

    def scale(self) -> Array:
        """What to multiply with for a spread of 1."""
        found: Array = 1 / np.sqrt(self.variance + 1e-8)
        return found


class Normalised:
    """Vector environments whose observations and rewards are normalised by what was seen until now."""

    def __init__(self, envs: Any, recipe: Recipe, *, one: str) -> None:  # noqa: ANN401 - two libraries' environments
        self.envs, self.recipe = envs, recipe
        self.space = getattr(envs, f"{one}action_space")
        self.size = int(np.prod(getattr(envs, f"{one}observation_space").shape))
        self.discrete = isinstance(self.space, gymnasium.spaces.Discrete)
        self.actions = int(self.space.n) if self.discrete else int(np.prod(self.space.shape))
        self.seen, self.returns = Running(self.size), Running(1)
        self.running = np.zeros(recipe.num_envs)
        self.resetting = np.zeros(recipe.num_envs, bool)

    def reset(self, seeds: list[int] | None) -> Array:
        """Begin an episode in each."""
        found = self.envs.reset() if seeds is None else self.envs.reset(seed=seeds)
        return self._observed(found[0])

    def step(self, actions: Array) -> tuple[Array, Array, Array, Array]:
        """Observations, rewards, which episodes terminated, and which ended."""
        if self.discrete:
            taken = actions.astype(np.int32)
        else:
            taken = np.clip(actions, self.space.low, self.space.high).astype(self.space.dtype)
        observations, rewards, terminated, truncated, _ = self.envs.step(taken)
        fresh = self.resetting
        rewards = np.where(fresh, 0.0, rewards)
        terminated, truncated = terminated & ~fresh, truncated & ~fresh
        self.resetting = terminated | truncated
        return self._observed(observations), self._scaled(rewards), terminated, self.resetting

    def _observed(self, observations: Array) -> Array:
        flat: Array = np.asarray(observations, np.float32).reshape(len(self.running), self.size)
        if not self.recipe.normalize_observations:
            return flat
        self.seen.absorb(flat)
        return np.clip((flat - self.seen.mean) * self.seen.scale(), -CLIP, CLIP).astype(np.float32)

    def _scaled(self, rewards: Array) -> Array:
        if not self.recipe.normalize_rewards:
            return rewards
        self.running = self.running * self.recipe.gamma + rewards
        self.returns.absorb(self.running[:, None])
        self.running = self.running * ~self.resetting
        scaled: Array = np.clip(rewards * self.returns.scale(), -self.recipe.reward_clip, self.recipe.reward_clip)
        return scaled


def layer(inputs: int, outputs: int, gain: float) -> Any:  # noqa: ANN401 - torch is unknown to the type checker here
    """A linear layer with orthogonal weights and no bias at first."""
    made = nn.Linear(inputs, outputs)
    nn.init.orthogonal_(made.weight, gain)
    nn.init.zeros_(made.bias)
    return made


class Agent(nn.Module):  # type: ignore[misc]
    """Actor and critic, side by side."""

    def __init__(self, envs: Normalised, recipe: Recipe) -> None:
        super().__init__()
        self.discrete = envs.discrete
        activation = nn.Tanh if recipe.activation == "tanh" else nn.ReLU
        self.actor, self.critic = (
            nn.Sequential(
                *(layer(envs.size, recipe.hidden_units, 2**0.5), activation()),
                *(layer(recipe.hidden_units, recipe.hidden_units, 2**0.5), activation()),
                layer(recipe.hidden_units, outputs, gain),
            )
            for outputs, gain in ((envs.actions, 0.01), (1, 1.0))
        )
        if not self.discrete:
            self.log_std = nn.Parameter(torch.full((envs.actions,), recipe.initial_log_std))

    def distribution(self, x: Any) -> Any:  # noqa: ANN401
        """What the policy would do."""
        out = self.actor(x)
        if self.discrete:
            return torch.distributions.Categorical(logits=out)
        return torch.distributions.Independent(torch.distributions.Normal(out, self.log_std.exp()), 1)


def advantages(recipe: Recipe, rewards: Any, values: Any, terminated: Any, ended: Any) -> Any:  # noqa: ANN401
    """Generalised advantage estimates, backwards through one rollout."""
    found, last = torch.zeros_like(rewards), torch.zeros_like(rewards[0])
    for t in reversed(range(len(rewards))):
        surprise = rewards[t] + recipe.gamma * values[t + 1] * (1 - terminated[t]) - values[t]
        last = surprise + recipe.gamma * recipe.gae_lambda * (1 - ended[t]) * last
        found[t] = last
    return found


def learn(agent: Agent, optimizer: Any, recipe: Recipe, batch: tuple[Any, ...], rng: np.random.Generator) -> None:  # noqa: ANN401
    """All epochs over one rollout; only samples that are experience take part."""
    observations, actions, log_probs, gains, targets, values, counted = batch
    chosen = np.flatnonzero(counted.numpy())
    for _ in range(recipe.update_epochs):
        rng.shuffle(chosen)
        for part in np.array_split(chosen, recipe.num_minibatches):
            at = torch.as_tensor(part)
            distribution = agent.distribution(observations[at])
            ratio = (distribution.log_prob(actions[at]) - log_probs[at]).exp()
            gain = gains[at]
            if recipe.normalize_advantage:
                gain = (gain - gain.mean()) / (gain.std() + 1e-8)
            clipped = ratio.clamp(1 - recipe.clip_range, 1 + recipe.clip_range)
            policy_loss = torch.max(-gain * ratio, -gain * clipped).mean()
            value = agent.critic(observations[at]).squeeze(-1)
            error = (value - targets[at]) ** 2
            if recipe.clip_value_loss:
                near = values[at] + (value - values[at]).clamp(-recipe.clip_range, recipe.clip_range)
                error = torch.max(error, (near - targets[at]) ** 2)
            loss = policy_loss + recipe.value_weight * 0.5 * error.mean()
            loss = loss - recipe.entropy_weight * distribution.entropy().mean()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(agent.parameters(), recipe.max_grad_norm)
            optimizer.step()


def exported(agent: Agent, envs: Normalised, recipe: Recipe) -> Policy:
    """The actor as plain arrays."""
    linear = [part for part in agent.actor if isinstance(part, nn.Linear)]
    layers = [(part.weight.detach().numpy().T.copy(), part.bias.detach().numpy().copy()) for part in linear]
    seen = (envs.seen.mean, envs.seen.scale()) if recipe.normalize_observations else (None, None)
    return Policy(layers, recipe.activation, envs.discrete, *seen)


def make(diary: Diary, recipe: Recipe) -> tuple[Normalised, Array]:
    """The environments and their first observations."""
    seeds = np.random.SeedSequence(diary.order.train_seed).generate_state(recipe.num_envs) >> 1
    env = diary.order.env.id
    if diary.order.params["library"] == "torch-envpool":
        import envpool  # type: ignore[import-untyped, unused-ignore]

        limit = gymnasium.spec(env).max_episode_steps
        options = {"num_envs": recipe.num_envs, "num_threads": diary.order.cores, "max_episode_steps": limit}
        made = Normalised(envpool.make_gymnasium(env, seed=seeds.tolist(), **options), recipe, one="")
        return made, made.reset(None)
    copies = [lambda: gymnasium.make(env, disable_env_checker=True)] * recipe.num_envs
    mode = gymnasium.vector.AutoresetMode.NEXT_STEP
    made = Normalised(gymnasium.vector.SyncVectorEnv(copies, autoreset_mode=mode), recipe, one="single_")
    return made, made.reset([int(seed) for seed in seeds])


def train(diary: Diary) -> None:
    """Train until the budget is spent."""
    recipe = Recipe.of(diary.order.params)
    count = threads.choose(diary.order.cores, batch=recipe.minibatch(), hidden=recipe.hidden_units)
    torch.manual_seed(diary.order.train_seed)
    rng = np.random.default_rng(diary.order.train_seed)
    envs, observation = make(diary, recipe)
    agent = Agent(envs, recipe)
    optimizer = torch.optim.Adam(agent.parameters(), lr=recipe.learning_rate, eps=1e-5)
    shape, steps = (recipe.rollout_steps, recipe.num_envs), 0
    diary.begin(threads=str(count))
    while not diary.spent():
        if recipe.anneal_learning_rate:
            optimizer.param_groups[0]["lr"] = recipe.learning_rate * diary.left()
        observations = torch.zeros((shape[0] + 1, shape[1], envs.size))
        actions = torch.zeros(shape if envs.discrete else (*shape, envs.actions))
        log_probs, rewards, terminated, ended, counted = torch.zeros((5, *shape))
        values = torch.zeros((shape[0] + 1, shape[1]))
        for t in range(shape[0]):
            if diary.spent():
                break
            observations[t], counted[t] = torch.as_tensor(observation), torch.as_tensor(~envs.resetting)
            with torch.no_grad():
                distribution = agent.distribution(observations[t])
                actions[t] = action = distribution.sample()
                log_probs[t] = distribution.log_prob(action)
                values[t] = agent.critic(observations[t]).squeeze(-1)
            observation, *told = envs.step(action.numpy())
            rewards[t], terminated[t], ended[t] = (torch.as_tensor(one) for one in told)
        else:
            observations[-1] = torch.as_tensor(observation)
            with torch.no_grad():
                values[-1] = agent.critic(observations[-1]).squeeze(-1)
                gains = advantages(recipe, rewards, values, terminated, ended)
            batch = (observations[:-1], actions, log_probs, gains, gains + values[:-1], values[:-1], counted)
            learn(agent, optimizer, recipe, tuple(part.flatten(0, 1) for part in batch), rng)
            steps += shape[0] * shape[1]
            diary.report(steps)
            diary.keep(lambda: exported(agent, envs, recipe))
    policy = exported(agent, envs, recipe)
    check(agent, envs, policy, rng)
    diary.end(policy)


def check(agent: Agent, envs: Normalised, policy: Policy, rng: np.random.Generator) -> None:
    """Make sure that the arrays act as the agent does."""
    raw = (rng.standard_normal((64, envs.size)) * np.sqrt(envs.seen.variance) + envs.seen.mean).astype(np.float32)
    normal = np.clip((raw - envs.seen.mean) * envs.seen.scale(), -CLIP, CLIP) if policy.mean is not None else raw
    with torch.no_grad():
        out = agent.actor(torch.as_tensor(normal, dtype=torch.float32)).numpy()
    found = out.argmax(-1) if envs.discrete else out
    if np.mean(np.isclose(found, policy.act(raw), rtol=1e-3, atol=1e-3)) < 0.98:
        raise SystemExit("The exported policy does not act like the trained one")


if DIARY is not None:
    train(DIARY)
