"""One run of one learner, ours or a peer's: start it under its budget, watch it, and let the referee measure it.

Each learner is a guest with the same order: environment, seed, budget, cores. While it trains, a snapshot of its
policy is kept whenever it saves one, which all of them do after every tenth of the budget. Measuring comes after
training, and is in nobody's budget.
"""

import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from overnight.evaluate.measure import measure, measure_reference
from overnight.machine import RealMachine
from overnight.records.env import EnvSpec
from summary import rates
from trainers import busy_seconds

ROOT = Path(__file__).parents[1]
PEERS = ROOT / "build" / "peers" / ".venv" / "bin" / "python"
CORES = os.cpu_count() or 1
MINE = len(os.sched_getaffinity(0))
"""Cores that a run may use: all of them, or one where runs are made side by side."""
CPU_TIME = bool(os.environ.get("OVERNIGHT_CPU_TIME"))
"""Whether a run gets its seconds times the cores as processor time of its own, which others cannot disturb."""
SNAPSHOT_EPISODES = range(2_000_000, 2_000_010)
FINAL_EPISODES = range(2_000_010, 2_000_210)
"""Episodes that no training saw, the same for every learner."""
LOOK_EVERY = 0.2


class Learner(NamedTuple):
    """Something that trains."""

    name: str
    module: str
    """What `python -m` runs."""
    is_ours: bool = False


OURS = Learner("overnight", "overnight.rl.trainers.ppo", is_ours=True)
RECORDED = Learner("overnight, recorded", "recorded", is_ours=True)
SB3 = Learner("sb3", "peers.baselines")
SBX = Learner("sbx", "peers.baselines")
TORCH = Learner("torch", "peers.torch_ppo")
TORCH_ENVPOOL = Learner("torch-envpool", "peers.torch_ppo")


class Job(NamedTuple):
    """One training that is wanted."""

    table: str
    learner: Learner
    env: str
    seed: int
    seconds: float
    settings: dict[str, Any]
    """`{"recipe": …}`, or `{"zoo": the name of the environment}`."""
    episodes: int = 0
    """Episodes in which the last policy is measured; 0 measures nothing."""
    curve: bool = False
    """Whether the snapshots are measured too."""

    def line(self, versions: dict[str, str]) -> dict[str, Any]:
        """What is known of it before it runs; its key is made of this."""
        found = self._asdict() | {"learner": self.learner.name, "versions": versions, "cpu_time": CPU_TIME}
        return {name: value for name, value in found.items() if name not in ("episodes", "curve")}

    def order(self) -> dict[str, Any]:
        """What the learner is told."""
        spent = {"unit": "wall_seconds", "amount": self.seconds}
        if CPU_TIME:
            spent = {"unit": "cpu_seconds", "amount": self.seconds * CORES}
        params = {"library": self.learner.name} | self.settings
        return {
            "schema": "overnight/run-order/1",
            "run": "r-0001",
            "env": {"backend": "gymnasium", "id": self.env},
            "train_seed": self.seed,
            "budget": spent,
            "params": self.settings["recipe"] if self.learner.is_ours else params,
            "cores": MINE,
            "device": "cpu",
        }


class Failed(Exception):
    """A training that ended without a result, with what it said last."""


class Watched(NamedTuple):
    """What was seen of a training."""

    snapshots: list[tuple[float, Path]]
    """When each was saved, as the clock on the wall, and where it is."""
    spent: list[tuple[float, float]]
    """The clock on the wall, and the processor time of the learner."""
    began: float
    """When its budget began, on the wall."""

    def seconds(self, at: float) -> float:
        """From the clock on the wall to seconds of the budget."""
        if not CPU_TIME:
            return at - self.began
        return (_between(self.spent, at) - _between(self.spent, self.began)) / CORES


