"""What a table of results amounts to, whoever wrote it: how much was kept, what that gained, and what brought most.

The table is one run against one run, as its writers compare them; nothing here is a claim.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from overnight.report.exports import Status, check_results_tsv


@dataclass(frozen=True, slots=True)
class Row:
    """One experiment of the table."""

    number: int
    """Its place, from 0 on."""
    commit: str
    score: float | None
    """Null for a crash, whatever number stands there."""
    status: Status
    description: str


@dataclass(frozen=True, slots=True)
class Hit:
    """One experiment that was kept after the first."""

    row: Row
    gain: float
    """Over what was kept before it."""
    tries: int
    """How many experiments it took since then, itself included."""


@dataclass(frozen=True, slots=True)
class Summary:
    """The table in a few numbers."""

    rows: tuple[Row, ...]
    counts: Mapping[Status, int]
    """How many there are of each status."""
    keep_rate: float | None
    """The part that was kept of what ran to its end; null where nothing did."""
    baseline: Row | None
    """The first experiment with a score."""
    best: Row | None
    """The best that was kept."""
    gain: float | None
    """Of the best over the baseline; null where there is none of either."""
    percent: float | None
    """The same as a part of the baseline; null where that is 0."""
    hits: tuple[Hit, ...]
    """What was kept after the first, in order."""

    def ranked(self) -> list[Hit]:
        """What was kept, and brought most first."""
        return sorted(self.hits, key=lambda hit: -hit.gain)


def read_table(text: str, *, where: str) -> tuple[Row, ...]:
    """The rows of a table, or a sentence that says which of them is none."""
    check_results_tsv(text, where=where)
    found = []
    for number, line in enumerate(text.removesuffix("\n").split("\n")[1:]):
        commit, score, status, description = line.split("\t")
        measured = None if status == Status.CRASH else float(score)
        found.append(Row(number, commit, measured, Status(status), description))
    return tuple(found)


def summary(rows: Sequence[Row]) -> Summary:
    """Count, and compare what was kept with the baseline and with what was kept before it. Higher is better."""
    counts = Counter(row.status for row in rows)
    ran = counts[Status.KEEP] + counts[Status.DISCARD]
    kept = [(row, row.score) for row in rows if row.status is Status.KEEP and row.score is not None]
    baseline = next(((row, row.score) for row in rows if row.score is not None), None)
    best = max(kept, key=lambda one: one[1], default=None)
    gain = best[1] - baseline[1] if best is not None and baseline is not None else None
    return Summary(
        rows=tuple(rows),
        counts={status: counts[status] for status in Status},
        keep_rate=counts[Status.KEEP] / ran if ran else None,
        baseline=baseline[0] if baseline is not None else None,
        best=best[0] if best is not None else None,
        gain=gain,
        percent=100 * gain / abs(baseline[1]) if gain is not None and baseline is not None and baseline[1] else None,
        hits=tuple(
            Hit(now, score - earlier, now.number - before.number) for (before, earlier), (now, score) in pairwise(kept)
        ),
    )
