"""What candidates wrote reaches nobody unchanged: one sanitiser, and few places that print at all."""

import ast
from pathlib import Path

import pytest

from rules.test_spawns import modules

PRINTS = {
    "attack/naive.py": "what naive evaluators print, in a process of the gallery's",
    "cli/output.py": "every verb",
    "cli/main.py": "help, the version and errors",
    "cli/progress.py": "the line that passes",
    "cli/terminal.py": "the page that is approved",
    "evaluate/referee.py": "one JSON object for the engine",
    "rl/command.py": "how far a training is that a person started",
    "rl/probe.py": "one JSON object for the engine",
    "rl/trainers/ppo.py": "inside of the candidate's process",
    "rl/trainers/sac.py": "inside of the candidate's process",
    "rl/trainers/dqn.py": "inside of the candidate's process",
    "taken/act.py": "where a result was taken to; it prints numbers",
}
"""The modules that write to a stream, and what. Everything else goes through `cli/output.py`."""

JUDGES_CHARACTERS = {
    "attack/inputs.py",  # makes characters that others must refuse
    "attack/trainers.py",  # the same
    "records/text.py",  # the one sanitiser
    "records/paths.py",  # refuses names of files
    "records/codec.py",  # refuses sentences of more than one line
    "records/strict_json.py",  # escapes what JSON files for people would hide
}
"""The modules that look at single characters. A second sanitiser would show itself here."""

CLEAN = {"line", "lines", "shown", "dumps", "table", "help_page", "get_terminal_size"}
"""What a printing module of the command line may call on its way to the stream."""


def printing_calls(source: str) -> list[ast.Call]:
    """Every call that writes to a stream or a terminal."""
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    return [one for one in calls if _is_print(one.func)]


def _is_print(called: ast.expr) -> bool:
    if isinstance(called, ast.Name):
        return called.id == "print"
    if not isinstance(called, ast.Attribute) or called.attr not in {"write", "writelines"}:
        return False
    return ast.unparse(called.value) in {"sys.stdout", "sys.stderr", "sys.stdout.buffer", "sys.stderr.buffer", "tty"}


def raw_parts(call: ast.Call) -> set[str]:
    """The values that a call prints without passing them through the sanitiser."""
    found = set()
    todo: list[ast.AST] = list(call.args)
    while todo:
        node = todo.pop()
        if isinstance(node, ast.Call) and _called(node) in CLEAN:
            continue
        if isinstance(node, ast.Name):
            found.add(node.id)
        todo += ast.iter_child_nodes(node)
    return found


def _called(node: ast.Call) -> str:
    return node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")


def test_only_the_listed_modules_print() -> None:
    printing = {name for name, source in modules().items() if printing_calls(source)}
    assert printing == PRINTS.keys() and all(PRINTS.values())


def test_the_command_line_prints_nothing_that_was_not_cleaned() -> None:
    ours = {"word", "as_json", "__version__", "width"}
    for name, source in modules().items():
        if name.startswith("cli/"):
            for call in printing_calls(source):
                assert raw_parts(call) <= ours, f"{name}: {ast.unparse(call)}"


def test_there_is_one_sanitiser() -> None:
    looking = set()
    for name, source in modules().items():
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Attribute) and node.attr in {"isprintable", "category"}:
                looking.add(name)
    assert looking == JUDGES_CHARACTERS


def test_only_one_module_escapes_for_pages() -> None:
    escaping = {name for name, source in modules().items() if "html.escape" in source or "from html" in source}
    assert escaping == {"report/text.py"}


@pytest.mark.parametrize(
    "planted",
    [
        "import sys\nsys.stdout.write(candidate.hypothesis)",
        "import sys\nsys.stderr.write(f'failed: {error}')",
        "print(log)",
        "tty.write(page.encode())",
    ],
)
def test_a_planted_leak_is_found(planted: str) -> None:
    assert any(raw_parts(call) for call in printing_calls(planted))


def test_the_table_names_files_that_are_there() -> None:
    src = Path(__file__).parents[2] / "src" / "overnight"
    assert not [name for name in (*PRINTS, *JUDGES_CHARACTERS) if not (src / name).exists()]
