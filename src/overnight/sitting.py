"""One sitting at a study, around the loop: what bounds it, what it hears while it runs, what it writes down of that.

Never asks, always bounded: the budget's running time, a moment of the day, a file with the name `stop`, a first and a
second Ctrl-C. Whatever ends it can be gone on from by the next `overnight start`.
"""

import json
import re
import signal
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from hashlib import sha256

from overnight.admission import Who, enter, enter_to_calibrate, slots
from overnight.candidate.tree import Store
from overnight.errors import Refused, UserError
from overnight.evaluate.seeds import Seeds, load_key
from overnight.loop import ASKED, Night, night
from overnight.ports import Launcher, Machine, Proposer
from overnight.propose.careful import Careful
from overnight.records.contract import Contract
from overnight.records.entry import Note
from overnight.records.lifecycle import Actor
from overnight.records.sitting import StoodStill
from overnight.records.text import sentence
from overnight.room import disk_shortfall
from overnight.scaffold.build import read_first
from overnight.study.layout import StudyFolder
from overnight.study.study import Study
from overnight.trials import Bench

DOING = "overnight start"
_LOOK_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Told:
    """Where a sitting tells what happens."""

    say: Callable[[str], None] = lambda _: None
    """A line that stays."""
    passing: Callable[[str], None] = lambda _: None
    """What is going on at the moment."""


@dataclass(slots=True)
class Sitting:
    """What a sitting is given."""

    machine: Machine
    at: StudyFolder
    who: Who
    launcher: Launcher
    proposing: Callable[[Bench], AbstractContextManager[Proposer]]
    """Who proposes, from the first question to the last; what is still at work then is ended."""
    told: Told = field(default_factory=Told)
    until: float | None = None
    """When it ends at the latest, in seconds since 1970; null for no such moment."""
    opening: Callable[[Study, Contract, int], None] = lambda *_: None
    """Told what the night is about, before it begins."""
    awake: str = ""
    """Whether something keeps the machine awake, in one sentence; empty where nobody asked for it."""
    only_calibrates: bool = False
    """Whether it ends when the baseline is calibrated, because the eighth clause is not approved yet."""
    began: bool = False
    """Whether the gate let it in: only what began is handed off."""


def sit(one: Sitting) -> str:
    """One sitting, from the gate to the reason why it ended."""
    with Study.open(one.machine, one.at, doing=DOING) as study, listening(one.told.say) as asked:
        contract = (enter_to_calibrate if one.only_calibrates else enter)(study, one.who)
        if short := disk_shortfall(contract, one.at):
            raise Refused(
                f"{one.at.task.name}/{one.at.name}", (short,), hint="`overnight clean` frees what is not evidence"
            )
        one.machine.unlink(str(one.at.stop_word))  # an old word: whoever starts means to go on
        seeds = Seeds(load_key(study.state.seed_commitment or ""), f"{one.at.task.name}/{one.at.name}")
        vigil = Vigil(study, one.told, asked, one.until)
        store = Store(one.machine, one.at.task.root.store)
        bench = Bench(
            study,
            store,
            contract,
            one.launcher,
            seeds,
            slots(contract),
            say=one.told.say,
            passing=vigil.passing,
        )
        one.began = True
        if one.only_calibrates or not study.state.calibrating:  # a night that was calibrated just now is introduced
            one.opening(study, contract, bench.slots)
        if one.awake:
            one.told.say(one.awake)
        if contract.scope.preset == "single-file":
            vigil.note(read_first(store, study.state.tree))
        spent = study.state.wall_seconds / bench.slots
        deadline = one.machine.running() + contract.budget.max_wall_hours * 3600 - spent
        with one.proposing(bench) as proposer:
            careful = Careful(proposer, one.machine, vigil.note)
            sitting = Night(bench, careful, deadline, vigil.finishing, heed=vigil.look)
            sitting.only_calibrates = one.only_calibrates
            over = night(sitting)
        return vigil.why if over == ASKED else over


