"""More of the same: exactly the amounts change, the word is asked for anew, and nothing changes without it."""

import difflib
from collections.abc import Callable

import pytest

from overnight.admission import Who
from overnight.records.approval import Strength
from overnight.records.contract import Clause
from overnight.study import yaml
from scenes import Said, Scene, at_terminal, digest_of

Verb = Callable[..., Said]


def changed_lines(before: str, after: str) -> list[str]:
    return [line for line in difflib.ndiff(before.splitlines(), after.splitlines()) if line[0] in "+-"]


@pytest.fixture
def unattended(drafted: Scene) -> Scene:
    """A study that was approved unattended, so that `--yes` may approve it anew."""
    drafted.approve(who=Who("tester", Strength.UNATTENDED))
    return drafted


def test_a_person_extends_and_everything_else_in_the_file_stays(cartpole: Scene) -> None:
    before = cartpole.at.contract.read_text()
    seen = at_terminal("extend", "--hours", "4", "--runs", "200", cwd=cartpole.project)
    assert (seen.code, seen.stderr) == (0, "")
    assert "budget.max_runs: 1,000 → 1,200" in seen.terminal
    lines = changed_lines(before, cartpole.at.contract.read_text())
    assert [line.split("#")[0].rstrip() for line in lines] == [
        "-   max_runs: 1000",
        "+   max_runs: 1200",
        "-   max_wall_hours: 8.0",
        "+   max_wall_hours: 12.0",
    ]
    assert all("# The greatest" in line for line in lines)
    assert set(cartpole.standings().values()) == {"in force"}
    assert [data["clause"] for data in cartpole.entries("approved")[8:]] == ["budget"]


@pytest.mark.parametrize("types", ["nonsense\n", "\n"])
def test_without_the_word_nothing_changes(cartpole: Scene, types: str) -> None:
    before = digest_of(cartpole.at.contract.parent, without=["state.json", "engine.lock"])
    before = {path: told for path, told in before.items() if path.endswith(("contract.yaml", "ledger.jsonl"))}
    seen = at_terminal("extend", "--hours", "4", cwd=cartpole.project, types=lambda _: types)
    assert seen.code == 3
    after = digest_of(cartpole.at.contract.parent)
    assert {path: after[path] for path in before} == before


def test_candidates_raise_the_stop_rule_and_the_standing_approval_that_covered_it(
    unattended: Scene, verb: Verb
) -> None:
    done = verb("extend", "--candidates", "50", "--yes", "--dir", str(unattended.project))
    assert done.code == 0, done.stderr
    experiments = unattended.contract().experiments
    assert (experiments.stop.max_candidates, experiments.automation.max_candidates) == (250, 250)
    assert unattended.standings()["experiments"] == "in force"


def test_a_person_raises_what_agents_may_cost(cartpole: Scene) -> None:
    seen = at_terminal("extend", "--dollars", "2.5", "--tokens", "1000", cwd=cartpole.project)
    assert seen.code == 0 and "budget.max_dollars: 0 → 2.5" in seen.terminal, seen.stderr
    budget = cartpole.contract().budget
    assert (budget.max_dollars, budget.max_tokens) == (2.5, 1000)


def test_nobody_unattended_pays_for_an_agent(unattended: Scene, verb: Verb) -> None:
    done = verb("extend", "--dollars", "2.5", "--yes", "--dir", str(unattended.project))
    assert done.code == 3 and "pays for a coding agent" in done.stderr
    assert unattended.contract().budget.max_dollars == 0


def test_a_standing_approval_that_was_smaller_stays(unattended: Scene, verb: Verb) -> None:
    unattended.rewrite(lambda terms: terms["experiments"]["automation"].update(max_candidates=10))
    unattended.approve(Clause.EXPERIMENTS, who=Who("tester", Strength.UNATTENDED))
    assert verb("extend", "--candidates", "50", "--yes", "--dir", str(unattended.project)).code == 0
    assert unattended.contract().experiments.automation.max_candidates == 10


def test_an_unattended_word_cannot_replace_a_persons_and_the_contract_is_put_back(cartpole: Scene, verb: Verb) -> None:
    before = cartpole.at.contract.read_bytes()
    done = verb("extend", "--hours", "4", "--yes", "--dir", str(cartpole.project))
    assert (done.code, "was approved by a person" in done.stderr) == (3, True)
    assert cartpole.at.contract.read_bytes() == before
    assert set(cartpole.standings().values()) == {"in force"}


def test_an_agent_cannot_extend(cartpole: Scene, verb: Verb, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDECODE", "1")
    before = cartpole.at.contract.read_bytes()
    done = verb("extend", "--hours", "4", "--dir", str(cartpole.project))
    assert (done.code, "an agent cannot approve" in done.stderr) == (3, True)
    assert cartpole.at.contract.read_bytes() == before


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--hours", "-2"], "to lower a limit, edit contract.yaml"),
        (["--runs", "0"], "`extend` only adds"),
        (["--hours", "nan"], "`extend` only adds"),
        ([], "needs to know by how much"),
        (["--runs", "1000000", "--yes"], "at most 1e+06 is allowed"),
    ],
)
def test_what_is_no_raise_is_a_mistake(unattended: Scene, verb: Verb, words: list[str], says: str) -> None:
    before = unattended.at.contract.read_bytes()
    done = verb("extend", *words, "--dir", str(unattended.project))
    assert (done.code, says in done.stderr) == (2, True), done.stderr
    assert unattended.at.contract.read_bytes() == before


def test_a_contract_that_is_not_approved_is_approved_first(drafted: Scene, verb: Verb) -> None:
    done = verb("extend", "--hours", "4", "--yes", "--dir", str(drafted.project))
    assert (done.code, "is not approved" in done.stderr) == (3, True)


def test_a_study_that_an_engine_holds_is_not_extended(unattended: Scene, verb: Verb) -> None:
    with unattended.open():
        done = verb("extend", "--hours", "4", "--yes", "--dir", str(unattended.project))
    assert (done.code, "one study has one engine" in done.stderr) == (3, True)


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("a: 1\nb:\n  c: 2  # two\n", "a: 1\nb:\n  c: 9  # two\n"),
        ("# ü→\r\nb:\r\n  x: [c, 2]\r\n  c: 2\r\n", "# ü→\r\nb:\r\n  x: [c, 2]\r\n  c: 9\r\n"),
        ("c: 3\nd:\n  - c: 4\nb: {c: 2, e: 2}", "c: 3\nd:\n  - c: 4\nb: {c: 9, e: 2}"),
        ("b:\n  d:\n    c: 5\n  c:   1_000   \n", "b:\n  d:\n    c: 5\n  c:   9   \n"),
    ],
    ids=["with a comment", "with other line ends", "in one line", "below another"],
)
def test_one_value_is_exchanged_and_every_other_byte_stays(text: str, after: str) -> None:
    assert yaml.with_value(text, ("b", "c"), 9, where="a test") == after
