"""A night without a terminal: there is one of it, it can be watched in a real terminal, and `stop` leaves nothing."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from overnight.adapters.launchers.local import LocalLauncher
from overnight.background import end_now, left, night_of
from runs import MACHINE, tiny_study
from scenes import Scene, overnight


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scene]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "keys"))
    found = tiny_study(tmp_path / "project")
    yield found
    end_now(MACHINE, found.at, LocalLauncher())


def detach(scene: Scene) -> int:
    done = overnight("start", "--detach", "--json", cwd=scene.project)
    assert done.returncode == 0, done.stderr
    return int(json.loads(done.stdout)["pid"])


def lives(pid: int) -> bool:
    """Whether a process lives; one that only waits for its parent to take notice does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_for(what: Callable[[], object], seconds: float = 60) -> None:
    until = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < until, "it did not come about"
        time.sleep(0.1)


class Tmux:
    """A real terminal, of the size that a test says."""

    def __init__(self, folder: Path) -> None:
        if shutil.which("tmux") is None:
            pytest.skip("tmux is not installed; `make system` installs what the tests need")
        self.socket = str(folder / "tmux")

    def __call__(self, *words: str) -> str:
        done = subprocess.run(["tmux", "-S", self.socket, "-f", "/dev/null", *words], capture_output=True, text=True)
        return done.stdout

    def screen(self) -> str:
        return self("capture-pane", "-p", "-t", "0")

    def shows(self, text: str) -> None:
        until = time.monotonic() + 30
        while text not in self.screen():
            assert time.monotonic() < until, f"{text!r} is not on the screen:\n{self.screen()}"
            time.sleep(0.1)


@pytest.mark.timeout(300)
@pytest.mark.feature("H77")
def test_two_starts_make_one_night_that_can_be_watched_and_that_stop_ends_without_a_trace(scene: Scene) -> None:
    assert "No night is running" in overnight("live", cwd=scene.project).stderr
    pid = detach(scene)
    second = overnight("start", "--json", cwd=scene.project)
    assert second.returncode == 0
    assert json.loads(second.stdout)["already_running"] is True and json.loads(second.stdout)["pid"] == pid
    assert overnight("start", "--detach", "--json", cwd=scene.project).returncode == 0
    third = overnight("start", "CartPole-v1", "--yes", "--json", cwd=scene.project)
    assert third.returncode == 0 and json.loads(third.stdout)["already_running"] is True, third.stderr
    found = night_of(MACHINE, scene.at)
    assert found is not None and found.pid == pid, "the first night goes on"
    assert len(scene.entries("entered")) == 1
    wait_for(lambda: scene.entries("launched"))
    picture = json.loads(overnight("live", "--json", cwd=scene.project).stdout)
    assert picture["running"] is True and picture["pid"] == pid
    status = json.loads(overnight("status", "--json", cwd=scene.project).stdout)
    assert (status["night"], status["next"]) == (pid, "overnight live")
    stopped = overnight("stop", "--json", cwd=scene.project)
    assert json.loads(stopped.stdout) | {"handoff": ""} == {
        "stopped": True,
        "pid": pid,
        "left_alone": 0,
        "killed": 0,
        "left": 0,
        "handoff": "",
    }
    assert not lives(pid) and left(scene.at) == []
    assert all(run.outcome is not None for run in scene.state().runs.values()), "what was running was finished"
    assert "the file `stop` was there" in scene.state().handed_off
    again = overnight("live", cwd=scene.project)
    assert "No night is running" in again.stderr and "CartPole-v1" in again.stdout, "the log is shown all the same"


@pytest.mark.timeout(300)
@pytest.mark.feature("H75")
def test_start_at_a_terminal_attaches_to_the_night_that_runs_and_starts_no_second_one(
    scene: Scene, tmp_path: Path
) -> None:
    tmux = Tmux(tmp_path)
    pid = detach(scene)
    wait_for(lambda: scene.entries("launched"))
    words = f"{sys.executable} -m overnight.cli.main start --dir {scene.project}"
    try:
        tmux("new-session", "-d", "-x", "200", "-y", "50", f"{words}; echo left with $?; sleep 60")
        tmux.shows(f"a night is running already, pid {pid}")
        tmux.shows("No second one was started. Attached to it")
        tmux.shows("env steps a run")
        assert "left with" not in tmux.screen(), "it stays with the night"
        assert overnight("steer", "Look here.", cwd=scene.project).returncode == 0
        tmux.shows("was edited; the next idea")
        tmux("send-keys", "-t", "0", "C-c")
        tmux.shows("Finishing what is running")
        tmux.shows(f"The night (pid {pid}) has ended")
        tmux.shows("left with 0")
    finally:
        tmux("kill-server")
    assert len(scene.entries("entered")) == 1 and not lives(pid) and left(scene.at) == []


