"""The ledger's night in the table format of other systems.

`results.tsv` has four columns: commit, avg_return, status, description. Its readers demand a
number in every row, so a crash prints 0.000000 here, and only here.
"""

import math
import re
from enum import StrEnum

from overnight.errors import UserError
from overnight.report.facts import CandidateLine, Facts
from overnight.report.story import Standing, standing
from overnight.report.text import plain

HEADER = "commit\tavg_return\tstatus\tdescription"


class Status(StrEnum):
    """The three words that the format knows."""

    KEEP = "keep"
    DISCARD = "discard"
    CRASH = "crash"


STATUS = {
    Standing.CERTIFIED: Status.KEEP,
    Standing.KEPT: Status.KEEP,
    Standing.REJECTED: Status.DISCARD,
    Standing.INCONCLUSIVE: Status.DISCARD,
    Standing.REVERTED: Status.DISCARD,
    Standing.CRASHED: Status.CRASH,
}
"""How our words map to theirs. What was refused, has not run or is undecided has no row: it has no outcome to tell."""


def results_tsv(facts: Facts) -> str:
    """The baseline and every decided candidate, one row each, in order."""
    rows = [HEADER]
    if facts.baseline.score is not None:
        rows.append(_row(facts.baseline.commit, facts.baseline.score, Status.KEEP, f"baseline {facts.baseline.name}"))
    rows += [row for line in facts.candidates if (row := _candidate_row(line)) is not None]
    return "\n".join(rows) + "\n"


def check_results_tsv(text: str, *, where: str = "results.tsv") -> int:
    """Count the rows of a table in this format, or say in a sentence which row is none of it."""
    header, *rows = text.removesuffix("\n").split("\n")
    if header != HEADER:
        raise UserError(where, f"begins with {header[:80]!r}, but its header is {HEADER!r}")
    for place, row in enumerate(rows, start=2):
        cells = row.split("\t")
        if len(cells) != 4:
            raise UserError(where, f"has {len(cells)} columns in line {place}, but 4 are needed")
        commit, score, status, _ = cells
        if re.fullmatch(r"[0-9a-f]{7}", commit) is None:
            raise UserError(where, f"says {commit[:40]!r} in line {place}, where 7 digits of a commit are needed")
        if re.fullmatch(r"-?\d+\.\d{6}", score) is None:
            raise UserError(where, f"says {score[:40]!r} in line {place}, where a number with 6 decimals is needed")
        if status not in tuple(Status):
            raise UserError(where, f"says {status[:40]!r} in line {place}", hint="choose keep, discard or crash")
    return len(rows)


def _candidate_row(line: CandidateLine) -> str | None:
    status = STATUS.get(standing(line))
    if status is None:
        return None
    planted = f"planted {line.plant}: " if line.plant is not None else ""
    return _row(line.commit, line.score, status, planted + line.hypothesis)


def _row(commit: str, score: float | None, status: Status, description: str) -> str:
    measured = score is not None and math.isfinite(score) and status is not Status.CRASH
    # A decided candidate without a number would be a row that readers cannot parse; to them it is a crash.
    status, shown = (status, f"{score:.6f}") if measured else (Status.CRASH, "0.000000")
    return "\t".join((plain(commit)[:7], shown, status, plain(description, 200)))
