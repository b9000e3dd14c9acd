"""Refuse a package that the single file did not use before: none can be installed for a candidate."""

import ast
import sys

from overnight.gate.case import Admission
from overnight.gate.source import nodes
from overnight.records.refusal import Reason

ALWAYS = {"numpy", "jax", "optax", "gymnasium", "evaluate", "guest"}
"""What a single file may import besides the standard library and what it imported already."""


def refuse(case: Admission) -> tuple[Reason, ...]:
    """Only under the preset `single-file`; a file that does not parse is left to its own crash."""
    if case.contract.scope.preset != "single-file":
        return ()
    found = []
    for path, data in case.after.items():
        known = ALWAYS | sys.stdlib_module_names | imported(case.before.get(path, b""))
        if path.endswith(".py") and (new := sorted(imported(data) - known)):
            found.append(f"{path} imports {', '.join(new)[:200]}, which the file did not use before.")
    return tuple(Reason(rule="imports", says=says) for says in found)


def imported(source: bytes) -> set[str]:
    """The first word of every module that a file imports, anywhere in it; nothing where it does not parse."""
    found: set[str] = set()
    for node in nodes(source):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add((node.module or "").partition(".")[0])
    return found - {""}
