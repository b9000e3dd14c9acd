"""Measure what isolation costs on this machine: `make bench-sandbox`.

Everything is measured in pairs, one beside the other, in the same minute: a start at a tier against a plain start of
the same command, episodes with the policy's code in a process of its own against the same code in ours, and training
steps through a broker against the same steps without. Each figure is the median over the pairs. Other work on the
machine makes starts slower, and an answer from another process wait for its turn; so the load is printed with the
figures, and beside each ratio of time the ratio of processor time, which hardly depends on it.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import gymnasium
import numpy as np

from overnight.evaluate import episodes
from overnight.evaluate.episodes import Policy
from overnight.evaluate.policy_process import Folders, PolicyProcess
from overnight.guest.act import load_policy
from overnight.records.codec import dumps
from overnight.records.env import EnvSpec
from overnight.records.job import Job
from overnight.records.order import RunBudget, RunOrder
from overnight.rl.envs import batched
from overnight.run.broker import VARIABLE, Broker
from overnight.sandbox.bounds import bounds_for
from overnight.sandbox.probe import prove
from overnight.sandbox.processes import descendants, inherit_orphans
from overnight.sandbox.start import start
from overnight.sandbox.tiers import Child, Tier

TIERS: tuple[Tier, ...] = ("T1", "T2", "T3")
COMMAND = ("/bin/true",)
PROMISED_START = 0.030
EVALUATIONS = (("BipedalWalker-v3", 16, 1.15, 300), ("CartPole-v1", 64, 1.25, 500))
"""Environment, lanes, the promised ratio, and the longest episode that is played here."""
STEPPED = (("CartPole-v1", 8), ("CartPole-v1", 64), ("BipedalWalker-v3", 16))
"""Environment and lanes that are stepped through a broker."""
STEPS = 200
WAVES = 3
CODE = """
import numpy as np
def load(folder):
    draw, layers = np.random.default_rng(0), {}
    def act(observations, reset):
        width = observations.shape[1]
        if not layers:
            layers[0] = [draw.normal(size=size) / 8 for size in ((width, 64), (64, 64), (64, 4))]
        hidden = observations
        for weights in layers[0]:
            hidden = np.tanh(hidden @ weights)
        return hidden if width == 24 else (3 * observations[:, 2] + observations[:, 3] > 0.05).astype(np.int64)
    return act
"""


def seconds(work: Callable[[], object]) -> float:
    """How long some work took."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def plain() -> None:
    """Start the command as any program would."""
    subprocess.run(COMMAND, check=True, env={"PATH": os.defpath}, cwd="/")


def held(tier: Tier) -> None:
    """Start the command at a tier."""
    child = Child(command=COMMAND, cwd="/", env={"PATH": os.defpath})
    if start(child, BOUNDS, tier).wait() != 0:
        raise SystemExit(f"the command failed at {tier}")


BOUNDS = bounds_for(())


def starts(tier: Tier, pairs: int) -> float:
    """How much longer a start takes at a tier."""
    return statistics.median(seconds(lambda: held(tier)) - seconds(plain) for _ in range(pairs))


class Played(NamedTuple):
    """One batch of episodes."""

    seconds: float
    cpu_seconds: float
    episodes: list[episodes.Episode]


def played(spec: EnvSpec, policy: Policy, lanes: int) -> Played:
    """Play one batch of episodes, without loading anything."""
    found: list[episodes.Episode] = []
    before = cpu_seconds()
    took = seconds(lambda: found.extend(episodes.play(spec, policy, range(WAVES * lanes), lanes=lanes)))
    return Played(took, cpu_seconds() - before, found)


def cpu_seconds() -> float:
    """Processor time of this process and of those that live below it."""
    total = time.process_time()
    for pid in descendants(os.getpid()):
        for thread in Path(f"/proc/{pid}/task").glob("*/schedstat"):
            with suppress(OSError):
                total += int(thread.read_text().split()[0]) / 1e9
    return total


class Cost(NamedTuple):
    """What the trust line costs an evaluation."""

    ratio: float
    cpu_ratio: float
    loading: float


