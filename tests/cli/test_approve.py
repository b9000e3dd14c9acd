"""Approving: a person at a terminal gives one word, an agent cannot, and an edit takes it back."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from overnight import admission as loop
from overnight.admission import Who
from overnight.errors import Refused
from overnight.machine import RealMachine
from overnight.ports import Finished
from overnight.records.approval import Strength
from overnight.records.contract import Clause
from overnight.study.study import Study
from scenes import TESTER, Said, Scene, at_terminal, clean_env, overnight
from signing import Desk, desk_in

Verb = Callable[..., Said]
EIGHT = [str(clause) for clause in Clause]


def strengths(scene: Scene) -> dict[str, str]:
    """How each approved clause was approved."""
    return {data["clause"]: data["strength"] for data in scene.entries("approved")}


# A person at a terminal


SEVEN = [clause for clause in EIGHT if clause != "experiments"]


def test_the_word_shown_on_the_terminal_approves_seven_and_the_eighth_waits_for_the_calibration(
    drafted: Scene,
) -> None:
    seen = at_terminal("approve", cwd=drafted.project)
    assert (seen.code, seen.stderr) == (0, "")
    assert "The eighth clause, `experiments`, is asked when the baseline is calibrated" in seen.stdout
    assert strengths(drafted) == dict.fromkeys(SEVEN, "terminal")
    seen = at_terminal("approve", "experiments", cwd=drafted.project)
    assert "Nobody knows yet: the baseline is not calibrated." in seen.terminal
    assert set(drafted.standings().values()) == {"in force"}


def test_the_word_is_shown_nowhere_but_on_the_terminal(drafted: Scene) -> None:
    words: list[str] = []

    def note(word: str) -> str:
        words.append(word)
        return f"{word}\n"

    seen = at_terminal("approve", cwd=drafted.project, types=note)
    assert words[0] in seen.terminal
    assert words[0] not in seen.stdout + seen.stderr


def test_the_screen_says_what_is_approved(drafted: Scene) -> None:
    seen = at_terminal("approve", cwd=drafted.project)
    told = ("CartPole-v1", "params.json", "episode_return", "8 hours in all", "after 200 candidates")
    assert [one for one in told if one not in seen.terminal] == []


@pytest.mark.parametrize(
    "types",
    [
        pytest.param(lambda word: "yes\n", id="yes"),
        pytest.param(lambda word: "\n", id="nothing"),
        pytest.param(lambda word: f"{word}0\n", id="nearly the word"),
        pytest.param(lambda word: "\x04", id="the end of the file"),
    ],
)
def test_anything_but_the_word_approves_nothing(drafted: Scene, types: Callable[[str], str]) -> None:
    seen = at_terminal("approve", cwd=drafted.project, types=types)
    assert (seen.code, "The word was not typed, so nothing is approved." in seen.stderr) == (3, True)
    assert drafted.entries("approved") == []


def test_terms_edited_while_they_are_read_are_not_approved(drafted: Scene) -> None:
    def edit_first(word: str) -> str:
        drafted.edit("max_wall_hours: 8.0", "max_wall_hours: 9999.0")
        return f"{word}\n"

    seen = at_terminal("approve", cwd=drafted.project, types=edit_first)
    assert (seen.code, "8 hours in all" in seen.terminal) == (3, True)
    assert "The contract changed while it was being read, so nothing is approved." in seen.stderr
    assert drafted.entries("approved") == []


def test_single_clauses_are_approved_by_name(drafted: Scene) -> None:
    seen = at_terminal("approve", "metric", "budget", cwd=drafted.project)
    assert (seen.code, seen.stdout) == (0, "Approved (terminal): metric, budget.\n")
    assert strengths(drafted) == {"metric": "terminal", "budget": "terminal"}


def test_a_single_candidate_is_permitted_by_its_id(cartpole: Scene) -> None:
    cartpole.propose({"gamma": 0.95})
    assert at_terminal("approve", "c-0001", cwd=cartpole.project).code == 0
    permit = cartpole.entries("permitted")[0]
    assert (permit["candidate"], permit["strength"]) == ("c-0001", "terminal")


@pytest.mark.parametrize(("typed", "meant"), [("budgit", "budget"), ("hardwear", "hardware"), ("taks", "task")])
def test_a_misspelt_clause_is_corrected(drafted: Scene, verb: Verb, typed: str, meant: str) -> None:
    done = verb("approve", typed, "--yes", "--dir", str(drafted.project))
    assert (done.code, f"hint: did you mean `{meant}`?" in done.stderr) == (2, True)
    assert drafted.entries("approved") == []


# Nobody at a terminal


def test_without_a_controlling_terminal_nobody_can_be_asked(drafted: Scene) -> None:
    done = overnight("approve", cwd=drafted.project)
    assert done.returncode == 3
    assert "There is no controlling terminal, so no person can be asked." in done.stderr
    assert drafted.entries("approved") == []


@pytest.mark.parametrize("piped", ["y\n" * 100, "yes\n", "approve\n"])
def test_a_piped_answer_does_not_help(drafted: Scene, piped: str) -> None:
    done = overnight("approve", cwd=drafted.project, stdin=piped)
    assert done.returncode == 3
    assert drafted.entries("approved") == []


@pytest.mark.parametrize(
    ("name", "value", "host"),
    [
        ("CLAUDECODE", "1", "Claude Code"),
        ("CLAUDE_CODE_ENTRYPOINT", "cli", "Claude Code"),
        ("CODEX_SANDBOX", "seatbelt", "Codex"),
        ("CODEX_THREAD_ID", "x", "Codex"),
        ("CURSOR_AGENT", "1", "Cursor"),
        ("GEMINI_CLI", "1", "Gemini CLI"),
    ],
)
def test_an_agent_cannot_approve_even_at_a_terminal(drafted: Scene, name: str, value: str, host: str) -> None:
    seen = at_terminal("approve", cwd=drafted.project, env=clean_env(**{name: value}))
    assert seen.code == 3
    assert f"This runs inside {host}, and an agent cannot approve; no signature was given." in seen.stderr
    assert (seen.terminal, drafted.entries("approved")) == ("", [])


# Unattended


@pytest.mark.parametrize("host", [{}, {"CLAUDECODE": "1"}], ids=["by a person", "inside an agent"])
def test_code_is_never_approved_unattended(repository: Scene, host: Mapping[str, str]) -> None:
    repository.edit("max_wall_hours: 1", "max_wall_hours: 2")
    before = repository.entries("approved")
    done = overnight("approve", "--yes", cwd=repository.project, env=clean_env(**host))
    assert done.returncode == 3
    assert "The scope `repo` lets candidates bring code." in done.stderr
    assert repository.entries("approved") == before


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("network: false", "network: true", "Candidates would get the network."),
        ("trackers: []", "trackers: [wandb]", "Candidates would write to experiment trackers."),
        ("max_dollars: 0", "max_dollars: 5", "The budget pays for a coding agent."),
        ("[hyperparameter, algorithm, network]", "[code]", "The class of experiments includes code or environments."),
        ("trainer: built-in", "trainer: repository", "The baseline command is not a built-in trainer."),
        ("preset: params", "preset: single-file", "The scope `single-file` lets candidates bring code."),
    ],
)
def test_what_reaches_further_is_never_approved_unattended(
    drafted: Scene, verb: Verb, old: str, new: str, says: str
) -> None:
    drafted.edit(old, new)
    done = verb("approve", "--yes", "--dir", str(drafted.project))
    assert (done.code, says in done.stderr) == (3, True)
    assert drafted.entries("approved") == []


def test_plain_parameters_are_approved_unattended_and_recorded_as_such(drafted: Scene) -> None:
    done = overnight("approve", "--yes", cwd=drafted.project)
    assert done.returncode == 0
    assert strengths(drafted) == dict.fromkeys(SEVEN, "unattended")


def test_an_unattended_word_does_not_weaken_a_persons(cartpole: Scene) -> None:
    before = cartpole.entries("approved")
    cartpole.approve(who=Who("robot", Strength.UNATTENDED))
    assert cartpole.entries("approved") == before


def test_an_unattended_word_does_not_replace_a_persons(cartpole: Scene) -> None:
    cartpole.edit("max_wall_hours: 8.0", "max_wall_hours: 80.0")
    done = overnight("approve", "--yes", cwd=cartpole.project)
    says = "budget was approved by a person, and an unattended word cannot replace that."
    assert (done.returncode, says in done.stderr) == (3, True)
    assert cartpole.standings()["budget"] == "void"


# Editing an approved clause

EDITS = {
    Clause.TASK: ("Raise the episode return", "Raise the mean episode return"),
    Clause.METRIC: ("least_gain: 0.0", "least_gain: 1.0"),
    Clause.SCOPE: ("max_changed_bytes: 10000", "max_changed_bytes: 10001"),
    Clause.BUDGET: ("max_wall_hours: 8.0", "max_wall_hours: 8.5"),
    Clause.HARDWARE: ("cores_per_run: 1", "cores_per_run: 2"),
    Clause.BASELINE: ("Default settings of CleanRL's", "Settings like CleanRL's"),
    Clause.EVALUATION: ("screen_episodes: 20", "screen_episodes: 21"),
    Clause.EXPERIMENTS: ("plateau_candidates: null", "plateau_candidates: 9"),
}


@pytest.mark.parametrize("clause", Clause)
def test_editing_a_clause_voids_its_approval_and_no_other(cartpole: Scene, clause: Clause) -> None:
    cartpole.edit(*EDITS[clause])
    found = cartpole.standings()
    assert found.pop(str(clause)) == "void"
    assert set(found.values()) == {"in force"}


@pytest.mark.parametrize("clause", Clause)
def test_approving_an_edited_clause_again_names_what_it_replaces(cartpole: Scene, clause: Clause) -> None:
    before = cartpole.entries("approved")
    first = next(data["digest"] for data in before if data["clause"] == clause)
    cartpole.edit(*EDITS[clause])
    cartpole.approve()
    new = cartpole.entries("approved")[len(before) :]
    assert [(data["clause"], data["replaces"]) for data in new] == [(str(clause), first)]
    assert set(cartpole.standings().values()) == {"in force"}


def test_undoing_an_edit_brings_the_approval_back_into_force(cartpole: Scene) -> None:
    old, new = EDITS[Clause.BUDGET]
    cartpole.edit(old, new)
    cartpole.edit(new, old)
    assert set(cartpole.standings().values()) == {"in force"}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param("# 4. Budget", "# 4. Budget\n# I read this twice.\n\n", id="a comment"),
        pytest.param("budget:\n", "\n\nbudget:   \n", id="blank lines and spaces"),
        pytest.param("max_wall_hours: 8.0 ", "max_wall_hours: 8 ", id="the same number"),
        pytest.param("host: any", 'host: "any"', id="quotes"),
        pytest.param("paths: [params.json]", "paths:\n    - params.json\n   ", id="a list in lines"),
        pytest.param("schema: overnight/contract/1\n", "# The schema:\nschema: overnight/contract/1\n", id="the top"),
    ],
)
def test_comments_and_spaces_void_nothing(cartpole: Scene, old: str, new: str) -> None:
    cartpole.edit(old, new)
    assert set(cartpole.standings().values()) == {"in force"}


def test_the_order_of_the_clauses_voids_nothing(cartpole: Scene) -> None:
    lead, *sections = cartpole.at.contract.read_text().split("\n# ")
    head = [one for one in sections if not one[0].isdigit()]
    clauses = [one for one in sections if one[0].isdigit()]
    cartpole.at.contract.write_text("\n# ".join([lead, *head, *reversed(clauses)]) + "\n")
    assert set(cartpole.standings().values()) == {"in force"}


# What nobody has said


@pytest.mark.feature("A39")
def test_what_nobody_stated_and_no_file_proves_stays_unknown(unsaid: Scene) -> None:
    unknown = unsaid.terms().unknown
    guardrail = tuple(f"guardrails.{key}" for key in ("name", "direction", "margin"))
    assert unknown[Clause.TASK] == ("mission", "non_goals", "env.id")
    assert unknown[Clause.METRIC] == ("name", "unit", "direction", "source", *guardrail)
    assert unknown[Clause.SCOPE] == ("paths",)
    assert unknown[Clause.BUDGET] == ("stop_amount", "max_wall_hours")
    assert unknown[Clause.BASELINE] == ("command",)
    assert unknown[Clause.EXPERIMENTS] == ("kinds",)


@pytest.mark.feature("A68")
def test_an_unknown_train_command_stays_unknown_and_blocks_the_loop(unsaid: Scene) -> None:
    assert "train.py" in unsaid.at.contract.read_text()
    assert "`baseline.command` is still unknown" in (unsaid.terms().problem(Clause.BASELINE) or "")
    done = overnight("start", cwd=unsaid.project)
    assert (done.returncode, "`baseline.command` is still unknown" in done.stderr) == (3, True)
    assert unsaid.state().entered is None


@pytest.mark.parametrize("words", [("approve",), ("approve", "baseline")], ids=["all eight", "the clause alone"])
def test_an_unknown_value_cannot_be_approved(unsaid: Scene, words: tuple[str, ...]) -> None:
    seen = at_terminal(*words, cwd=unsaid.project)
    assert (seen.code, "still unknown, so the" in seen.stderr) == (3, True)
    assert (seen.terminal, unsaid.entries("approved")) == ("", [])


Terms = dict[str, Any]


def no_non_goals(terms: Terms) -> None:
    terms["task"]["non_goals"] = []


def no_guardrails(terms: Terms) -> None:
    terms["metric"]["guardrails"] = []


def training_reward(terms: Terms) -> None:
    terms["metric"]["source"] = "training_reward"


def misspelt_key(terms: Terms) -> None:
    terms["experiments"]["stop"]["max_candidate"] = 7


def twice_the_guardrail(terms: Terms) -> None:
    terms["metric"]["guardrails"] *= 2


@pytest.mark.parametrize(
    ("change", "wrong"),
    [
        pytest.param(no_non_goals, "`task.non_goals` has 0 items", id="no non-goals", marks=pytest.mark.feature("A27")),
        pytest.param(no_guardrails, "`metric.guardrails` has 0 items", id="no guardrails"),
        pytest.param(
            training_reward, "training reward is the objective", id="training reward", marks=pytest.mark.feature("R31")
        ),
        pytest.param(misspelt_key, "`experiments.stop.max_candidate` is not a known key", id="a misspelt key"),
        pytest.param(twice_the_guardrail, "`metric.guardrails` names one measure twice", id="one guardrail twice"),
    ],
)
def test_a_clause_that_is_not_sound_cannot_be_approved(
    drafted: Scene, verb: Verb, change: Callable[[Terms], None], wrong: str
) -> None:
    drafted.rewrite(change)
    done = verb("approve", "--yes", "--dir", str(drafted.project))
    assert wrong in done.stderr
    assert (done.code, drafted.entries("approved")) == (3, [])


@pytest.mark.feature("A30")
@pytest.mark.parametrize("kind", ["least_gain", "guardrails", "rollback_drop"])
def test_nothing_is_planned_without_all_three_kinds_of_metric(cartpole: Scene, verb: Verb, kind: str) -> None:
    cartpole.rewrite(lambda terms: terms["metric"].pop(kind))
    done = verb("propose", "--set", "gamma=0.95", "--because", "It helps.", "--dir", str(cartpole.project))
    assert (done.code, "so nothing can be proposed under it" in done.stderr) == (3, True)
    assert cartpole.state().candidates == {}


@pytest.mark.feature("A55")
def test_a_study_without_a_stop_rule_does_not_start(cartpole: Scene, verb: Verb) -> None:
    cartpole.rewrite(lambda terms: terms["experiments"].pop("stop"))
    done = verb("start", "--dir", str(cartpole.project))
    assert (done.code, "`experiments.stop` is missing" in done.stderr) == (3, True)
    assert cartpole.state().entered is None


@pytest.mark.feature("R37")
@pytest.mark.parametrize("clause", Clause)
def test_a_contract_with_a_missing_section_fails_its_check(drafted: Scene, verb: Verb, clause: Clause) -> None:
    drafted.rewrite(lambda terms: terms.pop(clause))
    done = verb("contract", "check", "--json", "--dir", str(drafted.project))
    assert (done.code, list(json.loads(done.stdout)["problems"])) == (2, [str(clause)])


# Starting without approval

VERBS = ("start", "run", "loop")

WATCHED = """
import os, sys
def watch(event, arguments):
    if event in {"subprocess.Popen", "os.fork", "os.forkpty", "os.exec", "os.posix_spawn", "os.spawn", "os.system"}:
        os.write(2, b"A PROCESS WAS STARTED\\n")
        os._exit(99)
