"""Simplicity as a tie-break: of two that cannot be told apart, the one with less code is kept. Pure.

The race is told which candidate is the simpler one, and keeps it inside the noise; a candidate that is clearly worse is
rejected, however short it is.
"""


def balance(diff: str) -> int:
    """Lines of code that a difference adds, minus those that it takes away; blank lines and comments count nothing."""
    total = 0
    for line in diff.splitlines():
        if line.startswith(("+++", "---")) or not line.startswith(("+", "-")):
            continue
        if (code := line[1:].strip()) and not code.startswith("#"):
            total += 1 if line[0] == "+" else -1
    return total
