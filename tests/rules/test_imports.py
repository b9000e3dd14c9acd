"""The layers are law: each package may import only what stands below it."""

import ast
from pathlib import Path

import pytest

from imports import imported

SRC = Path(__file__).parents[2] / "src" / "overnight"

NOUNS = {"errors", "records"}
GROUND = NOUNS | {"ports", "machine", "study"}
MORNING = {"claims", "morning", "home", "play", "again", "handoff", "dossier", "transfer"}
TONIGHT = {"awake", "background", "resume", "watch", "sitting"}
STAGES = {"contract", "gate", "candidate", "propose", "run", "evaluate", "decide", "report"}

MAY_IMPORT: dict[str, set[str]] = {
    "__init__": set(),
    "errors": set(),
    "records": {"errors"},
    "ports": {"records"},
    "machine": {"ports", "sandbox"},
    "study": NOUNS | {"ports"},
    "sandbox": set(),
    "contract": NOUNS | {"ports", "study"},
    "gate": NOUNS,
    "candidate": NOUNS | {"ports", "study"},
    "propose": NOUNS | {"ports", "study"},
    "run": NOUNS | {"ports", "study", "sandbox"},
    "evaluate": NOUNS | {"ports", "study", "sandbox", "guest"},
    "decide": NOUNS,
    "report": NOUNS | {"study"},
    "guest": set(),
    "rl": {"guest"},
    "adapters": NOUNS | {"ports", "sandbox"},
    "isolation": NOUNS | {"sandbox"},
    "scaffold": NOUNS | {"ports", "study", "candidate", "report"},
    "begin": NOUNS | {"__init__", "ports", "study", "isolation", "room"} | STAGES,
    "signatures": NOUNS | {"study"},
    "approvals": NOUNS | {"ports", "study", "contract", "signatures"},
    "likeness": NOUNS | {"study"} | STAGES,
    "admission": NOUNS | {"ports", "study", "signatures", "approvals", "likeness", "room"} | STAGES,
    "racing": NOUNS | {"study", "decide"},
    "trials": NOUNS | {"ports", "study", "admission", "isolation", "racing"} | STAGES,
    "claims": NOUNS | {"study", "decide"},
    "calibrating": NOUNS | {"study", "claims", "racing", "forecast", "trials"} | STAGES,
    "schedules": NOUNS | {"study", "claims", "racing", "decide"},
    "attempts": NOUNS | {"study", "claims", "racing", "schedules", "trials"} | STAGES,
    "ablating": NOUNS | {"study", "admission", "attempts", "claims", "racing", "trials"} | STAGES,
    "curves": NOUNS | {"ports", "study", "racing", "decide"},
    "total": NOUNS | {"study", "claims", "racing", "trials"} | STAGES,
    "verifying": NOUNS | {"study", "trials", "isolation"} | STAGES,
    "audit": NOUNS | {"ports", "study", "attempts"} | STAGES,
    "shortfall": NOUNS | {"study", "admission", "racing", "schedules", "forecast"} | STAGES,
    "intake": NOUNS | {"ports", "study", "admission"} | STAGES,
    "desk": NOUNS | {"ports", "study", "claims"} | STAGES,
    "plants": NOUNS | {"study", "admission", "trials"} | STAGES,
    "awake": set(),
    "background": NOUNS | {"ports", "study", "sandbox"},
    "resume": NOUNS | {"ports", "study", "admission", "background"} | STAGES,
    "watch": NOUNS | {"ports", "study", "admission", "background"} | STAGES,
    "sitting": NOUNS | {"ports", "study", "admission", "loop", "trials", "room", "scaffold"} | STAGES,
    "handoff": NOUNS | {"ports", "study", "admission", "signatures", "resume", "morning"} | STAGES,
    "judge": NOUNS | {"study", "trials", "audit", "claims", "racing", "attempts", "calibrating"} | STAGES,
    "ladder": NOUNS | {"study", "trials", "claims"} | STAGES,
    "prospect": NOUNS | {"study", "admission", "trials"} | STAGES,
    "ideas": NOUNS | {"ports", "admission", "intake", "prospect", "trials"} | STAGES,
    "progress": NOUNS | {"calibrating", "forecast", "judge", "trials"} | STAGES,
    "loop": NOUNS
    | {
        "ideas",
        "progress",
        "ports",
        "study",
        "admission",
        "claims",
        "trials",
        "judge",
        "plants",
        "calibrating",
        "forecast",
        "verifying",
        "ladder",
        "schedules",
        "ablating",
        "total",
    }
    | STAGES,
    "morning": NOUNS | {"ports", "study", "admission", "claims", "shortfall", "ablating", "total", "curves"} | STAGES,
    "home": NOUNS | {"ports", "study", "admission", "claims"} | STAGES,
    "play": NOUNS | {"ports", "study", "home"} | STAGES,
    "again": NOUNS | {"ports", "study", "admission", "claims", "trials"} | STAGES,
    "dossier": NOUNS | {"ports", "study", "admission", "claims", "schedules"} | STAGES,
    "transfer": NOUNS | {"ports", "study", "admission", "isolation", "begin", "claims", "trials", "again"} | STAGES,
    "simulate": NOUNS | {"decide"},
    "room": NOUNS | {"study"},
    "forecast": NOUNS | {"ports", "study", "admission", "room", "racing"} | STAGES,
    "housekeeping": NOUNS | {"ports", "study", "room"},
    "checkup": NOUNS
    | {"__init__", "ports", "study", "admission", "awake", "room", "housekeeping", "isolation", "sandbox"}
    | STAGES,
    "attack": GROUND | {"sandbox", "isolation", "begin", "admission"} | STAGES,
    "cli": GROUND
    | STAGES
    | {
        "__init__",
        "begin",
        "admission",
        "signatures",
        "trials",
        "loop",
        "adapters",
        "isolation",
        "intake",
        "desk",
        "prospect",
    }
    | {"room", "forecast", "curves", "housekeeping", "checkup", "simulate", "attack", "prospect"}
    | MORNING
    | TONIGHT
    | {"scaffold"},
    "taken": set(),
    "testing": NOUNS | {"ports"},
}
"""What each package may import of ours. Stages never import one another; the modules above them join them."""