@pytest.mark.timeout(300)
@pytest.mark.feature("H76")
def test_stop_now_ends_engine_supervisors_and_trainers_within_seconds_and_nobody_is_blamed(scene: Scene) -> None:
    pid = detach(scene)
    wait_for(lambda: left(scene.at))
    began = time.monotonic()
    done = overnight("stop", "--now", "--json", cwd=scene.project)
    assert done.returncode == 0 and json.loads(done.stdout)["left"] == 0
    assert time.monotonic() - began < 20
    assert not lives(pid) and left(scene.at) == []
    assert scene.state().handed_off == "Somebody stopped it at once."
    again = overnight("stop", "--json", cwd=scene.project)
    assert again.returncode == 0 and json.loads(again.stdout)["stopped"] is False, "a second stop finds nothing to do"


@pytest.mark.timeout(300)
def test_an_engine_that_does_not_listen_is_killed_and_its_runs_with_it(scene: Scene) -> None:
    pid = detach(scene)
    wait_for(lambda: left(scene.at))
    os.kill(pid, signal.SIGSTOP)
    done = overnight("stop", "--now", "--json", cwd=scene.project)
    assert json.loads(done.stdout)["left"] == 0
    assert not lives(pid) and left(scene.at) == []


@pytest.mark.timeout(300)
def test_runs_that_a_killed_engine_left_alone_are_named_by_status_and_ended_by_stop(scene: Scene) -> None:
    pid = detach(scene)
    wait_for(lambda: left(scene.at))
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: night_of(MACHINE, scene.at) is None)
    status = [json.loads(overnight("status", "--json", cwd=scene.project).stdout) for _ in range(2)]
    assert status[0]["next"] == status[1]["next"] == "overnight start"
    assert "The engine is gone" in status[0]["sentence"]
    done = json.loads(overnight("stop", "--json", cwd=scene.project).stdout)
    assert done["stopped"] is False and done["left"] == 0
    assert left(scene.at) == []


@pytest.mark.timeout(300)
@pytest.mark.feature("H81")
def test_the_view_lives_in_a_real_terminal_obeys_its_keys_and_survives_a_resize(scene: Scene, tmp_path: Path) -> None:
    tmux = Tmux(tmp_path)
    pid = detach(scene)
    words = f"{sys.executable} -m overnight.cli.main live --dir {scene.project}"
    try:
        tmux("new-session", "-d", "-x", "100", "-y", "24", f"{words}; echo left with $?; {words}; echo gone; sleep 60")
        tmux.shows(f"running, pid {pid}")
        tmux.shows("[q] leave")
        tmux("send-keys", "-t", "0", "q")
        tmux.shows("left with 0")
        tmux.shows("[q] leave")
        assert lives(pid), "leaving the view leaves the night alone"
        tmux.shows("c-0001")
        for width, height in ((40, 8), (160, 50), (20, 4), (90, 20)):
            tmux("resize-window", "-t", "0", "-x", str(width), "-y", str(height))
            time.sleep(0.6)
            rows = tmux.screen().rstrip("\n").split("\n")
            assert len(rows) <= height and all(len(row) <= width for row in rows)
            assert "overnight" in rows[0]
        tmux("send-keys", "-t", "0", "p")
        tmux.shows("(view paused)")
        tmux("send-keys", "-t", "0", "p")
        tmux("send-keys", "-t", "0", "Tab")
        tmux.shows("what the engine said")
        tmux.shows("CartPole-v1")
        tmux("send-keys", "-t", "0", "Up")
        tmux("send-keys", "-t", "0", "k")
        tmux.shows("was asked to stop")
        tmux("send-keys", "-t", "0", "q")
        tmux.shows("gone")
        wait_for(lambda: not lives(pid), 120)
    finally:
        tmux("kill-server")
    assert left(scene.at) == []