def run(job: Job, folder: Path) -> dict[str, Any]:
    """Train once, then measure; the numbers of both."""
    (folder / "run.json").write_text(json.dumps(job.order()))
    load, before, own, began = os.getloadavg()[0], busy_seconds(), _own_seconds(), time.monotonic()
    watched = _train(job, folder)
    wall, used = time.monotonic() - began, _own_seconds() - own
    found: dict[str, Any] = {"wall": wall, "cpu": used, "load_before": load}
    found["foreign"] = max(0.0, busy_seconds() - before - used) / (wall * CORES)
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    told = [(watched.seconds(watched.began + line["wall_seconds"]), line["env_steps"]) for line in lines]
    speed = rates(told)
    found |= {"rate": speed.whole, "late_rate": speed.late, "late_from": speed.first, "steps": speed.last}
    found["end"] = watched.seconds((folder / "policy" / "policy.json").stat().st_mtime)
    found["told"] = json.loads((folder / "ready").read_text() or "{}")
    if job.episodes:
        found |= _measured(job, folder, watched)
    return found


def _train(job: Job, folder: Path) -> Watched:
    python = sys.executable if job.learner.is_ours else str(PEERS)
    told = {"OVERNIGHT_RUN": str(folder / "run.json"), "OVERNIGHT_OUT": str(folder), "PYTHONWARNINGS": "ignore"}
    told["PYTHONPATH"] = f"{ROOT / 'src'}{os.pathsep}{ROOT / 'benchmarks'}"
    told |= {"JAX_PLATFORMS": "cpu", "SDL_VIDEODRIVER": "dummy"}
    with (folder / "said").open("wb") as said:
        process = subprocess.Popen(
            [python, "-m", job.learner.module], env=os.environ | told, cwd=folder, stdout=said, stderr=said
        )
        try:
            watched = _watch(process, folder, limit=job.seconds * CORES * 4 + 600, keep=job.curve)
        finally:
            process.kill()
            process.wait()
    if process.returncode or not (folder / "policy").exists():
        last = (folder / "said").read_text(errors="replace").strip().splitlines()[-1:]
        raise Failed(f"{job.learner.name} on {job.env} ended with status {process.returncode}: {last}")
    return watched


def _watch(process: subprocess.Popen[bytes], folder: Path, *, limit: float, keep: bool) -> Watched:
    found: dict[tuple[int, int], tuple[float, Path]] = {}
    spent: list[tuple[float, float]] = []
    ends = time.monotonic() + limit
    while process.poll() is None:
        if time.monotonic() > ends:
            raise Failed(f"it did not end within {limit:.0f} s")
        spent.append((time.time(), _cpu_seconds(process.pid)))
        if keep:
            _keep(folder, found)
        time.sleep(LOOK_EVERY)
    ready = folder / "ready"
    began = ready.stat().st_mtime if ready.exists() else time.time()
    return Watched(list(found.values()), spent, began)


def _keep(folder: Path, found: dict[tuple[int, int], tuple[float, Path]]) -> None:
    """Copy the policy if it is a new one; one that is replaced meanwhile is copied at the next look."""
    source = folder / "policy"
    try:
        there = source.stat()
        name = (there.st_ino, there.st_mtime_ns)
        if name in found:
            return
        target = folder / f"snapshot-{len(found)}"
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(source, target / "policy")
        saved = (source / "policy.json").stat().st_mtime
        if (source.stat().st_ino, source.stat().st_mtime_ns) == name:
            found[name] = (saved, target)
    except (OSError, shutil.Error):
        return


