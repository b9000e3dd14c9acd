"""`overnight show`: one candidate in full."""

from typing import Annotated

import typer

from overnight.cli.options import HERE, Dir, Json, active, verb_app
from overnight.cli.output import data

app = verb_app("Show one candidate.")


@app.command()
def show(
    name: Annotated[str, typer.Argument(metavar="ID", help="A candidate's id, such as c-0001.")],
    folder: Dir = HERE,
    as_json: Json = False,
) -> None:
    """Show one candidate: its idea, its change, what the gate said, where it stands.

    Example: `overnight show c-0001`
    """
    from overnight.candidate.tree import Store
    from overnight.loop import find_candidate
    from overnight.study.layout import check_id
    from overnight.study.study import read_state

    machine, at = active(folder)
    one = find_candidate(read_state(machine, at), check_id(name, letter="c", called="candidate"))
    store = Store(machine, at.task.root.store)
    diff = store.diff(store.tree_of(one.data["base"]), one.data["tree"]).decode(errors="replace")
    reasons = [reason["says"] for refusal in one.refusals for reason in refusal["reasons"]]
    proposal = one.data["proposal"]
    told = {
        "id": one.id,
        "state": str(one.state),
        "kept": one.kept,
        "refused": reasons,
        "candidate": one.data,
        "diff": diff,
    }
    lines = [
        f"{one.id}  {one.state}{'  kept' if one.kept else ''}",
        f"hypothesis  {proposal['hypothesis']}",
        f"predicted   {proposal['predicted_effect']}",
        f"proposer    {proposal['proposer']} ({proposal['kind']})",
        f"tree        {one.data['tree']}",
        f"commit      {one.data['commit']}",
        *(f"refused     {says}" for says in reasons),
        *(f"failure     {one.failure}" for _ in [1] if one.failure),
        "",
        diff[:20_000],
    ]
    data(told, "\n".join(lines).rstrip(), as_json=as_json)
