"""How good the search is: `make bench-search`, or `python benchmarks/search.py --only CartPole-v1 --repeats 1`.

On three small tasks with mis-set baselines, every rule gets the same trainer, space, baseline and total of training
steps. What each rule takes at the end is trained again on fresh seeds that chose nothing, and that is its score. Ours
is a real night through the public commands, `init`, `approve` and `start`, so its total also pays for calibration and
certification, and it takes what it certified, or the baseline. It runs with and without each of its parts.

Two nights run at a time, on one core each. Budgets are environment steps, so a busy machine makes the benchmark slower
and not different. Results go to `benchmarks/measured/search.jsonl` as they come; what is there is not run again.
"""

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from queue import Queue
from typing import TYPE_CHECKING, Any

from overnight.guest.train import limit_threads

if TYPE_CHECKING:
    from overnight.ports import Machine, Proposer
    from overnight.trials import Bench
    from rivals import Outcome, Params, Task

ROOT = Path(__file__).parents[1]
TARGET = ROOT / "benchmarks" / "measured" / "search.jsonl"
LOG = ROOT / "build" / "benchmarks" / "search.log"
PAGE = ROOT / "benchmarks" / "SEARCH.md"
RUNS = 40
"""Training runs that a night may make; the others get as many environment steps."""
REPEATS = 5
FEWER = {"ours, cold": 3, "ours, no diagnostics": 2, "ours, no operators": 2}
"""Repeats of the nights without one of their parts, so that all of it fits into 100 minutes."""
FRESH_SEEDS = range(900_001, 900_009)
FRESH_EPISODES = 50
PARTS = ("ours, no diagnostics", "ours, no operators")
OURS = ("ours", "ours, cold", *PARTS)
RULES = ("baseline", *OURS, "tpe", "random", "greedy")
_DECIDES = ("adapters/proposers", "decide", "rl", "contract", "propose")
_JOINS = ("loop.py", "judge.py", "racing.py", "calibrating.py", "attempts.py", "forecast.py", "records/alike.py")

Line = dict[str, Any]


def tasks() -> "tuple[Task, ...]":
    """The three tasks, each with what its baseline gets wrong."""
    from rivals import Task

    return (
        Task("CartPole-v1", 16_384, {"learning_rate": 5e-05, "gamma": 0.9}),
        Task("Acrobot-v1", 32_768, {"learning_rate": 5e-05, "gamma": 0.9, "rollout_steps": 512}),
        Task("LunarLander-v3", 32_768, {"learning_rate": 3e-05, "gamma": 0.9}),
    )


def code() -> str:
    """A digest of everything that decides what a rule does."""
    src = ROOT / "src" / "overnight"
    paths = [path for part in _DECIDES for path in (src / part).rglob("*") if path.suffix in (".py", ".json")]
    paths += [*(src / part for part in _JOINS), ROOT / "benchmarks" / "rivals.py"]
    return sha256(b"".join(path.read_bytes() for path in sorted(paths))).hexdigest()[:12]


# One job, in a process of its own, on one core


def work(env: str, rule: str, repeat: int, core: int) -> Line:
    """Let one rule search once, and measure on fresh seeds what it takes."""
    os.sched_setaffinity(0, {core})
    limit_threads(1)
    from rivals import RIVALS, Lab, Outcome

    task = next(one for one in tasks() if one.env == env)
    cache = ROOT / "build" / "benchmarks" / "compiled"
    cache.mkdir(parents=True, exist_ok=True)
    began, own = time.monotonic(), os.times()
    if rule == "baseline":
        found = Outcome(task.baseline(), None, 0, 0)
    elif rule in OURS:
        found = night(task, rule, repeat)
    else:
        found = RIVALS[rule](task, repeat, Lab(task, RUNS * task.steps, cache))
    wall, now = time.monotonic() - began, os.times()
    lab = Lab(task, 0, cache)
    same = rule != "baseline" and found.params == task.baseline()  # measured once, as the rule `baseline`
    scores = [] if same else [lab.score(found.params, seed, episodes=FRESH_EPISODES) for seed in FRESH_SEEDS]
    return {
        "claimed": found.claimed,
        "changed": {key: value for key, value in found.params.items() if value != task.baseline()[key]},
        "steps": found.steps,
        "trials": found.trials,
        "seconds": wall,
        "cpu": sum(now[:4]) - sum(own[:4]),
        "scores": scores,
    }


def night(task: "Task", rule: str, repeat: int) -> "Outcome":
    """One night through the public commands, and what it certified."""
    from overnight.cli.main import main as overnight
    from overnight.machine import RealMachine
    from rivals import Outcome

    with tempfile.TemporaryDirectory(prefix="search-") as name:
        os.environ["XDG_STATE_HOME"] = f"{name}/state"
        folder = Path(name) / "project"
        folder.mkdir()
        stated = [f"--set={key}={json.dumps(value)}" for key, value in task.misset.items()]
        stated += [f"--runs={RUNS}", f"--env-steps={task.steps}", "--hours=2", f"--study=repeat-{repeat}"]
        stated += ["--cold"] if rule == "ours, cold" else []
        with _without(rule), contextlib.redirect_stdout(sys.stderr):
            for words in (["init", task.env, *stated], ["approve", "--yes"], ["start", "--yes", "--let-sleep"]):
                if failed := overnight([*words, f"--dir={folder}"]):
                    raise SystemExit(f"overnight {' '.join(words)} ended with {failed}")
        return Outcome(*_certified(RealMachine(), folder, task))


