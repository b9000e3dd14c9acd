"""`overnight check KIND THING`: the one checker."""

from pathlib import Path
from typing import Annotated

import typer

from overnight.cli.options import HERE, Dir, Json, active, verb_app
from overnight.cli.output import data

app = verb_app("Check one thing. Example: `overnight check candidate c-0001`")


@app.command()
def candidate(
    name: Annotated[str, typer.Argument(metavar="ID", help="A candidate's id, such as c-0001.")],
    folder: Dir = HERE,
    as_json: Json = False,
) -> None:
    """Ask the gate about a candidate as it stands now, in the store and under the contract of this moment.

    The same question is asked right before a launch. The answer is recorded; a refusal exits with 3.

    Example: `overnight check candidate c-0001`
    """
    from overnight.admission import admit_candidate, follow_ledger
    from overnight.candidate.tree import Store
    from overnight.errors import Refused
    from overnight.study.layout import check_id
    from overnight.study.study import Study

    machine, at = active(folder)
    check_id(name, letter="c", called="candidate")
    store = Store(machine, at.task.root.store)
    with Study.open(machine, at, doing="overnight check") as study:
        follow_ledger(study, store)
        reasons = admit_candidate(study, store, name)
    if reasons:
        raise Refused(name, (one.says for one in reasons))
    data({"candidate": name, "admitted": True}, f"{name} may run.", as_json=as_json)


@app.command()
def contract(folder: Dir = HERE, as_json: Json = False) -> int:
    """Say what is unknown or wrong in the contract; the same as `overnight contract check`.

    Example: `overnight check contract`
    """
    from overnight.cli.contract import check as check_contract

    return check_contract(folder=folder, as_json=as_json)


@app.command()
def record(
    path: Annotated[Path, typer.Argument(metavar="FILE", help="A JSON file whose first key is `schema`.")],
    as_json: Json = False,
) -> None:
    """Check any record's file against the schema that it names.

    Example: `overnight check record audits/first.json`
    """
    from overnight.errors import UserError, did_you_mean
    from overnight.records import strict_json
    from overnight.records.codec import loads
    from overnight.study.stored import STORED

    if not path.is_file():
        raise UserError(str(path), "is not a file")
    text = path.read_bytes()
    found = strict_json.parse(text, where=str(path))
    name = found.get("schema") if isinstance(found, dict) else None
    if not isinstance(name, str) or name not in STORED:
        hint = did_you_mean(name, STORED) if isinstance(name, str) else 'its first key should be `"schema"`'
        raise UserError(str(path), f"names the schema {str(name)[:60]!r}, which is not known", hint=hint)
    loads(STORED[name], text, where=str(path))
    data({"path": str(path), "schema": name, "sound": True}, f"{path}: a sound {name}", as_json=as_json)
