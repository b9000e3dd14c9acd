"""`overnight report`: what was gained, how sure that is, what was tried, and what it cost."""

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from overnight.cli.options import HERE, Dir, Json, active, verb_app
from overnight.cli.output import data, table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from overnight.ports import Machine
    from overnight.report.facts import Facts
    from overnight.report.table import Hit, Row, Summary
    from overnight.study.layout import StudyFolder

app = verb_app("Write the morning report.")


@app.command()
def report(
    details: Annotated[bool, typer.Option("--details", help="Each claim with its p-value and error spent.")] = False,
    results: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Instead, tell what a table like `results.tsv` amounts to.")
    ] = None,
    folder: Dir = HERE,
    as_json: Json = False,
) -> None:
    """Write the morning report from the ledger, as a page and as Markdown. It can be written again at any time.

    `--details` also prints what a statistician asks for: p-value, the bar, the error spent, and what of it is left.

    `--results` reads no study, but a table in the format of `results.tsv`, whoever wrote it: it prints how much was
    kept, what that gained and what brought most, and writes the picture `progress.png` beside it.

    Examples: `overnight report`, `overnight report --details`, `overnight report --results results.tsv`
    """
    from overnight.report.story import beneath, headline

    if results is not None:
        _tell_table(results, as_json=as_json)
        return
    machine, at = active(folder)
    facts = write_report(machine, at)
    told: dict[str, Any] = {"report": str(at.report_page), "markdown": str(at.report_text), "results": str(at.results)}
    lines = [headline(facts), *beneath(facts)]
    if details:
        told["details"] = [claim.details for claim in facts.claims]
        lines += [*told["details"], facts.error]
    lines += ["", f"report: {at.report_page}"]
    data(told, "\n".join(lines), as_json=as_json)


def _tell_table(path: Path, *, as_json: bool) -> None:
    """What a table of results amounts to, in text and as a picture beside it."""
    from overnight.errors import UserError
    from overnight.machine import RealMachine
    from overnight.report.frontier import frontier
    from overnight.report.table import read_table, summary
    from overnight.study.durable import write_file

    if not path.is_file():
        raise UserError(str(path), "is not a file", hint="a night writes `results.tsv`")
    found = summary(read_table(path.read_bytes().decode(errors="replace"), where=str(path)))
    picture = path.with_name(f"progress{path.stem.removeprefix('results')}.png") if found.baseline else None
    if picture is not None:
        write_file(RealMachine(), picture, frontier(found), mode=0o644)
    told = {
        "results": str(path),
        "picture": str(picture) if picture is not None else None,
        "experiments": len(found.rows),
        "counts": {str(status): count for status, count in found.counts.items()},
        "keep_rate": found.keep_rate,
        "baseline": _row(found.baseline),
        "best": _row(found.best),
        "gain": found.gain,
        "percent": found.percent,
        "kept": [{**(_row(hit.row) or {}), "gain": hit.gain, "tries": hit.tries} for hit in found.hits],
        "top": [hit.row.commit for hit in found.ranked()],
    }
    data(told, "\n".join(_table_lines(found, path, picture)), as_json=as_json)


def _row(row: "Row | None") -> dict[str, Any] | None:
    if row is None:
        return None
    return {"number": row.number, "commit": row.commit, "score": row.score, "description": row.description}


def _table_lines(found: "Summary", path: Path, picture: Path | None) -> "Iterator[str]":
    """The table in text for people."""
    from overnight.report.frontier import points

    counts = ", ".join(f"{count} {status}" for status, count in found.counts.items())
    rate = f"; {found.keep_rate:.0%} of what ran to its end was kept" if found.keep_rate is not None else ""
    yield f"{path.name}: {len(found.rows)} experiments: {counts}{rate}."
    for name, row in (("baseline", found.baseline), ("best", found.best)):
        if row is not None:
            yield f"{name:<9} {row.score:.6f}  {row.commit}  {row.description}"
    if found.gain is not None:
        part = f", {found.percent:+.1f} % of the baseline" if found.percent is not None else ""
        yield f"in all    {found.gain:+.6f}{part}"
    header = ("", "tries", "score", "gain", "description")
    for title, hits in (("Kept, and after how many tries each:", found.hits), ("What brought most:", found.ranked())):
        if hits:
            yield f"\n{title}"
            yield table([_cells(hit) for hit in hits], header=header)
    yield "\nThe scores are the table's own, and nothing of it is certified."
    if picture is not None:
        left_out = sum(row.score is not None for row in found.rows) - len(list(points(found)))
        below = f" ({left_out} scored too far below the baseline to be in it)" if left_out else ""
        yield f"picture: {picture}{below}"
    else:
        yield "No experiment has a score, so there is no picture."


def _cells(hit: "Hit") -> tuple[str, ...]:
    row = hit.row
    return (f"#{row.number}", str(hit.tries), f"{row.score:.6f}", f"{hit.gain:+.6f}", row.description)


def write_report(machine: "Machine", at: "StudyFolder") -> "Facts":
    """Write the report of one study, from its ledger as it stands on disk."""
    from overnight import handoff

    return handoff.write_report(machine, at, program=program())


def program() -> str:
    """How this very command is called in a shell: by its name where that finds it, else by its path."""
    found, own = shutil.which("overnight"), Path(sys.argv[0])
    if own.name != "overnight" or (found is not None and Path(found).resolve() == own.resolve()):
        return "overnight"
    return str(own)
