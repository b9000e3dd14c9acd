"""Cheaters in a repository with one file to change: they define the harness anew, or bring a package along."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from overnight.gate.rules.imports import imported
from scenes import Scene, overnight, scene_in


@pytest.fixture(scope="module")
def _pole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("single") / "pole"
    done = overnight("new", "single-file", str(folder), "--env", "CartPole-v1", "--tag", "mar5", cwd=Path("/"))
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture
def pole(_pole: Path, tmp_path: Path) -> Scene:
    """An approved repository with one file to change; a copy of its own."""
    subprocess.run(["cp", "-a", str(_pole), str(tmp_path / "pole")], check=True)
    scene = scene_in(tmp_path / "pole")
    scene.approve()
    return scene


def edited(pole: Scene, change: Callable[[str], str]) -> str:
    """What the gate says about an edit of the one file."""
    copy = pole.copy()
    path = copy / "train.py"
    path.chmod(0o644)
    path.write_text(change(path.read_text()))
    return " ".join(f"{one.rule}: {one.says}" for one in pole.propose(copy, kind="code"))


@pytest.mark.cheater("constants")
@pytest.mark.feature("Z10")
@pytest.mark.parametrize(
    "line",
    [
        "TIME_BUDGET = 99999",
        "def make_env(env_id, idx, seed=1): pass",
        "import evaluate\nevaluate.TIME_BUDGET = 5",
        "from numpy import array as ENV_ID",
        "for NUM_EVAL_EPISODES in range(3): pass",
        "class Experiment: pass",
    ],
)
def test_a_file_that_defines_what_the_harness_gives_is_refused(pole: Scene, line: str) -> None:
    assert "constants: train.py defines" in edited(pole, lambda text: f"{text}\n{line}\n")


@pytest.mark.cheater("imports")
@pytest.mark.feature("Z32")
@pytest.mark.parametrize("line", ["import torch", "from scipy.stats import norm", "def f():\n    import pandas.io"])
def test_a_package_that_the_file_did_not_use_is_refused(pole: Scene, line: str) -> None:
    assert "imports: train.py imports" in edited(pole, lambda text: f"{text}\n{line}\n")


def test_honest_edits_pass_both_rules(pole: Scene) -> None:
    assert edited(pole, lambda text: text.replace("GAMMA = 0.99", "import math\nGAMMA = 0.98")) == ""
    assert imported(b"this is no python (") == set()