def _certified(machine: "Machine", folder: Path, task: "Task") -> "tuple[Params, float | None, int, int]":
    from overnight.candidate.build import params_of
    from overnight.candidate.tree import Store
    from overnight.study.ledger import read_sound
    from overnight.study.study import active_study, read_state

    at = active_study(machine, folder)
    state = read_state(machine, at)
    by_commit = {one.commit: one for one in state.candidates.values()}
    winner = by_commit.get(state.incumbent)
    params = params_of(Store(machine, at.task.root.store), winner.tree) if winner is not None else task.baseline()
    gains, one = [], winner  # a later claim is made over an earlier one
    entries: list[Line] = []
    read_sound(machine, at.folder, lambda entry, _: entries.append(entry))
    decided = [entry["data"] for entry in entries if entry["kind"] == "decided"]
    told = {data["candidate"]: data["gain"] for data in decided if data["verdict"] == "certified"}
    while one is not None:
        gains += [told[one.id]] if one.id in told else []
        one = by_commit.get(one.base)
    return dict(params), sum(gains) if gains else None, len(state.runs) * task.steps, len(state.runs)


@contextmanager
def _without(rule: str) -> Iterator[None]:
    """The night without one of its parts."""
    from overnight.adapters.proposers.mix import MixProposer
    from overnight.adapters.proposers.search import SearchProposer
    from overnight.cli import proposing

    search = SearchProposer(diagnoses=rule != "ours, no diagnostics")
    proposer = MixProposer({"search": search}, operates=rule != "ours, no operators")
    before = proposing.proposing

    @contextmanager
    def reduced(bench: "Bench") -> "Iterator[Proposer]":  # noqa: ARG001 - it is called with the bench
        yield proposer

    if rule in PARTS:
        proposing.proposing = reduced
    try:
        yield
    finally:
        proposing.proposing = before


# All jobs, two at a time


def known(version: str) -> list[Line]:
    """What was measured before by this code and these budgets."""
    lines = [json.loads(line) for line in TARGET.read_text().splitlines()] if TARGET.exists() else []
    wanted = {task.env: [task.steps, RUNS] for task in tasks()}
    return [one for one in lines if one["code"] == version and one["budget"] == wanted.get(one["env"])]


def measure(wanted: list[tuple[str, str, int]], version: str) -> None:
    """Run the jobs, as many at a time as there are cores, at most two; each result is written as it comes."""
    cores: Queue[int] = Queue()
    for core in sorted(os.sched_getaffinity(0))[:2]:
        cores.put(core)
    budgets = {task.env: [task.steps, RUNS] for task in tasks()}

    def one(job: tuple[str, str, int]) -> None:
        env, rule, repeat = job
        core = cores.get()
        words = [sys.executable, __file__, "--job", json.dumps([env, rule, repeat, core])]
        try:
            with LOG.open("ab") as out:
                done = subprocess.run(words, stdout=subprocess.PIPE, stderr=out, check=False)
        finally:
            cores.put(core)
        if done.returncode:
            print(f"{env} {rule} {repeat} failed; {LOG} says why", flush=True)
            return
        line = {"env": env, "rule": rule, "repeat": repeat, "code": version, "budget": budgets[env]}
        with TARGET.open("a") as file:
            file.write(json.dumps(line | json.loads(done.stdout.splitlines()[-1])) + "\n")
        print(f"{env} {rule} {repeat} done", flush=True)

    with ThreadPoolExecutor(cores.qsize()) as pool:
        list(pool.map(one, wanted))


def main() -> int:
    """Measure what is missing, and print the table."""
    asked = argparse.ArgumentParser(description="Compare the search with other rules at equal training steps.")
    asked.add_argument("--only", action="append", help="a task or a rule; may be given several times")
    asked.add_argument("--repeats", type=int, default=REPEATS)
    asked.add_argument("--table", action="store_true", help="measure nothing, and print what is there")
    asked.add_argument("--job", help=argparse.SUPPRESS)
    said = asked.parse_args()
    if said.job is not None:
        print(json.dumps(work(*json.loads(said.job))))
        return 0
    from search_page import page, section

    version, only = code(), set(said.only or ())
    for path in (TARGET, LOG):
        path.parent.mkdir(parents=True, exist_ok=True)
    there = {(one["env"], one["rule"], one["repeat"]) for one in known(version)}
    envs = [task.env for task in tasks() if task.env in only] or [task.env for task in tasks()]
    rules = [rule for rule in RULES if rule in only or rule == "baseline"] if only & {*RULES} else list(RULES)
    repeats = dict.fromkeys(rules, said.repeats) | {"baseline": 1}
    repeats |= {rule: min(said.repeats, fewer) for rule, fewer in FEWER.items() if rule in rules}
    jobs = [(env, rule, n) for n in range(said.repeats) for env in envs for rule in rules if n < repeats[rule]]
    if not said.table:
        measure([job for job in jobs if job not in there], version)
    found = known(version)
    print("\n".join(section(found)))
    if not only and found:
        PAGE.write_text(page(found))
        print(f"\n{PAGE}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
