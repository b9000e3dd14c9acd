"""A coding agent is asked, held, classified and paid for; real processes, a scripted agent."""

import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from asking import Asking, Turn, code_study, with_agent
from nights import params_study
from overnight.adapters.proposers.caller import LocalCaller
from overnight.prospect import view_of
from overnight.records.proposal import Edited, Exhausted, Wait
from overnight.sandbox.processes import with_variable
from scenes import Scene

FASTER = {"params": {"learning_rate": 0.01}}
KEY = "canary-5f1d0c7e9b"


@pytest.fixture(autouse=True)
def _own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "keys"))
    monkeypatch.setenv("SCRIPTED_KEY", KEY)


@contextmanager
def asking(scene: Scene, turns: list[Turn], **agent: Any) -> Iterator[Asking]:
    with_agent(scene, turns, **agent)
    with scene.open() as study:
        engine = Asking(scene, study)
        try:
            yield engine
        finally:
            engine.close()


@pytest.fixture
def study(tmp_path: Path) -> Scene:
    return params_study(tmp_path / "project")


@pytest.mark.parametrize("speaks", ["claude", "codex", "plain"])
def test_a_changed_copy_with_a_hypothesis_becomes_a_candidate(study: Scene, speaks: str) -> None:
    with asking(study, [FASTER], speaks=speaks) as engine:
        heard = engine.take()
        assert heard.candidate == "c-0001" and heard.refused == ()
        drafted = study.entries("drafted")[-1]["proposal"]
        assert (drafted["proposer"], drafted["operator"]) == ("agent", "draft")
        assert drafted["params"] == {"learning_rate": 0.01}
        answered = study.entries("answered")[-1]
        assert answered["outcome"] == "proposal"
        assert answered["tokens"] == (0 if speaks == "plain" else 1000)
        assert answered["dollars"] == (0.25 if speaks == "claude" else None)


def test_asking_never_waits_for_the_agent(study: Scene) -> None:
    with asking(study, [{"ends": "stall"}]) as engine:
        began = time.monotonic()
        first = engine.proposer.ask(view_of(engine.bench))
        second = engine.proposer.ask(view_of(engine.bench))
        assert isinstance(first, Wait) and isinstance(second, Wait)
        assert time.monotonic() - began < 2.0
        engine.close()
        assert engine.ended() == ["stopped"]
        assert not with_variable(f"OVERNIGHT_ASK={study.at.ask('a-0001')}")


@pytest.mark.feature("Z18")
@pytest.mark.parametrize("speaks", ["claude", "codex"])
@pytest.mark.parametrize(
    ("turn", "outcome", "says"),
    [
        pytest.param({"ends": "proposal", "params": {}}, "empty", "changed nothing", id="an empty diff"),
        pytest.param({"ends": "refusal"}, "refusal", "declined", id="a refusal"),
        pytest.param({"ends": "rate"}, "limited", "429", id="a rate limit"),
        pytest.param({"ends": "signed-out"}, "broken", "failed", id="no credentials"),
        pytest.param({"ends": "crash"}, "broken", "Segmentation fault", id="a crash"),
        pytest.param({"ends": "silent", **FASTER}, "unclear", "no JSON object", id="a change without a reason"),
        pytest.param({**FASTER, "answer": {"kind": "magic"}}, "unclear", "kind", id="a kind that there is not"),
        pytest.param({"write": {"params.json": "$KEY"}}, "leak", "params.json", id="its own key in the copy"),
    ],
)
def test_an_answer_that_is_no_idea_is_told_apart_and_no_candidate_comes_of_it(
    study: Scene, speaks: str, turn: Turn, outcome: str, says: str
) -> None:
    with asking(study, [turn], speaks=speaks) as engine:
        assert isinstance(engine.ask(), Wait)
        answered = study.entries("answered")[-1]
        assert answered["outcome"] == outcome and says in answered["because"], answered
        assert not study.entries("drafted"), "infrastructure costs no candidate and no run"


