"""What this machine has and can do, line by line, with the command that mends what is missing. Changes nothing.

Versions are read from what is installed, without importing it. What only an import can tell is asked of two short
processes, side by side, each with a time-out.
"""

import json
import os
import platform
import shutil
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Literal, NamedTuple

from overnight import __version__
from overnight.admission import read_terms
from overnight.awake import risks
from overnight.candidate.tree import run_git
from overnight.contract import agents
from overnight.errors import OvernightError, Refused, UserError
from overnight.evaluate.seeds import keys_folder, load_key
from overnight.housekeeping import IsAlive
from overnight.isolation import DEFAULT, explain, raising, tier_for
from overnight.ports import Machine
from overnight.records import strict_json
from overnight.records.codec import encode
from overnight.records.contract import Contract
from overnight.records.env import EnvSpec
from overnight.records.text import line
from overnight.records.tier import is_weaker
from overnight.room import LEAST_FREE_BYTES, disk_shortfall, size, usable_cores
from overnight.sandbox.probe import strongest
from overnight.sandbox.tiers import HOLDERS
from overnight.study.layout import StudyFolder, find_root
from overnight.study.ledger import holder
from overnight.study.state import StudyState
from overnight.study.study import active_study, read_state

_LIMIT_SECONDS = 30.0
Standing = Literal["ok", "note", "problem"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One line: what was looked at, how it stands, what that means, and the command that mends it."""

    name: str
    standing: Standing
    says: str
    command: str = ""


class Package(NamedTuple):
    """A package that may be missing, and what is then not possible."""

    name: str
    distributions: tuple[str, ...]
    without: str
    command: str
    trains: bool = False
    """Whether a night on a built-in trainer is impossible without it."""


RL = 'pip install "overnight[rl]"'
PACKAGES = (
    Package("JAX", ("jax",), "the built-in trainers cannot train", RL, trains=True),
    Package("Optuna", ("optuna",), "the built-in search cannot propose", RL, trains=True),
    Package("EnvPool", ("envpool",), "environments are stepped by Gymnasium, which is slower", RL),
    Package(
        "pygame",
        ("pygame", "pygame-ce"),
        "CarRacing cannot be made, and most environments are drawn by our own sketches",
        "pip install pygame-ce",
    ),
    Package(
        "Box2D",
        ("box2d", "box2d-py"),
        "BipedalWalker, LunarLander and CarRacing cannot be made",
        'pip install swig && pip install "gymnasium[box2d]"',
    ),
    Package(
        "MuJoCo",
        ("mujoco",),
        "Ant, HalfCheetah, Humanoid and the like cannot be made",
        RL,
    ),
)


@dataclass(frozen=True, slots=True)
class Active:
    """The active study, as far as it can be read."""

    at: StudyFolder
    state: StudyState
    contract: Contract | None


def checkup(machine: Machine, folder: Path, is_alive: IsAlive, env: str | None = None) -> list[Finding]:
    """Look at everything; outside of a study, at the machine alone. `env` is looked at as a study of it would be."""
    found, study = [], None
    if find_root(folder) is not None:
        try:
            study = _active(machine, folder)
        except OvernightError as error:
            found.append(Finding("study", "problem", f"{error}.", error.hint))
    contract = study.contract if study is not None else None
    found = [
        *_programs(machine),
        *_packages(contract),
        *_imports(machine, contract, env),
        *_agents(machine, contract),
        *_hardware(folder),
        *found,
    ]
    return found if study is None else [*found, *_study(machine, study, is_alive)]


def is_fit(found: list[Finding]) -> bool:
    """Whether nothing that was found makes `overnight start` impossible."""
    return all(one.standing != "problem" for one in found)


def _active(machine: Machine, folder: Path) -> Active:
    at = active_study(machine, folder)
    return Active(at, read_state(machine, at), read_terms(machine, at).contract())


# Programs and packages


def _programs(machine: Machine) -> Iterator[Finding]:
    yield Finding("Overnight", "ok", f"{__version__} on Python {platform.python_version()}")
    try:
        said = run_git(machine, "--version").stdout.decode(errors="replace").strip()
        yield Finding("git", "ok", said.removeprefix("git version "))
    except OvernightError:
        yield Finding("git", "problem", "missing: candidates cannot be stored", "sudo apt-get install git")


def _packages(contract: Contract | None) -> Iterator[Finding]:
    if found := installed("gymnasium"):
        yield Finding("Gymnasium", "ok", found)
    else:
        says = "missing: the referee cannot measure anything"
        yield Finding("Gymnasium", "problem", says, 'pip install "overnight[gym]"')
    ours = contract is None or contract.baseline.trainer == "built-in"
    for one in PACKAGES:
        if found := installed(*one.distributions):
            yield Finding(one.name, "ok", found)
        else:
            standing: Standing = "problem" if one.trains and ours else "note"
            yield Finding(one.name, standing, f"missing: {one.without}", one.command)


def installed(*names: str) -> str:
    """The version of the first of these distributions that is installed; empty when none is."""
    for name in names:
        try:
            return version(name)
        except PackageNotFoundError:
            continue
    return ""


# Coding agents


def _agents(machine: Machine, contract: Contract | None) -> Iterator[Finding]:
    """Whether the agents that are known by name are here and signed in, and the one that the contract names."""
    named = contract.experiments.agent if contract is not None else None
    for name, package in (("claude", "@anthropic-ai/claude-code"), ("codex", "@openai/codex")):
        known = agents.KNOWN[name]
        if named is not None and named.command[0] == name:
            continue
        if (path := shutil.which(name)) is None:
            yield Finding(name, "note", "missing: it cannot propose, and search can", f"npm install -g {package}")
        else:
            yield Finding(name, "ok", f"{_version(machine, path)}; {_signed_in(known['variables'], known['files'])}")
    if named is not None:
        path = shutil.which(named.command[0])
        says = f"{named.command[0]}, which the contract names, is not on the PATH"
        if path is not None:
            says = f"{_version(machine, path)}; {_signed_in(named.variables, named.files)}; isolation {named.tier}"
        yield Finding("agent", "problem" if path is None else "ok", says)


def _signed_in(variables: Sequence[str], files: Sequence[str]) -> str:
    """Where an agent's credentials would come from; whether they are good, only its service knows."""
    there = [name for name in variables if os.environ.get(name)]
    there += [f"~/{name}" for name in files if (Path.home() / name).is_file()]
    return f"credentials in {', '.join(there)}" if there else "no credentials found"


def _version(machine: Machine, path: str) -> str:
    env = {"PATH": os.environ.get("PATH", os.defpath), "HOME": "/nonexistent", "LC_ALL": "C"}
    try:
        done = machine.run_process((path, "--version"), env=env, limit_seconds=_LIMIT_SECONDS)
    except (OSError, TimeoutError):
        return f"{path} does not start"
    said = done.stdout.decode(errors="replace").strip().splitlines()
    return line(said[0], 80) if done.returncode == 0 and said else f"{path} tells no version"


# What only an import can tell


def _imports(machine: Machine, contract: Contract | None, env: str | None) -> Iterator[Finding]:
    wanted = []  # each environment, and whether a built-in trainer steps it
    if contract is not None:
        wanted.append((_spec(contract.task.env), contract.baseline.trainer == "built-in"))
    if env is not None:
        wanted.append((_spec(EnvSpec(backend="gymnasium", id=env)), True))
    with ThreadPoolExecutor(2) as pool:
        devices = pool.submit(_ask, machine, "devices") if installed("jax") else None
        asked = [(spec, pool.submit(_ask, machine, "env", json.dumps(spec)), ours) for spec, ours in wanted]
        if devices is not None:
            yield _devices(devices)
        if installed("gymnasium"):
            yield from (_env(one.result(), str(spec["id"]), ours=ours) for spec, one, ours in asked)


def _ask(machine: Machine, *words: str) -> dict[str, object]:
    """Ask `overnight.rl.probe` one question; what went wrong is an answer, too."""
    try:
        done = machine.run_process(
            (sys.executable, "-I", "-m", "overnight.rl.probe", *words),
            env={"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", "SDL_VIDEODRIVER": "dummy"},
            limit_seconds=_LIMIT_SECONDS,
        )
    except TimeoutError:
        return {"error": f"no answer within {_LIMIT_SECONDS:g} s"}
    said = done.stderr.decode(errors="replace").strip().splitlines()
    if done.returncode != 0:
        return {"error": (said or ["it said nothing"])[-1][:300]}
    answer = strict_json.parse(done.stdout.strip().splitlines()[-1], where="the probe")
    return answer if isinstance(answer, dict) else {"error": "no answer"}


def _spec(env: EnvSpec) -> dict[str, object]:
    whole = encode(env)
    return {key: whole[key] for key in ("id", "kwargs", "max_episode_steps", "clip_actions")}


def _devices(asked: "Future[dict[str, object]]") -> Finding:
    answer = asked.result()
    if "error" in answer:
        return Finding("JAX devices", "problem", f"JAX cannot be used: {answer['error']}", RL)
    listed = answer["devices"]
    return Finding("JAX devices", "ok", ", ".join(map(str, listed)) if isinstance(listed, list) else "none")


def _env(answer: dict[str, object], name: str, *, ours: bool) -> Finding:
    if "error" in answer:
        extra = answer.get("extra")
        command = f'pip install "gymnasium[{extra}]"' if extra else ""
        return Finding("environment", "problem", f"{name} cannot be used: {answer['error']}", command)
    if not ours:
        return Finding("environment", "ok", f"{name} is measured on Gymnasium; your own command trains it")
    return Finding("environment", "ok", f"{name} is measured on Gymnasium; {answer['why']}")


# The machine


def _hardware(folder: Path) -> Iterator[Finding]:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    yield Finding("cores", "ok", f"{usable_cores()} for this process, {size(memory)} of memory")
    for name, where in (("disk here", folder.resolve()), ("disk for keys", keys_folder())):
        free = shutil.disk_usage(next(path for path in (where, *where.parents) if path.exists())).free
        short = free < LEAST_FREE_BYTES
        yield Finding(name, "problem" if short else "ok", f"{size(free)} free" + (", under 1 GB" if short else ""))
    seen = risks()
    yield from (Finding(one.name, "note", one.says, one.command) for one in seen)
    if not seen:
        yield Finding("awake", "ok", "nothing was seen that would put this machine to sleep or end a night")
    if not HOLDERS:
        yield Finding("isolation", "problem", explain(), raising())
        return
    weak = is_weaker(strongest(), DEFAULT)
    yield Finding("isolation", "note" if weak or raising() else "ok", explain(), raising())


# The study


def _study(machine: Machine, study: Active, is_alive: IsAlive) -> Iterator[Finding]:
    name = f"{study.at.task.name}/{study.at.name}"
    yield Finding("study", "ok", f"{name}, {study.state.entries:,} entries, {len(study.state.runs):,} runs")
    try:
        load_key(study.state.seed_commitment or "")
        yield Finding("seed key", "ok", "readable, and the one that the ledger is committed to")
    except UserError as error:
        yield Finding("seed key", "problem", f"{error}", error.hint)
    if study.contract is None:
        yield Finding("contract", "note", "not complete yet", "overnight contract check")
    elif short := disk_shortfall(study.contract, study.at):
        yield Finding("disk budget", "problem", short, "overnight clean --dry-run")
    else:
        yield Finding("disk budget", "ok", f"{study.contract.budget.disk_gigabytes:g} GB fit")
    yield from _isolation(study)
    who = holder(machine, study.at.folder)
    yield Finding("engine", "note" if who else "ok", f"the study is held by {who}" if who else "nobody holds the study")
    yield from _runs(study, is_alive, held=bool(who))
    locks = len(list(study.at.task.root.store.rglob("*.lock")))
    if locks and not who:
        yield Finding("store", "note", f"{locks} git locks were left behind", "overnight start")


def _isolation(study: Active) -> Iterator[Finding]:
    """Whether the contract's own tier can be had here; silent where there is no contract yet."""
    if study.contract is not None:
        try:
            tier_for(study.contract.evaluation.min_tier)
        except Refused as refused:
            yield Finding("isolation", "problem", refused.what, refused.hint)


def _runs(study: Active, is_alive: IsAlive, *, held: bool) -> Iterator[Finding]:
    going = [name for name, run in study.state.runs.items() if run.outcome is None]
    alive = [name for name in going if is_alive(study.at.runs / name)]
    lost = [name for name in going if name not in alive and not (study.at.runs / name / "exit.json").exists()]
    if alive and not held:
        says = f"{', '.join(alive)} without an engine: each goes on to its end, and the next start takes it up"
        yield Finding("runs", "note", says, "overnight start")
    if lost and not held:
        says = f"{', '.join(lost)} without a supervisor: the next start counts it as lost and runs it again"
        yield Finding("runs", "note", says, "overnight start")
