"""A night seen from outside, as lines of text: read from the ledger and from what the engine says. Changes nothing."""

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from overnight.admission import read_terms, slots
from overnight.background import Engine, night_of
from overnight.errors import LedgerDamaged
from overnight.ports import Machine
from overnight.records.contract import Contract
from overnight.records.lifecycle import State
from overnight.records.text import line, lines
from overnight.study.layout import StudyFolder
from overnight.study.state import CandidateState, StudyState
from overnight.study.study import read_state

_LOG_BYTES = 256 * 1024
_WORDS = {
    State.ACCEPTED: "certified",
    State.REJECTED: "rejected",
    State.INCONCLUSIVE: "inconclusive",
    State.REVERTED: "reverted",
    State.DEBUG: "crashed",
}


@dataclass(frozen=True, slots=True)
class Picture:
    """Everything that a view shows at one moment."""

    study: str
    engine: Engine | None
    """The night's engine; null when no night is going on."""
    facts: tuple[tuple[str, str], ...]
    """Name and text, one a row."""
    candidates: tuple[str, ...]
    """One line for each candidate, oldest first."""
    log: tuple[str, ...]
    """The end of what the engine said."""

    def standing(self) -> str:
        """Whether a night goes on, in a few words."""
        if self.engine is None:
            return "no night is running"
        return f"running, pid {self.engine.pid} since {datetime.fromtimestamp(self.engine.since):%H:%M}"


class Watcher:
    """Reads a study again and again, and the ledger only when it has grown."""

    def __init__(self, machine: Machine, at: StudyFolder) -> None:
        self.machine, self.at = machine, at
        self._bytes = -1
        self._state = StudyState()
        self._contract: Contract | None = None

    def look(self) -> Picture:
        """The picture of this moment."""
        self._read()
        state, engine = self._state, night_of(self.machine, self.at)
        return Picture(
            study=f"{self.at.task.name}/{self.at.name}",
            engine=engine,
            facts=tuple(self._facts(state, engine)),
            candidates=tuple(_candidate(state, one) for one in state.candidates.values()),
            log=log_tail(self.at.night_log),
        )

    def _read(self) -> None:
        size = self.at.ledger.stat().st_size
        if size == self._bytes:
            return
        try:
            self._state, self._bytes = read_state(self.machine, self.at), size
        except LedgerDamaged:
            if self._bytes < 0:
                raise
            return  # read in the middle of an append: the next look finds it whole
        self._contract = read_terms(self.machine, self.at).contract()

    def _facts(self, state: StudyState, engine: Engine | None) -> list[tuple[str, str]]:
        contract, going = self._contract, [name for name, run in state.runs.items() if run.outcome is None]
        facts = [("doing", self._doing(engine))]
        if contract is not None:
            hours = state.wall_seconds / slots(contract) / 3600
            budget = contract.budget
            used = f"{state.paid_runs:,} of {budget.max_runs:,}{state.lost_told()}"
            facts += [
                ("runs", f"{used}, going: {', '.join(going) or 'none'}"),
                ("time", f"{hours:.2f} of {budget.max_wall_hours:g} running hours{_still(state)}"),
            ]
        stack = f", kept since: {', '.join(state.stack)}" if state.stack else ""
        certified = f"certified {len(state.incumbents)} times" if state.incumbents else "nothing certified yet"
        facts.append(("incumbent", f"{state.incumbent[:12]}, {certified}{stack}"))
        return facts

    def _doing(self, engine: Engine | None) -> str:
        if engine is None:
            return self._state.handed_off or "nothing"
        try:
            told = json.loads(self.machine.read(str(self.at.pulse)) or b"{}")
            return line(str(told.get("says", "")), 300) or "beginning"
        except (ValueError, AttributeError):
            return "beginning"


def _still(state: StudyState) -> str:
    return f", stood still for {state.still_seconds:.0f} s" if state.standstills else ""


def _candidate(state: StudyState, one: CandidateState) -> str:
    if one.id == state.baseline:
        word = "baseline"
    elif one.state is State.DRAFT:
        word = "refused" if one.refused else "draft"
    elif one.kept and one.state is State.COMPLETED:
        word = "kept"
    else:
        word = _WORDS.get(one.state, "trying" if one.runs else "waiting")
    scores = [run.score for run in state.runs.values() if run.candidate == one.id and run.score is not None]
    mean = f"{sum(scores) / len(scores):10.1f}" if scores else f"{'':10}"
    gain = f"{one.gain:+9.1f}" if one.gain is not None else f"{'':9}"
    return line(f"{one.id}  {word:<12} {mean} {gain}  {one.hypothesis}", 300)


def log_tail(log: Path, most: int = _LOG_BYTES) -> tuple[str, ...]:
    """The last lines of what the engine said, fit to be shown."""
    try:
        with log.open("rb") as file:
            file.seek(max(os.fstat(file.fileno()).st_size - most, 0))
            return tuple(lines(file.read(most).decode(errors="replace")).splitlines())
    except FileNotFoundError:
        return ()


def follow(at: StudyFolder, machine: Machine, tell: Callable[[str], None], go_on: Callable[[], bool]) -> None:
    """Print the log, and then each new line of it for as long as somebody wants to see more."""
    for one in log_tail(at.night_log):
        tell(one)
    place = at.night_log.stat().st_size if at.night_log.exists() else 0
    rest = b""
    while True:
        more = go_on()  # asked before reading, so that the last words of an engine that ends are not missed
        if at.night_log.exists():
            with at.night_log.open("rb") as file:
                file.seek(place)
                data = file.read(_LOG_BYTES)
            place, rest = place + len(data), rest + data
            *whole, rest = rest.split(b"\n")
            for said in whole:
                tell(said.decode(errors="replace"))
        if not more:
            return
        machine.sleep(0.25)