@pytest.mark.parametrize(
    ("turn", "limits", "outcome"),
    [
        pytest.param({"ends": "stall"}, {"silence_seconds": 1}, "stalled", id="no event for a second"),
        pytest.param({"ends": "slow"}, {"wall_seconds": 1.5}, "timeout", id="busy for ever"),
    ],
)
def test_an_agent_that_does_not_end_is_ended_with_everything_below_it(
    study: Scene, turn: Turn, limits: dict[str, float], outcome: str
) -> None:
    with asking(study, [turn], **limits) as engine:
        engine.ask()
        answered = study.entries("answered")[-1]
        assert answered["outcome"] == outcome
        assert answered["counted_dollars"] == 1.0, "what it may have cost counts where it never told"
        assert not with_variable(f"OVERNIGHT_ASK={study.at.ask('a-0001')}")


def test_a_quota_is_waited_for_until_its_reset_and_then_asked_again(study: Scene) -> None:
    reset = time.time() + 3600
    with asking(study, [{"ends": "quota", "resets_at": reset}, FASTER]) as engine:
        engine.ask()
        assert study.entries("answered")[-1]["until"] == int(reset)
        waiting = engine.ask(until=lambda _: True)
        assert isinstance(waiting, Wait) and 3500 < waiting.until_seconds <= 3600, waiting
        engine.clock.ahead = 3601.0
        assert engine.take().candidate == "c-0001"
        assert engine.ended() == ["limited", "proposal"]


def test_codex_says_when_it_takes_questions_again_in_words(study: Scene) -> None:
    with asking(study, [{"ends": "quota"}], speaks="codex") as engine:
        engine.ask()
        until = study.entries("answered")[-1]["until"]
        assert abs(until - time.time() - 5400) < 60


@pytest.mark.feature("H72")
def test_a_crash_loop_is_waited_out_longer_each_time_and_then_given_up(study: Scene) -> None:
    with asking(study, [{"ends": "no-start"}]) as engine:
        pauses = []
        for _ in range(6):
            engine.ask()
            waiting = engine.ask(until=lambda _: True)
            if isinstance(waiting, Exhausted):
                break
            assert isinstance(waiting, Wait)
            pauses.append(round(waiting.until_seconds))
            engine.clock.ahead += waiting.until_seconds + 1
        assert pauses == [30, 60, 120, 240, 480]
        last = engine.ask()
        assert isinstance(last, Exhausted) and "failed 6 times in a row" in last.because
        engine.clock.ahead += 7 * 3600
        assert isinstance(engine.ask(), Wait), "a breakdown of last night says nothing about this one"


@pytest.mark.parametrize(
    ("budget", "says"),
    [
        pytest.param({"max_dollars": 0.5}, "money for agents is used up", id="money"),
        pytest.param({"max_tokens": 2000}, "tokens for agents are used up", id="tokens"),
    ],
)
def test_a_ceiling_is_held_before_each_question(study: Scene, budget: dict[str, float], says: str) -> None:
    turns = [{"params": {"learning_rate": 0.001 * n}} for n in range(1, 9)]
    with_agent(study, turns)
    study.rewrite(lambda terms: terms["budget"].update(budget))
    study.approve()
    with study.open() as opened:
        engine = Asking(study, opened)
        for _ in range(2):
            engine.take()
        last = engine.ask()
        assert isinstance(last, Exhausted) and says in last.because
        assert len(study.entries("asked")) == 2, "a question that cannot be paid for is not asked"
        assert opened.state.dollars == 0.5 and opened.state.tokens == 2000


def test_an_agent_that_uses_more_tokens_than_are_left_is_ended_at_once(study: Scene) -> None:
    with_agent(study, [{"ends": "slow"}])
    study.rewrite(lambda terms: terms["budget"].update(max_tokens=500))
    study.approve()
    with study.open() as opened:
        engine = Asking(study, opened)
        engine.ask()
        assert engine.ended() == ["spent"] and opened.state.tokens == 1000
        assert isinstance(engine.ask(), Exhausted)


