"""Score by experiment as a PNG, drawn without a drawing library: one labelled point for each, labels above and below.

Grey points were not kept, green ones were; the line is the best score that was kept so far.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from overnight.report.journal import Experiment
from overnight.report.png import encode_png

WIDTH, HEIGHT, EDGE = 960, 420, 46
GREY, GREEN, INK, PALE = (150, 150, 150), (22, 135, 70), (40, 40, 40), (225, 225, 225)
_GLYPHS = {
    "0": "69996", "1": "26227", "2": "E1687", "3": "E161E", "4": "99711", "5": "F8E1E", "6": "68E96", "7": "F1244",
    "8": "69696", "9": "69716", "c": "07887", "-": "00700", ".": "00002", "b": "88E9E", "a": "06177", "s": "07426",
    "e": "06B86", "l": "62227", "i": "20227", "n": "0E999", "x": "09669",
}  # fmt: skip
"""Five rows of four dots, as hexadecimal digits."""


def points(found: Sequence[Experiment]) -> list[tuple[int, int]]:
    """Where each experiment with a score stands, in pixels from the left and from the top."""
    scores = [one.score for one in found if one.score is not None]
    low, high = min(scores), max(scores)
    spread = (high - low) or max(abs(high), 1.0)
    step = (WIDTH - 2 * EDGE) / max(len(scores) - 1, 1)
    return [
        (round(EDGE + place * step), round(HEIGHT - EDGE - (score - low) / spread * (HEIGHT - 2 * EDGE)))
        for place, score in enumerate(scores)
    ]


def score_graph(found: Sequence[Experiment]) -> bytes:
    """The picture; there must be at least one score."""
    shown = [one for one in found if one.score is not None]
    paper = np.full((HEIGHT, WIDTH, 3), 255, np.uint8)
    paper[HEIGHT - EDGE + 12, EDGE // 2 : WIDTH - EDGE // 2] = PALE
    best: tuple[int, int] | None = None
    for (left, top), one in zip(points(found), shown, strict=True):
        if one.kept and (best is None or top <= best[1]):
            if best is not None:
                paper[best[1], best[0] : left] = GREEN
                paper[top : best[1] + 1, left] = GREEN
            best = (left, top)
    for place, ((left, top), one) in enumerate(zip(points(found), shown, strict=True)):
        paper[top - 3 : top + 4, left - 3 : left + 4] = GREEN if one.kept else GREY
        score = f"{one.score:.1f}" if one.score is not None else ""
        above = place % 2 == 0
        _write(paper, one.name, left, top - 26 if above else top + 10)
        _write(paper, score, left, top - 16 if above else top + 20)
    return encode_png(paper)


def _write(paper: NDArray[np.uint8], text: str, middle: int, top: int) -> None:
    """Write in small letters around a middle; what is outside of the paper is left out."""
    left = middle - 5 * len(text) // 2
    for place, letter in enumerate(text):
        for row, dots in enumerate(_GLYPHS.get(letter, "FFFFF")):
            for column in range(4):
                x, y = left + 5 * place + column, top + row
                if int(dots, 16) >> (3 - column) & 1 and 0 <= x < WIDTH and 0 <= y < HEIGHT:
                    paper[y, x] = INK
