"""A real night whose engine, supervisors, referees and trainers are killed at random moments.

Quick: a few kills. With `OVERNIGHT_SOAK=1`: thirty. The night is `overnight start` itself, and a
follower reads the ledger all the while: no line that it ever saw may be missing or changed later.
"""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from overnight.machine import RealMachine
from overnight.records.run import Outcome
from overnight.sandbox.processes import descendants, with_variable
from overnight.study.study import read_state
from runs import tiny_study
from scenes import Scene

SOAK = bool(os.environ.get("OVERNIGHT_SOAK"))
KILLS = 30 if SOAK else 4
VICTIMS = ("engine", "supervisor", "referee", "trainer")


@dataclass
class Harness:
    """One night from outside: the engine, who else lives, and the ledger as a follower reads it."""

    scene: Scene
    engine: "subprocess.Popen[bytes]" = field(init=False)
    seen: bytes = b""
    referees: set[tuple[int, str]] = field(default_factory=set)
    kills: Counter[str] = field(default_factory=Counter)
    starts: int = 0

    def start(self) -> None:
        with (self.scene.project / "said").open("ab") as said:
            self.engine = subprocess.Popen(
                [sys.executable, "-m", "overnight.cli.main", "start", "--dir", str(self.scene.project)],
                stdout=said,
                stderr=said,
            )
        self.starts += 1

    def follow(self, seconds: float) -> None:
        """Read the ledger for a while; whatever was there must still be there."""
        until = time.monotonic() + seconds
        while time.monotonic() < until and self.engine.poll() is None:
            self.look()
            time.sleep(0.01)

    def look(self) -> None:
        data = self.scene.at.ledger.read_bytes()
        assert data.startswith(self.seen), "a line that was seen is gone"
        self.seen = data[: data.rfind(b"\n") + 1]
        self.referees |= {(pid, born) for pid in self.alive("referee") if (born := birth(pid))}

    def alive(self, kind: str) -> list[int]:
        """The processes of one kind that live now."""
        if kind == "engine":
            return [self.engine.pid]
        if kind == "trainer":
            return [pid for pid in in_study(self.scene) if "overnight.rl.trainers.ppo" in words(pid)]
        if kind == "referee":
            return [pid for pid in descendants(self.engine.pid) if "overnight.evaluate.referee" in words(pid)]
        return supervisors(self.scene)

    def kill(self, dice: random.Random) -> None:
        """Kill one of those that live, of the kind that was killed least often so far."""
        until = time.monotonic() + 30
        while time.monotonic() < until and self.engine.poll() is None:
            kind = min(VICTIMS, key=lambda one: (self.kills[one], dice.random()))
            self.look()
            if self.alive(kind) and self.entries("launched"):
                victim = dice.choice(self.alive(kind) or [0])
                if victim and gone(victim):
                    self.kills[kind] += 1
                    return
            time.sleep(0.01)
        raise AssertionError((self.scene.project / "said").read_text())

    def entries(self, kind: str) -> list[dict[str, object]]:
        found = [json.loads(line)["e"] for line in self.seen.splitlines()]
        return [entry["data"] for entry in found if entry["kind"] == kind]


