"""A table of results as a PNG: what was kept in green, what was not in grey, the best so far as steps.

Labels of what was kept stand at the right, each at the end of a pale line, one below the other so that all can be read.
The upright axis goes from the baseline to the best. What scored too far below the baseline is not drawn.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from overnight.report.exports import Status
from overnight.report.letters import ADVANCE, write
from overnight.report.png import encode_png
from overnight.report.scales import Scale, nice_ticks, tick_labels, widened
from overnight.report.table import Row, Summary
from overnight.report.text import plain

WIDTH, HEIGHT = 1620, 700
LEFT, RIGHT, TOP, BOTTOM = 110, 520, 40, 60
GREY, GREEN, INK, PALE = (165, 165, 165), (22, 135, 70), (40, 40, 40), (228, 228, 228)
MOST_LETTERS = 45
"""A longer label is cut."""
_DOT, _LINE, _EDGE = 2, 16, 0.05


def label(description: str) -> str:
    """What stands beside a point."""
    text = plain(description)
    return text if len(text) <= MOST_LETTERS else f"{text[: MOST_LETTERS - 1]}…"


def axes(found: Summary) -> tuple[Scale, Scale]:
    """From the experiment's number to the left, and from the score to the top; there must be a baseline."""
    scores = [row.score for row in (found.baseline, found.best) if row is not None and row.score is not None]
    low, high = widened(min(scores), max(scores))
    room = (high - low) * _EDGE
    across = Scale(0, max(len(found.rows) - 1, 1), LEFT + 20, WIDTH - RIGHT - 20)
    return across, Scale(low - room, high + room, HEIGHT - BOTTOM, TOP)


def points(found: Summary) -> Iterator[tuple[Row, int, int]]:
    """Every experiment that is drawn, and where, in pixels from the left and from the top."""
    across, up = axes(found)
    for row in found.rows:
        if row.score is not None and up.low <= row.score <= up.high:
            yield row, round(across.at(row.number)), round(up.at(row.score))


def frontier(found: Summary) -> bytes:
    """The picture; the table must have a score."""
    paper = np.full((HEIGHT, WIDTH, 3), 255, np.uint8)
    _draw_axes(paper, found)
    drawn = list(points(found))
    kept = [one for one in drawn if one[0].status is Status.KEEP]
    _draw_labels(paper, kept)
    for row, left, top in drawn:
        if row.status is not Status.KEEP:
            paper[top - 3 : top + 4, left - 3 : left + 4] = GREY
    _draw_steps(paper, [(left, top) for _, left, top in kept])
    for _, left, top in kept:
        paper[top - 5 : top + 6, left - 5 : left + 6] = GREEN
    return encode_png(paper)


def _draw_axes(paper: NDArray[np.uint8], found: Summary) -> None:
    across, up = axes(found)
    ticks = [one for one in nice_ticks(up.low, up.high) if up.low <= one <= up.high]
    for value, text in zip(ticks, tick_labels(ticks), strict=True):
        top = round(up.at(value))
        paper[top, LEFT : WIDTH - RIGHT] = PALE
        write(paper, text, (LEFT - 10 - _DOT * ADVANCE * len(text), top - 5), ink=INK, dot=_DOT)
    numbers = [one for one in nice_ticks(0, across.high, 10) if one <= across.high and one == int(one)]
    for value in numbers:
        text = str(int(value))
        left = round(across.at(value)) - _DOT * ADVANCE * len(text) // 2
        write(paper, text, (left, HEIGHT - BOTTOM + 14), ink=INK, dot=_DOT)
    paper[TOP : HEIGHT - BOTTOM, LEFT] = INK
    paper[HEIGHT - BOTTOM, LEFT : WIDTH - RIGHT] = INK
    write(paper, "avg_return by experiment", (LEFT, HEIGHT - 20), ink=INK, dot=_DOT)


def _draw_steps(paper: NDArray[np.uint8], kept: list[tuple[int, int]]) -> None:
    """The best that was kept so far, up to the right edge."""
    best: tuple[int, int] | None = None
    for left, top in kept:
        if best is not None and top > best[1]:
            continue
        if best is not None:
            paper[best[1] - 1 : best[1] + 1, best[0] : left + 1] = GREEN
            paper[top : best[1] + 1, left - 1 : left + 1] = GREEN
        best = (left, top)
    if best is not None:
        paper[best[1] - 1 : best[1] + 1, best[0] : WIDTH - RIGHT] = GREEN


def _draw_labels(paper: NDArray[np.uint8], kept: list[tuple[Row, int, int]]) -> None:
    """At the height of their points, pushed down where they would cover one another."""
    free = TOP - _LINE
    for row, left, top in sorted(kept, key=lambda one: one[2]):
        free = max(top - _LINE // 2, free + _LINE)
        right, middle = WIDTH - RIGHT + 10, free + ADVANCE
        for x in range(left, right):
            y = round(top + (middle - top) * (x - left) / (right - left))
            if 0 <= y < HEIGHT:
                paper[y, x] = PALE
        write(paper, f"{row.number} {label(row.description)}", (right + 4, free), ink=GREEN, dot=_DOT)
