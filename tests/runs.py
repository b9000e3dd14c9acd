"""Small trainers as text, run to their end by a real supervisor, and a small study for a whole night."""

import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from overnight.adapters.launchers.local import LocalLauncher
from overnight.begin import Place, begin_env
from overnight.contract.draft import Stated
from overnight.machine import RealMachine
from overnight.records.env import EnvSpec
from overnight.records.job import Exit, Job
from overnight.records.limits import Scalar
from overnight.records.order import RunBudget, RunOrder
from overnight.records.tier import Tier
from overnight.run.launch import exit_of, launch, prepare
from overnight.sandbox.probe import prove, strongest
from scenes import Scene, scene_in

MACHINE = RealMachine()
STEPS = RunBudget(unit="env_steps", amount=100)
POLICY = """
import json, os, pathlib
out = pathlib.Path(os.environ["OVERNIGHT_OUT"])
(out / "policy").mkdir()
(out / "policy" / "policy.json").write_text("{}")
"""


def run(
    folder: Path,
    trainer: str,
    *,
    wall: float = 20,
    silence: float = 20,
    disk: int = 10_000_000,
    tier: Tier | None = None,
    memory: int | None = None,
    processes: int = 512,
    budget: RunBudget = STEPS,
    metered: bool = False,
) -> Exit:
    """Run one trainer to its end under a real supervisor."""
    caps: dict[str, Any] = {"memory": memory, "processes": processes, "budget": budget, "metered": metered}
    begin(folder, trainer, wall=wall, silence=silence, disk=disk, tier=tier, **caps)
    return wait(folder)


def begin(
    folder: Path,
    trainer: str,
    *,
    wall: float = 20,
    silence: float = 20,
    disk: int = 10_000_000,
    tier: Tier | None = None,
    params: Mapping[str, Scalar] | None = None,
    memory: int | None = None,
    processes: int = 512,
    budget: RunBudget = STEPS,
    files: Mapping[str, bytes] | None = None,
    metered: bool = False,
    env: str = "CartPole-v1",
) -> None:
    """Start one trainer under a real supervisor, held as strongly as this machine can, or at a tier."""

    def export(target: Path) -> None:
        target.mkdir(parents=True)
        (target / "train.py").write_text(trainer)
        for name, data in (files or {}).items():
            (target / name).parent.mkdir(exist_ok=True)
            (target / name).write_bytes(data)

    order = RunOrder(
        run="r-0001",
        env=EnvSpec(backend="gymnasium", id=env),
        train_seed=7,
        budget=budget,
        params=params or {"a": 1},
        cores=1,
        device="cpu",
    )
    job = Job(
        command=(sys.executable, "train.py"),
        env={"PATH": os.environ["PATH"]},
        fresh_bytecode=True,
        cores=(0,),
        wall_seconds=wall,
        silence_seconds=silence,
        disk_bytes=disk,
        memory_bytes=memory,
        processes=processes,
        tier=tier or strongest(),
        metered=metered,
    )
    launch(prepare(MACHINE, folder, order, job, export), LocalLauncher())


def need(tier: Tier) -> None:
    """Leave a test out where this machine cannot hold a process so strongly, and say why."""
    if not prove(tier).holds():
        pytest.skip(prove(tier).why)


def wait(folder: Path, seconds: float = 40) -> Exit:
    """What the supervisor says when it has let go of the run."""
    until = time.monotonic() + seconds
    while LocalLauncher().is_alive(folder) and time.monotonic() < until:
        time.sleep(0.05)
    ended = exit_of(MACHINE, folder)
    assert ended is not None, (folder / "supervisor.log").read_text()
    return ended


def tiny_study(project: Path, *, candidates: int = 60) -> Scene:
    """An approved study whose runs take about a second each."""
    project.mkdir(exist_ok=True)
    begin_env(MACHINE, Place(project), Stated(env="CartPole-v1", env_steps=1024, hours=1))
    scene = scene_in(project)
    text = scene.at.contract.read_text()
    for old, new in (
        ("screen_train_seeds: null", "screen_train_seeds: 2"),
        ("confirm_train_seeds: null", "confirm_train_seeds: 4"),
        ("screen_episodes: 20", "screen_episodes: 10"),
        ("confirm_episodes: 100", "confirm_episodes: 10"),
        ("max_candidates: 200", f"max_candidates: {candidates}"),
    ):
        text = text.replace(old, new)
    scene.at.contract.write_text(text)
    scene.approve()
    return scene


def interpreter(folder: Path, *more: Path) -> Path:
    """A virtual environment that has everything that this one has, and some packages more."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", "--symlinks", folder], check=True)
    packages = next((folder / "lib").glob("python*/site-packages"))
    mine = [path for path in sys.path if path.endswith(("site-packages", "src"))]
    (packages / "the_others.pth").write_text("\n".join([*mine, *map(str, more)]) + "\n")
    return folder / "bin" / "python"
