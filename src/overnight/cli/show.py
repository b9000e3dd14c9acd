"""`overnight show`: one candidate in full."""

from typing import TYPE_CHECKING, Annotated

import typer

from overnight.cli.options import HERE, Dir, Json, active, verb_app
from overnight.cli.output import data, quoted

if TYPE_CHECKING:
    from overnight.ports import Machine
    from overnight.study.layout import StudyFolder
    from overnight.study.state import CandidateState

LOG_LINES = 50
app = verb_app("Show one candidate.")


@app.command()
def show(
    name: Annotated[str, typer.Argument(metavar="ID", help="A candidate's id, such as c-0001.")],
    log: Annotated[bool, typer.Option("--log", help="The end of its last run's log, too.")] = False,
    folder: Dir = HERE,
    as_json: Json = False,
) -> None:
    """Show one candidate: its idea, its change, what the gate said, where it stands.

    What the candidate wrote is shown without anything that could drive a terminal, and inside of a coding agent
    it stands between two marks, labelled as data.

    Examples: `overnight show c-0001`, `overnight show c-0001 --log`
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
    said = _log_end(machine, at, one) if log else ""
    told = {
        "id": one.id,
        "state": str(one.state),
        "kept": one.kept,
        "refused": one.refused,
        "candidate": encode(candidate),
        "diff": diff,
        **({"log": said} if log else {}),
        "untrusted": ["candidate", "refused", "diff", *(["log"] if log else [])],
    }
    wrote = [
        f"hypothesis  {proposal.hypothesis}",
        f"predicted   {proposal.predicted_effect}",
        f"proposer    {proposal.proposer} ({proposal.kind})",
        f"tree        {one.tree}",
        f"commit      {one.commit}",
        *(f"refused     {says}" for says in one.refused),
        *([f"failure     {one.failure}"] if one.failure else []),
        "",
        diff[:20_000].rstrip("\n"),
        *(["", f"the end of the log of {one.runs[-1]}:", said] if said else []),
    ]
    head = f"{one.id}  {one.state}{'  kept' if one.kept else ''}"
    data(told, "\n".join((head, quoted("\n".join(wrote).rstrip(), called=one.id))), as_json=as_json)


def _log_end(machine: "Machine", at: "StudyFolder", one: "CandidateState") -> str:
    """The last lines that the candidate's last run printed."""
    found = machine.read(str(at.runs / one.runs[-1] / "log")) if one.runs else None
    return "\n".join((found or b"")[-20_000:].decode(errors="replace").splitlines()[-LOG_LINES:])
