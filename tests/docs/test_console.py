"""Every console block of every page is run, in order, in a fresh folder, and must print what the page says.

In a page, `…` stands for anything on a line, and alone for any lines. A comment that begins
with `<!-- run:` holds commands that the reader's own editor would do: they are run, not compared.
"""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from overnight.contract.approve import AGENT_HOSTS

ROOT = Path(__file__).parents[2]
PAGES = [
    path
    for path in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    if "```console" in path.read_text() and "reference" not in path.parts
]
_PART = re.compile(r"<!-- run:\n(?P<hidden>.*?)-->|```console\n(?P<shown>.*?)```", re.DOTALL)
_WORD = re.compile(rb"Type (\S+) to approve, anything else to leave it: \Z")


class Step(NamedTuple):
    """One command, and what the page says that it prints; None where nothing is said."""

    command: str
    prints: list[str] | None


def steps(page: str) -> list[Step]:
    found: list[Step] = []
    for part in _PART.finditer(page):
        if part["hidden"] is not None:
            found.append(Step(part["hidden"], None))
            continue
        for line in part["shown"].splitlines():
            if line.startswith("$ "):
                found.append(Step(line[2:], []))
            else:
                prints = found[-1].prints
                assert prints is not None
                prints.append(line)
    return found


def environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in AGENT_HOSTS}
    return {**kept, "PATH": f"{Path(sys.executable).parent}:{kept['PATH']}", "COLUMNS": "200"}


def run(command: str, folder: Path) -> str:
    """Run a command in a terminal of its own, and type the word back where one is asked for."""
    terminal, theirs = os.openpty()
    child = subprocess.Popen(
        ["setsid", "--ctty", "--wait", "bash", "-c", command],
        cwd=folder,
        env=environment(),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    printed = b""
    try:
        while data := os.read(terminal, 65536):
            printed += data
            if asked := _WORD.search(printed):  # at the very end, so each question is answered once
                os.write(terminal, asked[1] + b"\n")
    except OSError:
        pass  # the terminal is gone with the last process that had it
    (folder.parent / "status").write_text(str(child.wait()))
    os.close(terminal)  # not before: whoever closed its own end may not have ended yet, and would be hung up on
    return re.sub(
        r"[^\n]*\x1b\[K", "", printed.decode().replace("\r", "")
    )  # a line that was rewritten in place is gone


def matches(prints: list[str], printed: str) -> bool:
    pattern = ""
    for line in prints:
        if line.strip() == "…":
            pattern += r"(?:.*\n)*?"
        else:
            pattern += ".*".join(re.escape(part) for part in general(line).split("…")) + r"\n"
    return re.fullmatch(pattern + r"\s*", general(printed.rstrip("\n") + "\n")) is not None


def general(text: str) -> str:
    """What differs from run to run, made the same: hashes, times and approval words."""
    text = re.sub(r"\b[0-9a-f]{8,64}…?", "HEX", text)
    text = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", "TIME", text)
    return re.sub(r"(Type |: )[a-z]+-\d\d", r"\1WORD", text)


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_page_says_what_its_commands_print(page: Path, tmp_path: Path) -> None:
    folder = tmp_path / "walker"
    folder.mkdir()
    for step in steps(page.read_text()):
        command = step.command.replace("echo $?", "cat ../status")
        printed = run(command, folder)
        if step.prints is None:
            assert (folder.parent / "status").read_text() == "0", printed
        else:
            said = "\n".join(step.prints)
            assert matches(step.prints, printed), f"$ {step.command}\nthe page says:\n{said}\nit printed:\n{printed}"


def test_a_page_that_says_something_else_is_found() -> None:
    assert matches(["one", "…", "tw… three"], "one\nx\ny\ntwo three\n")
    assert not matches(["one"], "two\n")
    assert not matches(["one"], "one\ntwo\n")
