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
    from overnight.admission import drafted, find_candidate
    from overnight.candidate.tree import Store
    from overnight.records.codec import encode
    from overnight.study.layout import check_id
    from overnight.study.study import read_state

    machine, at = active(folder)
    one = find_candidate(read_state(machine, at), check_id(name, letter="c", called="candidate"))
    candidate = drafted(machine, at, one)
    store = Store(machine, at.task.root.store)
    diff = store.diff(store.tree_of(one.base), one.tree).decode(errors="replace")
    proposal = candidate.proposal
    told = {
        "id": one.id,
        "state": str(one.state),
        "kept": one.kept,
        "refused": one.refused,
        "candidate": encode(candidate),
        "diff": diff,
    }
    lines = [
        f"{one.id}  {one.state}{'  kept' if one.kept else ''}",
        f"hypothesis  {proposal.hypothesis}",
        f"predicted   {proposal.predicted_effect}",
        f"proposer    {proposal.proposer} ({proposal.kind})",
        f"tree        {one.tree}",
        f"commit      {one.commit}",
        *(f"refused     {says}" for says in one.refused),
    ]
    if one.failure:
        lines.append(f"failure     {one.failure}")
    data(told, "\n".join([*lines, "", diff[:20_000]]).rstrip(), as_json=as_json)
