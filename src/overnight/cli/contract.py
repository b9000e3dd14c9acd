"""`overnight contract`: show and check the terms."""

import typer

from overnight.cli.options import HERE, Dir, Json, active, verb_app
from overnight.cli.output import data

app = verb_app("Show the terms of the study, or check what is missing in them. Example: `overnight contract check`")


@app.command()
def show(
    folder: Dir = HERE, as_json: Json = False, history: bool = typer.Option(False, help="Amendments, too.")
) -> None:
    """Show each clause, whether it is approved, and by whom.

    Example: `overnight contract show --history`
    """
    from overnight.admission import read_terms, standings
    from overnight.contract.screen import screen
    from overnight.records.codec import encode
    from overnight.study.study import read_state

    machine, at = active(folder)
    reading, state = read_terms(machine, at), read_state(machine, at)
    found = standings(reading, state)
    contract = reading.contract()
    lines = [f"{heading}: {sentence}" for heading, sentence in screen(contract)] if contract is not None else []
    lines += ["", *(f"{number}. {one.says}" for number, one in enumerate(found, 1))]
    amendments = [
        {"clause": data_["clause"], "from": data_["replaces"], "to": data_["digest"], "by": data_["approver"]}
        for data_ in state.amendments
    ]
    if history:
        lines += ["", "Amendments:", *(f"  {a['clause']}: {a['from'][:12]} became {a['to'][:12]}" for a in amendments)]
    told = {
        "contract": encode(contract),
        "clauses": {str(one.clause): {"standing": str(one.standing), "says": one.says} for one in found},
        "amendments": amendments,
    }
    data(told, "\n".join(lines).strip("\n"), as_json=as_json)


@app.command()
def check(folder: Dir = HERE, as_json: Json = False) -> int:
    """Say what is unknown or wrong in the contract. Exit 0 when every clause can be approved, else 2.

    Example: `overnight contract check`
    """
    from overnight.admission import read_terms
    from overnight.records.contract import Clause

    machine, at = active(folder)
    reading = read_terms(machine, at)
    problems = {str(clause): problem for clause in Clause if (problem := reading.problem(clause)) is not None}
    lines = [f"{at.contract}:", *(f"  - {problem}" for problem in problems.values())]
    text = "\n".join(lines) if problems else f"{at.contract}: all eight clauses can be approved."
    data({"sound": not problems, "problems": problems}, text, as_json=as_json)
    return 2 if problems else 0
