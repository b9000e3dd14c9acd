"""A whole night is stopped for a while, as a laptop is that was closed: no verdict changes, and no budget counts it."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from overnight.background import left, night_of
from overnight.records.run import Outcome
from runs import MACHINE, tiny_study
from scenes import Scene, overnight

STOP_SECONDS = 8.0


def tree(scene: Scene) -> list[int]:
    """The engine and everything of the study's runs."""
    found = night_of(MACHINE, scene.at)
    return [*([found.pid] if found is not None else []), *left(scene.at)]


def freeze(scene: Scene, seconds: float) -> None:
    """Stop the whole tree, whoever joins it meanwhile too, and let it go on."""
    stopped: set[int] = set()
    while now := set(tree(scene)) - stopped:
        for pid in now:
            os.kill(pid, signal.SIGSTOP)
        stopped |= now
    time.sleep(seconds)
    for pid in stopped:
        os.kill(pid, signal.SIGCONT)


@pytest.mark.timeout(600)
def test_a_stop_of_the_whole_tree_changes_no_verdict_and_no_budget_and_the_report_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "keys"))
    scene = tiny_study(tmp_path / "project", candidates=1)
    engine = subprocess.Popen(
        [sys.executable, "-m", "overnight.cli.main", "start", "--dir", str(scene.project)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    until = time.monotonic() + 60
    while not list(scene.at.runs.glob("*/out/ready")):
        assert time.monotonic() < until and engine.poll() is None
        time.sleep(0.05)
    freeze(scene, STOP_SECONDS)
    assert engine.wait(240) == 0
    gaps = scene.entries("stood_still")
    assert len(gaps) == 1 and STOP_SECONDS - 1 < gaps[0]["seconds"] < STOP_SECONDS + 6
    outcomes = [run.outcome for run in scene.state().runs.values()]
    hit = [data for data in scene.entries("ended") if data["outcome"] == Outcome.INFRASTRUCTURE]
    assert hit and all("The machine stood still for" in data["because"] for data in hit)
    assert set(outcomes) <= {Outcome.COMPLETED, Outcome.INFRASTRUCTURE, Outcome.STOPPED}, "nobody is blamed for it"
    stopped = {run.candidate for run in scene.state().runs.values() if run.outcome is Outcome.STOPPED}
    assert stopped <= {data["candidate"] for data in scene.entries("decided")}, "only what was settled is stopped"
    judged = {run for data in scene.entries("decided") for run in data["evidence"]}
    assert not judged & {data["run"] for data in hit}, "what was going then is not scored"
    assert all(data["wall_seconds"] < STOP_SECONDS + 30 for data in hit)
    page = scene.at.report_text.read_text()
    assert "Stood still" in page and "no budget counts that" in page


@pytest.mark.timeout(600)
def test_a_policy_is_not_late_because_the_machine_stood_still_while_it_was_asked(tmp_path: Path) -> None:
    code = (
        "import sys, time, os, signal\n"
        "import numpy as np\n"
        "from pathlib import Path\n"
        "from overnight.evaluate.policy_process import Folders, PolicyProcess\n"
        "import gymnasium\n"
        "folder = Path(sys.argv[1])\n"
        "env = gymnasium.make('CartPole-v1')\n"
        "one = PolicyProcess(Folders(folder, folder / 'policy'), env, 1)\n"
        "ask = lambda: one(np.zeros((1, 4), np.float32), np.ones(1, bool))\n"
        "ask(); print('asked', flush=True)\n"
        "until = time.monotonic() + float(sys.argv[2])\n"
        "while time.monotonic() < until: ask()\n"
        "one.close(); print('fine', flush=True)\n"
    )
    folder = tmp_path / "run"
    (folder / "policy").mkdir(parents=True)
    (folder / "policy" / "slow.py").write_text(
        "import time\ndef load(folder):\n    return lambda obs, reset: (time.sleep(0.3), obs[:, 0].astype(int))[1]\n"
    )
    spec = {"schema": "overnight/policy/1", "kind": "code", "entry": "slow:load"}
    (folder / "policy" / "policy.json").write_text(json.dumps(spec))
    (folder / "run.json").write_text("{}")
    with subprocess.Popen([sys.executable, "-c", code, str(folder), "9"], stdout=subprocess.PIPE, text=True) as referee:
        assert referee.stdout is not None and referee.stdout.readline() == "asked\n"
        whole = [referee.pid, *_below(referee.pid)]
        for pid in whole:
            os.kill(pid, signal.SIGSTOP)
        time.sleep(4)
        for pid in reversed(whole):
            os.kill(pid, signal.SIGCONT)
        assert referee.stdout.readline() == "fine\n"


def _below(pid: int) -> list[int]:
    from overnight.sandbox.processes import descendants

    return sorted(descendants(pid))


def test_a_report_of_a_night_that_never_stood_still_does_not_speak_of_it(params: Scene) -> None:
    assert overnight("report", cwd=params.project).returncode == 0
    assert "Stood still" not in params.at.report_text.read_text()