sys.addaudithook(watch)
from overnight.cli.main import main
sys.exit(main(sys.argv[1:]))
"""


def watched(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run a verb in an interpreter that dies when it is about to start any process."""
    return subprocess.run(
        [sys.executable, "-c", WATCHED, *words], cwd=cwd, env=clean_env(), capture_output=True, text=True, check=False
    )


class NoProcesses(RealMachine):
    """A machine on which nothing can be started."""

    def run_process(
        self, argv: tuple[str, ...], *, env: Mapping[str, str], stdin: bytes = b"", limit_seconds: float
    ) -> Finished:
        raise AssertionError(f"{argv} was started")


@pytest.mark.parametrize("verb", VERBS)
def test_starting_without_approval_names_each_one_that_is_missing(drafted: Scene, verb: str) -> None:
    drafted.approve(Clause.TASK, Clause.METRIC)
    done = overnight(verb, cwd=drafted.project)
    assert done.returncode == 3
    assert [clause for clause in EIGHT if f"(`{clause}`) is not approved." in done.stderr] == EIGHT[2:]
    assert drafted.state().entered is None


@pytest.mark.feature("A71")
@pytest.mark.parametrize("verb", VERBS)
def test_a_complete_plan_without_approval_starts_no_process(drafted: Scene, verb: str) -> None:
    drafted.propose({"gamma": 0.95})
    done = watched(verb, cwd=drafted.project)
    assert (done.returncode, "A PROCESS WAS STARTED" in done.stderr) == (3, False)


