"""Training a run again, and comparing it with the record, episode by episode.

The tree, the command, the train seed, the budget and the episode seeds are those of the first
time, and the launch path is the one that every run takes. What never passed the gate, or never
ran, is not launched here either. A reproduction is a note in the ledger and decides nothing.
"""

import json
import shutil
import time
from collections import deque
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from overnight.admission import may_launch_now
from overnight.claims import claims, median_run
from overnight.errors import Refused, UserError
from overnight.evaluate.measure import Measured, measure
from overnight.ports import Launcher
from overnight.records.codec import decode, digest
from overnight.records.entry import Note
from overnight.records.lifecycle import Actor
from overnight.records.run import Outcome, Run
from overnight.run.launch import clear, exit_of, launch, sweep
from overnight.study.artifacts import read_bytes
from overnight.study.ledger import RawEntry, read_sound
from overnight.trials import Bench, lay_out

LOOK_SECONDS = 0.1
TELL_SECONDS = 10.0
_SOON = 60.0
"""After a minute it is told once a minute that trainings go on."""
_STOP_SECONDS = 10.0


class Reproduction(NamedTuple):
    """How a run went the second time."""

    run: str
    candidate: str
    before: tuple[float, ...]
    """Each episode's return as the record has it."""
    after: tuple[float, ...]
    """Each episode's return this time; empty where it did not come to that."""
    because: str
    """Why there is nothing to compare; empty where there is."""
    seconds: float

    def different(self) -> tuple[int, ...]:
        """The episodes that differ, counted from 1."""
        if not self.after:
            return tuple(range(1, len(self.before) + 1))
        pairs = zip(self.before, self.after, strict=True)
        return tuple(number for number, (one, other) in enumerate(pairs, 1) if one != other)

    def is_identical(self) -> bool:
        """Whether every episode ended with the very same return."""
        return not self.different()

    def says(self) -> str:
        """The result in one sentence."""
        if self.because:
            return f"It did not end as before: {self.because}"
        different, count = self.different(), len(self.before)
        if not different:
            return f"{count} of {count} episodes identical: {_mean(self.before):g}"
        first = different[0]
        return (
            f"{len(different)} of {count} episodes differ: {_mean(self.before):g} before, {_mean(self.after):g} now; "
            f"the first is episode {first}, {self.before[first - 1]:g} before and {self.after[first - 1]:g} now"
        )


def runs_behind(bench: Bench, name: str, *, everything: bool) -> tuple[str, ...]:
    """The runs to train again: one run by its id, a candidate's median run, or all that its claim rests on."""
    state = bench.study.state
    if everything:
        entries = _entries(bench)
        found = next((one for one in claims(state, entries, bench.contract) if one.candidate == name), None)
        if found is None:
            raise UserError(name, "has no certified claim, so `--all` has nothing to reproduce")
        return found.runs
    if name in state.runs:
        return (name,)
    if name not in state.candidates:
        raise UserError(name[:40], "is neither a candidate nor a run of this study", hint="`overnight candidates`")
    median = median_run(state, name)
    if median is None:
        raise Refused(name, ("No run of it was completed, so there is nothing to compare with.",))
    return (median,)


def reproduce(bench: Bench, names: Sequence[str], tell: Callable[[str], None]) -> Generator[Reproduction]:
    """Train runs again, each in a folder of its own, measure and compare them, and note each result in the ledger."""
    runs = {bench.study.at.reproductions / name: _launched(bench, name) for name in names}
    for run in runs.values():
        _check(bench, run)
    began = {}

    def starting(run: Run) -> None:
        began[run.id] = time.monotonic()
        tell(f"{run.id} is training again ({len(began)} of {len(runs)})")

    wanted = deque((run, folder) for folder, run in runs.items())
    with closing(train_side_by_side(bench, wanted, starting, tell)) as ended:
        for folder in ended:
            run = runs[folder]
            before = tuple(total for _, total in _recorded(bench, run.id))
            after, because = _measured(bench, run.id, folder)
            found = Reproduction(run.id, run.candidate, before, after, because, time.monotonic() - began[run.id])
            clear(folder)
            bench.study.append(Actor.ENGINE, Note(says=f"{run.id} was trained again. {found.says()}"[:1900]))
            yield found