def _measured(job: Job, folder: Path, watched: Watched) -> dict[str, Any]:
    """The returns of the last policy, and of each snapshot where a curve is wanted; as many at a time as cores."""
    end = (folder / "policy" / "policy.json").stat().st_mtime
    shots = [(at, path) for at, path in watched.snapshots if at < end]
    parts = [(folder, FINAL_EPISODES[i : job.episodes : MINE]) for i in range(MINE)]
    parts += [(path, SNAPSHOT_EPISODES) for _, path in shots]
    spec, machine = EnvSpec(backend="gymnasium", id=job.env), RealMachine()
    with ThreadPoolExecutor(MINE) as pool:
        found = list(pool.map(lambda part: measure(machine, spec, part[0], tuple(part[1])), parts))
    if wrong := next((one.error for one in found if one.error), ""):
        raise Failed(wrong)
    returns = [[round(episode[1], 3) for episode in one.episodes] for one in found]
    points = [
        {"seconds": round(watched.seconds(at), 3), "returns": told}
        for (at, _), told in zip(shots, returns[MINE:], strict=True)
    ]
    return {"final": [one for part in returns[:MINE] for one in part], "points": points}


def random_return(env: str) -> float:
    """What random actions score, where every curve begins."""
    spec = EnvSpec(backend="gymnasium", id=env)
    return measure_reference(RealMachine(), spec, "random", tuple(FINAL_EPISODES[:20])).score()


def versions() -> dict[str, dict[str, str]]:
    """What each learner is made of: releases of packages, and a digest of the code that is in this repository."""
    asked = "import importlib.metadata as m, json, sys; print(json.dumps({n: m.version(n) for n in sys.argv[1:]}))"

    def installed(python: str, *names: str) -> dict[str, str]:
        found: dict[str, str] = json.loads(subprocess.check_output([python, "-c", asked, *names]))
        return found

    rl = ROOT / "src" / "overnight" / "rl"
    code = [*rl.glob("*.py"), *(rl / "envs").glob("*.py"), rl / "trainers" / "ppo.py"]
    ours = installed(sys.executable, "overnight", "jax", "envpool", "gymnasium", "numpy")
    ours |= {"code": _digest([*code, ROOT / "src" / "overnight" / "guest" / "train.py"]), "python": sys.version[:6]}
    if not PEERS.exists():
        return {OURS.name: ours, RECORDED.name: ours}
    theirs = ROOT / "benchmarks" / "peers"
    both = [theirs / "diary.py", theirs / "settings.py", theirs / "threads.py"]
    plain = installed(str(PEERS), "stable-baselines3", "torch", "gymnasium", "numpy", "rl-zoo3")
    plain["code"] = _digest([*both, theirs / "baselines.py"])
    eager = installed(str(PEERS), "torch", "gymnasium", "numpy") | {"code": _digest([*both, theirs / "torch_ppo.py"])}
    return {
        OURS.name: ours,
        RECORDED.name: ours,
        SB3.name: plain,
        SBX.name: plain | installed(str(PEERS), "sbx-rl", "jax", "flax"),
        TORCH.name: eager,
        TORCH_ENVPOOL.name: eager | installed(str(PEERS), "envpool"),
    }


def machine_facts() -> dict[str, Any]:
    """The machine on which this was measured, without its name."""
    told = Path("/proc/cpuinfo").read_text().splitlines()
    model = next((line.partition(":")[2].strip() for line in told if line.startswith("model name")), "unknown")
    return {"cpu": model, "cores": CORES, "system": platform.system(), "python": platform.python_version()}


def scratch() -> tempfile.TemporaryDirectory[str]:
    """A folder for one run."""
    return tempfile.TemporaryDirectory(prefix="bench-")


def _digest(paths: list[Path]) -> str:
    return sha256(b"".join(path.read_bytes() for path in sorted(paths))).hexdigest()[:12]


def _own_seconds() -> float:
    """Processor time of this program and of those that it started and that have ended."""
    return sum(os.times()[:4])


def _cpu_seconds(pid: int) -> float:
    try:
        told = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(told[11]) + int(told[12])) / os.sysconf("SC_CLK_TCK")


def _between(line: list[tuple[float, float]], at: float) -> float:
    """The value of a line of points at one place; before and after it, the first and the last value."""
    if at <= line[0][0]:
        return line[0][1]
    for (left, low), (right, high) in pairwise(line):
        if at <= right:
            return low + (high - low) * (at - left) / max(right - left, 1e-9)
    return line[-1][1]
