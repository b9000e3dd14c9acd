"""Stable-Baselines3's PPO, or that of sbx: `python -m peers.baselines`, with `params.library` saying which.

Both step the vector environment that they ship with, and learn by their own code. Three things are added, and none of
them changes what is learnt: the clock of the budget, by which schedules run and training ends; snapshots of the policy;
and a line for each rollout. An update that is under way when the time is over may finish, and counts.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from peers.diary import Diary, Policy
from peers.settings import Recipe, schedule, zoo_settings

DIARY = Diary() if __name__ == "__main__" else None

import gymnasium  # noqa: E402 - the number libraries read their limits when they are imported
import torch  # type: ignore[import-not-found] # noqa: E402 - the peers are in an environment of their own
from stable_baselines3.common.callbacks import BaseCallback  # type: ignore[import-not-found] # noqa: E402
from stable_baselines3.common.env_util import make_vec_env  # type: ignore[import-not-found] # noqa: E402
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize  # type: ignore[import-not-found] # noqa: E402

from peers import threads  # noqa: E402

Array = NDArray[Any]


def from_recipe(recipe: Recipe) -> tuple[int, dict[str, Any] | None, dict[str, Any]]:
    """Our recipe in the words of Stable-Baselines3: how many environments, their normaliser, and PPO's settings.

    Its value loss is the whole squared error where ours is half of it, so it takes half the weight.
    """
    falling = (lambda left: recipe.learning_rate * left) if recipe.anneal_learning_rate else recipe.learning_rate
    hidden = [recipe.hidden_units] * 2
    policy = {"net_arch": {"pi": hidden, "vf": hidden}, "activation": recipe.activation}
    ppo = {
        "learning_rate": falling,
        "n_steps": recipe.rollout_steps,
        "batch_size": recipe.minibatch(),
        "n_epochs": recipe.update_epochs,
        "gamma": recipe.gamma,
        "gae_lambda": recipe.gae_lambda,
        "clip_range": recipe.clip_range,
        "clip_range_vf": recipe.clip_range if recipe.clip_value_loss else None,
        "normalize_advantage": recipe.normalize_advantage,
        "ent_coef": recipe.entropy_weight,
        "vf_coef": recipe.value_weight / 2,
        "max_grad_norm": recipe.max_grad_norm,
        "policy_kwargs": policy | {"log_std_init": recipe.initial_log_std, "ortho_init": True},
    }
    normal = {
        "norm_obs": recipe.normalize_observations,
        "norm_reward": recipe.normalize_rewards,
        "gamma": recipe.gamma,
        "clip_reward": recipe.reward_clip,
    }
    return recipe.num_envs, normal if any(list(normal.values())[:2]) else None, ppo


def from_zoo(env: str) -> tuple[int, dict[str, Any] | None, dict[str, Any]]:
    """The entry of rl-zoo3, read as rl-zoo3 reads it."""
    entry = zoo_settings(env)
    count = int(entry.pop("n_envs", 1))
    normal = {"gamma": entry.get("gamma", 0.99)} if entry.pop("normalize", False) else None
    for name in ("n_timesteps", "policy"):
        entry.pop(name, None)
    for name in ("learning_rate", "clip_range"):
        if name in entry:
            entry[name] = schedule(entry[name])
    words = {"dict": dict, "nn": torch.nn}
    policy = eval(entry.pop("policy_kwargs", "dict()"), {"__builtins__": {}}, words)  # as the zoo does
    activation = policy.pop("activation_fn", torch.nn.Tanh)
    entry["policy_kwargs"] = policy | {"activation": "relu" if activation is torch.nn.ReLU else "tanh"}
    return count, normal, entry


def algorithm(library: str, activation: str) -> tuple[Any, Any]:
    """The class that learns, and its name for the activation."""
    if library == "sbx":
        import flax.linen as linen  # type: ignore[import-not-found]
        from sbx import PPO  # type: ignore[import-not-found]

        return PPO, linen.relu if activation == "relu" else linen.tanh
    from stable_baselines3 import PPO as Plain  # type: ignore[import-not-found] # noqa: N811 - two of one name

    return Plain, torch.nn.ReLU if activation == "relu" else torch.nn.Tanh


def layers(model: Any, library: str) -> list[tuple[Array, Array]]:  # noqa: ANN401 - a model of one of two libraries
    """The actor's layers as plain arrays."""
    if library == "sbx":
        found = model.policy.actor_state.params["params"]
        dense = [found[f"Dense_{i}"] for i in range(sum(name.startswith("Dense_") for name in found))]
        return [(np.asarray(one["kernel"]), np.asarray(one["bias"])) for one in dense]
    actor = [*model.policy.mlp_extractor.policy_net, model.policy.action_net]
    linear = [part for part in actor if isinstance(part, torch.nn.Linear)]
    return [(part.weight.detach().numpy().T.copy(), part.bias.detach().numpy().copy()) for part in linear]


