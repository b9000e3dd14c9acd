"""The command line: one JSON object, the right exit code, help with an example, and nothing that drives a terminal."""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path

import pytest
from typer.main import get_command

from overnight.cli.main import VERBS
from scenes import Said, Scene, clean_env, overnight

Verb = Callable[..., Said]


def commands() -> Iterator[list[str]]:
    """Every command that can be given: a verb, or a verb and its second word."""
    for name, one in VERBS.items():
        command = get_command(import_module(f"overnight.cli.{one.module}").app)
        yield from ([name, *second] for second in ([[word] for word in getattr(command, "commands", ())] or [[]]))


COMMANDS = list(commands())


# Misspelt words


@pytest.mark.parametrize(
    ("typed", "meant"), [("statsu", "status"), ("aprove", "approve"), ("candidate", "candidates"), ("--jsn", "")]
)
def test_a_misspelt_verb_is_corrected(verb: Verb, typed: str, meant: str) -> None:
    done = verb(typed)
    assert (done.code, done.stdout) == (2, "")
    assert (f"hint: did you mean `{meant}`?" if meant else "is not an option") in done.stderr


def test_a_misspelt_second_word_is_corrected(verb: Verb) -> None:
    done = verb("check", "candidat", "c-0001")
    assert (done.code, "Did you mean 'candidate'?" in done.stderr) == (2, True)


def test_a_misspelt_option_is_corrected(verb: Verb) -> None:
    done = verb("status", "--jsson")
    assert (done.code, "--json" in done.stderr) == (2, True)


def test_a_misspelt_state_is_corrected(cartpole: Scene, verb: Verb) -> None:
    done = verb("candidates", "--state", "validted", "--dir", str(cartpole.project))
    assert (done.code, "hint: did you mean `validated`?" in done.stderr) == (2, True)


def test_an_id_near_a_known_one_is_corrected(cartpole: Scene, verb: Verb) -> None:
    cartpole.propose({"gamma": 0.95})
    done = verb("show", "c-0011", "--dir", str(cartpole.project))
    assert (done.code, "hint: did you mean `c-0001`?" in done.stderr) == (3, True)


@pytest.mark.parametrize("name", ["c-1", "r-0001", "../c-0001", "c-0001/..", "c-00012345678", ""])
def test_an_id_that_the_engine_never_gives_out_is_refused(cartpole: Scene, verb: Verb, name: str) -> None:
    done = verb("show", "--dir", str(cartpole.project), "--", name)
    assert (done.code, "an id such as `c-0001` is needed" in done.stderr) == (2, True)


# Exit codes


