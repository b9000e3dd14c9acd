"""The policy and how it learns."""

import random


class Table:
    """A table of values, learned by plain Q-learning."""

    def __init__(self, seed):
        self.chance = random.Random(seed)
        self.values = {}

    def act(self, cell):
        """The greedy action; left where both are worth the same."""
        left, right = self.values.get((cell, 0), 0.0), self.values.get((cell, 1), 0.0)
        return int(right > left)

    def learn(self, env, episodes):
        """A few episodes, half of the actions by chance."""
        for _ in range(episodes):
            cell, done = env.reset(), False
            while not done:
                action = self.chance.randrange(2) if self.chance.random() < 0.5 else self.act(cell)
                after, reward, done, _ = env.step(action)
                best = max(self.values.get((after, 0), 0.0), self.values.get((after, 1), 0.0))
                old = self.values.get((cell, action), 0.0)
                self.values[(cell, action)] = old + 0.5 * (reward + 0.95 * best * (not done) - old)
                cell = after


def create_policy(seed):
    """An untrained policy."""
    return Table(seed)
