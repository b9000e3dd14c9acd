"""`overnight new`: a new repository to run nights in."""

from pathlib import Path
from typing import Annotated

import typer

from overnight.cli.options import HERE, Candidates, Hours, Json, verb_app
from overnight.cli.output import data, say

app = verb_app("Make a new repository.")


@app.command()
def new(
    preset: Annotated[str, typer.Argument(help="The shape of the repository: `single-file`.")],
    where: Annotated[
        Path, typer.Argument(metavar="[DIR]", help="A new folder; by default the one you stand in.")
    ] = HERE,
    env: Annotated[
        str | None, typer.Option("--env", metavar="ID", help="The Gymnasium environment; by default BipedalWalker-v3.")
    ] = None,
    seconds: Annotated[
        int | None, typer.Option(min=1, help="Seconds of training that one run gets; by default 720.")
    ] = None,
    tag: Annotated[
        str | None, typer.Option(help="The run tag: names the branch and the study; by default the day.")
    ] = None,
    policy: Annotated[
        str, typer.Option(help="`certify`; or `greedy`, one run against one run, for comparison.")
    ] = "certify",
    hours: Hours = None,
    candidates: Candidates = None,
    as_json: Json = False,
) -> None:
    """Make a git repository with one file to change, and draft a study of it.

    `evaluate.py` holds the task, the time budget and the harness, and is never changed; `train.py` is what experiments
    edit; `program.md` is the direction, which you edit. Each run tag has a branch, `overnight/<tag>`. Called again in
    such a repository, it makes the branch and the study of another tag, for the environment and the time that its
    harness names.

    Examples: `overnight new single-file --env BipedalWalker-v3 walker`, then `cd walker`, `overnight approve`,
    `overnight start .`
    """
    from overnight.begin import Place, begin_single_file, env_facts
    from overnight.contract.draft import Stated
    from overnight.errors import UserError, did_you_mean
    from overnight.machine import RealMachine
    from overnight.scaffold.build import PRESETS, build, wish_for

    if preset not in PRESETS:
        raise UserError("overnight new", f"`{preset[:60]}` is not a preset", hint=did_you_mean(preset[:60], PRESETS))
    if policy not in ("certify", "greedy"):
        raise UserError("--policy", f"is {policy[:40]!r}", hint="choose `certify` or `greedy`")
    machine, folder = RealMachine(), where.resolve()
    wish = wish_for(machine, folder, env, seconds, tag)
    env_facts(machine, wish.env)  # a name that nobody knows is told before anything is written
    for line in build(machine, folder, wish):
        say(line)
    stated = Stated(env=wish.env, hours=hours, candidates=candidates, policy=policy)
    begun = begin_single_file(machine, Place(folder, None, wish.tag), stated, seconds=wish.seconds)
    for note in begun.notes:
        say(note)
    told = {
        "folder": str(folder),
        "task": begun.at.task.name,
        "study": begun.at.name,
        "branch": f"overnight/{wish.tag}",
        "contract": str(begun.at.contract),
        "next": "overnight approve",
    }
    where_next = f"the terms are in {begun.at.contract}\nnext: overnight approve, in {folder}"
    data(told, f"{begun.at.task.name}/{begun.at.name}: {where_next}", as_json=as_json)
