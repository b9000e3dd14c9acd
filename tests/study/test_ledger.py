"""What a ledger promises: order, integrity, one writer, and speed."""

import os
import random
import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path

import pytest

import long_ledger
from overnight.errors import LedgerDamaged, StudyHeld
from overnight.machine import RealMachine
from overnight.records.lifecycle import Actor
from overnight.study import anchor
from overnight.study.anchor import GENESIS
from overnight.study.fold import Fold
from overnight.study.layout import Root
from overnight.study.ledger import Ledger, RawEntry, _hash, read_sound, scan
from overnight.study.study import Study, read_state, save_state

MACHINE = RealMachine()


def entries_of(folder: Path) -> list[RawEntry]:
    found: list[RawEntry] = []
    read_sound(MACHINE, folder, lambda entry, _: found.append(entry))
    return found


def written(folder: Path, count: int = 8) -> Path:
    with Ledger.open(MACHINE, folder, holder="test") as ledger:
        for number in range(count):
            ledger.append(Actor.ENGINE, "noted", {"says": f"number {number}"})
    return folder


def rechained(folder: Path, seq: int) -> bytes:
    """The ledger with one entry altered and every later hash computed anew."""
    out, head = [], GENESIS
    for line in (folder / "ledger.jsonl").read_bytes().splitlines():
        body = line[76:-1]
        if body.endswith(f'"seq":{seq}}}'.encode()):
            body = body.replace(b"number", b"NUMBER")
        head = _hash(head, body)
        out.append(b'{"h":"' + head.encode() + b'","e":' + body + b"}\n")
    return b"".join(out)


def test_entries_come_back_in_order_with_rising_epochs(tmp_path: Path) -> None:
    written(written(tmp_path, 3), 2)
    assert [entry["seq"] for entry in entries_of(tmp_path)] == [0, 1, 2, 3, 4]
    assert [entry["epoch"] for entry in entries_of(tmp_path)] == [1, 1, 1, 2, 2]


def test_a_ledger_cut_anywhere_is_refused_as_rolled_back_or_damaged(tmp_path: Path) -> None:
    path = written(tmp_path) / "ledger.jsonl"
    whole = path.read_bytes()
    for cut in range(0, len(whole) - 1, 7):
        path.write_bytes(whole[:cut])
        with pytest.raises(LedgerDamaged, match=r"rolled back|damaged"):
            Ledger.open(MACHINE, tmp_path, holder="test")
        assert path.read_bytes() == whole[:cut], "a refused ledger is left as it is"


@pytest.mark.parametrize("lost", range(1, 8))
def test_removing_the_last_entries_is_called_a_roll_back(tmp_path: Path, lost: int) -> None:
    path = written(tmp_path) / "ledger.jsonl"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-lost]))
    with pytest.raises(
        LedgerDamaged, match=f"ends after {8 - lost} entries, but 8 were acknowledged: it was rolled back"
    ):
        read_sound(MACHINE, tmp_path)


@pytest.mark.feature("R41")
def test_every_bit_flip_is_refused_with_a_sentence(tmp_path: Path) -> None:
    path = written(tmp_path) / "ledger.jsonl"
    whole = path.read_bytes()
    for at in range(len(whole)):
        for bit in (0, 3, 7):
            flipped = bytearray(whole)
            flipped[at] ^= 1 << bit
            path.write_bytes(flipped)
            with pytest.raises(LedgerDamaged):
                read_sound(MACHINE, tmp_path)


@pytest.mark.parametrize("seq", [0, 3, 7])
def test_a_rewritten_and_rechained_ledger_is_called_rewritten(tmp_path: Path, seq: int) -> None:
    path = written(tmp_path) / "ledger.jsonl"
    path.write_bytes(rechained(tmp_path, seq))
    assert scan(path.read_bytes()).broken == ""
    with pytest.raises(LedgerDamaged, match="was rewritten: entry 7 is not the one that was acknowledged"):
        read_sound(MACHINE, tmp_path)


def test_entries_added_by_another_program_are_refused(tmp_path: Path) -> None:
    path = written(tmp_path) / "ledger.jsonl"
    before = (tmp_path / "head.json").read_bytes()
    written(tmp_path, 2)
    (tmp_path / "head.json").write_bytes(before)
    with pytest.raises(LedgerDamaged, match="2 entries beyond its anchor"):
        read_sound(MACHINE, tmp_path)
    assert path.exists()