def test_the_watch_sees_a_process(tmp_path: Path) -> None:
    done = watched("init", "CartPole-v1", cwd=tmp_path)
    assert (done.returncode, "A PROCESS WAS STARTED" in done.stderr) == (99, True)


@pytest.mark.parametrize("verb", VERBS)
def test_starting_without_approval_runs_nothing_that_is_on_the_path(drafted: Scene, verb: str, tmp_path: Path) -> None:
    bait = tmp_path / "bin"
    bait.mkdir()
    for name in ("git", "python", "python3", "sh", "env", "nvidia-smi"):
        (bait / name).write_text(f"#!/bin/sh\necho {name} >> {tmp_path}/started\n")
        (bait / name).chmod(0o755)
    done = overnight(verb, cwd=drafted.project, env=clean_env(PATH=f"{bait}{os.pathsep}{os.environ['PATH']}"))
    assert (done.returncode, (tmp_path / "started").exists()) == (3, False)


def test_the_refusal_to_enter_needs_no_process(drafted: Scene) -> None:
    with Study.open(NoProcesses(), drafted.at, doing="a test") as study, pytest.raises(Refused):
        loop.enter(study, TESTER)
    assert drafted.entries("entered") == []


def test_entering_itself_needs_no_process(cartpole: Scene) -> None:
    with Study.open(NoProcesses(), cartpole.at, doing="a test") as study:
        loop.enter(study, TESTER)
    assert len(cartpole.entries("entered")) == 1


