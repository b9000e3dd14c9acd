"""`overnight propose`: put a candidate before the gate."""

import time
from pathlib import Path
from typing import Annotated

import typer

from overnight.cli.options import HERE, Dir, Json, active, settings, verb_app
from overnight.cli.output import data, say
from overnight.records.proposal import Proposal

app = verb_app("Propose a candidate.")


@app.command()
def propose(
    changes: Annotated[
        list[str] | None, typer.Option("--set", help="A parameter and its new value: `key=value`.")
    ] = None,
    copy: Annotated[Path | None, typer.Option("--from", help="An edited copy, as `--edit` made it.")] = None,
    edit: Annotated[
        Path | None, typer.Option(help="Write the tip as a plain copy into this new folder, and stop.")
    ] = None,
    because: Annotated[str, typer.Option(help="The hypothesis: why it should help, in one sentence.")] = "",
    predict: Annotated[str, typer.Option(help="What will be seen if the hypothesis holds.")] = "The score rises.",
    kind: Annotated[
        str, typer.Option(help="hyperparameter, algorithm, network, reward, curriculum, …")
    ] = "hyperparameter",
    bundle: Annotated[bool, typer.Option("--bundle", help="Declare several `--set` as one bundle.")] = False,
    wait: Annotated[
        float, typer.Option(metavar="SECONDS", help="How long to wait for the answer of a night that is running.")
    ] = 10.0,
    folder: Dir = HERE,
    as_json: Json = False,
) -> int:
    """Propose a candidate, by changed parameters or by an edited copy of the tip.

    The gate is asked at once, on the git tree that the proposal becomes. Whatever it says is recorded; a
    refusal is told with every reason, and exits with 3. Nothing is trained here.

    While a night runs, the proposal is handed to it: it is taken up before anybody else is asked, and reviewed
    like any other. A copy that `--edit` made from an earlier tip is carried over to the present one.

    Examples: `overnight propose --set learning_rate=0.001 --because "The default is slow."`,
    `overnight propose --edit my-copy`, then `overnight propose --from my-copy --kind code --because "…"`
    """
    from overnight.background import night_of

    if edit is not None:
        _write_copy(edit, folder)
        data({"copy": str(edit)}, f"{edit}: edit it, then `overnight propose --from {edit}`", as_json=as_json)
        return 0
    proposal = _proposal(changes or [], copy, because, predict, kind, bundle=bundle)
    if night_of(*active(folder)) is not None:
        return _hand_over(proposal, copy, wait, folder, as_json=as_json)
    return _put_before_the_gate(proposal, copy, folder, as_json=as_json)


def _write_copy(edit: Path, folder: Path) -> None:
    """Write the tip as a plain copy, and remember which tip that was."""
    from overnight.candidate.copy import write_copy
    from overnight.candidate.tree import Store
    from overnight.errors import UserError
    from overnight.intake import note_copy
    from overnight.study.study import read_state

    if edit.exists():
        raise UserError(str(edit), "is there already", hint="name a folder that does not exist")
    machine, at = active(folder)
    store, tip = Store(machine, at.task.root.store), read_state(machine, at).tip
    write_copy(store, store.tree_of(tip), edit)
    note_copy(machine, at, edit, tip)


def _put_before_the_gate(proposal: Proposal, copy: Path | None, folder: Path, *, as_json: bool) -> int:
    from overnight.admission import admit_candidate, follow_ledger, propose_copy, propose_params
    from overnight.candidate.tree import Store
    from overnight.errors import Refused
    from overnight.intake import base_of
    from overnight.records.refusal import Refusal
    from overnight.study.study import Study

    machine, at = active(folder)
    store = Store(machine, at.task.root.store)
    with Study.open(machine, at, doing="overnight propose") as study:
        follow_ledger(study, store)
        drafted = (
            propose_copy(study, store, proposal, copy, base=base_of(machine, at, copy))
            if copy is not None
            else propose_params(study, store, proposal)
        )
        if isinstance(drafted, Refusal):
            raise Refused(str(copy), (one.says for one in drafted.reasons))
        reasons = admit_candidate(study, store, drafted.id)
    if reasons:
        raise Refused(drafted.id, (one.says for one in reasons), hint="the candidate stays in the ledger as a draft")
    say(f"{drafted.id} passed the gate.")
    told = {"candidate": drafted.id, "state": "validated", "tree": drafted.tree}
    data(told, f"{drafted.id}  validated  {proposal.hypothesis}", as_json=as_json)
    return 0


def _hand_over(proposal: Proposal, copy: Path | None, wait: float, folder: Path, *, as_json: bool) -> int:
    """Leave the proposal for the night that is running, and tell its answer where that comes in time."""
    from overnight.errors import Refused, UserError
    from overnight.intake import answer_of, base_of, hand_in
    from overnight.records.handed import Handed
    from overnight.study.study import read_state

    machine, at = active(folder)
    base = None
    if copy is not None:
        if not copy.is_dir():
            raise UserError(str(copy), "is not a folder", hint="name the edited copy")
        base = base_of(machine, at, copy) or read_state(machine, at).tip
    handed = hand_in(machine, at, Handed(proposal=proposal, base=base), copy)
    say("A night is running: the proposal was handed to it.")
    until = machine.monotonic() + wait
    heard = answer_of(machine, handed)
    while heard is None and machine.monotonic() < until:
        time.sleep(0.2)
        heard = answer_of(machine, handed)
    if heard is None:
        told = {"candidate": None, "state": "handed over", "tree": None}
        text = "It is taken up when the present comparison is decided; `overnight candidates` shows its answer."
        data(told, text, as_json=as_json)
        return 0
    name = heard.candidate or "the proposal"
    if heard.refused:
        raise Refused(name, heard.refused, hint="`overnight candidates` lists what became a draft")
    say(f"{name} passed the gate.")
    data(
        {"candidate": name, "state": "validated", "tree": None},
        f"{name}  validated  {proposal.hypothesis}",
        as_json=as_json,
    )
    return 0


def _proposal(
    changes: list[str], copy: Path | None, because: str, predict: str, kind: str, *, bundle: bool
) -> Proposal:
    from overnight.errors import UserError
    from overnight.records.codec import decode

    if bool(changes) is (copy is not None):
        raise UserError(
            "overnight propose", "needs either `--set key=value` or `--from FOLDER`", hint="`overnight propose --help`"
        )
    params = settings(changes)
    if not because.strip():
        raise UserError("overnight propose", "`--because` is empty, but a candidate carries one hypothesis")
    parts = [f"{key} becomes {value}" for key, value in params.items()] if bundle else []
    plain = {
        "proposer": "human",
        "kind": kind,
        "hypothesis": because,
        "predicted_effect": predict,
        "params": params,
        "bundle": parts,
    }
    return decode(Proposal, plain, where="proposal")
