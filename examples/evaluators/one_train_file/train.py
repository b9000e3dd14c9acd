"""The one file that is edited: the agent, how it learns, and the run. `python train.py` trains and prints the summary."""

import numpy as np

from evaluate import TRAIN_EPISODES, evaluate_policy, make_env


class Agent:
    """Pushes the cart to one side of a plane through what it sees."""

    def __init__(self, weights):
        self.weights = weights

    def get_action(self, obs):
        """The greedy action."""
        return int(obs @ self.weights > 0.0)


def train(seed=3):
    """Try a few random planes, and keep the best."""
    rng, env = np.random.default_rng(seed), make_env()
    best, best_return = None, -1.0
    for episode in range(TRAIN_EPISODES):
        agent = Agent(rng.normal(size=4))
        obs, _ = env.reset(seed=1000 + episode)
        total, done = 0.0, False
        while not done:
            obs, reward, terminated, truncated, _ = env.step(agent.get_action(obs))
            total, done = total + float(reward), terminated or truncated
        if total > best_return:
            best, best_return = agent, total
    return best


if __name__ == "__main__":
    summary = evaluate_policy(train())
    print("---")
    for name, value in summary.items():
        print(f"{name + ':':<14}{value:.6f}")
