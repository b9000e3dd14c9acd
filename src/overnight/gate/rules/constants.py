"""Refuse a single file that defines what its fixed harness gives: the task, the time, the evaluation."""

import ast

from overnight.gate.case import Admission
from overnight.gate.source import nodes
from overnight.records.refusal import Reason

FIXED = {"TIME_BUDGET", "ENV_ID", "NUM_EVAL_EPISODES", "make_env", "evaluate_policy", "Experiment"}
_HARNESS = "evaluate"


def refuse(case: Admission) -> tuple[Reason, ...]:
    """Only under the preset `single-file`. The engine holds time and score in any case; this keeps the file honest."""
    if case.contract.scope.preset != "single-file":
        return ()
    found = []
    for path, data in case.after.items():
        if path.endswith(".py") and (names := sorted(rebound(data) - rebound(case.before.get(path, b"")))):
            found.append(f"{path} defines {', '.join(names)[:200]}, which the fixed {_HARNESS}.py gives.")
    return tuple(Reason(rule="constants", says=says) for says in found)


def rebound(source: bytes) -> set[str]:
    """The names of the harness that a file binds itself, or sets in the harness's own module."""
    found: set[str] = set()
    for node in nodes(source):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store | ast.Del):
            found.add(node.id)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store | ast.Del):
            found.add(node.attr if isinstance(node.value, ast.Name) and node.value.id == _HARNESS else "")
        elif isinstance(node, ast.ImportFrom) and node.module != _HARNESS:
            found |= {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, ast.Import | ast.ImportFrom):
            found |= {alias.asname for alias in node.names if alias.asname}
    return found & FIXED
