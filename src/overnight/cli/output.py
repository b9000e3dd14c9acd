"""What verbs print: data on stdout, narration on stderr, and nothing that could drive a terminal."""

import json
import os
import sys
import unicodedata
from collections.abc import Sequence
from typing import Any

MAX_SHOWN = 4000


def plain(text: str) -> str:
    """Text as a terminal may show it: no control, bidirectional or invisible characters, and not endless."""
    kept = "".join(char if char in "\n\t" or not unicodedata.category(char).startswith("C") else "�" for char in text)
    return kept if len(kept) <= MAX_SHOWN else kept[:MAX_SHOWN] + " …"


def say(text: str) -> None:
    """Tell the person something that is not data."""
    sys.stderr.write(plain(text) + "\n")


def data(value: Any, text: str, *, as_json: bool) -> None:  # noqa: ANN401 - plain JSON data
    """Print a verb's result, for a program or for a person."""
    try:
        sys.stdout.write((json.dumps(value, ensure_ascii=True) if as_json else plain_lines(text)) + "\n")
        sys.stdout.flush()
    except BrokenPipeError:  # the reader went away, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def plain_lines(text: str) -> str:
    """Many lines, each made plain and cut by itself."""
    return "\n".join(plain(line) for line in text.split("\n"))


def table(rows: Sequence[tuple[str, ...]], *, header: tuple[str, ...]) -> str:
    """Columns that line up, as text that also reads well in a pipe."""
    cells = [tuple(plain(cell).replace("\n", " ") for cell in row) for row in (header, *rows)]
    widths = [min(max(len(row[column]) for row in cells), 60) for column in range(len(header))]
    return "\n".join(
        "  ".join(cell[:60].ljust(width) for cell, width in zip(row[:-1], widths[:-1], strict=True))
        + "  "
        + row[-1][:100]
        for row in cells
    )
