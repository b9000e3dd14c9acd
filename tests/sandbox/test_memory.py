"""What was proven is remembered, as long as everything that it rests on is the same."""

import json
from pathlib import Path

import pytest

from overnight.records.tier import Tier
from overnight.sandbox import memory, probe
from overnight.sandbox.probe import SIGNAL, Proof, prove


@pytest.fixture(autouse=True)
def _own_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


def test_a_proof_is_made_once_and_told_again_by_the_next_process(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[Tier] = []

    def trying(tier: Tier) -> Proof:
        tried.append(tier)
        return Proof(tier, "", (SIGNAL,))

    monkeypatch.setattr(probe, "tried", trying)
    first = prove.__wrapped__("T2")
    assert prove.__wrapped__("T2") == first == Proof("T2", "", (SIGNAL,))
    assert tried == ["T2"]
    assert memory.place().stat().st_size < 500


def test_what_did_not_hold_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter([Proof("T3", "it took too long."), Proof("T3", "")])
    monkeypatch.setattr(probe, "tried", lambda _: next(answers))
    assert not prove.__wrapped__("T3").holds()
    assert prove.__wrapped__("T3").holds()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"proven": {"T3": []}}', '{"rests on": 1, "proven": 2}', "9" * 10**6])
def test_a_broken_file_is_no_proof(text: str) -> None:
    memory.place().parent.mkdir()
    memory.place().write_text(text)
    assert memory.recall("T3") is None


def test_another_boot_kernel_user_bubblewrap_or_source_is_another_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    memory.remember("T2", ())
    assert memory.recall("T2") == ()
    told = json.loads(memory.place().read_text())
    memory.place().write_text(json.dumps({**told, "rests on": "0" * 64}))
    assert memory.recall("T2") is None
    before = memory.conditions()
    for name in ("platform.platform", "os.getresuid", "os.getgroups"):
        monkeypatch.setattr(f"overnight.sandbox.memory.{name}", lambda: "another")
        assert memory.conditions.__wrapped__() != before
        monkeypatch.undo()
    monkeypatch.setattr(memory, "bubblewrap", lambda: "/bin/true")
    assert memory.conditions.__wrapped__() != before
