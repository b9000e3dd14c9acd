"""The end of a sitting: an entry, the report, a page from which anybody can go on, and a word to whoever sleeps."""

import json
import os
import shlex
from contextlib import suppress
from dataclasses import dataclass

from overnight import resume
from overnight.admission import read_terms
from overnight.errors import OvernightError, UserError
from overnight.evaluate.seeds import Seeds, load_key
from overnight.morning import Morning
from overnight.ports import Machine
from overnight.records.lifecycle import Actor
from overnight.records.sitting import HandedOff
from overnight.records.text import sentence
from overnight.report.facts import Facts
from overnight.report.text import code_span, markdown
from overnight.signatures import settings
from overnight.study.durable import write_file
from overnight.study.layout import StudyFolder
from overnight.study.study import Study, read_state

_NOTIFY_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Ending:
    """How a sitting ended, and what was left behind."""

    why: str
    next: str
    """The command that leads on."""
    facts: Facts | None
    """What the report says; null where it was not written."""


def hand_off(machine: Machine, at: StudyFolder, why: str, *, program: str, report: bool = True) -> Ending:
    """Close a sitting: write the entry, the report unless there is no time for it, and the handoff."""
    with Study.open(machine, at, doing="overnight start") as study:
        command = resume.leads_on(study.state, read_terms(machine, at))
        study.append(Actor.ENGINE, HandedOff(because=sentence(why), next=command))
        machine.unlink(str(at.stop_word))
        machine.unlink(str(at.pulse))
    facts = None
    if report:
        with suppress(UserError):  # nothing was trained yet
            facts = write_report(machine, at, program=program)
    _write_page(machine, at, Ending(why, command, facts))
    return Ending(why, command, facts)


def write_report(machine: Machine, at: StudyFolder, *, program: str) -> Facts:
    """Write the report of one study, from its ledger as it stands on disk."""
    state, contract = read_state(machine, at, quickly=False), read_terms(machine, at).contract()
    if contract is None or not state.baseline:
        raise UserError(f"{at.task.name}/{at.name}", "has not trained anything yet", hint="`overnight start` does")
    seeds = Seeds(load_key(state.seed_commitment or ""), f"{at.task.name}/{at.name}")
    return Morning(machine, at, state, contract, seeds, program=program).write()


def _write_page(machine: Machine, at: StudyFolder, ended: Ending) -> None:
    """Leave a page from which anybody can go on, without having been here."""
    state = read_state(machine, at)
    facts, going = ended.facts, [name for name, run in state.runs.items() if run.outcome is None]
    claim = markdown(facts.claims[0].sentence) if facts is not None and facts.claims else "Nothing was certified."
    command = f"{ended.next} --dir {shlex.quote(str(at.task.root.project))}"
    lines = [
        f"# {state.task}/{state.study}: the loop has ended",
        markdown(ended.why),
        claim,
        f"{len(state.runs)} runs, {len(state.ideas())} candidates, ledger head `{state.head}`.",
    ]
    if going:
        lines.append(f"Without an end in the ledger: {', '.join(going)}. `overnight start` settles that.")
    lines += [
        f"Next: {code_span(command, 2000)}",
        "Nothing has to be told again: `overnight status` says the same from the files alone.",
    ]
    if facts is not None:
        steps = [f"- {markdown(one.says)} {code_span(one.command, 2000)}" for one in facts.next_commands]
        lines += ["What can be done besides:", "\n".join(steps)]
    write_file(machine, at.handoff, ("\n\n".join(lines) + "\n").encode())


def notify(machine: Machine, at: StudyFolder, ended: Ending) -> str:
    """Run the command that the user's configuration names; a sentence on what went wrong, or nothing.

    The command gets a summary as JSON on its input, and the first sentence in `OVERNIGHT_SAYS`.
    Whatever becomes of it changes nothing.
    """
    try:
        words = settings().notify
    except OvernightError as error:
        return f"Nobody was notified: {error}"
    if not words:
        return ""
    claims = [one.sentence for one in ended.facts.claims] if ended.facts is not None else []
    says = claims[0] if claims else f"Nothing was certified. {ended.why}"
    told = {
        "study": f"{at.task.name}/{at.name}",
        "over": ended.why,
        "certified": claims,
        "report": str(at.report_page),
        "handoff": str(at.handoff),
        "next": ended.next,
    }
    keep = {name: os.environ[name] for name in _KEPT if name in os.environ}
    env = {**keep, "OVERNIGHT_SAYS": says, "OVERNIGHT_STUDY": str(told["study"])}
    try:
        done = machine.run_process(words, env=env, stdin=json.dumps(told).encode(), limit_seconds=_NOTIFY_SECONDS)
    except (OSError, TimeoutError) as error:
        return f"`{words[0]}` could not notify anybody: {error}"
    return "" if done.returncode == 0 else f"`{words[0]}` ended with status {done.returncode}, so nobody may know."


_KEPT = ("PATH", "HOME", "USER", "DISPLAY", "WAYLAND_DISPLAY", "DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR")
"""Variables that commands which show a notification need."""
