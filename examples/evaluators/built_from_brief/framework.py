"""Fixed: trains the candidate's policy in the candidate's environment, measures it, and never changes."""

from candidate import create_env, create_policy

SEEDS = (101, 138)
EVAL_EPISODES = 8
MAX_STEPS = 20


def evaluate_candidate(train_episodes):
    """Train and measure once for each seed; the score is the mean return of greedy episodes."""
    returns, solved = [], []
    for seed in SEEDS:
        policy = create_policy(seed)
        policy.learn(create_env(MAX_STEPS, seed), train_episodes)
        env = create_env(MAX_STEPS, seed + 20000)
        for _ in range(EVAL_EPISODES):
            total, success = play(env, policy)
            returns.append(total)
            solved.append(success)
    return {
        "score": sum(returns) / len(returns),
        "solve_rate": sum(solved) / len(solved),
        "eval_episodes": len(returns),
    }


def play(env, policy):
    """One greedy episode: what it returned, and whether the task was done."""
    obs, total, success = env.reset(), 0.0, 0
    for _ in range(MAX_STEPS):
        obs, reward, done, info = env.step(policy.act(obs))
        total += reward
        if done:
            success = int(info["success"])
            break
    return total, success
