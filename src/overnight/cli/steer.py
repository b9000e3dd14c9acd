"""`overnight steer`: a word of direction, while the night runs."""

import time
from typing import Annotated

import typer

from overnight.cli.options import HERE, Dir, Json, active, verb_app
from overnight.cli.output import data

app = verb_app("Steer the night.")


@app.command()
def steer(
    words: Annotated[str, typer.Argument(help="What to try next, or to leave alone, in plain words.")],
    folder: Dir = HERE,
    as_json: Json = False,
) -> None:
    """Append a word of direction to the study's `program.md`, which proposers read before every idea.

    It may be done while the night runs, and so may editing the file by hand: the ledger notes that the direction
    changed, and the next idea is asked for under it. Direction is advice; limits stand in the contract.

    Example: `overnight steer "Leave the network alone; look at the learning-rate schedule."`
    """
    from overnight.background import night_of
    from overnight.errors import UserError
    from overnight.records.text import line
    from overnight.study.durable import write_file

    machine, at = active(folder)
    said = line(words, 2000).strip()
    if not said:
        raise UserError("overnight steer", "was given no words")
    text = (machine.read(str(at.program)) or b"").decode(errors="replace").rstrip("\n")
    write_file(machine, at.program, f"{text}\n\n- {time.strftime('%Y-%m-%d %H:%M')}: {said}\n".encode())
    running = night_of(machine, at) is not None
    when = "the night hears it before its next idea" if running else "the next night hears it"
    data({"program": str(at.program), "running": running}, f"{at.program}: {when}.", as_json=as_json)