def evaluation(spec: EnvSpec, lanes: int, tier: Tier, pairs: int) -> Cost:
    """Time across the trust line against time in one process, and how long the first batch takes with loading."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "policy"
        folder.mkdir()
        (folder / "policy.json").write_text('{"schema": "overnight/policy/1", "kind": "code", "entry": "act:load"}')
        (folder / "act.py").write_text(CODE)
        for path in (Path(name), folder):
            path.chmod(0o755)
        environment = episodes.make(spec)
        began = time.perf_counter()
        apart = PolicyProcess(Folders(Path(name), folder), environment, lanes, tier)
        try:
            played(spec, apart, lanes)
            loading = time.perf_counter() - began
            return Cost(*_ratios(spec, load_policy(folder), apart, lanes, pairs), loading)
        finally:
            apart.close()
            environment.close()


def _ratios(spec: EnvSpec, here: Policy, apart: Policy, lanes: int, pairs: int) -> tuple[float, float]:
    found = []
    for number in range(pairs):
        both = {}
        for which in (("here", here), ("apart", apart))[:: 1 if number % 2 else -1]:
            both[which[0]] = played(spec, which[1], lanes)
        if both["here"].episodes != both["apart"].episodes:
            raise SystemExit("the two did not earn the same")
        found.append(both)
    times = statistics.median(both["apart"].seconds / both["here"].seconds for both in found)
    return times, statistics.median(both["apart"].cpu_seconds / both["here"].cpu_seconds for both in found)


def stepped(env: str, lanes: int, tier: Tier, pairs: int) -> tuple[float, float]:
    """The processor seconds of one step of all lanes: without a broker, and with one."""
    with tempfile.TemporaryDirectory() as name:
        folder, spec = Path(name), EnvSpec(backend="gymnasium", id=env)
        folder.chmod(0o755)
        budget = RunBudget(unit="env_steps", amount=1e12)
        order = RunOrder(run="r-0001", env=spec, train_seed=1, budget=budget, params={}, cores=1, device="cpu")
        (folder / "run.json").write_bytes(dumps(order))
        job = Job(
            command=("true",),
            env={},
            fresh_bytecode=False,
            cores=(),
            wall_seconds=600,
            silence_seconds=600,
            disk_bytes=1 << 30,
            tier=tier,
            metered=True,
        )
        broker = Broker(folder, job, lambda: None)
        plain = batched.make(spec, range(lanes), threads=1)
        os.environ |= broker.variables()
        try:
            metered = batched.make(spec, range(lanes), threads=1)
            found = [(_stepping(plain), _stepping(metered)) for _ in range(pairs)]
        finally:
            os.environ.pop(VARIABLE)
            broker.leave_to_trainer()
        return statistics.median(one for one, _ in found), statistics.median(other for _, other in found)


def _stepping(envs: batched.Batch) -> float:
    draw = np.random.default_rng(0)
    size = (STEPS, envs.num_envs, *envs.no_action.shape)
    actions = draw.integers(envs.choices[0], size=size) if envs.discrete else draw.uniform(-1, 1, size)
    envs.reset()
    before = cpu_seconds()
    for one in actions:
        envs.step(one)
    return (cpu_seconds() - before) / STEPS


def tell(what: str, figure: str, promise: str, *, kept: bool) -> None:
    """One line."""
    print(f"{what:<58} {figure:>10}   {promise:<18} {'' if kept else 'MISSED'}".rstrip(), flush=True)


def main() -> int:
    """Print every figure; the status says whether all promises were kept."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--pairs", type=int, default=25)
    options.add_argument("--rounds", type=int, default=9)
    asked = options.parse_args()
    inherit_orphans()
    missed = 0
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    for tier in TIERS:
        if not prove(tier).holds():
            print(f"{tier}: {prove(tier).why}")
            continue
        over = starts(tier, asked.pairs)
        missed += over >= PROMISED_START
        tell(f"start at {tier}, over a plain start", f"{over * 1e3:.1f} ms", "under 30 ms", kept=over < PROMISED_START)
        for name, lanes, promised, longest in EVALUATIONS:
            spec = EnvSpec(backend="gymnasium", id=name, max_episode_steps=longest)
            try:
                cost = evaluation(spec, lanes, tier, asked.rounds)
            except gymnasium.error.DependencyNotInstalled as error:
                print(f"{name}: left out, {error}")
                continue
            missed += cost.ratio > promised
            what = f"{name}, {lanes} lanes, code at {tier} against in-process"
            tell(what, f"{cost.ratio:.3f} x", f"at most {promised} x", kept=cost.ratio <= promised)
            tell("    in processor time", f"{cost.cpu_ratio:.3f} x", "", kept=True)
            tell("    with loading, the first batch took", f"{cost.loading:.2f} s", "", kept=True)
        for name, lanes in STEPPED:
            here, there = stepped(name, lanes, tier, asked.rounds)
            what = f"{name}, {lanes} lanes, a step by a broker at {tier}, processor time"
            tell(what, f"{there * 1e6:.0f} us", f"{here * 1e6:.0f} us without", kept=True)
    return min(missed, 1)


if __name__ == "__main__":
    sys.exit(main())
