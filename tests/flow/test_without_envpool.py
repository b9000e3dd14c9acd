"""A real night on a machine that has no EnvPool: the trainers use Gymnasium, and it can be seen that they do."""

import os
import subprocess
from pathlib import Path

import pytest

from overnight.records.run import Outcome
from overnight.run.launch import facts_of
from runs import interpreter, tiny_study
from scenes import Scene, scene_in

NO_ENVPOOL = """
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "envpool":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Missing())
"""


def interpreter_without_envpool(folder: Path) -> Path:
    """A virtual environment that has everything that this one has, except for EnvPool."""
    python = interpreter(folder)
    packages = next((folder / "lib").glob("python*/site-packages"))
    (packages / "sitecustomize.py").write_text(NO_ENVPOOL)
    return python


def backends(scene: Scene) -> set[str]:
    """What the trainers of all runs said they stepped the environment with."""
    return {facts_of(folder).get("backend", "") for folder in scene.at.runs.iterdir()}


def test_a_night_without_envpool_trains_on_gymnasium_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "keys"))
    python = interpreter_without_envpool(tmp_path / "venv")
    assert subprocess.run([python, "-c", "import envpool"], capture_output=True, check=False).returncode == 1
    scene = tiny_study(tmp_path / "project", candidates=1)
    done = subprocess.run(
        [python, "-m", "overnight.cli.main", "start", "--dir", str(scene.project)],
        capture_output=True,
        text=True,
        check=False,
        env=dict(os.environ),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "The stop rule fired: 1 candidates were tried." in done.stdout
    assert "EnvPool is not installed, so environments are stepped by Gymnasium" in done.stderr
    state = scene_in(scene.project).state()
    ended = [run for run in state.runs.values() if run.outcome is Outcome.COMPLETED]  # the rest was stopped in time
    assert len(ended) >= 4 and all(run.score is not None for run in ended)
    assert backends(scene) == {"gymnasium"}
    assert "EnvPool is not installed; training on Gymnasium" in (scene.at.runs / "r-0001" / "log").read_text()


def test_a_trainer_that_lies_about_its_backend_is_only_quoted(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    told = tmp_path / "out" / "ready"
    told.write_text('{"backend": "\\u001b[31mred", "n": 3}')
    assert facts_of(tmp_path) == {"backend": "�[31mred"}
    told.write_bytes(b"[" * 5000)
    assert facts_of(tmp_path) == {}
    told.unlink()
    os.mkfifo(told)
    assert facts_of(tmp_path) == {}
