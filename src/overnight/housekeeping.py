"""Freeing disk without losing evidence.

What stays: ledger, contract, approvals, objects, audits, the candidate store, every small file by which a run tells
what it was, and everything of the runs on which the baseline, the tip, an incumbent or a claim rests. What goes: the
policies, outputs and logs of other runs that have ended, and what a run needed only while it ran.

Does not: touch a run that is going, one whose policy is still to be measured, or anything that a link leads to.
"""

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from overnight.errors import Refused
from overnight.ports import Machine
from overnight.records.decision import Verdict
from overnight.records.run import Outcome
from overnight.room import tree_bytes
from overnight.study.layout import Root, StudyFolder
from overnight.study.ledger import RawEntry, holder, read_sound
from overnight.study.state import StudyState
from overnight.study.study import studies

IsAlive = Callable[[Path], bool]
"""Whether the supervisor of a run's folder is still there."""
_ONLY_WHILE_RUNNING = ("source", "guest", "library", "home", "tmp")
_LEFT_BEHIND = ("policy", "out", "log", "supervisor.log")


@dataclass(frozen=True, slots=True)
class Removable:
    """One file or folder that nothing rests on."""

    path: Path
    what: str
    bytes: int


def removable(machine: Machine, at: StudyFolder, state: StudyState, is_alive: IsAlive) -> list[Removable]:
    """Everything in a study that can go, with its size."""
    needed = needed_runs(machine, at, state)
    found = []
    for name, run in state.runs.items():
        folder = at.runs / name
        if run.outcome is None or folder.is_symlink() or is_alive(folder):
            continue
        unmeasured = run.outcome is Outcome.COMPLETED and not run.evidence
        names = _ONLY_WHILE_RUNNING if name in needed or unmeasured else (*_ONLY_WHILE_RUNNING, *_LEFT_BEHIND)
        found += list(_present(folder, names, what=f"{name}, a run of {run.candidate}"))
    return [*found, *_present(at.folder, (at.reproductions.name,), what="reproductions")]


def cache_of(root: Root) -> list[Removable]:
    """The compile cache of a project, which the next run makes anew."""
    return list(_present(root.folder, (root.cache.name,), what="the compile cache"))


def needed_runs(machine: Machine, at: StudyFolder, state: StudyState) -> set[str]:
    """The runs on which the baseline, the tip, an incumbent or a claim rests."""
    claims: list[RawEntry] = []

    def take(entry: RawEntry, _: int) -> None:
        if entry["kind"] == "decided" and entry["data"]["verdict"] == Verdict.CERTIFIED:
            claims.append(entry["data"])

    read_sound(machine, at.folder, take)
    commits = {state.tip, state.incumbent, *state.incumbents}
    names = {state.baseline, *state.stack, *(claim["candidate"] for claim in claims)}
    names |= {one.id for one in state.candidates.values() if one.commit in commits}
    rests = {run for claim in claims for run in claim["evidence"]}
    return rests | {name for name, run in state.runs.items() if run.candidate in names}


def check_free(machine: Machine, root: Root) -> None:
    """Refuse while an engine holds any study of the project: they share the compile cache."""
    for one in studies(root):
        if who := holder(machine, one.folder):
            says = f"{one.task.name}/{one.name} is held by {who}, and its runs use the cache."
            raise Refused("overnight clean --cache", (says,), hint="wait for it, or stop it")


def remove(items: list[Removable]) -> int:
    """Remove them, and return how many bytes that freed."""
    for item in items:
        if item.path.is_symlink() or not item.path.is_dir():
            item.path.unlink(missing_ok=True)
        else:
            _open_up(item.path)
            shutil.rmtree(item.path)
    return sum(item.bytes for item in items)


def _open_up(folder: Path) -> None:
    """Make every folder below writable: a trainer may have closed its own."""
    folder.chmod(0o700)
    for where, names, _ in os.walk(folder, followlinks=False):
        for name in names:
            path = Path(where, name)
            if not path.is_symlink():
                path.chmod(0o700)


def _present(folder: Path, names: tuple[str, ...], *, what: str) -> Iterator[Removable]:
    for name in names:
        path = folder / name
        if path.is_symlink() or path.exists():
            below = 0 if path.is_symlink() else tree_bytes(path)
            yield Removable(path, what, below + path.lstat().st_blocks * 512)
