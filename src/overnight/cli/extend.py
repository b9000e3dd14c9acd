"""`overnight extend`: more hours, runs, candidates, dollars or tokens for the same study."""

from typing import TYPE_CHECKING, Annotated

import typer

from overnight.cli.options import HERE, Dir, Json, Key, Sign, active, verb_app
from overnight.cli.output import data

if TYPE_CHECKING:
    from overnight.admission import Who
    from overnight.contract.read import Reading
    from overnight.records.contract import Clause, Contract
    from overnight.study.study import Study

app = verb_app("Give the study more.")


@app.command()
def extend(
    hours: Annotated[float | None, typer.Option(help="Hours more that the study may take.")] = None,
    runs: Annotated[int | None, typer.Option(help="Training runs more.")] = None,
    candidates: Annotated[int | None, typer.Option(help="Candidates more before the stop rule fires.")] = None,
    dollars: Annotated[float | None, typer.Option(help="Dollars more that coding agents may cost.")] = None,
    tokens: Annotated[int | None, typer.Option(help="Tokens more that coding agents may read and write.")] = None,
    yes: Annotated[
        bool, typer.Option("--yes", help="Approve unattended, where `overnight approve --yes` may.")
    ] = False,
    sign: Sign = False,
    key: Key = None,
    folder: Dir = HERE,
    as_json: Json = False,
) -> None:
    """Raise the study's budget or its stop rule, and approve the changed clauses anew.

    The values are added to the present ones. Exactly they change in contract.yaml; comments and everything else
    stay. It asks as `overnight approve` does, and nothing is written when the word is not given. Results stay
    comparable, so `overnight start` goes on where the night stopped.

    Examples: `overnight extend --hours 4`, `overnight extend --runs 200`, `overnight extend --dollars 5`
    """
    from overnight.admission import read_terms
    from overnight.cli.approve import How, word_for
    from overnight.contract.extend import More, extended, raises
    from overnight.contract.read import read
    from overnight.study.study import Study

    machine, at = active(folder)
    with Study.open(machine, at, doing="overnight extend") as study:
        found = raises(_in_force(study, read_terms(machine, at)), More(hours, runs, candidates, dollars, tokens))
        old = at.contract.read_bytes()
        text = extended(old.decode(), found, where=str(at.contract))
    after = read(text, where=str(at.contract))
    clauses = tuple(dict.fromkeys(one.clause for one in found))
    lines = [f"{at.task.name}/{at.name}: more of the same", "", *(f"    {one.told()}" for one in found)]
    how, page = How(yes, sign or key is not None, key), "\n".join([*lines, "", f"Approving: {', '.join(clauses)}"])
    who = word_for(_sound(after, clauses), page, how)
    with Study.open(machine, at, doing="overnight extend") as study:
        _write(study, (old, text.encode()), clauses, who)
    told = [{"key": ".".join((one.clause, *one.keys)), "before": one.old, "after": one.new} for one in found]
    says = [
        f"Approved ({who.strength}): {', '.join(clauses)}.",
        *(one.told() for one in found),
        "next: overnight start",
    ]
    data({"raised": told, "strength": str(who.strength), "next": "overnight start"}, "\n".join(says), as_json=as_json)


def _in_force(study: "Study", reading: "Reading") -> "Contract":
    """The contract as it is approved; one that is not is read and approved as a whole first."""
    from overnight.admission import standings
    from overnight.errors import Refused

    contract = reading.contract()
    missing = [one.says for one in standings(reading, study.state) if one.standing != "in force"]
    if contract is None or missing:
        raise Refused(
            f"{study.at.task.name}/{study.at.name}",
            missing or ("The contract is not complete.",),
            hint="`overnight approve` first; a contract that is not approved can simply be edited",
        )
    return contract


def _sound(reading: "Reading", clauses: tuple["Clause", ...]) -> "Reading":
    """The changed contract, or what is wrong with it, such as more runs than any study may have."""
    from overnight.errors import UserError

    for clause in clauses:
        if (wrong := reading.wrong.get(clause)) is not None:
            raise UserError("overnight extend", wrong.what, hint=wrong.hint)
    return reading


def _write(study: "Study", texts: tuple[bytes, bytes], clauses: tuple["Clause", ...], who: "Who") -> None:
    """Change the contract from the old text to the new and approve it; where that fails, the old one is put back."""
    from overnight.admission import approve_clauses, read_terms
    from overnight.errors import Refused
    from overnight.study.durable import write_file

    at, machine, (old, new) = study.at, study.machine, texts
    if machine.read(str(at.contract)) != old:
        raise Refused("overnight extend", ("The contract changed in the meantime, so nothing is approved.",))
    write_file(machine, at.contract, new)
    try:
        approve_clauses(study, read_terms(machine, at), clauses, who)
    except BaseException:
        write_file(machine, at.contract, old)
        raise
