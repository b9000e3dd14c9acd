"""A whole night, small but real: real trainers, real supervisors, a real referee, and engines that are killed."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from nights import params_study, sit, small_study
from overnight.adapters.launchers.local import LocalLauncher
from overnight.machine import RealMachine
from overnight.records.proposal import Exhausted, Proposal, View
from overnight.records.run import Outcome
from overnight.study.state import StudyState
from overnight.study.study import read_state
from scenes import Said, Scene


class Tireless:
    """Always has another idea, up to twenty."""

    def ask(self, view: View) -> Proposal | Exhausted:
        if len(view.tried) >= 20:
            return Exhausted(because="Twenty ideas were asked for.")
        return Proposal(
            proposer="search",
            kind="hyperparameter",
            hypothesis=f"Idea {len(view.tried)} helps.",
            predicted_effect="The score rises.",
            params={"gamma": 0.95 + len(view.tried) / 1000},
        )


SIT = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from nights import sit
from scenes import scene_in
print(sit(scene_in(Path(sys.argv[1]))))
"""


@pytest.fixture
def keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "keys"))


def check(state: StudyState) -> None:
    """What must be true of any night that came to its end, however often it was interrupted."""
    good = [run for run in state.runs.values() if run.outcome is not Outcome.LOST]
    seen = [(run.candidate, run.phase, run.round, run.number) for run in good]
    assert len(set(seen)) == len(seen), "each wanted run counts exactly once"
    assert all(run.evidence == 1 for run in good if run.outcome is Outcome.COMPLETED)
    confirmed = {run.candidate for run in good if run.phase == "confirm"}
    assert state.attempts <= 1, "one idea is tried on fresh seeds once at most, where its lead makes that worth while"
    assert confirmed == ({"c-0001", "c-0002"} if state.attempts else set())


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Scene:
    """A study after one whole night."""
    scene = small_study(tmp_path_factory.mktemp("project"))
    assert sit(scene) == "The script is at its end."
    return scene


def test_a_night_screens_an_idea_and_certifies_the_tip_on_fresh_seeds(finished: Scene) -> None:
    state = finished.state()
    idea = state.candidates["c-0002"]
    assert idea.verdict and idea.gain is not None
    if idea.kept or idea.state == "accepted":
        check(state)
    screen = {run.train_seed for run in state.runs.values() if run.phase == "screen"}
    confirm = {run.train_seed for run in state.runs.values() if run.phase == "confirm"}
    assert not screen & confirm, "certification never uses a seed that selected the tip"
    assert any(finished.at.task.root.cache.iterdir()), "what was compiled is kept for the next run"


def test_a_run_of_the_built_in_trainer_comes_out_the_same_to_the_last_digit(
    finished: Scene, verb: Callable[..., Said]
) -> None:
    said = verb("reproduce", "r-0002", "--dir", str(finished.project))
    assert said.code == 0 and "10 of 10 episodes identical" in said.stdout, said.stdout + said.stderr


@pytest.mark.usefixtures("keys")
def test_the_stop_rule_counts_ideas_and_not_the_baseline(tmp_path: Path) -> None:
    scene = params_study(tmp_path / "project")
    scene.rewrite(lambda terms: terms["experiments"]["stop"].update(max_candidates=1))
    scene.approve()
    assert sit(scene, Tireless()) == "The stop rule fired: 1 candidates were tried."
    assert list(scene.state().candidates) == ["c-0001", "c-0002"], "no idea is drafted only to be refused"


@pytest.mark.skipif("OVERNIGHT_SOAK" not in os.environ, reason="a minute of real runs: `make soak`")
@pytest.mark.usefixtures("keys")
def test_a_night_that_is_killed_again_and_again_comes_to_the_same_end(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    scene = small_study(project)
    kills = 12
    for number in range(100):
        engine = subprocess.Popen(
            [sys.executable, "-c", SIT, str(project), str(Path(__file__).parent)],
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
        )
        if number >= kills:
            said = engine.communicate()[0].decode()
            assert "The script is at its end." in said
            break
        time.sleep(2.0 + 0.7 * number)
        os.kill(engine.pid, signal.SIGKILL)
        engine.communicate()
        if number % 2:
            kill_supervisors(scene)
    state = read_state(RealMachine(), scene.at, quickly=False)
    assert not [run for run in state.runs.values() if run.outcome is None]
    good = [(r.candidate, r.phase, r.round, r.number) for r in state.runs.values() if r.outcome is not Outcome.LOST]
    assert len(set(good)) == len(good), "no run is counted twice"
    assert processes_of(scene) == []


def kill_supervisors(scene: Scene) -> None:
    """Kill the supervisors of the runs that are going, as a machine that is out of memory might."""
    for lock in scene.at.runs.glob("*/run.lock"):
        if LocalLauncher().is_alive(lock.parent) and (pid := lock.read_text().strip()):
            os.kill(int(pid), signal.SIGKILL)


def processes_of(scene: Scene) -> list[int]:
    """Processes that carry a variable of one of this study's runs."""
    found, mark = [], f"OVERNIGHT_RUN={scene.at.runs}".encode()
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and mark in (entry / "environ").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue
    return found
