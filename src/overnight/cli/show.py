"""`overnight show`: one candidate in full."""

from typing import TYPE_CHECKING, Annotated, Any

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
    details: Annotated[
        bool, typer.Option("--details", help="Each verdict with its p-value, σ and error spent.")
    ] = False,
    folder: Dir = HERE,
    as_json: Json = False,
) -> None:
    """Show one candidate: its idea, its change, what the gate said, where it stands.

    What the candidate wrote is shown without anything that could drive a terminal, and inside of a coding agent
    it stands between two marks, labelled as data.

    `--details` tells of each verdict what a statistician asks for: p-value, σ, the bar and the error spent.

    Examples: `overnight show c-0001`, `overnight show c-0001 --details`
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
    verdicts = _verdicts(machine, at, one.id, details=details)
    told = {
        "id": one.id,
        "state": str(one.state),
        "kept": one.kept,
        "refused": one.refused,
        "candidate": encode(candidate),
        "diff": diff,
        "verdicts": verdicts,
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
    said_of_it = [line for found in verdicts for line in _told(found)]
    data(told, "\n".join((head, *said_of_it, quoted("\n".join(wrote).rstrip(), called=one.id))), as_json=as_json)


def _verdicts(machine: "Machine", at: "StudyFolder", name: str, *, details: bool) -> list[dict[str, Any]]:
    """Every verdict on one candidate, or on the stack that ends in it, in the order in which they fell."""
    from overnight.study.ledger import RawEntry, read_sound

    found: list[dict[str, Any]] = []

    def take(entry: RawEntry, _: int) -> None:
        told = entry["data"]
        if entry["kind"] == "decided" and told["candidate"] == name:
            keys = ("verdict", "because", "loop", "gain", "gain_low", "gain_high", "seeds", "seeds_wanted")
            more = ("rule", "details", "improvement", "error_spent") if details else ()
            found.append({key: told.get(key) for key in (*keys, *more)})
        elif entry["kind"] == "verified" and told["candidate"] == name:
            found.append({"verdict": told["verdict"], "because": " ".join(told["behaviour"]), "loop": None})

    read_sound(machine, at.folder, take)
    return found


def _told(found: dict[str, Any]) -> list[str]:
    lines = [f"{found['verdict']:<11} {found['because']}"]
    return lines + [f"{'':<11} {found[key]}" for key in ("details", "rule") if found.get(key)]


def _log_end(machine: "Machine", at: "StudyFolder", one: "CandidateState") -> str:
    """The last lines that the candidate's last run printed."""
    found = machine.read(str(at.runs / one.runs[-1] / "log")) if one.runs else None
    return "\n".join((found or b"")[-20_000:].decode(errors="replace").splitlines()[-LOG_LINES:])
