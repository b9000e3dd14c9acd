"""What bounds a sitting, what it hears while it runs, how it ends, and what it leaves for whoever comes next."""

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import nullcontext
from datetime import datetime
from pathlib import Path

import pytest

from nights import Silent
from overnight.adapters.launchers.local import LocalLauncher
from overnight.admission import Who, opening
from overnight.background import Engine
from overnight.errors import UserError
from overnight.gate.opening import may_open
from overnight.handoff import hand_off, notify
from overnight.ports import Proposer
from overnight.records.approval import Strength
from overnight.records.entry import Note
from overnight.records.lifecycle import Actor
from overnight.records.proposal import Exhausted, Proposal, View, Wait
from overnight.records.run import Outcome, RunEnd
from overnight.resume import Around, around, next_step
from overnight.signatures import config_folder
from overnight.sitting import Sitting, Told, Vigil, moment, sit
from overnight.watch import Watcher, log_tail
from runs import MACHINE, tiny_study
from scenes import Scene, overnight

SOAK = bool(os.environ.get("OVERNIGHT_SOAK"))
TESTER = Who("tester", Strength.TERMINAL)


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scene:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "keys"))
    return tiny_study(tmp_path / "project")


class Idle:
    """Has no idea yet, for ever; remembers the direction that it was shown."""

    def __init__(self, then: Callable[[int], None] = lambda _: None) -> None:
        self.programs: list[str] = []
        self.then = then

    def ask(self, view: View) -> Proposal | Wait | Exhausted:
        self.programs.append(view.program)
        self.then(len(self.programs))
        return Wait(until_seconds=0.05, because="The service is away.")


def sitting(scene: Scene, proposer: Proposer, **more: float) -> str:
    proposing = lambda _: nullcontext(proposer)  # noqa: E731 - a night of one
    return sit(Sitting(MACHINE, scene.at, TESTER, LocalLauncher(), proposing, Told(), more.get("until")))


# What ends it


def test_a_file_called_stop_ends_a_night_in_which_a_proposer_waits_for_ever(scene: Scene) -> None:
    idle = Idle(lambda asked: scene.at.stop_word.touch() if asked == 3 else None)
    assert sitting(scene, idle) == "Somebody asked to finish: the file `stop` was there."
    assert len(idle.programs) == 3


def test_an_old_stop_word_does_not_end_a_night_that_somebody_starts(scene: Scene) -> None:
    scene.at.stop_word.touch()
    assert sitting(scene, Silent()) == "The script is at its end."


def test_a_night_ends_by_the_time_of_the_day_it_was_given(scene: Scene) -> None:
    until = time.time() + 1.5
    said = sitting(scene, Idle(), until=until)
    assert said == f"It was to end at {datetime.fromtimestamp(until):%H:%M}."
    assert time.time() < until + 120, "what was running was finished, and no more"


@pytest.mark.parametrize(
    ("now", "text", "hours"), [(22, "07:00", 9), (6, "7:00", 1), (7, "07:00", 24), (8, "07:30", 23.5)]
)
def test_a_time_of_the_day_is_the_next_one(now: int, text: str, hours: float) -> None:
    at = datetime(2026, 11, 16, now).timestamp()
    assert moment(text, at) - at == hours * 3600


@pytest.mark.parametrize("text", ["7", "25:00", "07:60", "soon", "07:00:00", ""])
def test_a_time_that_is_none_is_a_mistake(text: str) -> None:
    with pytest.raises(UserError, match="a time of the day is needed"):
        moment(text, 0.0)


# What it hears