def test_a_ledger_without_its_anchor_is_refused(tmp_path: Path) -> None:
    (written(tmp_path) / "head.json").unlink()
    with pytest.raises(LedgerDamaged, match=r"anchor, head\.json, is missing"):
        Ledger.open(MACHINE, tmp_path, holder="test")


def test_a_damaged_anchor_slot_falls_back_to_the_other(tmp_path: Path) -> None:
    head = written(tmp_path) / "head.json"
    newest = anchor.read(MACHINE, str(head))
    assert newest is not None
    data = bytearray(head.read_bytes())
    data[(newest.writes % 2) * 512 + 40] ^= 1
    head.write_bytes(data)
    assert len(entries_of(tmp_path)) == 8


def test_a_writer_that_was_overtaken_stops(tmp_path: Path) -> None:
    with Ledger.open(MACHINE, tmp_path, holder="test") as ledger:
        ledger.append(Actor.ENGINE, "noted", {"says": "first"})
        with (tmp_path / "ledger.jsonl").open("ab") as file:
            file.write(b"stranger\n")
        with pytest.raises(StudyHeld, match="changed by another program"):
            ledger.append(Actor.ENGINE, "noted", {"says": "second"})


HOLD = """
import sys, time
from pathlib import Path
from overnight.errors import StudyHeld
from overnight.machine import RealMachine
from overnight.study.ledger import Ledger
go = Path(sys.argv[1]) / "go"
while not go.exists(): time.sleep(0.0005)
for _ in range(int(sys.argv[2])):
    try:
        ledger = Ledger.open(RealMachine(), Path(sys.argv[1]) / "study", holder=f"engine {sys.argv[3]}")
    except StudyHeld as held:
        print("held", "engine" in str(held), flush=True)
    else:
        print("won", flush=True)
    sys.stdin.readline()
    if "ledger" in dir(): ledger.close(); del ledger
    print("ready", flush=True)
    sys.stdin.readline()
"""


