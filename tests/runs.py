"""Small trainers as text, run to their end by a real supervisor."""

import os
import sys
import time
from pathlib import Path

from overnight.adapters.launchers.local import LocalLauncher
from overnight.machine import RealMachine
from overnight.records.env import EnvSpec
from overnight.records.job import Exit, Job
from overnight.records.order import RunBudget, RunOrder
from overnight.run.launch import exit_of, launch, prepare

MACHINE = RealMachine()
POLICY = """
import json, os, pathlib
out = pathlib.Path(os.environ["OVERNIGHT_OUT"])
(out / "policy").mkdir()
(out / "policy" / "policy.json").write_text("{}")
"""


def run(folder: Path, trainer: str, *, wall: float = 20, silence: float = 20, disk: int = 10_000_000) -> Exit:
    """Run one trainer to its end under a real supervisor."""
    begin(folder, trainer, wall=wall, silence=silence, disk=disk)
    return wait(folder)


def begin(folder: Path, trainer: str, *, wall: float = 20, silence: float = 20, disk: int = 10_000_000) -> None:
    """Start one trainer under a real supervisor."""

    def export(target: Path) -> None:
        target.mkdir(parents=True)
        (target / "train.py").write_text(trainer)

    order = RunOrder(
        run="r-0001",
        env=EnvSpec(backend="gymnasium", id="CartPole-v1"),
        train_seed=7,
        budget=RunBudget(unit="env_steps", amount=100),
        params={"a": 1},
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
    )
    launch(prepare(MACHINE, folder, order, job, export), LocalLauncher())


def wait(folder: Path, seconds: float = 40) -> Exit:
    """What the supervisor says when it has let go of the run."""
    until = time.monotonic() + seconds
    while LocalLauncher().is_alive(folder) and time.monotonic() < until:
        time.sleep(0.05)
    ended = exit_of(MACHINE, folder)
    assert ended is not None, (folder / "supervisor.log").read_text()
    return ended