THIRD_PARTY: dict[str, set[str]] = {
    "study": {"yaml"},
    "cli": {"typer"},
    "evaluate": {"gymnasium", "numpy", "mujoco"},  # the last where an environment of it is drawn
    "decide": {"numpy"},
    "simulate": {"numpy"},
    "attack": {"numpy", "gymnasium", "yaml"},  # what naive evaluators use, shown beside what we do
    "morning": {"numpy"},
    "report": {"numpy"},
    "play": {"numpy"},
    "taken": {"numpy", "gymnasium"},  # in files that stand alone where they are taken
    "guest": {"numpy"},  # only inside `act`, where the candidate's own environment has it
    "rl": {"numpy", "jax", "optax", "gymnasium", "envpool"},
    "adapters": {"optuna"},
    "testing": {"pytest"},
}
"""What each package may import of others. Everything else has the standard library."""

STANDARD = set(__import__("sys").stdlib_module_names)


def strays(source: str, package: str) -> set[str]:
    """The imports of one module that its package may not have."""
    found = set()
    for name in imported(ast.parse(source)):
        top, _, rest = name.partition(".")
        if top == "overnight":
            own = rest.partition(".")[0] or "__init__"
            if own != package and own not in MAY_IMPORT[package]:
                found.add(name)
        elif top not in STANDARD and top not in THIRD_PARTY.get(package, set()):
            found.add(name)
    return found


def package_of(module: Path) -> str:
    return module.relative_to(SRC).parts[0].removesuffix(".py")


@pytest.mark.parametrize("package", sorted(MAY_IMPORT))
def test_a_package_imports_only_what_stands_below_it(package: str) -> None:
    modules = [module for module in SRC.rglob("*.py") if package_of(module) == package]
    assert modules, f"{package} is in the table but not in the tree"
    for module in modules:
        assert not strays(module.read_text(), package), module


def test_every_package_of_the_tree_is_in_the_table() -> None:
    assert {package_of(module) for module in SRC.rglob("*.py")} == MAY_IMPORT.keys()


@pytest.mark.parametrize(
    ("package", "line"),
    [
        pytest.param("records", "import overnight.study.ledger", id="a record reads the ledger"),
        pytest.param("gate", "from overnight.candidate.tree import Store", id="a stage imports a stage"),
        pytest.param(
            "gate", "def f():\n    from overnight.admission import enter", id="a stage calls the loop from inside"
        ),
        pytest.param("records", "import numpy", id="a record needs an array library"),
        pytest.param("study", "from overnight import loop", id="the study knows the loop"),
        pytest.param("evaluate", "from overnight.candidate import tree", id="the referee imports a candidate"),
    ],
)
def test_a_planted_violation_is_found(package: str, line: str) -> None:
    assert strays(line, package)
