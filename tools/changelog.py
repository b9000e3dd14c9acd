"""Build CHANGELOG.md from the fragments in changes/: `make changelog`.

A fragment is `changes/<slug>.<added|changed|fixed|removed>.md`. A release moves them into
`changes/<version>/`; what lies in `changes/` itself is not released yet.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
KINDS = ("added", "changed", "fixed", "removed")


def section(title: str, folder: Path) -> list[str]:
    """The fragments of one folder, by kind."""
    lines = [f"## {title}", ""]
    for kind in KINDS:
        fragments = sorted(folder.glob(f"*.{kind}.md"))
        if fragments:
            lines += [f"### {kind.capitalize()}", ""]
            lines += [f"- {' '.join(fragment.read_text().split())}" for fragment in fragments]
            lines.append("")
    return lines


def build() -> str:
    """The whole page."""
    changes = ROOT / "changes"
    lines = ["# Changelog", "", *section("Unreleased", changes)]
    for folder in sorted((path for path in changes.iterdir() if path.is_dir()), reverse=True):
        lines += section(folder.name, folder)
    return "\n".join(lines).rstrip() + "\n"


def main() -> int:
    """Write the page, or with `--check` say whether it is stale."""
    path, text = ROOT / "CHANGELOG.md", build()
    if "--check" in sys.argv:
        if not path.exists() or path.read_text() != text:
            sys.stdout.write("CHANGELOG.md is stale; run `make changelog`\n")
            return 1
        return 0
    path.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
