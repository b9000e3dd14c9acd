"""What verbs print: data on stdout, narration on stderr, and nothing that could drive a terminal."""

import json
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from overnight.records.text import fenced, line, lines


def say(text: str) -> None:
    """Tell the person something that is not data."""
    sys.stderr.write(lines(text) + "\n")


def data(value: Any, text: str, *, as_json: bool) -> None:  # noqa: ANN401 - plain JSON data
    """Print a verb's result, for a program or for a person."""
    try:
        sys.stdout.write((json.dumps(shown(value), ensure_ascii=True) if as_json else lines(text)) + "\n")
        sys.stdout.flush()
    except BrokenPipeError:  # the reader went away, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def shown(value: Any) -> Any:  # noqa: ANN401 - plain JSON data
    """Plain data with every text in it made fit to be read, because an agent reads it."""
    if isinstance(value, str):
        return lines(value)
    if isinstance(value, Mapping):
        return {line(str(key)): shown(one) for key, one in value.items()}
    return [shown(one) for one in value] if isinstance(value, (list, tuple)) else value


def quoted(text: str, *, called: str) -> str:
    """Text that a candidate wrote, as a person reads it; inside of an agent it is fenced and labelled as data."""
    from overnight.contract.approve import agent_host

    return fenced(text, called=called) if agent_host(os.environ) is not None else text


def table(rows: Sequence[tuple[str, ...]], *, header: tuple[str, ...]) -> str:
    """Columns that line up, as text that also reads well in a pipe."""
    cells = [tuple(line(cell) for cell in row) for row in (header, *rows)]
    widths = [min(max(len(row[column]) for row in cells), 60) for column in range(len(header))]
    return "\n".join(
        "  ".join(cell[:60].ljust(width) for cell, width in zip(row[:-1], widths[:-1], strict=True))
        + "  "
        + row[-1][:100]
        for row in cells
    )
