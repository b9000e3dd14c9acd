"""`overnight candidates`: every candidate in one line."""

from typing import Annotated

import typer

from overnight.cli.options import HERE, Dir, Json, active, verb_app
from overnight.cli.output import data, table

app = verb_app("List the candidates.")


@app.command()
def candidates(
    state: Annotated[str | None, typer.Option(help="Only candidates in this state, such as `validated`.")] = None,
    folder: Dir = HERE,
    as_json: Json = False,
) -> None:
    """List the candidates, each with its state, its idea and, where it was refused, the reason.

    Example: `overnight candidates --state validated`
    """
    from overnight.errors import UserError, did_you_mean
    from overnight.records.lifecycle import State
    from overnight.study.study import read_state

    if state is not None and state not in list(State):
        raise UserError("--state", f"`{state[:60]}` is not a state", hint=did_you_mean(state, [str(s) for s in State]))
    machine, at = active(folder)
    found = [one for one in read_state(machine, at).candidates.values() if state is None or one.state == state]
    told = [
        {
            "id": one.id,
            "state": str(one.state),
            "kept": one.kept,
            "hypothesis": one.hypothesis,
            "refused": one.refused,
        }
        for one in found
    ]
    rows = [(one.id, _shown(str(one.state), bool(one.refused)), one.hypothesis) for one in found]
    text = table(rows, header=("candidate", "state", "hypothesis")) if rows else "no candidates yet"
    data({"candidates": told}, text, as_json=as_json)


def _shown(state: str, refused: bool) -> str:
    return f"{state} (refused)" if refused and state == "draft" else state