@pytest.mark.feature("Z3")
def test_a_direction_that_is_edited_while_the_night_runs_is_what_the_next_idea_is_asked_under(scene: Scene) -> None:
    def steer(asked: int) -> None:
        if asked == 2:
            assert overnight("steer", "Leave the network alone.", cwd=scene.project).returncode == 0
            time.sleep(1.1)
        if asked == 40 or (asked > 4 and scene.entries("noted")[-1]["says"].startswith("The direction")):
            scene.at.stop_word.touch()

    idle = Idle(steer)
    sitting(scene, idle)
    assert "Leave the network alone." not in idle.programs[1]
    assert "Leave the network alone." in idle.programs[2]
    noted = [data["says"] for data in scene.entries("noted")]
    assert noted.count("The direction in program.md was edited; the next idea is asked for under it.") == 1


def test_a_standstill_of_the_engine_is_an_entry_and_is_told_once(scene: Scene) -> None:
    class Stood:
        """A machine that stood still for as long as a test says."""

        still = 0.0

        def __getattr__(self, name: str) -> object:
            return getattr(MACHINE, name)

        def stood_still(self) -> float:
            return self.still

    machine, said = Stood(), list[str]()
    with scene.open() as study:
        study.machine = machine  # type: ignore[assignment]
        vigil = Vigil(study, Told(said.append), lambda: False, None)
        machine.still = 300.0
        vigil.look()
        vigil._next_look = 0.0
        vigil.look()
    assert [data["seconds"] for data in scene.entries("stood_still")] == [300.0]
    assert said == ["The machine stood still for 300 s; no budget counts that, and what ran is run again."]
    assert (scene.state().standstills, scene.state().still_seconds) == (1, 300.0)


# How it ends


def test_the_users_own_command_is_told_how_the_night_ended(scene: Scene, tmp_path: Path) -> None:
    out = tmp_path / "told"
    script = f"import os, sys; open({str(out)!r}, 'w').write(os.environ['OVERNIGHT_SAYS'] + sys.stdin.read())"
    config(f"notify: [{sys.executable}, -c, {json.dumps(script)}]\n")
    scene.enter()
    ended = hand_off(MACHINE, scene.at, "The stop rule fired.", program="overnight")
    assert notify(MACHINE, scene.at, ended) == ""
    said, _, told = out.read_text().partition("{")
    assert said == "Nothing was certified. The stop rule fired."
    assert json.loads("{" + told)["over"] == "The stop rule fired."


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("/nowhere/bell", "`/nowhere/bell` could not notify anybody"),
        ("/bin/false", "`/bin/false` ended with status 1, so nobody may know."),
    ],
)
def test_a_notification_that_fails_is_told_and_changes_nothing(scene: Scene, command: str, says: str) -> None:
    config(f"notify: [{command}]\n")
    scene.enter()
    ended = hand_off(MACHINE, scene.at, "The stop rule fired.", program="overnight")
    assert notify(MACHINE, scene.at, ended).startswith(says)
    assert scene.state().handed_off == "The stop rule fired."


def test_nobody_is_notified_where_nobody_asked_for_it(scene: Scene) -> None:
    config("{}\n")
    scene.enter()
    assert notify(MACHINE, scene.at, hand_off(MACHINE, scene.at, "Over.", program="overnight")) == ""


def config(text: str) -> None:
    config_folder().mkdir(parents=True, exist_ok=True)
    (config_folder() / "config.yaml").write_text(text)


@pytest.fixture(autouse=True)
def _no_config() -> object:
    yield
    (config_folder() / "config.yaml").unlink(missing_ok=True)


# What comes next, from the files alone


def step(scene: Scene) -> tuple[str, str]:
    """What a fresh process says, that knows nothing but the files."""
    told = json.loads(overnight("status", "--json", cwd=scene.project).stdout)
    return told["sentence"], told["next"]


@pytest.mark.feature("A49")
def test_whoever_reads_the_handoff_alone_can_name_the_next_legal_action(scene: Scene) -> None:
    said = sitting(scene, Silent())
    ended = hand_off(MACHINE, scene.at, said, program="overnight")
    page = scene.at.handoff.read_text()
    command = page.split("Next: `")[1].split("`")[0]
    assert command == f"{ended.next} --dir {scene.project}" and said in page and scene.state().head in page
    assert step(scene) == (f"The last sitting ended: {said}", ended.next)
    assert ended.next == "overnight start" and may_open(opening(scene.state(), scene.terms())) == (), "and it is legal"


