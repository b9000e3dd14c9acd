"""How well the built-in trainers learn in a given time: `make learning`, or `python benchmarks/learning.py ENV …`.

Each seed is trained alone, on all cores, for the seconds of its row, as the supervisor would start it, and its
policy is then measured by the referee: greedy, 100 episodes in Gymnasium, on seeds that training never saw. Results
go to `build/benchmarks/learning.jsonl` as they come, so a benchmark that was stopped goes on where it was. A run during
which other programs used more than a tenth of the machine is marked, and run again the next time; with
OVERNIGHT_CPU_TIME=1 a run gets its seconds times the cores as processor time instead, which others cannot disturb.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

from overnight.contract.trainers import need_recipe
from overnight.evaluate.measure import measure
from overnight.machine import RealMachine
from overnight.records.env import EnvSpec
from trainers import busy_seconds

ROOT = Path(__file__).parents[1]
TARGET = ROOT / "build" / "benchmarks" / "learning.jsonl"
EPISODE_SEEDS = range(1_000_000, 1_000_100)
MOST_FOREIGN = 0.1
CORES = os.cpu_count() or 1
CPU_TIME = bool(os.environ.get("OVERNIGHT_CPU_TIME"))
"""Whether a run gets its seconds as processor time, so that other programs cannot disturb it."""


class Row(NamedTuple):
    """One environment, how long a training takes, and the bar that we set ourselves for the mean over seeds."""

    env: str
    seconds: float
    bar: float
    trainer: str = "ppo"


ROWS = (
    Row("CartPole-v1", 10, 495),
    Row("Acrobot-v1", 30, -100),
    Row("Pendulum-v1", 30, -200),
    Row("LunarLander-v3", 60, 250),
    Row("BipedalWalker-v3", 90, 300),
    Row("BipedalWalker-v3", 180, 300),
    Row("BipedalWalker-v3", 300, 310),
)
SEEDS = (101, 102, 103, 104, 105)
"""Train seeds of the reported results; recipes were chosen on others."""


def learn(row: Row, seed: int, params: dict[str, Any]) -> dict[str, Any]:
    """Train once and measure once."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        order = {
            "schema": "overnight/run-order/1",
            "run": "r-0001",
            "env": {"backend": "gymnasium", "id": row.env},
            "train_seed": seed,
            "budget": {"unit": "cpu_seconds", "amount": row.seconds * CORES}
            if CPU_TIME
            else {"unit": "wall_seconds", "amount": row.seconds},
            "params": params,
            "cores": CORES,
            "device": "cpu",
        }
        (folder / "run.json").write_text(json.dumps(order))
        told = {"OVERNIGHT_RUN": str(folder / "run.json"), "OVERNIGHT_OUT": name}
        before, own, began = busy_seconds(), os.times(), time.monotonic()
        subprocess.run(
            [sys.executable, "-m", f"overnight.rl.trainers.{row.trainer}"],
            env=os.environ | told,
            cwd=folder,
            check=True,
            stderr=subprocess.DEVNULL,
        )
        wall, after = time.monotonic() - began, os.times()
        used = after.children_user + after.children_system - own.children_user - own.children_system
        foreign = max(0.0, busy_seconds() - before - used) / (wall * (os.cpu_count() or 1))
        spec = EnvSpec(backend="gymnasium", id=row.env)
        found = measure(RealMachine(), spec, folder, tuple(EPISODE_SEEDS))
        steps = json.loads((folder / "metrics.jsonl").read_text().splitlines()[-1])["env_steps"]
    totals = [episode[1] for episode in found.episodes]
    return {
        **row._asdict(),
        "seed": seed,
        "score": sum(totals) / len(totals),
        "least": min(totals),
        "steps": steps,
        "wall": wall,
        "cpu": used,
        "foreign": foreign,
        "cpu_time": CPU_TIME,
        "params": params,
    }


def known() -> list[dict[str, Any]]:
    """What was measured before, without what was disturbed."""
    lines = TARGET.read_text().splitlines() if TARGET.exists() else []
    return [one for one in map(json.loads, lines) if one["cpu_time"] or one["foreign"] <= MOST_FOREIGN]


def main() -> int:
    """Measure what is missing, and print the table."""
    wanted = [row for row in ROWS if len(sys.argv) < 2 or row.env in sys.argv[1:]]
    TARGET.parent.mkdir(parents=True, exist_ok=True)
    for row in wanted:
        params = dict(need_recipe(row.trainer, row.env).params)
        done = {
            one["seed"]: one
            for one in known()
            if (one["env"], one["seconds"], one["params"], one["cpu_time"]) == (row.env, row.seconds, params, CPU_TIME)
        }
        for seed in SEEDS:
            if seed not in done:
                done[seed] = learn(row, seed, params)
                with TARGET.open("a") as file:
                    file.write(json.dumps(done[seed]) + "\n")
        scores = [done[seed]["score"] for seed in SEEDS]
        told = ", ".join(f"{score:.0f}" for score in scores)
        disturbed = max(done[seed]["foreign"] for seed in SEEDS)
        mean = sum(scores) / len(scores)
        print(
            f"{row.env:18} {row.seconds:4.0f} s  mean {mean:7.1f}  (bar {row.bar:g})  seeds {told}  "
            f"least {min(scores):.0f}  others at most {disturbed:.0%}",
            flush=True,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