def test_an_agent_gets_its_own_key_a_private_home_and_nothing_else(
    study: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "not-for-the-agent-at-all")
    script = "import json, os; print(json.dumps({k: v for k, v in os.environ.items()}))"
    command = [sys.executable, "-c", script, "{brief}"]
    with asking(study, [{}], speaks="plain", command=command) as engine:
        engine.ask()
        said = json.loads((study.at.ask("a-0001") / "events.jsonl").read_text())
        assert "AWS_SECRET_ACCESS_KEY" not in said
        assert said["SCRIPTED_KEY"] == "[redacted]", "it has it, and what it prints is taken down without it"
        assert said["HOME"].startswith(str(study.at.ask("a-0001")))
        assert not (study.at.ask("a-0001") / "home").exists()


def test_no_secret_stays_on_disk_after_an_agent_printed_and_wrote_it(study: Scene) -> None:
    turn = {"write": {"params.json": "{}", "notes/$KEY.txt": "$KEY"}, "ends": "proposal", "answer": {"hypothesis": KEY}}
    with asking(study, [turn]) as engine:
        engine.ask()
        assert engine.ended() == ["leak"]
    kept = [path for path in study.at.folder.rglob("*") if path.is_file()]
    assert not [path for path in kept if KEY.encode() in path.read_bytes()]


@pytest.mark.parametrize("where", ["keys", "ledger"])
def test_an_agent_cannot_read_the_seed_key_or_the_ledger(study: Scene, tmp_path: Path, where: str) -> None:
    target = next((tmp_path / "keys").rglob("*.key")) if where == "keys" else study.at.ledger
    script = f"import pathlib, sys; print(pathlib.Path({str(target)!r}).read_bytes()[:10])"
    command = [sys.executable, "-c", script, "{brief}"]
    with asking(study, [{}], speaks="plain", command=command) as engine:
        engine.ask()
        answered = study.entries("answered")[-1]
        assert answered["outcome"] == "broken", answered
        assert "PermissionError" in answered["because"] or "FileNotFoundError" in answered["because"], answered


def test_a_proposal_that_an_engine_did_not_live_to_take_up_is_taken_up_by_the_next(study: Scene) -> None:
    with asking(study, [FASTER]) as engine:
        assert isinstance(engine.ask(), Edited)
    with study.open() as opened:
        again = Asking(study, opened)
        assert again.take().candidate == "c-0001"
        assert len(study.entries("asked")) == 1


def test_a_question_whose_engine_was_killed_is_lost_and_counts_in_full(study: Scene) -> None:
    with_agent(study, [{"ends": "stall"}, FASTER])
    with study.open() as opened:
        engine = Asking(study, opened)
        engine.ask(until=lambda _: True)
        folder = study.at.ask("a-0001")
        caller = engine.proposer.caller
        assert isinstance(caller, LocalCaller)
        for keeper in caller._keepers.values():
            keeper.kill()
            keeper.wait()
        engine.ask()
        assert engine.ended() == ["lost"]
        assert study.entries("answered")[-1]["counted_dollars"] == 1.0
        assert not with_variable(f"OVERNIGHT_ASK={folder}") and not (folder / "home").exists()


def test_code_that_an_agent_edits_is_carried_as_a_diff_of_its_copy(tmp_path: Path) -> None:
    scene = code_study(tmp_path / "project")
    turn = {"write": {"config.json": '{"angle": 1.0}\n'}, "answer": {"kind": "code"}}
    before = (scene.project / "config.json").read_text()
    with asking(scene, [turn], speaks="codex") as engine:
        assert engine.take().refused == ()
    assert (scene.project / "config.json").read_text() == before, "the person's repository is never touched"
    assert "angle" in (scene.at.candidate("c-0001") / "change.diff").read_text()
