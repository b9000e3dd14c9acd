"""Score by experiment as a PNG, drawn without a drawing library: one labelled point for each, labels above and below.

Grey points were not kept, green ones were; the line is the best score that was kept so far.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from overnight.report.journal import Experiment
from overnight.report.letters import ADVANCE, write
from overnight.report.png import encode_png

WIDTH, HEIGHT, EDGE = 960, 420, 46
GREY, GREEN, INK, PALE = (150, 150, 150), (22, 135, 70), (40, 40, 40), (225, 225, 225)


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
    """Write in small letters around a middle."""
    write(paper, text, (middle - ADVANCE * len(text) // 2, top), ink=INK)
