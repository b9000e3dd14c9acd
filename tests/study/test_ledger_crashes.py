"""The crash matrix: every operation, before, half and after it; power cuts; disk errors; planted mutants."""

import errno
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from overnight.errors import DiskTrouble
from overnight.ports import Machine
from overnight.records.lifecycle import Actor
from overnight.study import anchor
from overnight.study.durable import write_file
from overnight.study.ledger import Ledger
from overnight.testing.simulated import Crash, Failure, PowerCut, SimulatedMachine

FOLDER = Path("/s")
APPENDS = 6
Acknowledged = list[int]
Work = Callable[[Machine, Acknowledged], None]


def work(machine: Machine, done: Acknowledged) -> None:
    """Open, append, close, open again, append more; note what was acknowledged."""
    for start in (0, APPENDS // 2):
        with Ledger.open(machine, FOLDER, holder="test") as ledger:
            for number in range(start, start + APPENDS // 2):
                ledger.append(Actor.ENGINE, "noted", {"number": number, "pad": "p" * (number * 37 % 150)})
                done.append(number)


def recover(machine: Machine, done: Acknowledged) -> None:
    """After any fault: everything acknowledged is there, in order, and the ledger goes on."""
    numbers: list[int] = []
    with Ledger.open(
        machine, FOLDER, holder="test", take=lambda entry, _: numbers.append(entry["data"]["number"])
    ) as ledger:
        assert numbers == list(range(len(numbers))), "a gap or a stranger"
        assert len(done) <= len(numbers) <= len(done) + 1, f"{len(done)} acknowledged, {len(numbers)} found"
        ledger.append(Actor.ENGINE, "noted", {"number": len(numbers)})
    with Ledger.open(machine, FOLDER, holder="test") as ledger:
        assert ledger.entries == len(numbers) + 1


def fresh(**options: object) -> SimulatedMachine:
    machine = SimulatedMachine(**options)  # type: ignore[arg-type]
    machine.make_folder(str(FOLDER))
    return machine


def operations(work: Work) -> int:
    machine = fresh()
    work(machine, [])
    return machine.operations + 20  # short writes make some repetitions longer


def violations(work: Work, *, seeds: int, moments: tuple[str, ...] = ("before", "half", "after")) -> tuple[int, int]:
    """Crash at every operation, and count the states and the broken promises."""
    states = broken = 0
    for at in range(1, operations(work)):
        for moment in moments:
            for seed in range(seeds):
                machine = fresh(seed=seed, fault=Crash(at, moment))  # type: ignore[arg-type]
                done: Acknowledged = []
                with suppress(PowerCut):
                    work(machine, done)
                survivor = machine.after_kill() if seed == 0 else machine.after_power_cut(seed=seed)
                states += 1
                try:
                    recover(survivor, done)
                except Exception:  # noqa: BLE001 - every kind of failure counts
                    broken += 1
    return states, broken


def test_a_crash_at_any_operation_loses_nothing_acknowledged() -> None:
    states, broken = violations(work, seeds=400 if os.environ.get("OVERNIGHT_SOAK") else 12)
    assert states > 2000
    assert broken == 0


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO], ids=["disk full", "input/output error"])
def test_a_disk_error_at_any_call_loses_nothing_acknowledged(code: int) -> None:
    for at in range(1, operations(work)):
        for seed in range(6):
            machine = fresh(seed=seed, fault=Failure(at, code))
            done: Acknowledged = []
            with suppress(DiskTrouble):
                work(machine, done)
            recover(machine.after_kill(), done)
            recover(machine.after_power_cut(seed=seed), done)


def test_after_a_failed_write_the_ledger_takes_nothing_more() -> None:
    refused = 0
    for at in range(1, operations(work)):
        machine = fresh(fault=Failure(at))
        try:
            ledger = Ledger.open(machine, FOLDER, holder="test")
        except DiskTrouble:
            continue
        try:
            for number in range(4):
                ledger.append(Actor.ENGINE, "noted", {"number": number})
        except DiskTrouble:
            with pytest.raises(DiskTrouble, match="closed to further entries"):
                ledger.append(Actor.ENGINE, "noted", {"number": 99})
            refused += 1
    assert refused > 4


