"""Read-only: the task, the constants and the measurement. `train.py` imports them, and only `train.py` is edited."""

import gymnasium as gym
import numpy as np

ENV_ID = "CartPole-v1"
NUM_EVAL_EPISODES = 20
TRAIN_EPISODES = 6


def make_env(env_id=ENV_ID):
    """The environment, with its episode statistics."""
    return gym.wrappers.RecordEpisodeStatistics(gym.make(env_id))


def evaluate_policy(agent, env_id=ENV_ID, num_episodes=NUM_EVAL_EPISODES):
    """Play episodes 0, 1, 2 … without chance, and say what they returned."""
    env = make_env(env_id)
    returns = []
    for episode in range(num_episodes):
        obs, _ = env.reset(seed=episode)
        total, done = 0.0, False
        while not done:
            obs, reward, terminated, truncated, _ = env.step(agent.get_action(obs))
            total += float(reward)
            done = terminated or truncated
        returns.append(total)
    env.close()
    return {
        "avg_return": float(np.mean(returns)),
        "std_return": float(np.std(returns)),
        "min_return": float(np.min(returns)),
        "max_return": float(np.max(returns)),
    }
