"""Reading which modules a file imports."""

import ast


def imported(tree: ast.AST) -> set[str]:
    """Every module that is imported anywhere in a file, inside functions too."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            assert node.level == 0, "imports are absolute"
            if node.module == "overnight":
                found |= {f"overnight.{a.name}" if not a.name.startswith("__") else "overnight" for a in node.names}
            else:
                found.add(node.module)
    return found
