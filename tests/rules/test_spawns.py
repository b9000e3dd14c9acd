"""Who may start a process: one literal list, so that a new place is a decision and not an accident."""

import ast
from pathlib import Path

import pytest

from imports import imported

SRC = Path(__file__).parents[2] / "src" / "overnight"

MAY_SPAWN = {
    "machine.py",  # short helpers: git, the referee
    "adapters/launchers/local.py",  # the supervisor of a run, and nothing else
    "adapters/proposers/caller.py",  # the keeper of one asking, and nothing else
    "adapters/proposers/keeper.py",  # the coding agent that the contract names, held at a tier, in a folder of its own
    "run/supervisor.py",  # the trainer: the approved command, under its limits
    "run/broker.py",  # our own broker, which holds the environments of a metered run
    "sandbox/processes.py",  # starts none: it speaks to the kernel about those that there are
    "sandbox/landlock.py",  # starts none
    "sandbox/rights.py",  # starts none
    "sandbox/start.py",  # trainers and policies, held at a tier, for the two modules that start them
    "sandbox/tiers.py",  # starts none: it says how a child is held at each tier
    "sandbox/passage.py",  # starts none: it makes the view of a child that is being started
    "sandbox/beneath.py",  # starts none: it opens files
    "sandbox/inside.py",  # becomes the trainer or the policy, inside of bubblewrap
    "sandbox/probe.py",  # the canary that a tier must hold
    "attack/foreign/trial.py",  # somebody's own evaluator, in a throw-away copy, held at a tier
    "background.py",  # the engine itself, without a terminal
    "awake.py",  # what holds the machine's sleep back, for as long as the engine lives
    "signatures.py",  # ssh-keygen, which signs approvals and checks their signatures
    "evaluate/policy_process.py",  # a candidate's own policy, on the other side of the trust line
}
"""The modules that ask the operating system for a process. Only the supervisor can train."""

MAY_ASK_THE_MACHINE = {
    "candidate/tree.py",  # git plumbing on the candidate store
    "begin.py",  # asks the installed packages about an environment
    "evaluate/measure.py",  # the referee
    "attack/engine.py",  # the supervisor and the referee, on attacks of the gallery's own
    "attack/ground.py",  # processes that are attacked
    "attack/changes.py",  # git, for a small repository
    "handoff.py",  # the command of the user's own configuration that wakes somebody up
    "checkup.py",  # asks what only an import can tell: JAX's devices, and whether an environment can be made
}
"""The modules that call the port's `run_process`. None of them can train what a study proposes."""

_OS_CALLS = {"system", "popen", "fork", "forkpty", "posix_spawn", "posix_spawnp", "startfile"}
_OS_PREFIXES = ("exec", "spawn")
_MODULES = {"subprocess", "multiprocessing", "pty", "pexpect", "sh", "plumbum", "concurrent.futures.process"}
_MODULES |= {"posix", "_posixsubprocess", "_ctypes"}
_NAMES = {"create_subprocess_exec", "create_subprocess_shell", "ProcessPoolExecutor", "run_in_executor"}
_DYNAMIC = {"eval", "exec", "compile", "__import__"}


def spawns(source: str) -> set[str]:
    """Every way to start a process, or to hide one, that a file uses."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name.split(".")[0] in _MODULES | {"ctypes"}}
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            found |= _imported_from(node)
        elif isinstance(node, ast.Attribute):
            is_os = isinstance(node.value, ast.Name) and node.value.id == "os"
            if (is_os and _is_os_call(node.attr)) or node.attr in _NAMES:
                found.add(node.attr)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _DYNAMIC:
            found.add(node.func.id)
    return found


def _imported_from(node: ast.ImportFrom) -> set[str]:
    module = node.module or ""
    if module in _MODULES or module.split(".")[0] in _MODULES | {"ctypes"}:
        return {module}
    return {a.name for a in node.names if a.name in _NAMES or (module == "os" and _is_os_call(a.name))}


def _is_os_call(name: str) -> bool:
    return name in _OS_CALLS or name.startswith(_OS_PREFIXES)


def asks(source: str) -> bool:
    """Whether a file calls the port's `run_process`."""
    return any(isinstance(node, ast.Attribute) and node.attr == "run_process" for node in ast.walk(ast.parse(source)))


def modules() -> dict[str, str]:
    return {path.relative_to(SRC).as_posix(): path.read_text() for path in SRC.rglob("*.py")}


@pytest.mark.feature("R25")
def test_only_the_listed_modules_can_start_a_process() -> None:
    assert {name for name, source in modules().items() if spawns(source)} == MAY_SPAWN


def test_only_the_listed_modules_ask_the_machine_for_one() -> None:
    assert {name for name, source in modules().items() if asks(source)} == MAY_ASK_THE_MACHINE


@pytest.mark.feature("A3")
def test_governance_starts_nothing_and_imports_no_training_framework() -> None:
    frameworks = {
        "torch",
        "jax",
        "flax",
        "optax",
        "stable_baselines3",
        "sbx",
        "ray",
        "envpool",
        "gymnasium",
        "tensorflow",
    }
    for name, source in modules().items():
        if name.split("/")[0] in {"records", "study", "contract", "gate"}:
            assert not spawns(source) and not asks(source), name
            assert not {module.split(".")[0] for module in imported(ast.parse(source))} & frameworks, name


@pytest.mark.parametrize(
    "line",
    [
        "import subprocess",
        "from subprocess import run",
        "import os\nos.system('true')",
        "import os\nos.execvp('sh', ['sh'])",
        "from os import fork",
        "import os\nos.posix_spawn('/bin/true', [], {})",
        "import multiprocessing as m",
        "import asyncio\nasyncio.create_subprocess_exec('x')",
        "from concurrent.futures import ProcessPoolExecutor",
        "def f():\n    import pty",
        "__import__('subprocess')",
        "import ctypes",
        "import posix",
    ],
)
def test_a_planted_spawn_is_found(line: str) -> None:
    assert spawns(line)
