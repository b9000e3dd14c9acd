"""Print which rows of the feature list are proved by a test, refused with a reason, or open: `make features`."""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "src"))

from overnight.study import yaml  # noqa: E402


def proofs() -> dict[str, list[str]]:
    """Every row that a test claims to prove, with the tests."""
    found: dict[str, list[str]] = {}
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        for match in re.finditer(r"mark\.feature\(([^)]*)\)", path.read_text()):
            test = re.search(r"^\s*(?:def|class) (\w+)", path.read_text()[match.end() :], re.MULTILINE)
            for row in re.findall(r'"([A-Z][0-9]+)"', match.group(1)):
                name = test.group(1) if test else "?"
                found.setdefault(row, []).append(f"{path.relative_to(ROOT)}::{name}")
    return found


def main() -> int:
    """Print the three lists; fail on a row that does not exist, or that is both proved and refused."""
    listed = yaml.load((ROOT / "docs" / "features.yaml").read_bytes(), where="docs/features.yaml")
    if not isinstance(listed, dict):
        return 1
    rows = [f"{letter}{n}" for letter, system in listed["systems"].items() for n in range(1, system["rows"] + 1)]
    proved, refused = proofs(), listed["refused"]
    unknown = sorted((proved.keys() | refused.keys()) - set(rows))
    both = sorted(proved.keys() & refused.keys())
    for row in rows:
        if row in proved:
            sys.stdout.write(f"{row:<5} proved   {proved[row][0]}{' …' if len(proved[row]) > 1 else ''}\n")
        elif row in refused:
            sys.stdout.write(f"{row:<5} refused  {refused[row]}\n")
    still_open = [row for row in rows if row not in proved and row not in refused]
    sys.stdout.write(f"open: {' '.join(still_open)}\n" if "--open" in sys.argv else "")
    sys.stdout.write(f"{len(proved)} proved, {len(refused)} refused, {len(still_open)} open, {len(rows)} in all\n")
    if unknown or both:
        sys.stdout.write(f"no such row: {unknown}; both proved and refused: {both}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
