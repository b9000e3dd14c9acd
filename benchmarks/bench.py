"""Our PPO beside its peers: `make bench`, or `python benchmarks/bench.py [speed|return|classic|mujoco …]`.

Within one environment, each seed is a round in which every learner has its turn, so that what changes on the machine
meets them alike. Each result is appended to `build/benchmarks/peers.jsonl` as it comes, under the learner, the
environment, the seed, the settings and the versions; a benchmark that was stopped goes on where it was, and what was
measured with other code is measured again. A run during which other programs used more than a tenth of the machine
is repeated once, and marked where that did not help; `--again` tries the marked ones once more. With
OVERNIGHT_CPU_TIME=1 a run gets its seconds times the cores as processor time; with `--side-by-side` as well, each
run has one core and as many run at once as there are cores. `--seconds S` and `--seeds N` are for trying out: such
runs are kept apart by their key. `--only` names an environment or a learner, and may be repeated. `--file` names
another file of results.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import recorded
from contest import (
    CORES,
    CPU_TIME,
    OURS,
    RECORDED,
    ROOT,
    SB3,
    SBX,
    TORCH,
    TORCH_ENVPOOL,
    Failed,
    Job,
    machine_facts,
    random_return,
    run,
    scratch,
    versions,
)
from overnight.contract.trainers import recipe
from peers.settings import not_followed
from summary import disturbed, is_done, key
from trainers import busy_seconds

TARGET = ROOT / "build" / "benchmarks" / "peers.jsonl"
SEEDS = (101, 102, 103)
"""Train seeds of the reported results; recipes were chosen on others."""
SPEED = (("CartPole-v1", 8.0), ("LunarLander-v3", 8.0), ("BipedalWalker-v3", 12.0))
"""Environments and seconds of the table of steps a second."""
RETURN = (("LunarLander-v3", 60.0), ("BipedalWalker-v3", 120.0), ("HalfCheetah-v5", 180.0))
"""Environments and seconds of the table of returns."""
CLASSIC = (("CartPole-v1", 10.0), ("Acrobot-v1", 10.0), ("Pendulum-v1", 10.0))
MUJOCO = (("Hopper-v5", 720.0), ("Walker2d-v5", 720.0), ("HalfCheetah-v5", 720.0), ("Ant-v5", 720.0))
TABLES = {"speed": SPEED, "return": RETURN, "classic": CLASSIC, "mujoco": MUJOCO}


def recipe_of(env: str) -> dict[str, Any]:
    """Our recipe for an environment; where its family has none yet, that of BipedalWalker."""
    found = recipe("ppo", env) or recipe("ppo", "BipedalWalker-v3")
    if found is None:
        sys.exit(f"There is no recipe for {env}, and none for BipedalWalker-v3 either")
    return dict(found.params)


def jobs(table: str, env: str, seed: int, seconds: float) -> list[Job]:
    """One round: every learner of a table once, in this order."""
    ours, zoo = {"recipe": recipe_of(env)}, {"zoo": env}
    if table == "speed":
        taking_part = [OURS, SB3, SBX, TORCH, TORCH_ENVPOOL] + [RECORDED] * (env == "BipedalWalker-v3")
        for alone in not_followed(ours["recipe"]):  # this is about the same training, and only ours rehearses
            del ours["recipe"][alone]
        return [Job(table, learner, env, seed, seconds, ours) for learner in taking_part]
    if table == "mujoco":
        return [Job(table, OURS, env, seed, seconds, ours, episodes=100, curve=True)]
    curve = table == "return"
    episodes = (
        200 if curve else 50
    )  # a gait that falls in one episode of fifty takes many to tell from one that does not
    return [
        Job(table, learner, env, seed, seconds, settings, episodes, curve)
        for learner, settings in ((OURS, ours), (SB3, zoo), (SBX, zoo), (TORCH, ours))
    ]


def planned(tables: Sequence[str], seconds: float | None, seeds: int, only: Sequence[str] = ()) -> Iterator[Job]:
    """Everything that is wanted, in the order in which it is run; `only` names environments and learners."""
    envs, learners = ([name for name in only if ("-v" in name) is is_env] for is_env in (True, False))
    for table in tables:
        for env, budget in TABLES[table]:
            for seed in SEEDS[:seeds]:
                yield from (
                    job
                    for job in jobs(table, env, seed, seconds or budget)
                    if job.env in (envs or [env]) and job.learner.name in (learners or [job.learner.name])
                )


def part_of(plan: Sequence[Job], part: int, parts: int) -> list[tuple[int, Job]]:
    """The runs that one of several programs makes, each with its place in the plan."""
    return [(place, job) for place, job in enumerate(plan, start=1) if place % parts == part]


def attempt(job: Job, line: dict[str, Any]) -> dict[str, Any]:
    """Run once; a training that fails is a result as well, without a number."""
    with scratch() as name:
        folder = Path(name)
        try:
            found = run(job, folder)
            if job.learner is RECORDED:
                found["replay"] = replay(folder / recorded.NAME, found["late_from"], found["steps"])
        except Failed as failure:
            return line | {"failed": str(failure), "foreign": 0.0}
    unknown = not_followed(job.settings["recipe"]) if "recipe" in job.settings and not job.learner.is_ours else []
    return line | found | {"machine": machine_facts(), "not_followed": unknown}


def replay(path: Path, first: int, last: int) -> dict[str, Any]:
    """Take the recorded actions again in a process of their own."""
    before, began = busy_seconds(), time.monotonic()
    command = [sys.executable, "-m", "recorded", "replay", str(path), str(first), str(last)]
    told = subprocess.run(command, cwd=ROOT / "benchmarks", check=True, capture_output=True).stdout
    busy = (busy_seconds() - before) / ((time.monotonic() - began) * CORES)
    found: dict[str, Any] = json.loads(told)
    return found | {"busy": busy}


def known(path: Path) -> dict[tuple[str, ...], list[dict[str, Any]]]:
    """What was measured before, attempts by their key; what failed is tried again."""
    lines = path.read_text().splitlines() if path.exists() else []
    found: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for line in map(json.loads, lines):
        if "learner" in line and "failed" not in line:
            found.setdefault(key(line), []).append(line)
    return found


def append(path: Path, line: dict[str, Any]) -> None:
    """Write one result down."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.write(json.dumps(line) + "\n")


