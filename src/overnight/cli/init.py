"""`overnight init`: draft a study."""

from typing import TYPE_CHECKING, Annotated

import typer

from overnight.cli.options import (
    HERE,
    Agent,
    Candidates,
    Cold,
    Dir,
    EnvSteps,
    FromRecipe,
    Hours,
    Json,
    Plants,
    Runs,
    Setting,
    Trainer,
    settings,
    verb_app,
)
from overnight.cli.output import data, say

if TYPE_CHECKING:
    from overnight.begin import Begun
    from overnight.machine import RealMachine

app = verb_app("Draft a study.")


@app.command()
def init(
    target: Annotated[
        str | None, typer.Argument(help="A Gymnasium id such as CartPole-v1, or `.` for the repository you stand in.")
    ] = None,
    env: Annotated[str | None, typer.Option(help="The environment that a repository trains on.")] = None,
    task: Annotated[str | None, typer.Option(help="The task's short name; by default made from the target.")] = None,
    study: Annotated[str, typer.Option(help="The study's short name.")] = "first",
    mission: Annotated[str | None, typer.Option(help="What should become better, in one sentence.")] = None,
    hours: Hours = None,
    env_steps: EnvSteps = None,
    candidates: Candidates = None,
    runs: Runs = None,
    plants: Plants = False,
    trainer: Trainer = None,
    recipe: FromRecipe = False,
    cold: Cold = False,
    params: Setting = None,
    agent: Agent = None,
    folder: Dir = HERE,
    as_json: Json = False,
) -> None:
    """Draft a study for a Gymnasium environment, or for the training repository you stand in.

    Nothing is trained and nothing of yours is changed: the draft lies in `.overnight/`, which git ignores.
    What was neither stated nor proven by a file stays `unknown` in the contract until you say it.

    Examples: `overnight init CartPole-v1 --hours 8`, `overnight init Pendulum-v1 --trainer sac`,
    `overnight init . --env MyEnv-v0`
    """
    from overnight.begin import Place, begin_env, begin_repository
    from overnight.contract.draft import Stated
    from overnight.machine import RealMachine

    machine = RealMachine()
    is_repository = target is None or (folder / target).is_dir()
    project = folder if target is None or not is_repository else folder / target
    stated = Stated(
        env=env if is_repository else target,
        mission=mission,
        hours=hours,
        env_steps=env_steps,
        candidates=candidates,
        plants=plants,
        trainer=trainer,
        recipe=recipe,
        cold=cold,
        runs=runs,
        params=settings(params),
        agent=agent,
    )
    begin = begin_repository if is_repository else begin_env
    _tell(machine, begin(machine, Place(project.resolve(), task, study), stated), as_json=as_json)


def _tell(machine: "RealMachine", begun: "Begun", *, as_json: bool) -> None:
    from overnight.admission import next_action, read_terms
    from overnight.study.study import read_state

    for note in begun.notes:
        say(note)
    sentence, command = next_action(read_state(machine, begun.at), read_terms(machine, begun.at))
    told = {
        "task": begun.at.task.name,
        "study": begun.at.name,
        "new": begun.new,
        "contract": str(begun.at.contract),
        "next": command,
    }
    text = f"{begun.at.task.name}/{begun.at.name}: the terms are in {begun.at.contract}\n{sentence}\nnext: {command}"
    data(told, text, as_json=as_json)
