"""Small rules of the house that a machine can hold."""

import ast
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from overnight.cli.main import VERBS

ROOT = Path(__file__).parents[2]
SRC = ROOT / "src" / "overnight"
PYTHON = sorted(SRC.rglob("*.py"))


def test_no_module_is_longer_than_400_lines_and_no_trainer_than_500() -> None:
    for path in PYTHON:  # a trainer is one flat file: its numeric kernel would hide in two
        assert len(path.read_text().splitlines()) <= (500 if path.parent.name == "trainers" else 400), path.name


def test_no_function_is_longer_than_60_lines() -> None:
    for path in PYTHON:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef):
                assert (node.end_lineno or 0) - node.lineno < 60, f"{path.name}: {node.name}"


def test_nothing_is_named_like_a_junk_drawer() -> None:
    drawers = {"utils", "util", "common", "helpers", "helper", "misc", "base", "manager", "core"}
    assert not [path for path in SRC.rglob("*") if path.stem in drawers]


def tracked_texts() -> dict[str, str]:
    """Every file of the repository that is text, as git lists them."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    found = {}
    for name in listed.decode().split("\0"):
        path = ROOT / name
        if name and path.is_file() and b"\0" not in (data := path.read_bytes()):
            found[name] = data.decode()
    return found


def test_no_file_holds_the_two_sides_of_a_merge_that_nobody_finished() -> None:
    marks = re.compile(r"^(<{7} |>{7} )", re.MULTILINE)
    assert not [name for name, text in tracked_texts().items() if marks.search(text)]


def test_the_trees_in_the_readme_name_every_package_and_module_of_the_top() -> None:
    tree = (ROOT / "README.md").read_text().partition("## The tree")[2].partition("```\n\n")[0]
    named = set(re.findall(r"^  ([a-z_]+(?:\.py|/))", tree, re.MULTILINE)) | {"__init__.py"}
    there = {path.name for path in SRC.glob("*.py")}
    there |= {f"{path.parent.name}/" for path in SRC.glob("*/__init__.py")} | {"adapters/"}
    assert named - {"gate/rules/"} == there


def test_every_gate_rule_has_a_cheater_who_loses() -> None:
    rules = {path.stem.replace("_", "-") for path in (SRC / "gate" / "rules").glob("*.py")} - {"--init--"}
    marked = set()
    for path in (ROOT / "tests" / "adversary").glob("*.py"):
        marked |= set(re.findall(r'mark\.cheater\("([a-z-]+)"\)', path.read_text()))
    assert rules <= marked, f"without a cheater: {sorted(rules - marked)}"
    assert marked <= rules, f"cheaters of no rule: {sorted(marked - rules)}"


def test_importing_overnight_pulls_nothing_heavy() -> None:
    code = "import json, sys, overnight; print(json.dumps(sorted(sys.modules)))"
    loaded = set(json.loads(subprocess.check_output([sys.executable, "-c", code])))
    heavy = {"typer", "rich", "yaml", "numpy", "gymnasium", "jax", "torch", "pydantic", "asyncio", "subprocess"}
    assert not loaded & heavy


def test_help_imports_no_verb_and_no_typer() -> None:
    code = "import sys; from overnight.cli.main import main; main(['--help']); sys.stderr.write(' '.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "overnight init" in done.stdout
    assert not {"typer", "rich", "yaml", "overnight.admission"} & set(done.stderr.split())


@pytest.mark.parametrize("verb", [name for name, verb in VERBS.items() if not verb.hidden])
def test_every_verb_is_in_the_reference(verb: str) -> None:
    assert f"## overnight {verb}" in (ROOT / "docs" / "reference" / "cli.md").read_text()


def test_the_reference_is_what_the_code_generates() -> None:
    done = subprocess.run([sys.executable, ROOT / "tools" / "reference.py", "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr + done.stdout


def test_links_between_pages_lead_somewhere() -> None:
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.relative_to(ROOT)} links to {target}"


@pytest.mark.feature("Z56")
def test_the_works_that_the_single_file_protocol_comes_from_are_credited() -> None:
    credited = (ROOT / "ACKNOWLEDGEMENTS.md").read_text()
    works = ("karpathy/autoresearch", "vwxyzjn/cleanrl", "zjianyi/autoRL")
    assert [work for work in works if f"github.com/{work})" not in credited] == []


def test_the_repository_names_no_machine_and_no_registry() -> None:
    words = re.compile(r"/(?:work|farm|root|home/[a-z])/|/tmp/v/|pypi\.org|registry\.npmjs|deb\.debian")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False).stdout
    for name in listed.decode().split("\0"):
        path = ROOT / name
        if (
            path.is_file()
            and path.suffix in {".md", ".py", ".toml", ".txt", ".yaml", ".json", ""}
            and path.name != "LICENSE"
        ):
            assert path == Path(__file__) or not words.search(path.read_text(errors="ignore")), name
