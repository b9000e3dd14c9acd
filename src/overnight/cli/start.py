"""`overnight start`: enter the loop."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from overnight.cli.options import (
    HERE,
    Agent,
    Candidates,
    Dir,
    EnvSteps,
    FromRecipe,
    Hours,
    Json,
    Plants,
    Trainer,
    active,
    login,
    verb_app,
)
from overnight.cli.output import data, say
from overnight.cli.progress import Progress

if TYPE_CHECKING:
    from overnight.contract.draft import Stated
    from overnight.ports import Machine
    from overnight.records.contract import Contract
    from overnight.report.facts import Facts
    from overnight.study.layout import StudyFolder
    from overnight.study.study import Study

app = verb_app("Enter the loop.")


@app.command()
def start(
    target: Annotated[
        str | None, typer.Argument(help="An environment to draft a study for first; by default the active study.")
    ] = None,
    hours: Hours = None,
    env_steps: EnvSteps = None,
    candidates: Candidates = None,
    plants: Plants = False,
    yes: Annotated[bool, typer.Option("--yes", help="Approve a newly drafted study unattended, then start.")] = False,
    trainer: Trainer = None,
    recipe: FromRecipe = False,
    agent: Agent = None,
    folder: Dir = HERE,
    as_json: Json = False,
) -> None:
    """Enter the loop of the active study. `run` and `loop` are other names for it.

    Refuses with exit 3, and starts no process, until all eight approvals are in force; the refusal names
    each one that is missing. Giving this command is the explicit word to enter the loop, and is recorded.
    Ctrl-C once finishes what is running and writes the report; twice stops now. `start` goes on after both.

    An environment is any id that Gymnasium knows, or `package.module:MyEnv-v0` of an installed package.

    Examples: `overnight start`, `overnight start CartPole-v1 --hours 8 --yes`, `overnight start my_envs:Maze-v0`
    """
    from overnight.cli.report import write_report
    from overnight.contract.draft import Stated

    if target is not None and not (folder / target).is_dir():
        stated = Stated(
            env=target,
            hours=hours,
            env_steps=env_steps,
            candidates=candidates,
            plants=plants,
            trainer=trainer,
            recipe=recipe,
            agent=agent,
        )
        _draft(folder, stated, yes=yes)
    machine, at = active(folder)
    progress = Progress()
    why = _sit(machine, at, progress)
    progress.passing("writing the report")
    facts = write_report(machine, at)
    progress.clear()
    _hand_off(machine, at, why, facts)
    told = {
        "over": why,
        "runs": facts.night.runs,
        "certified": [claim.sentence for claim in facts.claims],
        "report": str(at.report_page),
        "handoff": str(at.handoff),
        "next": [one.command for one in facts.next_commands],
    }
    data(told, "\n".join(_morning(why, facts, at)), as_json=as_json)


def _draft(folder: Path, stated: "Stated", *, yes: bool) -> None:
    from overnight.begin import Place, begin_env
    from overnight.cli.approve import approve_unattended
    from overnight.machine import RealMachine

    begun = begin_env(RealMachine(), Place(folder.resolve()), stated)
    for note in begun.notes:
        say(note)
    if yes:
        given = approve_unattended(RealMachine(), begun.at)
        if given:
            say(f"Approved unattended: {', '.join(given)}. `overnight contract` shows the terms.")


def _sit(machine: "Machine", at: "StudyFolder", progress: Progress) -> str:
    """One sitting, from the gate to the reason why it ended."""
    from overnight.adapters.launchers.local import LocalLauncher
    from overnight.admission import Who, enter, slots
    from overnight.candidate.tree import Store
    from overnight.cli.proposing import proposing
    from overnight.cli.terminal import attended
    from overnight.errors import Refused
    from overnight.evaluate.seeds import Seeds, load_key
    from overnight.loop import Night, night
    from overnight.records.approval import Strength
    from overnight.room import disk_shortfall
    from overnight.study.study import Study
    from overnight.trials import Bench

    with Study.open(machine, at, doing="overnight start") as study:
        contract = enter(study, Who(login(), Strength.TERMINAL if attended(os.environ) else Strength.UNATTENDED))
        if short := disk_shortfall(contract, at):
            raise Refused(f"{at.task.name}/{at.name}", (short,), hint="`overnight clean` frees what is not evidence")
        seeds = Seeds(load_key(study.state.seed_commitment or ""), f"{at.task.name}/{at.name}")
        bench = Bench(
            study,
            Store(machine, at.task.root.store),
            contract,
            LocalLauncher(),
            seeds,
            slots(contract),
            say=progress.say,
            passing=progress.passing,
        )
        for line in _opening(study, contract, bench.slots):
            progress.say(line)
        spent = study.state.wall_seconds / bench.slots
        deadline = time.monotonic() + contract.budget.max_wall_hours * 3600 - spent
        with listening(progress.say) as finishing, proposing(bench) as proposer:
            return night(Night(bench, proposer, deadline, finishing))


def _opening(study: "Study", contract: "Contract", slots: int) -> Iterator[str]:
    """What the night is about, before it begins."""
    from overnight.isolation import strongest

    budget = contract.budget
    again = f", {len(study.state.runs)} runs are in the ledger" if study.state.runs else ""
    yield (
        f"{study.at.task.name}/{study.at.name}: {contract.task.env.id}, {budget.stop_amount:,.0f} "
        f"{budget.stop_unit.replace('_', ' ')} a run, {slots} at a time, {budget.max_wall_hours:g} h{again}."
    )
    yield f"Isolation {strongest()}. Baseline: {contract.baseline.source}"
    if contract.baseline.trainer == "built-in" and not _has_envpool():
        yield (
            "EnvPool is not installed, so environments are stepped by Gymnasium, which is slower; "
            '`pip install "overnight[rl]"` brings it on Linux.'
        )


def _has_envpool() -> bool:
    try:
        return find_spec("envpool") is not None
    except ImportError:
        return False


def _morning(why: str, facts: "Facts", at: "StudyFolder") -> Iterator[str]:
    """What a person reads first in the morning."""
    from overnight.report.story import beneath, outcome

    yield why
    if facts.claims:
        yield facts.claims[0].sentence
        yield facts.claims[0].fixed_line
    else:
        yield "Nothing was certified."
        yield from beneath(facts)
    yield from (f"{line.id}: {outcome(line, facts)}" for line in facts.candidates if line.plant is not None)
    yield f"report: {at.report_page}"
    yield "next:"
    yield from (f"  {one.command}" for one in facts.next_commands)


def _hand_off(machine: "Machine", at: "StudyFolder", why: str, facts: "Facts") -> None:
    """Leave a page from which anybody can go on, without having been here."""
    from overnight.report.text import code_span, markdown
    from overnight.study.durable import write_file

    claim = markdown(facts.claims[0].sentence) if facts.claims else "Nothing was certified."
    steps = "\n".join(f"- {markdown(one.says)} {code_span(one.command, 2000)}" for one in facts.next_commands)
    lines = (
        f"# {facts.task}/{facts.study}: the loop has ended",
        markdown(why),
        claim,
        f"{facts.night.runs} runs, {facts.night.candidates} candidates, ledger head `{facts.ledger_head}`.",
        "`overnight start` goes on from here: nothing has to be told again. What can be done next:",
        steps,
    )
    write_file(machine, at.handoff, ("\n\n".join(lines) + "\n").encode())


@contextmanager
def listening(tell: Callable[[str], None]) -> Iterator[Callable[[], bool]]:
    """Ctrl-C once asks to finish what is running; twice stops now. Both can be resumed."""
    asked: list[int] = []

    def hear(*_: object) -> None:
        asked.append(1)
        if len(asked) > 1:
            raise KeyboardInterrupt
        tell("Finishing what is running; press Ctrl-C again to stop now.")

    before = signal.signal(signal.SIGINT, hear)
    try:
        yield lambda: bool(asked)
    finally:
        signal.signal(signal.SIGINT, before)
