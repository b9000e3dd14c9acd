"""An environment of a stranger: a small package of its own, installed beside Overnight, and nothing else."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from overnight.records.run import Outcome
from runs import interpreter
from scenes import scene_in

EXAMPLE = Path(__file__).parents[2] / "examples" / "corridor"


def overnight(python: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    command = [str(python), "-m", "overnight.cli.main", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=dict(os.environ))


def test_a_package_with_its_own_environment_has_a_night_and_pictures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "keys"))
    python = interpreter(tmp_path / "venv", EXAMPLE)
    project = tmp_path / "project"
    project.mkdir()
    words = ("--env-steps", "512", "--hours", "0.2", "--candidates", "1", "--yes", "--json", "--dir", str(project))
    done = overnight(python, "start", "corridor_env:Corridor-v0", *words)
    assert done.returncode == 0, done.stderr
    scene = scene_in(project)
    assert scene.contract().task.env.id == "corridor_env:Corridor-v0"
    assert scene.contract().task.env.max_episode_steps == 100
    done_runs = [run for run in scene.state().runs.values() if run.outcome is not Outcome.STOPPED]
    assert all(run.score is not None and run.score < 0 for run in done_runs)
    assert Path(json.loads(done.stdout)["report"]).exists()
    played = overnight(python, "play", "baseline", "--out", str(tmp_path / "seen.png"), "--dir", str(project))
    assert played.returncode == 0, played.stderr
    assert (tmp_path / "seen.png").stat().st_size > 1000


def test_a_module_that_is_not_installed_is_named_with_the_way_out(tmp_path: Path) -> None:
    python = interpreter(tmp_path / "venv")
    done = overnight(python, "init", "corridor_env:Corridor-v0", "--dir", str(tmp_path))
    assert done.returncode == 2
    assert "the module `corridor_env` is not installed beside Overnight" in done.stderr
    assert "pip install -e ." in done.stderr
    assert not (tmp_path / ".overnight").exists()