@pytest.mark.feature("R47")
@pytest.mark.parametrize("moment_", ["drafted", "launched", "decided"] if SOAK else ["launched"])
def test_a_session_that_is_killed_anywhere_in_the_loop_leaves_the_same_next_action_to_any_other(
    scene: Scene, moment_: str
) -> None:
    import subprocess

    engine = subprocess.Popen(
        [sys.executable, "-m", "overnight.cli.main", "start", "--dir", str(scene.project)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    until = time.monotonic() + 90
    while len(scene.entries(moment_)) < 1:
        assert time.monotonic() < until and engine.poll() is None
        time.sleep(0.02)
    os.kill(engine.pid, signal.SIGKILL)
    engine.wait()
    going = [name for name, run in scene.state().runs.items() if run.outcome is None]
    while any(LocalLauncher().is_alive(scene.at.runs / name) for name in going):
        time.sleep(0.1)
    scene.at.state.unlink(missing_ok=True)
    first = step(scene)
    assert first[1] == "overnight start" and first == step(scene), "two fresh sessions say the same"
    entries = len(scene.at.ledger.read_text().splitlines())
    assert entries == scene.state().entries, "asking changed nothing"
    scene.at.stop_word.unlink(missing_ok=True)
    sitting(scene, Silent())
    assert all(run.outcome is not None for run in scene.state().runs.values()), "and it was safe to do"


def test_an_interrupted_run_is_named_with_what_will_become_of_it(cartpole: Scene) -> None:
    cartpole.enter()
    assert cartpole.propose({"gamma": 0.95}) == ()
    with cartpole.open() as study:
        study.append(Actor.RUNNER, cartpole.run_of("c-0001"))
    state, reading = cartpole.state(), cartpole.terms()
    lost = next_step(state, reading, Around())
    alive = next_step(state, reading, Around(alive=("r-0001",)))
    assert (lost.command, alive.command) == ("overnight start", "overnight start")
    assert "settles or repeats" in lost.says and "takes up" in alive.says
    held = next_step(state, reading, Around(Engine(1, "host", "overnight start", 0.0), asked=True))
    assert held.command == "overnight live" and "was asked to stop" in held.says
    assert around(MACHINE, cartpole.at, state, LocalLauncher()) == Around()
    end = RunEnd(run="r-0001", outcome=Outcome.STOPPED, because="It was stopped by the engine.", wall_seconds=1.0)
    with cartpole.open() as study:
        study.append(Actor.RUNNER, end)
    assert "c-0001 is next" in next_step(cartpole.state(), reading, Around()).says


def test_a_spent_budget_leads_to_more_of_it(cartpole: Scene) -> None:
    cartpole.enter()
    cartpole.propose({"gamma": 0.95})
    cartpole.train("c-0001", wall_seconds=10 * 3600.0 * 8)
    found = next_step(cartpole.state(), cartpole.terms(), Around())
    assert "is spent" in found.says and found.command.startswith("overnight extend")


# The view


def test_the_picture_of_a_night_is_read_from_files_alone(cartpole: Scene) -> None:
    cartpole.enter()
    cartpole.propose({"gamma": 0.95}, hypothesis="Look less far ahead.")
    watcher = Watcher(MACHINE, cartpole.at)
    picture = watcher.look()
    assert picture.engine is None and picture.standing() == "no night is running"
    assert "Look less far ahead." in picture.candidates[0]
    cartpole.at.night_log.write_text("one\ntwo \x1b[2Jthree\n")
    assert log_tail(cartpole.at.night_log)[0] == "one" and "\x1b" not in log_tail(cartpole.at.night_log)[1]
    with cartpole.open() as study:
        study.append(Actor.ENGINE, Note(says="More."))
    assert watcher.look().facts[0] == ("doing", "nothing")
