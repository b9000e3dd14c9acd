"""How well the built-in trainers learn in a given time: `make learning`, or `python benchmarks/learning.py ENV …`.

Each seed is trained alone, on all cores, for the seconds of its row, as the supervisor would start it, and its
policy is then measured by the referee: greedy, 100 episodes in Gymnasium, on seeds that training never saw. Results
go to `benchmarks/measured/learning.jsonl` as they come, so a benchmark that was stopped goes on where it was, and from
there to `benchmarks/LEARNING.md`. A run during which other programs used more than a tenth of the machine is marked,
and run again the next time; with OVERNIGHT_CPU_TIME=1 a run gets its seconds times the cores as processor time
instead, which others cannot disturb.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from contest import CORES, CPU_TIME, OURS, machine_facts, versions
from overnight.contract.trainers import need_recipe
from overnight.evaluate.measure import measure
from overnight.machine import RealMachine
from overnight.records.env import EnvSpec
from summary import MOST_FOREIGN
from trainers import busy_seconds

Line = dict[str, Any]

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "benchmarks" / "LEARNING.md"
TARGET = ROOT / "benchmarks" / "measured" / "learning.jsonl"
EPISODE_SEEDS = range(1_000_000, 1_000_100)


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

INTRODUCTION = """# What our recipes reach in a given time

Written by `make learning`: the default recipe, all cores of the machine, five train seeds that no recipe was chosen on.
Scores are greedy means over 100 hidden episodes in Gymnasium. The bars are our own. A row is of one machine and of one
version of the trainers; the records say which.

| environment | training | cores | mean | bar | each seed | steps | others used at most |
|---|---|---|---|---|---|---|---|"""


def learn(row: Row, seed: int, params: dict[str, Any]) -> Line:
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
        foreign = max(0.0, busy_seconds() - before - used) / (wall * CORES)
        spec = EnvSpec(backend="gymnasium", id=row.env)
        measured = measure(RealMachine(), spec, folder, tuple(EPISODE_SEEDS))
        steps = json.loads((folder / "metrics.jsonl").read_text().splitlines()[-1])["env_steps"]
    totals = [episode[1] for episode in measured.episodes]
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


def known() -> list[Line]:
    """What was measured before, without what was disturbed."""
    lines = TARGET.read_text().splitlines() if TARGET.exists() else []
    return [one for one in map(json.loads, lines) if one["cpu_time"] or one["foreign"] <= MOST_FOREIGN]


def asked(row: Row, *, cpu_time: bool) -> Line:
    """What a record of this row has in common, with the recipe as it is now."""
    params = dict(need_recipe(row.trainer, row.env).params)
    return {"env": row.env, "seconds": row.seconds, "params": params, "cpu_time": cpu_time}


def among(lines: Sequence[Line], wanted: Mapping[str, Any]) -> list[Line]:
    """The records that have this in common, in the order in which they were made."""
    return [one for one in lines if all(one[name] == value for name, value in wanted.items())]


def by_seed(lines: Sequence[Line]) -> dict[int, Line]:
    """The last record of each seed."""
    return {one["seed"]: one for one in lines}


def page(lines: Sequence[Line]) -> str:
    """Every row that is whole, as it was measured last; figures of an older recipe are left out."""
    out = [INTRODUCTION]
    for row in ROWS:
        for cpu_time in (False, True):
            of_recipe = among(lines, asked(row, cpu_time=cpu_time))
            made = {name: of_recipe[-1][name] for name in ("code", "machine") if of_recipe}
            done = by_seed(among(of_recipe, made))
            if done.keys() >= set(SEEDS):
                out.append(_row(row, [done[seed] for seed in SEEDS], cpu_time=cpu_time))
    return "\n".join(out) + "\n"


def _row(row: Row, runs: Sequence[Line], *, cpu_time: bool) -> str:
    scores = [run["score"] for run in runs]
    mean = fmean(scores)
    cells = (
        row.env,
        f"{row.seconds:g} s{' of each core' if cpu_time else ''}",
        f"{runs[0]['machine']['cores']}",
        f"{mean:.1f}",
        f"{row.bar:g}, {'held' if mean >= row.bar else 'missed'}",
        ", ".join(f"{score:.0f}" for score in scores),
        f"{fmean(run['steps'] for run in runs):,.0f}",
        f"{max(run['foreign'] for run in runs):.0%}",
    )
    return f"| {' | '.join(cells)} |"


def main() -> int:
    """Measure what is missing, print the table, and write the page."""
    wanted = [row for row in ROWS if len(sys.argv) < 2 or row.env in sys.argv[1:]]
    made = {"code": versions()[OURS.name]["code"], "machine": machine_facts()}
    for row in wanted:
        known_by = asked(row, cpu_time=CPU_TIME) | made
        done = by_seed(among(known(), known_by))
        for seed in SEEDS:
            if seed not in done:
                done[seed] = known_by | learn(row, seed, known_by["params"])
                with TARGET.open("a") as file:
                    file.write(json.dumps(done[seed]) + "\n")
        print(_row(row, [done[seed] for seed in SEEDS], cpu_time=CPU_TIME), flush=True)
    PAGE.write_text(page(known()))
    print(PAGE)
    return 0


if __name__ == "__main__":
    sys.exit(main())
