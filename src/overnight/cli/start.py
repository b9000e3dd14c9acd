"""`overnight start`: enter the loop."""

import os
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
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
    active,
    login,
    settings,
    verb_app,
)
from overnight.cli.output import data, say
from overnight.cli.progress import Progress

if TYPE_CHECKING:
    from overnight.admission import Who
    from overnight.background import Engine
    from overnight.contract.draft import Stated
    from overnight.handoff import Ending
    from overnight.ports import Machine
    from overnight.records.contract import Contract
    from overnight.report.facts import Facts
    from overnight.sitting import Sitting
    from overnight.study.layout import StudyFolder
    from overnight.study.study import Study

app = verb_app("Enter the loop.")
Detach = Annotated[bool, typer.Option("--detach", help="Run the night in the background; `live`, `attach`, `stop`.")]
Until = Annotated[
    str | None, typer.Option(metavar="HH:MM", help="End by this time of the day at the latest, such as 07:00.")
]
Awake = Annotated[
    bool, typer.Option("--keep-awake/--let-sleep", help="Keep the machine from sleeping while the night runs.")
]


@app.command()
def start(
    target: Annotated[
        str | None, typer.Argument(help="An environment to draft a study for first; by default the active study.")
    ] = None,
    hours: Hours = None,
    env_steps: EnvSteps = None,
    candidates: Candidates = None,
    runs: Runs = None,
    plants: Plants = False,
    yes: Annotated[
        bool, typer.Option("--yes", help="Approve unattended: a newly drafted study, and the eighth clause.")
    ] = False,
    trainer: Trainer = None,
    recipe: FromRecipe = False,
    cold: Cold = False,
    params: Setting = None,
    agent: Agent = None,
    detach: Detach = False,
    until: Until = None,
    awake: Awake = True,
    folder: Dir = HERE,
    as_json: Json = False,
) -> None:
    """Enter the loop of the active study. `run` and `loop` are other names for it.

    Refuses with exit 3, and starts no process, until seven approvals are in force; the refusal names each one that
    is missing. Then it calibrates: the baseline runs on a few seeds, at most a quarter of what fits, and the eighth
    approval is asked with what tonight can prove and how many experiments fit; `--yes` gives it unattended. Giving
    this command is the explicit word to enter the loop, and is recorded.
    Ctrl-C once finishes what is running and writes the report; twice stops now. `start` goes on after both.
    Closing the terminal ends nothing. Where a night is running already, it says so, starts no second one, and attaches
    to it as `overnight attach` does; in a pipe, with `--json` and with `--detach` it only says so. It exits with 0.

    An environment is any id that Gymnasium knows, or `package.module:MyEnv-v0` of an installed package.

    Examples: `overnight start`, `overnight start CartPole-v1 --hours 8 --yes`, `overnight start my_envs:Maze-v0`,
    `overnight start --detach --until 07:00`
    """
    from overnight.contract.draft import Stated

    if target is not None and (folder / target).is_dir():
        folder = folder / target
    elif target is not None:
        stated = Stated(
            env=target,
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
        _draft(folder, stated, yes=yes)
    _enter(folder, until, detach=detach, yes=yes, awake=awake, as_json=as_json)


def _enter(folder: Path, until: str | None, *, detach: bool, yes: bool, awake: bool, as_json: bool) -> None:
    """Calibrate where that is due, then sit here or in the background, unless a night is running already."""
    from overnight.sitting import moment

    machine, at = active(folder)
    when = moment(until, machine.now()) if until is not None else None
    if _is_running(machine, at, attaches=not detach and not as_json and _is_watched(), as_json=as_json):
        return
    words = [*(["--until", until] if until is not None else []), *([] if awake else ["--let-sleep"])]
    if detach and yes:  # nobody is asked, so the background calibrates too
        _detach(machine, at, [*words, "--yes"], as_json=as_json)
        return
    progress = Progress(at.night_log)
    sitting = _sitting(machine, at, when, progress)
    if not _calibrate(sitting, progress, awake=awake, yes=yes, as_json=as_json):
        return
    if detach:
        _detach(machine, at, words, as_json=as_json)
    else:
        _night(sitting, progress, awake=awake, as_json=as_json)


def _draft(folder: Path, stated: "Stated", *, yes: bool) -> None:
    from overnight.background import night_of
    from overnight.begin import Place, begin_env
    from overnight.cli.approve import approve_unattended
    from overnight.machine import RealMachine

    begun = begin_env(RealMachine(), Place(folder.resolve()), stated)
    if night_of(RealMachine(), begun.at) is not None:
        return  # the same command again: the night that it began goes on, and is told about below
    for note in begun.notes:
        say(note)
    if yes:
        given = approve_unattended(RealMachine(), begun.at)
        if given:
            say(f"Approved unattended: {', '.join(given)}. `overnight contract` shows the terms.")


# One night, not two


def _is_running(machine: "Machine", at: "StudyFolder", *, attaches: bool, as_json: bool) -> bool:
    """Where a night of this study is going on already: say so, and follow it where somebody watches."""
    from overnight.background import night_of
    from overnight.cli.attach import sit_down

    found = night_of(machine, at)
    if found is None:
        return False
    if attaches and found.is_here():
        say(f"{_running(at, found)} Attached to it: Ctrl-C once asks it to finish, twice stops it now.")
        sit_down(machine, at, as_json=False)
    else:
        _tell_running(at, found, as_json=as_json)
    return True


def _is_watched() -> bool:
    """Whether a person sees what is printed here and can press Ctrl-C: no pipe on either side, and no agent host."""
    from overnight.cli.terminal import attended

    return sys.stdin.isatty() and sys.stdout.isatty() and attended(os.environ)


def _running(at: "StudyFolder", found: "Engine") -> str:
    from datetime import datetime

    since = f"{datetime.fromtimestamp(found.since):%H:%M}"
    return (
        f"{at.task.name}/{at.name}: a night is running already, pid {found.pid} on {found.host} since {since}. "
        "No second one was started."
    )


def _tell_running(at: "StudyFolder", found: "Engine", *, as_json: bool) -> None:
    text = f"{_running(at, found)}\nnext: overnight live"
    told = {"already_running": True, "pid": found.pid, "host": found.host, "log": str(at.night_log)}
    data({**told, "next": "overnight live"}, text, as_json=as_json)


def _detach(machine: "Machine", at: "StudyFolder", words: list[str], *, as_json: bool) -> None:
    """Give the word to enter here, where somebody may be at the terminal, and leave the rest to the background."""
    from overnight.admission import enter, enter_to_calibrate
    from overnight.background import start
    from overnight.study.study import Study

    word = enter_to_calibrate if _needs_calibration(machine, at) else enter
    with Study.open(machine, at, doing="overnight start --detach") as study:
        word(study, _who())
    found = start(machine, at, words)
    text = (
        f"{at.task.name}/{at.name}: the night runs in the background, pid {found.pid}. Its log: {at.night_log}\n"
        "next: overnight live    or: overnight attach, overnight steer, overnight stop"
    )
    told = {"detached": True, "pid": found.pid, "log": str(at.night_log), "next": "overnight live"}
    data(told, text, as_json=as_json)


def _who() -> "Who":
    from overnight.admission import Who
    from overnight.cli.terminal import attended
    from overnight.records.approval import Strength

    return Who(login(), Strength.TERMINAL if attended(os.environ) else Strength.UNATTENDED)


# The night itself


def _night(sitting: "Sitting", progress: Progress, *, awake: bool, as_json: bool) -> None:
    from overnight.cli.report import program
    from overnight.handoff import hand_off, notify

    why = _sit(sitting, progress, awake=awake, as_json=as_json)
    if why is None:
        return
    progress.passing("writing the report")
    ended = hand_off(sitting.machine, sitting.at, why, program=program())
    progress.clear()
    _wake(progress, notify(sitting.machine, sitting.at, ended))
    _tell(ended, sitting.at, as_json=as_json)


def _calibrate(sitting: "Sitting", progress: Progress, *, awake: bool, yes: bool, as_json: bool) -> bool:
    """Where only the eighth approval is missing: run the baseline, then ask for it; False where that came to no end."""
    from overnight.cli.approve import approve_experiments
    from overnight.loop import CALIBRATED

    if not _needs_calibration(sitting.machine, sitting.at):
        return True
    sitting.only_calibrates = True
    why = _sit(sitting, progress, awake=awake, as_json=as_json)
    sitting.only_calibrates = False
    progress.clear()
    if why == CALIBRATED:
        approve_experiments(sitting.machine, sitting.at, yes=yes)
    elif why is not None:
        told = {"over": why, "next": ["overnight start"]}
        data(told, f"{why} The baseline is not calibrated yet.\nnext: overnight start", as_json=as_json)
    return why == CALIBRATED


def _needs_calibration(machine: "Machine", at: "StudyFolder") -> bool:
    """Whether only the eighth approval is missing, so that the baseline runs before it is asked."""
    from overnight.admission import read_terms, standings
    from overnight.records.contract import Clause
    from overnight.study.study import read_state

    state, reading = read_state(machine, at), read_terms(machine, at)
    missing = [one.clause for one in standings(reading, state) if one.standing != "in force"]
    return missing == [Clause.EXPERIMENTS] and reading.contract() is not None


def _sit(sitting: "Sitting", progress: Progress, *, awake: bool, as_json: bool) -> str | None:
    """One sitting, and why it ended; None where that was told already."""
    from overnight.awake import kept_awake
    from overnight.background import night_of
    from overnight.cli.report import program
    from overnight.errors import OvernightError, StudyHeld
    from overnight.handoff import hand_off, notify
    from overnight.sitting import sit

    machine, at = sitting.machine, sitting.at
    try:
        with kept_awake(wanted=awake) as sitting.awake:
            return sit(sitting)
    except StudyHeld:
        if (found := night_of(machine, at)) is None:
            raise
        _tell_running(at, found, as_json=as_json)
    except OvernightError as error:
        if sitting.began and not sitting.only_calibrates:
            _wake(progress, notify(machine, at, hand_off(machine, at, str(error), program=program())))
        raise
    except KeyboardInterrupt:
        _stopped(machine, at, progress, as_json=as_json)
    return None


def _stopped(machine: "Machine", at: "StudyFolder", progress: Progress, *, as_json: bool) -> None:
    """Somebody will not wait: end the runs, leave the handoff, and leave the report for later."""
    from overnight.adapters.launchers.local import LocalLauncher
    from overnight.background import end_runs
    from overnight.cli.report import program
    from overnight.handoff import hand_off, notify

    progress.say("Stopping now; what was running is run again by the next start.")
    end_runs(at, LocalLauncher())
    ended = hand_off(machine, at, "Somebody stopped it at once.", program=program(), report=False)
    _wake(progress, notify(machine, at, ended))
    told = {"over": ended.why, "handoff": str(at.handoff), "next": [ended.next]}
    data(told, f"{ended.why}\nnext: {ended.next}", as_json=as_json)


def _sitting(machine: "Machine", at: "StudyFolder", until: float | None, progress: Progress) -> "Sitting":
    """What a sitting is given here: the local launcher, the built-in search, and somebody who listens."""
    from overnight.adapters.launchers.local import LocalLauncher
    from overnight.cli.proposing import proposing
    from overnight.sitting import Sitting, Told

    def opening(study: "Study", contract: "Contract", slots: int) -> None:
        for line in _opening(study, contract, slots):
            progress.say(line)

    told = Told(progress.say, progress.passing)
    return Sitting(machine, at, _who(), LocalLauncher(), proposing, told, until, opening)


def _wake(progress: Progress, trouble: str) -> None:
    """What went wrong with the notification is told, and changes nothing."""
    if trouble:
        progress.say(trouble)


def _opening(study: "Study", contract: "Contract", slots: int) -> Iterator[str]:
    """What the night is about, before it begins."""
    from overnight.contract.trainers import what_search_knows
    from overnight.isolation import tier_for

    budget = contract.budget
    again = f", {len(study.state.runs)} runs are in the ledger" if study.state.runs else ""
    yield (
        f"{study.at.task.name}/{study.at.name}: {contract.task.env.id}, {budget.amount(study.state.rung):,.0f} "
        f"{budget.stop_unit.replace('_', ' ')} a run, {slots} at a time, {budget.max_wall_hours:g} h{again}."
    )
    yield f"Isolation {tier_for('T1')}. Baseline: {contract.baseline.source}"
    if says := what_search_knows(contract):
        yield says
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


def _tell(ended: "Ending", at: "StudyFolder", *, as_json: bool) -> None:
    facts = ended.facts
    told = {
        "over": ended.why,
        "runs": facts.night.runs if facts is not None else 0,
        "certified": [claim.sentence for claim in facts.claims] if facts is not None else [],
        "report": str(at.report_page),
        "handoff": str(at.handoff),
        "next": [one.command for one in facts.next_commands] if facts is not None else [ended.next],
    }
    lines = _morning(ended.why, facts, at) if facts is not None else (ended.why, f"next: {ended.next}")
    data(told, "\n".join(lines), as_json=as_json)


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
