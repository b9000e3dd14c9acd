"""`overnight report`: what was gained, how sure that is, what was tried, and what it cost."""

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from overnight.cli.options import HERE, Dir, Json, active, verb_app
from overnight.cli.output import data

if TYPE_CHECKING:
    from overnight.ports import Machine
    from overnight.report.facts import Facts
    from overnight.study.layout import StudyFolder

app = verb_app("Write the morning report.")


@app.command()
def report(
    details: Annotated[bool, typer.Option("--details", help="Each claim with its p-value and error spent.")] = False,
    folder: Dir = HERE,
    as_json: Json = False,
) -> None:
    """Write the morning report from the ledger, as a page and as Markdown. It can be written again at any time.

    `--details` also prints what a statistician asks for: p-value, the bar, the error spent, and what of it is left.

    Examples: `overnight report`, `overnight report --details`
    """
    from overnight.report.story import beneath, headline

    machine, at = active(folder)
    facts = write_report(machine, at)
    told: dict[str, Any] = {"report": str(at.report_page), "markdown": str(at.report_text), "results": str(at.results)}
    lines = [headline(facts), *beneath(facts)]
    if details:
        told["details"] = [claim.details for claim in facts.claims]
        lines += [*told["details"], facts.error]
    lines += ["", f"report: {at.report_page}"]
    data(told, "\n".join(lines), as_json=as_json)


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