def train_side_by_side(
    bench: Bench, wanted: deque[tuple[Run, Path]], starting: Callable[[Run], None], tell: Callable[[str], None]
) -> Generator[Path]:
    """Train by the one launch path, as many at a time as there are slots, and give back each folder as its run ends.

    Whoever takes the folders may put a run that was lost at the end of the queue again. Closing this stops every
    training.
    """
    going: dict[Path, Run] = {}
    told = began = time.monotonic()
    try:
        while wanted or going:
            while wanted and len(going) < bench.slots:
                run, folder = wanted.popleft()
                starting(run)
                _remove(bench.launcher, folder)
                prepared, slot = lay_out(bench, run, folder), bench.free_slot()
                going[folder] = run
                bench.watch(str(folder), folder, slot)
                launch(prepared, bench.launcher)
            ended = next((folder for folder in going if not bench.launcher.is_alive(folder)), None)
            if ended is not None:
                del bench.going[str(ended)], going[ended]
                yield ended
                continue
            now = time.monotonic()
            if now - told >= (TELL_SECONDS if now - began < _SOON else _SOON):
                told = now
                tell(f"{', '.join(run.id for run in going.values())}: {now - began:.0f} s since the first began")
            time.sleep(LOOK_SECONDS)
    finally:
        for folder in going:
            bench.going.pop(str(folder), None)
            _stop(bench.launcher, folder)


def _check(bench: Bench, run: Run) -> None:
    """Refuse whatever did not pass the gate as it stands in the store, and terms that are not those of the run."""
    study, one = bench.study, bench.study.state.candidates[run.candidate]
    says = [reason.says for reason in may_launch_now(study) if reason.rule != "budget"]  # a repeat searches nothing
    if one.validated_under is None:
        says.append(f"{one.id} has not passed the gate.")
    commit = bench.store.ref(study.at.ref("candidates", one.id))
    if commit != one.commit or bench.store.tree_of(one.commit) != run.tree or one.tree != run.tree:
        says.append(f"The store has another tree under {one.id} than the ledger.")
    if run.contract != digest(bench.whole) or run.command != bench.contract.baseline.command:
        says.append(f"{run.id} ran under other terms than the contract has now.")
    if study.state.runs[run.id].outcome is not Outcome.COMPLETED:
        says.append(f"{run.id} was not completed, so there is nothing to compare with.")
    if says:
        raise Refused(run.id, says)


def _launched(bench: Bench, name: str) -> Run:
    found = [one["data"] for one in _entries(bench) if one["kind"] == "launched" and one["data"]["id"] == name]
    if not found:
        raise Refused(name, ("It was never launched, so it cannot be reproduced.",))
    return decode(Run, found[-1], where=f"ledger run {name}")


def _recorded(bench: Bench, name: str) -> tuple[tuple[int, float], ...]:
    """The seed and the return of each episode, from the artefact that the ledger names."""
    found = [one["data"] for one in _entries(bench) if one["kind"] == "measured" and one["data"]["run"] == name]
    if not found or found[-1]["score"] is None:
        raise Refused(name, ("It was never measured, so there is nothing to compare with.",))
    data = json.loads(read_bytes(bench.study.machine, bench.study.at.objects, found[-1]["artefact"]))
    return tuple((int(seed), float(total)) for seed, total, _ in data["episodes"])


def _entries(bench: Bench) -> list[RawEntry]:
    found: list[RawEntry] = []
    read_sound(bench.study.machine, bench.study.at.folder, lambda entry, _: found.append(entry))
    return found


def _measured(bench: Bench, name: str, folder: Path) -> tuple[tuple[float, ...], str]:
    """The returns of the new policy on the same episodes, or why there are none."""
    ended = exit_of(bench.study.machine, folder)
    sweep(folder)
    if ended is None:
        return (), "its supervisor is gone and left no word."
    if ended.outcome is not Outcome.COMPLETED:
        return (), ended.because
    seeds = tuple(seed for seed, _ in _recorded(bench, name))
    found: Measured = measure(bench.study.machine, bench.contract.task.env, folder, seeds)
    return tuple(total for _, total, _ in found.episodes), found.error


def _stop(launcher: Launcher, folder: Path) -> None:
    """Ask a run's supervisor to end it now, and end what does not."""
    launcher.stop(folder)
    until = time.monotonic() + _STOP_SECONDS
    while launcher.is_alive(folder) and time.monotonic() < until:
        time.sleep(LOOK_SECONDS)
    sweep(folder)


def _remove(launcher: Launcher, folder: Path) -> None:
    """Make room: an earlier reproduction is stopped where it still goes on, and removed."""
    if folder.exists():
        if launcher.is_alive(folder):
            _stop(launcher, folder)
        shutil.rmtree(folder)


def _mean(values: tuple[float, ...]) -> float:
    return sum(values) / len(values)