# A signature


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    """A user who asks for signatures, with one allowed signer."""
    return desk_in(tmp_path / "desk", monkeypatch)


def test_a_person_signs_all_eight_with_one_word_and_one_signature(drafted: Scene, desk: Desk) -> None:
    seen = at_terminal("approve", *EIGHT, "--key", str(desk.key("ada")), cwd=drafted.project)
    assert (seen.code, seen.stderr) == (0, "")
    assert strengths(drafted) == dict.fromkeys(EIGHT, "signed")
    assert len({data["signature"] for data in drafted.entries("approved")}) == 1
    assert set(drafted.standings().values()) == {"in force"}


def test_without_the_word_nothing_is_signed(drafted: Scene, desk: Desk) -> None:
    seen = at_terminal("approve", "--key", str(desk.key("ada")), cwd=drafted.project, types=lambda _: "no\n")
    assert (seen.code, drafted.entries("approved")) == (3, [])


def test_an_agent_cannot_sign(drafted: Scene, desk: Desk) -> None:
    seen = at_terminal("approve", "--key", str(desk.key("ada")), cwd=drafted.project, env=clean_env(CLAUDECODE="1"))
    assert (seen.code, "an agent cannot approve" in seen.stderr, drafted.entries("approved")) == (3, True, [])


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        pytest.param(("--yes", "--sign"), 2, "`--yes` asks nobody, so there is nobody to sign", id="unattended"),
        pytest.param(
            ("--yes",), 3, "Your configuration asks for signed approvals, and this one is unattended", id="yes"
        ),
        pytest.param((), 3, "Your configuration asks for signed approvals", id="a word alone"),
        pytest.param(("--key", "nowhere"), 2, "is not a key file", id="no such key"),
        pytest.param(("--sign",), 2, "holds none of the usual keys", id="no key at all"),
    ],
)
def test_what_cannot_be_signed_is_refused_before_anything_is_written(
    drafted: Scene, desk: Desk, words: tuple[str, ...], code: int, says: str
) -> None:
    seen = overnight("approve", *words, cwd=drafted.project, env=clean_env(HOME=str(desk.folder)))
    assert (seen.returncode, says in seen.stderr, drafted.entries("approved")) == (code, True, [])


def test_a_signed_study_is_extended_by_a_signature(drafted: Scene, desk: Desk) -> None:
    drafted.approve(who=desk.who())
    weak = at_terminal("extend", "--hours", "1", cwd=drafted.project)
    assert (weak.code, "asks for signed approvals" in weak.stderr) == (3, True)
    seen = at_terminal("extend", "--hours", "1", "--key", str(desk.key("ada")), cwd=drafted.project)
    assert (seen.code, "Approved (signed): budget." in seen.stdout) == (0, True)
    assert set(drafted.standings().values()) == {"in force"}
