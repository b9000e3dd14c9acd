"""`overnight start`: enter the loop."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from overnight.cli.options import HERE, Dir, Json, active, login, verb_app
from overnight.cli.output import data, say

app = verb_app("Enter the loop.")


@app.command()
def start(
    target: Annotated[
        str | None, typer.Argument(help="A Gymnasium id to draft a study for first; by default the active study.")
    ] = None,
    hours: Annotated[float | None, typer.Option(help="How long a newly drafted study may take in all.")] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Approve a newly drafted study unattended, then start.")] = False,
    trainer: Annotated[
        str | None, typer.Option(help="The built-in trainer of a newly drafted study: ppo (default), sac or dqn.")
    ] = None,
    folder: Dir = HERE,
    as_json: Json = False,
) -> None:
    """Enter the loop of the active study. `run` and `loop` are other names for it.

    Refuses with exit 3, and starts no process, until all eight approvals are in force; the refusal names
    each one that is missing. Giving this command is the explicit word to enter the loop, and is recorded.

    Examples: `overnight start`, `overnight start CartPole-v1 --hours 8 --yes`
    """
    from overnight.adapters.launchers.local import LocalLauncher
    from overnight.adapters.proposers.search import SearchProposer
    from overnight.admission import Who, enter, slots
    from overnight.begin import Place, begin_env
    from overnight.candidate.tree import Store
    from overnight.cli.terminal import attended
    from overnight.contract.draft import Stated
    from overnight.evaluate.seeds import Seeds, load_key
    from overnight.loop import Night, night
    from overnight.machine import RealMachine
    from overnight.records.approval import Strength
    from overnight.study.study import Study
    from overnight.trials import Bench

    if target is not None and not (folder / target).is_dir():
        begun = begin_env(RealMachine(), Place(folder.resolve()), Stated(env=target, hours=hours, trainer=trainer))
        for note in begun.notes:
            say(note)
        if yes:
            from overnight.cli.approve import approve

            approve(names=None, yes=True, folder=folder, as_json=False)
    machine, at = active(folder)
    store = Store(machine, at.task.root.store)
    with Study.open(machine, at, doing="overnight start") as study:
        contract = enter(study, Who(login(), Strength.TERMINAL if attended(os.environ) else Strength.UNATTENDED))
        seeds = Seeds(load_key(study.state.seed_commitment or ""), f"{at.task.name}/{at.name}")
        bench = Bench(study, store, contract, LocalLauncher(), seeds, slots(contract), say)
        deadline = time.monotonic() + contract.budget.max_wall_hours * 3600 - study.state.wall_seconds / slots(contract)
        with listening() as finishing:
            why = night(Night(bench, SearchProposer(), deadline, finishing))
        state = study.state
    told = {"over": why, "runs": len(state.runs), "incumbent": state.incumbent, "attempts": state.attempts}
    data(told, f"{why}\n{len(state.runs)} runs; incumbent {state.incumbent[:12]}", as_json=as_json)


@contextmanager
def listening() -> Iterator[Callable[[], bool]]:
    """Ctrl-C once asks to finish what is running; twice stops now. Both can be resumed."""
    asked: list[int] = []

    def hear(*_: object) -> None:
        asked.append(1)
        if len(asked) > 1:
            raise KeyboardInterrupt
        say("Finishing what is running; press Ctrl-C again to stop now.")

    before = signal.signal(signal.SIGINT, hear)
    try:
        yield lambda: bool(asked)
    finally:
        signal.signal(signal.SIGINT, before)