class Vigil:
    """Looks around while the loop runs: a machine that stood still, an edited direction, a word to finish."""

    def __init__(self, study: Study, told: Told, asked: Callable[[], bool], until: float | None) -> None:
        self.study, self.told, self.asked, self.until = study, told, asked, until
        self.why = ""
        """Why the sitting is to finish; empty while it is not."""
        self._still = study.machine.stood_still()
        self._next_look = 0.0
        self._direction = self._read_direction()
        self._next_pulse = 0.0

    def finishing(self) -> bool:
        """Whether to finish what is running and report, by anybody's word or by the clock on the wall."""
        if not self.why:
            if self.asked():
                self.why = "Somebody asked to finish."
            elif self.study.at.stop_word.exists():
                self.why = "Somebody asked to finish: the file `stop` was there."
            elif self.until is not None and self.study.machine.now() >= self.until:
                self.why = f"It was to end at {datetime.fromtimestamp(self.until).strftime('%H:%M')}."
            if self.why:
                self.told.say(f"{self.why} What is running is finished first.")
        return bool(self.why)

    def look(self) -> None:
        """Write down what happened around the loop since the last look."""
        now = self.study.machine.monotonic()
        if now < self._next_look:
            return
        self._next_look = now + _LOOK_SECONDS
        still = self.study.machine.stood_still()
        if still > self._still:
            self._note_standstill(still - self._still)
            self._still = still
        direction = self._read_direction()
        if direction != self._direction:
            self._direction = direction
            says = f"The direction in {self.study.at.program.name} was edited; the next idea is asked for under it."
            self.note(says)

    def note(self, says: str) -> None:
        """Write down something that changes no state, and tell it."""
        self.study.append(Actor.ENGINE, Note(says=sentence(says)))
        self.told.say(says)

    def _note_standstill(self, seconds: float) -> None:
        until = datetime.fromtimestamp(self.study.machine.now(), UTC).isoformat(timespec="seconds")
        self.study.append(Actor.ENGINE, StoodStill(seconds=seconds, until=until))
        self.told.say(f"The machine stood still for {seconds:.0f} s; no budget counts that, and what ran is run again.")

    def _read_direction(self) -> str:
        return sha256(self.study.machine.read(str(self.study.at.program)) or b"").hexdigest()

    def passing(self, text: str) -> None:
        """Tell what is going on, and leave it where `overnight live` reads it."""
        self.told.passing(text)
        now = self.study.machine.monotonic()
        if now >= self._next_pulse:
            self._next_pulse = now + _LOOK_SECONDS
            pulse = self.study.at.pulse
            with suppress(OSError):  # for people only: a full disk is found by the ledger
                beside = pulse.with_name(f".{pulse.name}.new")
                beside.write_text(json.dumps({"at": self.study.machine.now(), "says": text}))
                beside.replace(pulse)


@contextmanager
def listening(tell: Callable[[str], None]) -> Iterator[Callable[[], bool]]:
    """Ctrl-C once asks to finish what is running; twice, or SIGTERM, stops now. A closed terminal ends nothing."""
    asked: list[int] = []

    def hear(*_: object) -> None:
        asked.append(1)
        if len(asked) > 1:
            raise KeyboardInterrupt
        tell("Finishing what is running; press Ctrl-C again to stop now.")

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    before = {
        signal.SIGINT: signal.signal(signal.SIGINT, hear),
        signal.SIGTERM: signal.signal(signal.SIGTERM, stop),
        signal.SIGHUP: signal.signal(signal.SIGHUP, signal.SIG_IGN),
    }
    try:
        yield lambda: bool(asked)
    finally:
        for word, hears in before.items():
            signal.signal(word, hears)


def moment(text: str, now: float) -> float:
    """The next time that a clock on the wall shows `07:00`, in seconds since 1970."""
    found = re.fullmatch(r"(\d{1,2}):(\d{2})", text.strip())
    if found is None or int(found[1]) > 23 or int(found[2]) > 59:
        raise UserError("--until", f"is {text[:40]!r}, but a time of the day is needed", hint="for example `07:00`")
    here = datetime.fromtimestamp(now)
    then = here.replace(hour=int(found[1]), minute=int(found[2]), second=0, microsecond=0)
    return (then if then > here else then + timedelta(days=1)).timestamp()