@pytest.mark.parametrize("words", [[], ["--help"], ["--version"], ["help"], ["help", "init"], ["status", "--help"]])
def test_a_question_exits_with_0(verb: Verb, words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert verb(*words).code == 0


@pytest.mark.parametrize("words", [["nonsense"], ["show"], ["contract"], ["propose"], ["init", "No such env!"]])
def test_a_mistake_exits_with_2(drafted: Scene, verb: Verb, words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(drafted.project)
    done = verb(*words)
    assert (done.code, done.stderr.startswith("error: ")) == (2, True)


@pytest.mark.parametrize("words", [["start"], ["approve"], ["show", "c-0001"], ["check", "candidate", "c-0001"]])
def test_a_refusal_exits_with_3(drafted: Scene, verb: Verb, words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDECODE", "1")
    done = verb(*words, "--dir", str(drafted.project))
    assert (done.code, done.stderr.startswith("refused: ")) == (3, True)


def test_trouble_with_the_disk_exits_with_1(cartpole: Scene, verb: Verb) -> None:
    cartpole.propose({"gamma": 0.95})
    shutil.rmtree(cartpole.at.task.root.store / "objects")
    done = verb("show", "c-0001", "--dir", str(cartpole.project))
    assert (done.code, done.stderr.startswith("error: ")) == (1, True)


def test_the_exit_code_is_that_of_the_process(drafted: Scene) -> None:
    assert overnight("start", cwd=drafted.project).returncode == 3


def test_no_mistake_is_answered_with_a_traceback(tmp_path: Path) -> None:
    done = overnight("show", "c-0001", "--json", cwd=tmp_path)
    assert (done.returncode, "Traceback" in done.stderr) == (2, False)


# JSON


def one_object(text: str) -> dict[str, object]:
    """The one JSON object that a text is, with one line end and nothing else."""
    assert text.count("\n") == 1 and text.endswith("\n")
    found = json.loads(text)
    assert isinstance(found, dict)
    return found


RESULTS = [
    ["init", "CartPole-v1"],
    ["contract", "show"],
    ["contract", "show", "--history"],
    ["contract", "check"],
    ["approve", "--yes"],
    ["propose", "--set", "gamma=0.9", "--because", "It helps."],
    ["propose", "--edit", "a-copy"],
    ["plan"],
    ["status"],
    ["candidates"],
    ["show", "c-0001"],
    ["check", "candidate", "c-0001"],
    ["check", "contract"],
    ["check", "record", ".overnight/tasks/cartpole/studies/first/approvals/1-task.json"],
    ["ledger", "verify"],
    ["ledger", "show"],
    ["ledger", "tail", "--last", "1"],
    ["clean", "--dry-run"],
    ["clean", "--cache"],
    ["doctor"],
    ["simulate", "--runs", "3", "--studies", "1"],
    ["compare", "a.csv", "b.csv"],
    ["attack", "--list"],
    ["stop"],
    ["live"],
    ["steer", "Leave the network alone."],
]


def test_every_verb_has_a_result_that_is_checked_here() -> None:
    elsewhere = {"start", "run", "loop", "report", "take", "play", "reproduce", "extend", "attach", "audit", "transfer"}
    elsewhere |= {"new"}
    assert {words[0] for words in RESULTS} | elsewhere == set(VERBS)


@pytest.mark.parametrize("words", RESULTS, ids=" ".join)
def test_a_result_is_one_json_object(
    cartpole: Scene, verb: Verb, words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    cartpole.propose({"gamma": 0.95})
    monkeypatch.chdir(cartpole.project)
    for name in ("a.csv", "b.csv"):
        Path(name).write_text("1\n2\n")
    done = verb(*words, "--json")
    assert done.code == 0, done.stderr
    assert "error" not in one_object(done.stdout)


MISTAKEN = [*(words for words in COMMANDS if words != ["doctor"]), ["nonsense"], ["contract"], ["check"], ["ledger"]]


@pytest.mark.parametrize("words", MISTAKEN, ids=" ".join)
def test_an_error_is_one_json_object(
    verb: Verb, words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".overnight").mkdir()
    monkeypatch.chdir(tmp_path)
    done = verb(*words, *(["--runs", "0"] if words == ["simulate"] else []), "--json")
    error = one_object(done.stdout)["error"]
    assert isinstance(error, dict)
    assert (error["exit_code"], done.code) == (2, 2)
    assert str(error["what"]) in done.stderr


@pytest.mark.parametrize("name", ["start", "run", "loop"])
def test_a_refusal_is_one_json_object_with_every_reason(drafted: Scene, verb: Verb, name: str) -> None:
    done = verb(name, "--json", "--dir", str(drafted.project))
    error = one_object(done.stdout)["error"]
    assert isinstance(error, dict)
    assert (done.code, error["exit_code"], len(error["reasons"])) == (3, 3, 8)


# Help


def test_the_help_lists_every_verb_that_is_not_hidden(verb: Verb) -> None:
    listed = re.findall(r"^  ([a-z]+) +[A-Z]", verb("--help").stdout, re.MULTILINE)
    assert listed == [name for name, one in VERBS.items() if not one.hidden]


@pytest.mark.feature("H74")
def test_the_bare_name_shows_the_help_where_there_is_no_study_and_starts_nothing(
    verb: Verb, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = verb()
    assert done.code == 0 and done.stdout.startswith(verb("--help").stdout)
    assert "next: overnight init CartPole-v1" in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_the_help_names_the_exit_codes(verb: Verb) -> None:
    assert "Exit codes: 0 done, 1 our fault, 2 your input, 3 refused." in verb("--help").stdout


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_the_help_of_every_command_has_an_example(verb: Verb, words: list[str]) -> None:
    done = verb(*words, "--help")
    assert (done.code, done.stderr) == (0, "")
    assert "Example" in done.stdout


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_every_command_takes_json_and_all_but_one_a_folder(verb: Verb, words: list[str]) -> None:
    page = verb(*words, "--help").stdout
    assert "--json" in page
    assert ("--dir" in page) is (words not in (["check", "record"], ["new"]))


# Data and narration


def test_data_is_on_stdout_and_narration_on_stderr(cartpole: Scene, verb: Verb) -> None:
    words = ("propose", "--set", "gamma=0.9", "--because", "It helps.", "--dir", str(cartpole.project))
    done = verb(*words)
    assert done == (0, "c-0001  validated  It helps.\n", "c-0001 passed the gate.\n")


def test_the_page_that_is_approved_is_narration(drafted: Scene, verb: Verb) -> None:
    done = verb("approve", "--yes", "--json", "--dir", str(drafted.project))
    assert one_object(done.stdout)["strength"] == "unattended"
    assert "What may change" in done.stderr


def test_an_error_leaves_stdout_empty(tmp_path: Path, verb: Verb) -> None:
    done = verb("contract", "show", "--dir", str(tmp_path))
    assert (done.code, done.stdout) == (2, "")
    assert "hint: `overnight init CartPole-v1` makes one" in done.stderr


# What a terminal may be shown

NASTY = "\x1b[2J\x1b]0;owned\x07\x9b31m\r\u202eevil\u2066\u200b"
DANGEROUS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069]")


@pytest.fixture
def nasty(repository: Scene) -> Scene:
    """A study with a change and a refusal that both try to drive the terminal; an idea cannot hold such text."""
    copy = repository.copy()
    (copy / "train.py").write_text(f"SEED = 1\n# {NASTY}\n")
    assert repository.propose(copy, kind="code", hypothesis="It helps.") == ()
    (copy / f"policy/{NASTY[:4]}.py").write_text("x = 1\n")
    assert repository.propose(copy, kind="code", hypothesis="It helps more.") != ()
    return repository


@pytest.mark.parametrize("as_json", [[], ["--json"]], ids=["as text", "as JSON"])
@pytest.mark.parametrize("words", [["show", "c-0001"], ["candidates"], ["status"], ["ledger", "show"]], ids=" ".join)
def test_no_escape_sequence_reaches_a_terminal(nasty: Scene, verb: Verb, words: list[str], as_json: list[str]) -> None:
    done = verb(*words, *as_json, "--dir", str(nasty.project))
    assert done.code == 0
    assert DANGEROUS.findall(done.stdout + done.stderr) == []


@pytest.mark.parametrize("as_json", [[], ["--json"]], ids=["as text", "as JSON"])
@pytest.mark.parametrize(
    "words",
    [
        ["propose", "--set", "gamma=0.9", "--because", NASTY],
        [NASTY],
        ["show", NASTY],
        ["init", NASTY],
        ["approve", NASTY],
    ],
    ids=["a hypothesis", "a verb", "an id", "an environment", "a clause"],
)
def test_no_escape_sequence_is_echoed(cartpole: Scene, verb: Verb, words: list[str], as_json: list[str]) -> None:
    done = verb(*words, *as_json, *(["--dir", str(cartpole.project)] if len(words) > 1 else []))
    assert DANGEROUS.findall(done.stdout + done.stderr) == []


def test_help_comes_without_importing_any_verb() -> None:
    script = "import sys; from overnight.cli.main import main; main(['--help']); sys.exit('typer' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], env=clean_env(), capture_output=True, check=False)
    assert done.returncode == 0