def measure_starts(path: Path, envs: Sequence[str]) -> None:
    """Measure what random actions score, once for each environment."""
    lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    there = {line["env"] for line in lines if "random" in line}
    for env in dict.fromkeys(envs):
        if env not in there:
            append(path, {"env": env, "random": random_return(env)})


def tell(done: str, job: Job, found: dict[str, Any]) -> None:
    """One line for a person."""
    what = f"{done}  {job.table:7} {job.env:17} seed {job.seed}  {job.learner.name:20}"
    if "failed" in found:
        print(f"{what} failed: {found['failed']}", flush=True)
        return
    final = f"  return {sum(found['final']) / len(found['final']):8.1f}" if "final" in found else ""
    mark = "  (disturbed)" if disturbed(found) else ""
    cores = found["cpu"] / found["wall"]
    print(
        f"{what} {found['late_rate']:9,.0f} steps/s  {cores:4.2f} cores  others {found['foreign']:4.0%}{final}{mark}",
        flush=True,
    )


def options() -> argparse.Namespace:
    """What was asked for."""
    asked = argparse.ArgumentParser(description="Our PPO beside its peers.")
    asked.add_argument("tables", nargs="*", choices=[*TABLES, []], help="speed, classic, return or mujoco")
    asked.add_argument("--again", action="store_true", help="try once more what others disturbed")
    asked.add_argument("--seconds", type=float, help="shorter runs, to try it out")
    asked.add_argument("--seeds", type=int, default=len(SEEDS), help="fewer seeds, to try it out")
    asked.add_argument("--only", action="append", default=[], help="an environment or a learner; may be repeated")
    asked.add_argument("--file", type=Path, default=TARGET, help="where results go")
    asked.add_argument("--side-by-side", action="store_true", help="one core a run, in processor time, all cores busy")
    asked.add_argument("--part", type=int, nargs=2, help=argparse.SUPPRESS)
    asked.add_argument("--list", action="store_true", help="say what would be run, and run nothing")
    return asked.parse_args()


def side_by_side() -> int:
    """Share the runs out among as many programs as there are cores, each kept to its own."""
    if not CPU_TIME:
        sys.exit("Runs that share the machine are measured in processor time: set OVERNIGHT_CPU_TIME=1")
    programs = []
    cores = sorted(os.sched_getaffinity(0))
    for part, core in enumerate(cores):
        command = [sys.executable, *sys.argv, "--part", str(part), str(len(cores))]
        programs.append(subprocess.Popen(["taskset", "--cpu-list", str(core), *command]))
    try:
        return max(program.wait() for program in programs)
    finally:
        for program in programs:
            program.terminate()


def main() -> int:
    """Measure what is missing."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the learner of this moment is ended as well
    asked = options()
    if asked.side_by_side and asked.part is None:
        return side_by_side()
    tables = asked.tables or ["speed", "classic", "return"]
    plan, made_of, attempts = (
        list(planned(tables, asked.seconds, asked.seeds, asked.only)),
        versions(),
        known(asked.file),
    )
    if not plan:
        sys.exit(f"--only: no run is of {' and '.join(asked.only)}; name environments as in the tables, or a learner")
    if missing := sorted({job.learner.name for job in plan} - made_of.keys()):
        sys.exit(f"The peers are not installed ({', '.join(missing)}): run `make peers`")
    lines = [job.line(made_of[job.learner.name]) for job in plan]
    wanted = [line for line in lines if not is_done(attempts.get(key(line), []), again=asked.again)]
    minutes = sum(line["seconds"] for line in wanted) / 60
    print(f"{len(wanted)} of {len(plan)} runs are missing: {minutes:.0f} minutes of training", flush=True)
    if asked.list:
        return 0
    if asked.part is None or asked.part[0] == 0:
        measure_starts(asked.file, [job.env for job in plan if job.curve])
    for place, job in part_of(plan, *(asked.part or (0, 1))):
        line = lines[place - 1]
        tried, again = attempts.setdefault(key(line), []), asked.again
        while not is_done(tried, again=again):
            found = attempt(job, line)
            append(asked.file, found)
            tell(f"{place:3}/{len(plan)}", job, found)
            if "failed" in found:
                break
            tried.append(found)
            again = False
    return 0


if __name__ == "__main__":
    if CPU_TIME:
        print(f"Budgets are {CORES} times the seconds in processor time of each learner's own.", flush=True)
    sys.exit(main())