def words(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().split("\0")
    except OSError:
        return []


def birth(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except OSError:
        return ""


def gone(pid: int) -> bool:
    """Kill a process; False where it was gone before."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def in_study(scene: Scene) -> list[int]:
    """Processes that carry the variable of one of this study's runs: trainers, referees and policies."""
    return [pid for run in scene.at.runs.iterdir() for pid in with_variable(f"OVERNIGHT_RUN={run / 'run.json'}")]


def supervisors(scene: Scene) -> list[int]:
    numbers = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    return [
        pid
        for pid in numbers
        if "overnight.run.supervisor" in (found := words(pid)) and any(str(scene.at.runs) in word for word in found)
    ]


def left_behind(harness: Harness) -> list[int]:
    """Whoever lives on although the night is over."""
    referees = [pid for pid, born in harness.referees if birth(pid) == born]
    return [*in_study(harness.scene), *supervisors(harness.scene), *referees]


def counted_twice(scene: Scene) -> Iterator[object]:
    """Train seeds with two results, and runs with two ends or two measurements."""
    state = scene.state()
    results = Counter(
        (run.candidate, run.phase, run.round, run.number)
        for run in state.runs.values()
        if run.outcome is not None and (run.evidence or run.outcome.is_candidates_fault())
    )
    yield from (key for key, count in results.items() if count > 1)
    for kind in ("ended", "measured"):
        yield from (run for run, count in Counter(data["run"] for data in scene.entries(kind)).items() if count > 1)


def check_report(scene: Scene) -> None:
    """The report says what its ledger says."""
    words = [sys.executable, "-m", "overnight.cli.main", "report", "--dir", str(scene.project)]
    subprocess.run(words, check=True, capture_output=True)
    page, lines = (scene.at.report / "report.md").read_text(), scene.at.ledger.read_bytes().splitlines()
    entries = [json.loads(line)["e"] for line in lines]
    launched = [entry for entry in entries if entry["kind"] == "launched"]
    drafted = [entry["data"]["id"] for entry in entries if entry["kind"] == "drafted"]
    state = read_state(RealMachine(), scene.at, quickly=False)
    assert state.head in page and f"{len(entries):,} entries" in page
    lost = sum(entry["kind"] == "ended" and entry["data"]["outcome"] in ("lost", "infrastructure") for entry in entries)
    more = f"; {lost} more were lost by the machine and run again" if lost else "\n"
    assert (
        f"- **Training runs:** {len(launched) - lost:,}{more}" in page
        and f"- **Candidates:** {len(drafted) - 1:,}\n" in page
    )
    assert all(name in page for name in drafted[1:])
    assert len(state.runs) == len(launched) and list(state.candidates) == drafted


@pytest.fixture
def keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "keys"))


@pytest.mark.usefixtures("keys")
@pytest.mark.timeout(1800 if SOAK else 300)
def test_a_night_survives_kills_at_random_moments(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    seed = int(os.environ.get("OVERNIGHT_KILL_SEED", "0")) or random.SystemRandom().randrange(1, 10**6)
    dice, began = random.Random(seed), time.monotonic()
    harness = Harness(tiny_study(tmp_path / "project"))
    harness.start()
    while harness.kills.total() < KILLS:
        harness.follow(dice.uniform(0.1, 1.5))
        harness.kill(dice)
        if harness.engine.poll() is not None or harness.kills["engine"] >= harness.starts:
            harness.engine.wait()
            before = len(harness.seen)
            harness.start()
            wait_for_more(harness, before)
    finish(harness)
    assert list(counted_twice(harness.scene)) == []
    assert [name for name, run in harness.scene.state().runs.items() if run.outcome is None] == []
    assert left_behind(harness) == []
    check_report(harness.scene)
    assert left_behind(harness) == []
    told = {**harness.kills, "engines": harness.starts, "runs": len(harness.scene.state().runs)}
    lost = [run for run in harness.scene.state().runs.values() if run.outcome is Outcome.LOST]
    with capsys.disabled():
        print(f"\nkills {told}, {len(lost)} runs lost, {time.monotonic() - began:.0f} s, seed {seed}")


def wait_for_more(harness: Harness, before: int) -> None:
    """A started engine goes on: the ledger grows, and nothing of what was seen is gone."""
    until = time.monotonic() + 60
    while time.monotonic() < until and harness.engine.poll() is None:
        harness.look()
        if len(harness.seen) > before:
            return
        time.sleep(0.02)
    raise AssertionError((harness.scene.project / "said").read_text())


def finish(harness: Harness) -> None:
    """Ask the engine to finish what is running, as Ctrl-C does."""
    harness.follow(3.0)
    harness.engine.send_signal(signal.SIGINT)
    assert harness.engine.wait(120) == 0, (harness.scene.project / "said").read_text()
    harness.look()
