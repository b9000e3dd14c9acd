"""Measure the built-in trainers on this machine: `make speed`, or `python benchmarks/trainers.py [SECONDS] [CORES]`.

Each runs as the supervisor would start it, on so many cores, for so many CPU seconds, on each kind of device that
JAX finds. Printed and written to `build/benchmarks/` as `trainers.json` and, drawn, as `trainers.png`: seconds from
start to end, environment steps a second of training, milliseconds of the learner for each update, where the time
went, and how much of the machine others used meanwhile: with more than a tenth, run it again. Names of environments
after the two numbers leave the others out, and OVERNIGHT_BENCHMARKS is another folder than `build/benchmarks`.
"""

import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[1]
TARGET = Path(os.environ.get("OVERNIGHT_BENCHMARKS") or ROOT / "build" / "benchmarks")
FAST: dict[str, object] = {"num_envs": 64, "num_minibatches": 16, "update_epochs": 8}
"""Settings of PPO under which a CPU is busy: many environments, and minibatches of 512."""


class Case(NamedTuple):
    """One trainer on one environment."""

    trainer: str
    env: str
    params: dict[str, object]

    def updates_per_step(self) -> float:
        """How many updates the learner makes for each step of one environment."""
        space = json.loads(files("overnight.rl.trainers").joinpath(f"{self.trainer}.space.json").read_bytes())
        p = {one["name"]: one["default"] for one in space["parameters"]} | self.params
        if self.trainer != "ppo":
            return float(p["updates_per_step"])
        return float(p["update_epochs"] * p["num_minibatches"] / (p["num_envs"] * p["rollout_steps"]))


CASES = (
    Case("ppo", "CartPole-v1", {}),
    Case("ppo", "CartPole-v1", FAST),
    Case("ppo", "Pendulum-v1", FAST),
    Case("ppo", "BipedalWalker-v3", FAST),
    Case("sac", "Pendulum-v1", {}),
    Case("dqn", "CartPole-v1", {}),
)


def busy_seconds() -> float:
    """CPU seconds that all programs of this machine have used."""
    user, nice, system = map(int, Path("/proc/stat").read_text().split(maxsplit=4)[1:4])
    return (user + nice + system) / os.sysconf("SC_CLK_TCK")


def measure(case: Case, seconds: float, cores: int, device: str) -> dict[str, Any]:
    """Train once, and say how fast that was."""
    with tempfile.TemporaryDirectory() as folder:
        order = {
            "schema": "overnight/run-order/1",
            "run": "r-0001",
            "env": {"backend": "gymnasium", "id": case.env},
            "train_seed": 1,
            "budget": {"unit": "cpu_seconds", "amount": seconds},
            "params": case.params,
            "cores": cores,
            "device": device,
        }
        (Path(folder) / "run.json").write_text(json.dumps(order))
        told = {"OVERNIGHT_RUN": f"{folder}/run.json", "OVERNIGHT_OUT": folder}
        began, before, own = time.monotonic(), busy_seconds(), os.times()
        subprocess.run(
            [sys.executable, "-m", f"overnight.rl.trainers.{case.trainer}"],
            env=os.environ | told,
            cwd=folder,
            check=True,
            stderr=subprocess.DEVNULL,
            preexec_fn=lambda: os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-cores:]),
        )
        wall, after = time.monotonic() - began, os.times()
        used = after.children_user + after.children_system - own.children_user - own.children_system
        foreign = max(0.0, busy_seconds() - before - used) / (wall * (os.cpu_count() or 1))
        lines = [json.loads(line) for line in (Path(folder) / "metrics.jsonl").read_text().splitlines()]
    return {
        **case._asdict(),
        "device": device,
        "seconds": wall,
        "foreign_cpu_share": foreign,
        **speeds(lines, case.updates_per_step()),
    }


def speeds(lines: list[dict[str, Any]], updates_per_step: float) -> dict[str, float]:
    """Means over the later half of the training, when everything is compiled, each line by its time."""
    lines = [{"env_steps": 0, "wall_seconds": 0.0}, *lines]
    late = lines[(len(lines) - 1) // 2 :]
    steps = late[-1]["env_steps"] - late[0]["env_steps"]
    spent = late[-1]["wall_seconds"] - late[0]["wall_seconds"]
    shares = ("environment_share", "learner_share", "idle_share")
    means = {name: sum(line[name] for line in late[1:]) / (len(late) - 1) for name in shares}
    per_update = 1000 * means["learner_share"] * spent / max(steps * updates_per_step, 1)
    return {"steps_per_second": steps / max(spent, 1e-9), "milliseconds_per_update": per_update, **means}


def devices() -> list[str]:
    """The kinds of device that JAX finds, asked in another process so that this one holds none of them."""
    asks = "import jax; print(*sorted({'cpu', jax.default_backend()}))"
    return subprocess.run([sys.executable, "-c", asks], check=True, capture_output=True, text=True).stdout.split()


def draw(found: list[dict[str, Any]], target: Path) -> None:
    """Two bars for each case: steps a second, and milliseconds an update."""
    from matplotlib import pyplot  # EnvPool brings it; nothing else needs it

    names = [f"{one['trainer']} {one['env']}\n{one['device']}" for one in found]
    figure, sides = pyplot.subplots(1, 2, figsize=(11, 1 + 0.6 * len(found)), layout="constrained", sharey=True)
    for side, key, says in zip(
        sides, ("steps_per_second", "milliseconds_per_update"), ("steps a second", "ms an update"), strict=True
    ):
        bars = side.barh(names, [one[key] for one in found], color="#3b6ea5")
        side.bar_label(bars, fmt="{:,.3g}" if key.startswith("milli") else "{:,.0f}", padding=3)
        side.set_xlabel(says)
        side.margins(x=0.18)
        side.spines[["top", "right"]].set_visible(False)
    sides[0].invert_yaxis()
    figure.savefig(target, dpi=120)


def main() -> int:
    """Measure each case, print a line for it, and write all of them."""
    seconds, cores = (float(sys.argv[1]) if len(sys.argv) > 1 else 20.0), int(sys.argv[2]) if len(sys.argv) > 2 else 1
    cases = [case for case in CASES if len(sys.argv) < 4 or case.env in sys.argv[3:]]
    found = []
    for case, device in itertools.product(cases, devices()):
        one = measure(case, seconds, cores, device)
        found.append(one)
        where = ", ".join(f"{name} {one[f'{name}_share']:.0%}" for name in ("environment", "learner", "idle"))
        print(
            f"{case.trainer} {case.env:18} {device} {one['steps_per_second']:8,.0f} steps/s  "
            f"{one['milliseconds_per_update']:6.2f} ms/update  {one['seconds']:5.1f} s in all  "
            f"{where}, others {one['foreign_cpu_share']:.0%} of the machine",
            flush=True,
        )
    TARGET.mkdir(parents=True, exist_ok=True)
    (TARGET / "trainers.json").write_text(json.dumps({"cores": cores, "cases": found}, indent=2) + "\n")
    draw(found, TARGET / "trainers.png")
    return 0


if __name__ == "__main__":
    sys.exit(main())
