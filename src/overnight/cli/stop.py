"""`overnight stop`: end a night, and leave no process behind."""

from typing import Annotated

import typer

from overnight.cli.options import HERE, Dir, Json, active, verb_app
from overnight.cli.output import data
from overnight.cli.progress import Progress

app = verb_app("Stop the night.")


@app.command()
def stop(
    now: Annotated[bool, typer.Option("--now", help="Do not wait for what is running: end it, too.")] = False,
    folder: Dir = HERE,
    as_json: Json = False,
) -> None:
    """Stop the night of the active study, with everything that it started.

    Asks the engine to finish what is running, to report and to end, and waits for that; Ctrl-C stops the waiting only.
    With `--now` engine and runs have 5 seconds, and are then killed. Runs that were cut are run again by the next
    `overnight start`, and count for nothing. Where no night is running, it says so, and ends runs that were left alone.

    Examples: `overnight stop`, `overnight stop --now`
    """
    from overnight.adapters.launchers.local import LocalLauncher
    from overnight.background import ask_to_finish, end_now, hold, left, wait_for_end

    machine, at = active(folder)
    killed, alone = 0, left(at)
    with hold(machine, at) as held:
        engine = held.engine if held is not None else None
        if held is not None and not now:
            progress = Progress()
            ask_to_finish(at)
            wait_for_end(machine, held, progress.passing)
            progress.clear()
        elif held is not None or alone:
            killed = end_now(machine, at, LocalLauncher())
    if engine is not None:
        machine.unlink(str(at.stop_word))
    if engine is not None:
        text = f"The night (pid {engine.pid}) has ended; `overnight start` goes on from there."
    elif alone:
        text = f"No night was running; {len(alone)} processes that it had left alone were ended."
    else:
        text = "No night is running."
    told = {
        "stopped": engine is not None,
        "pid": engine.pid if engine is not None else None,
        "left_alone": len(alone) if engine is None else 0,
        "killed": killed,
        "left": len(left(at)),
        "handoff": str(at.handoff) if at.handoff.exists() else None,
    }
    data(told, text, as_json=as_json)
