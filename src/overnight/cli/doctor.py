"""`overnight doctor`: what this machine has, what is missing, and how to install it."""

from typing import Annotated

import typer

from overnight.cli.options import HERE, Dir, Json, verb_app
from overnight.cli.output import data

app = verb_app("Look at this machine.")
Env = Annotated[
    str | None, typer.Option("--env", metavar="ID", help="An environment: can it be made, and what would step it?")
]


@app.command()
def doctor(folder: Dir = HERE, env: Env = None, as_json: Json = False) -> None:
    """Say what this machine has and can do, and the exact command for whatever is missing. Changes nothing.

    Each line is `ok`, `note` or `problem`. Exit 1 when a problem makes `overnight start` impossible. Works outside of
    any study; inside one it looks at the study, too.

    Examples: `overnight doctor`, `overnight doctor --env BipedalWalker-v3`
    """
    from dataclasses import asdict

    from overnight.adapters.launchers.local import LocalLauncher
    from overnight.checkup import checkup, is_fit
    from overnight.machine import RealMachine

    found = checkup(RealMachine(), folder.resolve(), LocalLauncher().is_alive, env)
    fit = is_fit(found)
    lines = []
    for one in found:
        lines.append(f"{one.standing:<8} {one.name:<14} {one.says}")
        lines += [f"{'':<23} → {one.command}"] if one.command else []
    lines.append(
        "Everything that a night needs is here." if fit else "A night cannot start before the problems are gone."
    )
    data({"fit": fit, "findings": [asdict(one) for one in found]}, "\n".join(lines), as_json=as_json)
    if not fit:
        raise typer.Exit(1)
