"""`overnight new`: a new repository to run nights in."""

import time
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
    env: Annotated[str, typer.Option("--env", metavar="ID", help="The Gymnasium environment.")] = "BipedalWalker-v3",
    seconds: Annotated[int, typer.Option(min=1, help="Seconds of training that one run gets.")] = 720,
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
    such a repository with another `--tag`, it makes the branch and the study of that tag.

    Examples: `overnight new single-file --env BipedalWalker-v3 walker`, then `cd walker`, `overnight approve`,
    `overnight start .`
    """
    from overnight.begin import Place, begin_single_file, env_facts
    from overnight.contract.draft import Stated
    from overnight.errors import UserError, did_you_mean
    from overnight.machine import RealMachine
    from overnight.scaffold.build import PRESETS, Wish, build

    if preset not in PRESETS:
        raise UserError("overnight new", f"`{preset[:60]}` is not a preset", hint=did_you_mean(preset[:60], PRESETS))
    if policy not in ("certify", "greedy"):
        raise UserError("--policy", f"is {policy[:40]!r}", hint="choose `certify` or `greedy`")
    machine, folder = RealMachine(), where.resolve()
    env_facts(machine, env)  # a name that nobody knows is told before anything is written
    wish = Wish(env, seconds, tag or time.strftime("%b%d").lower())
    for line in build(machine, folder, wish):
        say(line)
    stated = Stated(env=env, hours=hours, candidates=candidates, policy=policy)
    begun = begin_single_file(machine, Place(folder, None, wish.tag), stated, seconds=seconds)
    for note in begun.notes:
        say(note)
    command = "overnight approve"
    told = {
        "folder": str(folder),
        "task": begun.at.task.name,
        "study": begun.at.name,
        "branch": f"overnight/{wish.tag}",
        "contract": str(begun.at.contract),
        "next": command,
    }
    text = f"{begun.at.task.name}/{begun.at.name}: the terms are in {begun.at.contract}\nnext: {command}, in {folder}"
    data(told, text, as_json=as_json)
