"""`overnight clean`: free disk without losing evidence."""

from typing import Annotated

import typer

from overnight.cli.options import HERE, Dir, Json, active, verb_app
from overnight.cli.output import data

app = verb_app("Free disk.")


@app.command()
def clean(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only list what would go, with sizes.")] = False,
    cache: Annotated[bool, typer.Option("--cache", help="The compile cache, too; the next run makes it anew.")] = False,
    folder: Dir = HERE,
    as_json: Json = False,
) -> None:
    """Free disk without losing evidence: policies, outputs and logs of ended runs that nothing rests on.

    Ledger, contract, approvals, measured episodes, audits and candidates stay, and so does everything of the runs of
    the baseline, the tip, the incumbents and every claim. Refuses while an engine holds the study.

    Examples: `overnight clean --dry-run`, `overnight clean --cache`
    """
    from overnight.adapters.launchers.local import LocalLauncher
    from overnight.housekeeping import cache_of, check_free, removable, remove
    from overnight.room import size
    from overnight.study.study import Study

    machine, at = active(folder)
    if cache:
        check_free(machine, at.task.root)
    with Study.open(machine, at, doing="overnight clean") as study:
        items = removable(machine, at, study.state, LocalLauncher().is_alive)
        items += cache_of(at.task.root) if cache else []
        freed = sum(item.bytes for item in items) if dry_run else remove(items)
    shown = [(item.path.relative_to(at.task.root.folder), item) for item in items]
    lines = [f"{size(item.bytes):>10}  {path}  ({item.what})" for path, item in shown]
    verdict = f"{size(freed)} would be freed; nothing was removed." if dry_run else f"{size(freed)} freed."
    told = {
        "removed": not dry_run,
        "bytes": freed,
        "items": [{"path": str(path), "what": item.what, "bytes": item.bytes} for path, item in shown],
    }
    data(
        told,
        "\n".join([*(lines if dry_run else []), verdict if items else "There is nothing to remove."]),
        as_json=as_json,
    )