class NoSync(SimulatedMachine):
    """Mutant: syncing a file does nothing."""

    def sync(self, fd: int) -> None:
        self._before()
        self._after()


class NoFolderSync(SimulatedMachine):
    """Mutant: syncing a folder does nothing."""

    def sync_folder(self, path: str) -> None:
        self._before()
        self._after()


def _mutant_machine(kind: type[SimulatedMachine], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "SimulatedMachine", kind)


def _no_repair(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SimulatedMachine, "truncate", lambda self, fd, size: None)


def _acknowledge_before_sync(monkeypatch: pytest.MonkeyPatch) -> None:
    append = Ledger._write

    def eager(self: Ledger, line: bytes, head: str) -> None:
        DONE.append(len(DONE))
        append(self, line, head)

    monkeypatch.setattr(Ledger, "_write", eager)


def _anchor_first(monkeypatch: pytest.MonkeyPatch) -> None:
    write = Ledger._write

    def early(self: Ledger, line: bytes, head: str) -> None:
        mark = anchor.Anchor(self._mark.writes + 1, self._mark.entries + 1, head, self.epoch)
        anchor.put(self._machine, self._head_fd, mark)
        write(self, line, head)

    monkeypatch.setattr(Ledger, "_write", early)


def _one_slot(monkeypatch: pytest.MonkeyPatch) -> None:
    put = anchor.put
    monkeypatch.setattr(anchor, "put", lambda disk, fd, mark: put(disk, fd, mark._replace(writes=mark.writes * 2)))


def _torn_create(monkeypatch: pytest.MonkeyPatch) -> None:
    def create(disk: Machine, path: str) -> None:
        fd = disk.open(path, os.O_RDWR | os.O_CREAT)
        for mark in (anchor.EMPTY._replace(writes=0), anchor.EMPTY):
            anchor.put(disk, fd, mark)
        disk.close(fd)

    monkeypatch.setattr(anchor, "create", create)


DONE: Acknowledged = []


def work_eagerly(machine: Machine, done: Acknowledged) -> None:
    DONE.clear()
    try:
        work(machine, [])
    finally:
        done.extend(DONE)


MUTANTS: dict[str, tuple[Callable[[pytest.MonkeyPatch], None], Work]] = {
    "no sync of files": (lambda patch: _mutant_machine(NoSync, patch), work),
    "no sync of folders": (lambda patch: _mutant_machine(NoFolderSync, patch), work),
    "a torn tail is left in place": (_no_repair, work),
    "acknowledged before it is durable": (_acknowledge_before_sync, work_eagerly),
    "anchored before it is durable": (_anchor_first, work),
    "one anchor slot instead of two": (_one_slot, work),
    "the anchor is not created in one step": (_torn_create, work),
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_the_matrix_catches_a_planted_mutant(mutant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plant, planted_work = MUTANTS[mutant]
    plant(monkeypatch)
    _, broken = violations(planted_work, seeds=8)
    assert broken > 0


def whole_file(machine: Machine, done: Acknowledged) -> None:
    for number in range(3):
        write_file(machine, FOLDER / "file", f"{number}".encode() * 300)
        done.append(number)


def test_a_replaced_file_is_the_old_one_or_the_new_one() -> None:
    for at in range(1, operations(whole_file)):
        for moment in ("before", "half", "after"):
            for seed in range(8):
                machine = fresh(seed=seed, fault=Crash(at, moment))
                done: Acknowledged = []
                with suppress(PowerCut):
                    whole_file(machine, done)
                found = machine.after_power_cut(seed=seed).read(str(FOLDER / "file"))
                allowed = {f"{number}".encode() * 300 for number in range(max(len(done) - 1, 0), 3)}
                assert found in allowed | ({None} if not done else set())
