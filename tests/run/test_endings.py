"""Whose fault it was: the candidate's, the budget's, the machine's, or nobody knows. Only the first two are results."""

import os
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from nights import sit
from overnight.errors import Refused
from overnight.records.job import Job
from overnight.records.order import RunBudget
from overnight.records.run import Outcome
from overnight.records.tier import Tier
from overnight.run import supervisor
from overnight.run.limits import Limits
from overnight.run.supervisor import Supervisor
from overnight.sandbox.cgroup import remove_group
from overnight.sandbox.meter import Meter
from overnight.sandbox.probe import prove
from runs import POLICY, begin, need, run, tiny_study, wait


@pytest.fixture
def break_bubblewrap(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], None]]:
    """Puts a bubblewrap first on the path that gives up, as it does where namespaces are forbidden."""
    folder = Path(tempfile.mkdtemp(prefix="overnight-broken-", dir="/tmp"))  # where every user can pass
    folder.chmod(0o755)
    (folder / "bwrap").write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n")
    (folder / "bwrap").chmod(0o755)
    yield lambda: monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    shutil.rmtree(folder)


def test_a_bubblewrap_that_gives_up_is_the_machines_fault(tmp_path: Path, break_bubblewrap: Callable[[], None]) -> None:
    break_bubblewrap()
    ended = run(tmp_path, POLICY, tier="T3")
    assert (ended.outcome, ended.tier) == (Outcome.INFRASTRUCTURE, None)
    assert ended.because == (
        "It could not be held at T3, so it never began: bwrap: No permissions to create new namespace."
    )
    assert not ended.outcome.is_candidates_fault() and ended.outcome.is_repeated()


@pytest.mark.parametrize("tier", ["T1", "T2", "T3"])
def test_a_command_that_is_not_there_is_the_candidates_fault_at_every_tier(tmp_path: Path, tier: Tier) -> None:
    need(tier)
    begin(tmp_path, POLICY, tier=tier)
    wait(tmp_path)
    (tmp_path / "exit.json").unlink()
    text = (tmp_path / "job.json").read_text()
    words = '"command":["/nowhere/train"]'
    (tmp_path / "job.json").write_text(text.replace(text[text.index('"command"') : text.index("]") + 1], words))
    pid = os.fork()
    if pid == 0:
        os._exit(supervisor.main(["supervisor", str(tmp_path)]))
    os.waitpid(pid, 0)
    ended = wait(tmp_path)
    assert ended.outcome is Outcome.CRASHED
    assert ended.because == "/nowhere/train could not be started: No such file or directory."


def idle(folder: Path, **more: float) -> Limits:
    """The limits of a run that has just begun and does nothing."""
    folder.mkdir(exist_ok=True)
    job = Job(
        command=("true",),
        env={},
        fresh_bytecode=True,
        cores=(),
        wall_seconds=more.get("wall", 100),
        silence_seconds=more.get("silence", 50),
        disk_bytes=1000,
    )
    return Limits(folder, job, RunBudget(unit="env_steps", amount=1), Meter())


def still(one: Limits, seconds: float) -> None:
    """Let a run have stood still for so long since the last look."""
    one._still._last -= seconds
    one._still._zero += seconds


def test_a_machine_that_stood_still_is_not_the_candidates_fault(tmp_path: Path) -> None:
    one = idle(tmp_path, wall=100)
    assert one.over() is None
    still(one, 199)
    ending = one.over()
    assert ending is not None and ending.outcome is Outcome.INFRASTRUCTURE
    assert ending.because == "The machine stood still for 199 s while it ran, so it is run again."
    assert one.seconds() < 1, "what stood still is no running time"


def test_a_moment_in_which_nobody_looked_is_no_standstill(tmp_path: Path) -> None:
    one = idle(tmp_path)
    still(one, 4)
    assert one.over() is None


def test_a_run_that_ended_while_the_machine_stood_still_is_not_believed(tmp_path: Path) -> None:
    one = idle(tmp_path)
    still(one, 30)
    ending = one.stood_still()
    assert ending is not None and ending.outcome is Outcome.INFRASTRUCTURE


def test_a_trainer_that_gives_no_sign_of_life_is_ended(tmp_path: Path) -> None:
    one = idle(tmp_path, silence=50, wall=10_000)
    one.last_sign -= 51
    ending = one.over()
    assert ending is not None and ending.because == "It gave no sign of life for 50 s."


def ended(folder: Path, status: int) -> tuple[Outcome, str]:
    """What a supervisor makes of a status."""
    begin(folder, POLICY)
    wait(folder)
    one = Supervisor(folder)
    try:
        return one._outcome(status, None, policy=None, why="")
    finally:
        one.log.close()
        remove_group(folder)


def test_a_kill_by_a_machine_without_memory_is_the_machines_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kills = iter([3, 4])
    monkeypatch.setattr(supervisor, "out_of_memory_kills", lambda: next(kills))
    outcome, because = ended(tmp_path, -signal.SIGKILL)
    assert outcome is Outcome.INFRASTRUCTURE and "ran out of memory" in because


def test_a_kill_that_nobody_owns_up_to_is_a_loss(tmp_path: Path) -> None:
    assert run(tmp_path, "import os; os.kill(os.getpid(), 9)").outcome is Outcome.LOST


def test_a_night_on_a_machine_that_cannot_hold_a_run_stops_and_decides_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, break_bubblewrap: Callable[[], None]
) -> None:
    need("T3")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "keys"))
    scene = tiny_study(tmp_path / "project")
    assert prove("T3").holds(), "proven before it broke"
    break_bubblewrap()
    with pytest.raises(Refused, match=r"could not be run 5 times on one train seed, which is the machine's fault\."):
        sit(scene)
    assert {data["outcome"] for data in scene.entries("ended")} == {"infrastructure"}
    assert list(scene.entries("decided")) == []
