"""Every way in which a coding agent's stream ends is read for what it is."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from overnight.adapters.proposers import claude, codex, plain
from overnight.adapters.proposers.events import Told, object_in, reset_time

TRANSCRIPTS = Path(__file__).parents[2] / "fixtures" / "transcripts"
NOW = 1_800_000_000.0  # 2027-01-15 08:00 UTC


def read(name: str) -> Told:
    reader = codex.read if name.startswith("codex") else claude.read
    return reader((TRANSCRIPTS / f"{name}.jsonl").read_bytes().splitlines(), NOW)


@pytest.mark.parametrize(
    ("name", "trouble", "until"),
    [
        ("claude-proposal", None, None),
        ("claude-torn-line", None, None),
        ("claude-warned", None, None),
        ("claude-refusal", "refusal", None),
        ("claude-quota", "limited", NOW + 3600),
        ("claude-rate-limit", "limited", None),
        ("claude-signed-out", "broken", None),
        ("claude-2.1.325-signed-out", "broken", None),
        ("claude-budget", "spent", None),
        ("claude-crash", None, None),
        ("codex-proposal", None, None),
        ("codex-reconnected", None, None),
        ("codex-refusal", "refusal", None),
        ("codex-quota", "limited", NOW + 5400),
        ("codex-rate-limit", "limited", None),
        ("codex-signed-out", "broken", None),
        ("codex-0.166.0-no-network", "broken", None),
        ("codex-crash", None, None),
    ],
)
def test_a_transcript_is_read_for_what_it_is(name: str, trouble: str | None, until: float | None) -> None:
    told = read(name)
    assert (told.trouble, told.until) == (trouble, until), told
    assert told.ended is ("crash" not in name and "no-network" not in name)


@pytest.mark.parametrize("name", ["claude-proposal", "claude-torn-line", "codex-proposal", "codex-reconnected"])
def test_an_answer_and_its_cost_are_found(name: str) -> None:
    told = read(name)
    assert isinstance(told.answer, dict) and told.answer["hypothesis"] == "A larger step learns faster."
    assert told.tokens == 1000, "what came from a cache is not counted"
    assert told.dollars == (0.25 if name.startswith("claude") else None)


def test_an_error_that_calls_itself_a_success_is_an_error() -> None:
    told = read("claude-2.1.325-signed-out")
    assert told.trouble == "broken" and "Not logged in" in told.because and told.dollars == 0.0


@pytest.mark.parametrize("reader", [claude.read, codex.read, plain.read])
def test_garbage_is_read_as_nothing_and_breaks_nothing(reader: type) -> None:
    told = reader([b"\xff\xfe", *(TRANSCRIPTS / "garbage.jsonl").read_bytes().splitlines()], NOW)
    assert told.tokens == 0 and not told.answer


@pytest.mark.parametrize(
    ("says", "when"),
    [
        ("Claude AI usage limit reached|1800007200", "2027-01-15 10:00"),
        ("You've hit your limit · resets 3pm (UTC)", "2027-01-15 15:00"),
        ("You've hit your limit · resets 7am (UTC)", "2027-01-16 07:00"),
        ("You've hit your limit · resets 2pm (Asia/Shanghai)", "2027-01-16 06:00"),
        ("You've hit your usage limit. Try again in 2 days 17 hours 14 minutes.", "2027-01-18 01:14"),
        ("Rate limit reached. Please try again in 30 seconds.", "2027-01-15 08:00"),
    ],
)
def test_the_moment_of_a_reset_is_understood(says: str, when: str) -> None:
    found = reset_time(says, NOW)
    assert found is not None
    assert datetime.fromtimestamp(found, UTC).strftime("%Y-%m-%d %H:%M") == when


@pytest.mark.parametrize("says", ["Rate limited.", "resets 99pm", "try again at Feb 31st, 2027 1:00 PM", ""])
def test_a_moment_that_cannot_be_understood_is_none(says: str) -> None:
    assert reset_time(says, NOW) is None


@pytest.mark.parametrize(
    "message",
    ['{"a": 1}', 'Here it is:\n```json\n{"a": 1}\n```\nDone.', 'I changed it. {"a": 1}'],
    ids=["alone", "in a fence", "after some words"],
)
def test_an_answer_is_found_in_a_message(message: str) -> None:
    assert object_in(message) == {"a": 1}
