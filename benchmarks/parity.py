"""Whether a policy scores the same in EnvPool and in Gymnasium: `make parity`, or `python benchmarks/parity.py ENV …`.

In every environment for which EnvPool is used, a policy is trained there for a short time, and then plays 100 greedy
episodes in EnvPool and 100 others in Gymnasium, where the referee measures. Results go to
`benchmarks/measured/parity.jsonl` as they come, so a run that was stopped goes on where it was, and from there to
`benchmarks/PARITY.md`. How fast the machine is decides only how good the policies are.
"""

import json
import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean, variance
from typing import Any

import numpy as np

from bench import append, recipe_of
from contest import OURS, ROOT, Job, machine_facts, run, scratch, versions
from overnight.evaluate.architectures import load
from overnight.guest.train import Env
from overnight.rl.envs.batched import COMPARED, make

Line = Mapping[str, Any]

PAGE = ROOT / "benchmarks" / "PARITY.md"
TARGET = ROOT / "benchmarks" / "measured" / "parity.jsonl"
SECONDS, SEED, EPISODES = 20.0, 101, 100
SEEDS = range(3_000_000, 3_000_000 + EPISODES)
"""Of the episodes in EnvPool."""
MOST = 3.3
"""So many times its noise a difference may be: one in a thousand is greater where both worlds are the same."""

INTRODUCTION = f"""# The same policy in EnvPool and in Gymnasium

Written by `make parity`. Training steps EnvPool, and the referee measures in Gymnasium. In each environment for which
EnvPool is used, `ppo` trained with our recipe, or where there is none with that of BipedalWalker, for {SECONDS:g} s;
then the policy played {EPISODES} greedy episodes in each of the two, with different seeds. The difference has a 95 %
interval, and counts as noise up to {MOST} times its standard error. In an environment whose row says otherwise, EnvPool
has to go.

| environment | steps | in EnvPool | in Gymnasium | difference | 95 % interval | the same |
|---|---|---|---|---|---|---|"""


def compare(env: str) -> Line:
    """Train one policy, and play it in both."""
    with scratch() as name:
        job = Job("parity", OURS, env, SEED, SECONDS, {"recipe": recipe_of(env)}, EPISODES)
        found = run(job, Path(name))
        return {"pool": played(env, Path(name) / "policy"), "gymnasium": found["final"], "steps": found["steps"]}


def played(env: str, policy: Path) -> list[float]:
    """The return of one greedy episode in each of some environments of EnvPool."""
    envs = make(Env("gymnasium", env, {}, None, clip_actions=True), SEEDS, threads=2)
    if envs.backend != "envpool":
        raise SystemExit(envs.why)
    act, seen = load(policy), envs.reset()
    totals, playing = np.zeros(EPISODES), np.ones(EPISODES, bool)
    while playing.any():
        seen, rewards, _, _ = envs.step(act(seen, envs.resetting))
        totals += rewards * playing
        playing &= ~envs.resetting
    envs.close()
    return [round(float(one), 3) for one in totals]


def page(lines: Sequence[Line]) -> str:
    """The last comparison of each environment."""
    last = {one["env"]: one for one in lines}
    return "\n".join([INTRODUCTION, *(_row(last[env]) for env in sorted(last))]) + "\n"


def difference(one: Line) -> tuple[float, float]:
    """By how much the policy scores more in EnvPool, and the standard error of that."""
    pool, gymnasium = one["pool"], one["gymnasium"]
    noise = math.sqrt(variance(pool) / len(pool) + variance(gymnasium) / len(gymnasium))
    return fmean(pool) - fmean(gymnasium), noise


def is_same(one: Line) -> bool:
    """Whether the difference is no more than noise."""
    apart, noise = difference(one)
    return abs(apart) <= MOST * noise + 1e-9


def _row(one: Line) -> str:
    apart, noise = difference(one)
    cells = (
        one["env"],
        f"{one['steps']:,}",
        *(f"{fmean(one[world]):,.1f}" for world in ("pool", "gymnasium")),
        f"{apart:+,.1f}",
        f"{apart - 1.96 * noise:+,.1f} to {apart + 1.96 * noise:+,.1f}",
        "yes" if is_same(one) else "**no**",
    )
    return f"| {' | '.join(cells)} |"


def main() -> int:
    """Compare what was not compared yet, and write the page."""
    made = {"versions": versions()[OURS.name], "machine": machine_facts()}
    lines = [json.loads(line) for line in TARGET.read_text().splitlines()] if TARGET.exists() else []
    there = {one["env"] for one in lines if all(one[name] == value for name, value in made.items())}
    for env in sorted(sys.argv[1:] or COMPARED):
        if env not in there:
            lines.append({"env": env, **compare(env), **made})
            append(TARGET, lines[-1])
            print(_row(lines[-1]), flush=True)
    PAGE.write_text(page(lines))
    print(PAGE)
    return 0


if __name__ == "__main__":
    sys.exit(main())
