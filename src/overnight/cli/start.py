"""`overnight start`: enter the loop."""

import os
from typing import Annotated

import typer

from overnight.cli.options import HERE, Dir, Json, active, login, verb_app
from overnight.cli.output import say

app = verb_app("Enter the loop.")


@app.command()
def start(
    target: Annotated[
        str | None, typer.Argument(help="A Gymnasium id to draft a study for first; by default the active study.")
    ] = None,
    hours: Annotated[float | None, typer.Option(help="How long a newly drafted study may take in all.")] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Approve a newly drafted study unattended, then start.")] = False,
    folder: Dir = HERE,
    as_json: Json = False,  # noqa: ARG001 - errors are told as JSON by `main`
) -> None:
    """Enter the loop of the active study. `run` and `loop` are other names for it.

    Refuses with exit 3, and starts no process, until all eight approvals are in force; the refusal names
    each one that is missing. Giving this command is the explicit word to enter the loop, and is recorded.

    Examples: `overnight start`, `overnight start CartPole-v1 --hours 8 --yes`
    """
    from overnight.begin import Place, begin_env
    from overnight.cli.terminal import attended
    from overnight.contract.draft import Stated
    from overnight.errors import OvernightError
    from overnight.admission import Who, enter
    from overnight.machine import RealMachine
    from overnight.records.approval import Strength
    from overnight.study.study import Study

    if target is not None and not (folder / target).is_dir():
        begun = begin_env(RealMachine(), Place(folder.resolve()), Stated(env=target, hours=hours))
        for note in begun.notes:
            say(note)
        if yes:
            from overnight.cli.approve import approve

            approve(names=None, yes=True, folder=folder, as_json=False)
    machine, at = active(folder)
    with Study.open(machine, at, doing="overnight start") as study:
        enter(study, Who(login(), Strength.TERMINAL if attended(os.environ) else Strength.UNATTENDED))
    say(f"{at.task.name}/{at.name}: everything is approved, and the loop is entered.")
    raise OvernightError(
        "overnight start",
        "this version has no launcher, so no run can start",
        hint="the study is kept as it is; a later version goes on from here",
    )