class Watch(BaseCallback):  # type: ignore[misc]
    """Ends the training with the budget, and keeps the diary."""

    def __init__(self, diary: Diary, library: str, activation: str) -> None:
        super().__init__()
        self.diary, self.library, self.activation = diary, library, activation

    def policy_now(self) -> Policy:
        """The policy of this moment."""
        envs = self.model.get_env()
        discrete = isinstance(envs.action_space, gymnasium.spaces.Discrete)
        now = Policy(layers(self.model, self.library), self.activation, discrete)
        if not isinstance(envs, VecNormalize) or not envs.norm_obs:
            return now
        scale = 1 / np.sqrt(envs.obs_rms.var + envs.epsilon)
        return now._replace(mean=envs.obs_rms.mean.copy(), scale=scale, clip=envs.clip_obs)

    def _on_rollout_start(self) -> None:
        if self.num_timesteps:
            self.diary.report(self.num_timesteps)

    def _on_step(self) -> bool:
        self.diary.keep(self.policy_now)
        return not self.diary.spent()


def train(diary: Diary) -> None:
    """Train until the budget is spent."""
    params, env = diary.order.params, diary.order.env.id
    library = str(params["library"])
    count, normal, ppo = from_recipe(Recipe.of(params)) if "recipe" in params else from_zoo(env)
    activation = ppo["policy_kwargs"].pop("activation")
    kind, function = algorithm(library, activation)
    ppo["policy_kwargs"]["activation_fn"] = function
    hidden = (ppo["policy_kwargs"].get("net_arch") or {"pi": [64]})["pi"][0]
    on = threads.choose(diary.order.cores, batch=ppo.get("batch_size", 64), hidden=hidden)

    class OnTime(kind):  # type: ignore[misc, valid-type]
        """Schedules fall with the budget instead of with a number of steps."""

        def _update_current_progress_remaining(self, _done: int, _total: int) -> None:
            self._current_progress_remaining = diary.left()

    envs = make_vec_env(env, n_envs=count, seed=diary.order.train_seed, vec_env_cls=DummyVecEnv)
    if normal is not None:
        envs = VecNormalize(envs, **normal)
    model = OnTime("MlpPolicy", envs, seed=diary.order.train_seed, device="cpu", **ppo)
    watch = Watch(diary, library, activation)
    diary.begin(threads=str(on))
    model.learn(10**12, callback=watch)
    if not watch.diary.training.out.joinpath("metrics.jsonl").exists():
        diary.report(model.num_timesteps)
    policy = watch.policy_now()
    check(model, policy)
    diary.end(policy)


def check(model: Any, policy: Policy) -> None:  # noqa: ANN401
    """Make sure that the arrays act as the trained model does."""
    envs = model.get_env()
    size = int(np.prod(envs.observation_space.shape))
    raw = np.random.default_rng(0).standard_normal((64, size)).astype(np.float32)
    if policy.mean is not None and policy.scale is not None:
        raw = (raw / policy.scale + policy.mean).astype(np.float32)
    seen = envs.normalize_obs(raw) if isinstance(envs, VecNormalize) else raw
    told, _ = model.predict(seen, deterministic=True)
    found = policy.act(raw)
    if not policy.discrete:
        found = np.clip(found, envs.action_space.low, envs.action_space.high)
    if np.mean(np.isclose(told, found, rtol=1e-3, atol=1e-3)) < 0.98:
        raise SystemExit("The exported policy does not act like the trained one")


if DIARY is not None:
    train(DIARY)