def test_of_two_engines_exactly_one_proceeds_a_hundred_times(tmp_path: Path) -> None:
    (tmp_path / "study").mkdir()
    written(tmp_path / "study")
    engines = [
        subprocess.Popen(
            [sys.executable, "-c", HOLD, str(tmp_path), "100", str(number)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(2)
    ]
    (tmp_path / "go").touch()
    for _ in range(100):
        said = sorted(_line(engine) for engine in engines)
        assert said == ["held True", "won"]
        for step in ("ready", None):
            for engine in engines:
                assert engine.stdin is not None
                engine.stdin.write("\n")
                engine.stdin.flush()
            if step is not None:
                assert [_line(engine) for engine in engines] == [step, step]
    for engine in engines:
        engine.communicate()


def _line(engine: "subprocess.Popen[str]") -> str:
    assert engine.stdout is not None
    return engine.stdout.readline().strip()


WRITE = """
import sys
from pathlib import Path
from overnight.machine import RealMachine
from overnight.records.lifecycle import Actor
from overnight.study.ledger import Ledger
class Torn(RealMachine):
    def write(self, fd, data):
        return super().write(fd, data[: max(1, len(data) // 3)])
with Ledger.open(Torn(), Path(sys.argv[1]), holder="writer") as ledger:
    while True:
        entry = ledger.append(Actor.ENGINE, "noted", {"says": "x" * 300})
        sys.stdout.write(f"{entry['seq']}\\n")
        sys.stdout.flush()
"""


def test_two_hundred_kills_lose_nothing_acknowledged(tmp_path: Path) -> None:
    chance = random.Random(7)
    acknowledged = -1
    for _ in range(2000 if os.environ.get("OVERNIGHT_SOAK") else 200):
        writer = subprocess.Popen([sys.executable, "-c", WRITE, str(tmp_path)], stdout=subprocess.PIPE)
        assert writer.stdout is not None
        first = writer.stdout.readline()
        time.sleep(chance.random() * 0.02)
        os.kill(writer.pid, signal.SIGKILL)
        rest = writer.stdout.read()
        writer.wait()
        writer.stdout.close()
        said = [int(line) for line in (first + rest).split(b"\n")[:-1] if line]
        assert said and said[0] >= acknowledged + 1
        acknowledged = said[-1]
        entries = entries_of(tmp_path)
        assert len(entries) in (acknowledged + 1, acknowledged + 2)
        assert [entry["seq"] for entry in entries] == list(range(len(entries)))
    assert acknowledged > 400


@pytest.fixture(scope="module")
def long_study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    project = tmp_path_factory.mktemp("long")
    long_ledger.write(project / ".overnight" / "tasks" / "cartpole" / "studies" / "first", 100_000)
    return project


def best_of(times: int, work: object) -> float:
    """The least processor time of a few tries: what the work costs, whatever else the machine does."""
    assert callable(work)
    spent = []
    for _ in range(times):
        began = time.process_time()
        work()
        spent.append(time.process_time() - began)
    return min(spent)


def test_the_state_of_100_000_entries_is_read_in_under_a_second(long_study: Path) -> None:
    at = Root(long_study / ".overnight").task("cartpole").study("first")
    with Study.open(MACHINE, at, doing="test") as study:
        assert study.state.entries == 100_000
    assert best_of(3, lambda: read_state(MACHINE, at)) < 1.0
    assert read_state(MACHINE, at) == study.state


def test_100_000_entries_are_verified_in_under_three_seconds(long_study: Path) -> None:
    at = Root(long_study / ".overnight").task("cartpole").study("first")

    def verify() -> None:
        entries = Fold()
        assert entries.state(read_sound(MACHINE, at.folder, entries), where="ledger").entries == 100_000

    assert best_of(3, verify) < 3.0


def test_a_durable_append_takes_under_a_millisecond_at_the_median(tmp_path: Path) -> None:
    """Other programs that sync at the same time make every sync wait for theirs, so the calmest batch counts."""
    medians: list[float] = []
    until = time.monotonic() + 60
    with Ledger.open(MACHINE, tmp_path, holder="test") as ledger:
        while time.monotonic() < until and min(medians, default=1.0) >= 0.001:
            spent = []
            for _ in range(50):
                began = time.perf_counter()
                ledger.append(Actor.ENGINE, "noted", {"says": "x" * 250})
                spent.append(time.perf_counter() - began)
            medians.append(statistics.median(spent))
            time.sleep(0.2)
    assert min(medians) < 0.001


@pytest.mark.feature("R38")
def test_state_json_may_be_deleted_damaged_or_stale(tmp_path: Path) -> None:
    at = Root(tmp_path / ".overnight").task("cartpole").study("first")
    long_ledger.write(at.folder, 50)
    with Study.open(MACHINE, at, doing="test") as study:
        whole = study.state
    assert read_state(MACHINE, at) == whole
    for damage in (b"", b"{", b'{"schema": "overnight/state/9"}', b"[" * 100_000, at.state.read_bytes()[:-40]):
        at.state.write_bytes(damage)
        state = read_state(MACHINE, at)
        state.ledger_sha256 = whole.ledger_sha256
        assert state == whole
    at.state.unlink()
    assert read_state(MACHINE, at).candidates == whole.candidates


def test_a_state_that_lies_about_the_ledger_is_not_believed(tmp_path: Path) -> None:
    at = Root(tmp_path / ".overnight").task("cartpole").study("first")
    long_ledger.write(at.folder, 50)
    with Study.open(MACHINE, at, doing="test") as study:
        study.state.tip = "f" * 40
        study.state.ledger_sha256 = "0" * 64
        save_state(MACHINE, at, study.state)
        study.state.entries = -1  # so that closing does not put it right
    assert read_state(MACHINE, at).tip != "f" * 40


def test_reading_goes_on_from_state_json_with_what_came_after(tmp_path: Path) -> None:
    at = Root(tmp_path / ".overnight").task("cartpole").study("first")
    long_ledger.write(at.folder, 50)
    with Study.open(MACHINE, at, doing="test"):
        pass
    with Ledger.open(MACHINE, at.folder, holder="test") as ledger:
        ledger.append(Actor.ENGINE, "noted", {"says": "after the state was saved"})
    assert read_state(MACHINE, at).entries == 51
    (at.folder / "ledger.jsonl").write_bytes(at.ledger.read_bytes().replace(b"learns", b"LEARNS", 1))
    with pytest.raises(LedgerDamaged, match="damaged at entry"):
        read_state(MACHINE, at)
