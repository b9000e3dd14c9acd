"""One study, open for reading or for writing."""

import json
import os
import socket
from contextlib import suppress
from pathlib import Path
from typing import Self, cast

from overnight.errors import LedgerDamaged, Refused, UserError, did_you_mean
from overnight.ports import Machine
from overnight.records.codec import decode, encode
from overnight.records.entry import KIND_OF, Payload
from overnight.records.lifecycle import Actor
from overnight.records.strict_json import canonical
from overnight.study import yaml
from overnight.study.durable import make_folder, write_file
from overnight.study.fold import Fold, apply, raw
from overnight.study.layout import Root, StudyFolder, find_root
from overnight.study.ledger import Ledger, RawEntry, Since, no_collection, read_since, read_sound
from overnight.study.state import StudyState, Unlawful


class Study:
    """The one writer of a study. Every way to change anything is an entry."""

    def __init__(self, machine: Machine, at: StudyFolder, ledger: Ledger, state: StudyState) -> None:
        self.machine = machine
        self.at = at
        self.ledger = ledger
        self.state = state

    @classmethod
    def open(cls, machine: Machine, at: StudyFolder, *, doing: str) -> Self:
        """Take the study for writing, or say who holds it."""
        since = machine.now()
        holder = f"pid {os.getpid()} on {socket.gethostname()} ({doing}, since {since:.0f})"
        entries = Fold()
        ledger = Ledger.open(machine, at.folder, holder=holder, take=entries)
        try:
            state = entries.state(ledger.recovered, where=str(at.ledger))
        except BaseException:
            ledger.close()
            raise
        return cls(machine, at, ledger, state)

    def append(self, actor: Actor, payload: Payload) -> RawEntry:
        """Write one fact. An unlawful one is refused and never reaches the disk."""
        kind, data = KIND_OF[type(payload)], raw(payload)
        decode(type(payload), data, where=f"a `{kind}` entry")  # what is written can be read again, always
        self.ledger.check_usable()
        self.ledger.check_fits(data)
        try:
            apply(self.state, {"kind": str(kind), "actor": str(actor), "data": data})
        except Unlawful as unlawful:
            raise Refused(f"{self.at.task.name}/{self.at.name}", (str(unlawful),)) from unlawful
        entry = self.ledger.append(actor, kind, data)
        self.state.head, self.state.ledger_bytes = self.ledger.head, self.ledger.size
        return entry

    def close(self) -> None:
        """Leave the derived state behind for readers, and let go."""
        try:
            if self.state.task and self.state.entries == self.ledger.entries:
                self.state.ledger_sha256 = self.ledger.digest()
                save_state(self.machine, self.at, self.state)
        finally:
            self.ledger.close()

    def __enter__(self) -> Self:
        """Use the study as a context."""
        return self

    def __exit__(self, *_: object) -> None:
        """Let go, whatever happened."""
        self.close()


def read_state(machine: Machine, at: StudyFolder, *, quickly: bool = True) -> StudyState:
    """The state of a study, read without taking it: what every read-only verb uses.

    Goes on from `state.json` where the ledger's bytes up to there still have the digest that
    it names, and folds everything anew where they do not, or where nothing but the ledger
    itself may be believed (`quickly=False`).
    """
    where = str(at.ledger)
    state = load_state(machine, at) if quickly else None
    if state is not None:
        since, newer = Since(state.entries, state.head, state.ledger_bytes), Fold(onto=state)
        with suppress(LedgerDamaged):  # perhaps it is the derived file that is wrong: the ledger itself decides
            found = read_since(machine, at.folder, (since, state.ledger_sha256), newer)
            if found is not None:
                return newer.state(found, where=where)
    entries = Fold()
    found = read_sound(machine, at.folder, entries)
    if not found.hashes:
        raise UserError(str(at.folder), "holds no ledger yet", hint="`overnight init` makes a study")
    return entries.state(found, where=where)


def read_entry(machine: Machine, at: StudyFolder, offset: int) -> RawEntry:
    """One entry of the ledger, by where it stands in the file."""
    line = (machine.read(str(at.ledger)) or b"")[max(offset, 0) :].partition(b"\n")[0]
    try:
        entry = json.loads(line)["e"]
        if type(entry["data"]) is dict and type(entry["kind"]) is str:
            return cast(RawEntry, entry)
    except (ValueError, RecursionError, KeyError, TypeError):
        pass
    raise LedgerDamaged(
        str(at.ledger),
        f"has no entry at byte {offset}.",
        hint=f"delete {at.state.name}, which is derived, and try again",
    )


def save_state(machine: Machine, at: StudyFolder, state: StudyState) -> None:
    """Write `state.json`: derived, so nothing is lost with it."""
    write_file(machine, at.state, canonical({"schema": state.SCHEMA, **encode(state)}) + b"\n")


def load_state(machine: Machine, at: StudyFolder) -> StudyState | None:
    """Read `state.json`; None where it is missing, of another version, or not sound in any way."""
    try:
        with no_collection():
            data = json.loads(machine.read(str(at.state)) or b"null")
            if not isinstance(data, dict) or data.pop("schema", None) != StudyState.SCHEMA:
                return None
            return decode(StudyState, data, where=str(at.state))
    except (ValueError, RecursionError, UserError):
        return None


def active_study(machine: Machine, start: Path) -> StudyFolder:
    """The study that the registry names, or a sentence that says why there is none."""
    root = find_root(start)
    if root is None:
        raise UserError(
            str(start),
            "holds no study, nor does any folder above it",
            hint="`overnight init CartPole-v1` makes one",
        )
    where = str(root.registry)
    text = machine.read(where)
    if text is None:
        raise UserError(where, "is missing, so no study is active", hint="`overnight init` makes one, or finishes one")
    data = yaml.load(text, where=where)
    if not isinstance(data, dict) or set(data) != {"task", "study"}:
        raise UserError(where, "needs exactly the keys `task` and `study`", hint="`task: cartpole`, `study: first`")
    at = root.task(str(data["task"])).study(str(data["study"]))
    if not at.folder.is_dir():
        raise UserError(where, f"names {at.task.name}/{at.name}, which does not exist", hint=_known(root, at))
    return at


def activate(machine: Machine, at: StudyFolder) -> None:
    """Make one study the active one."""
    text = yaml.dump({"task": at.task.name, "study": at.name}).encode()
    if machine.read(str(at.task.root.registry)) != text:
        write_file(machine, at.task.root.registry, text)


def studies(root: Root) -> list[StudyFolder]:
    """Every study of a project."""
    found = sorted(root.folder.glob("tasks/*/studies/*"))
    return [root.task(path.parent.parent.name).study(path.name) for path in found if path.is_dir()]


def lay_out(machine: Machine, at: StudyFolder) -> None:
    """Make a study's folders, and keep them out of the user's repository."""
    root = at.task.root
    make_folder(machine, root.folder)
    if not root.gitignore.exists():
        write_file(machine, root.gitignore, b"*\n")
    for folder in (at.folder, at.approvals, at.candidates, at.runs, at.objects, at.audits):
        make_folder(machine, folder)


def _known(root: Root, at: StudyFolder) -> str:
    names = [f"{one.task.name}/{one.name}" for one in studies(root)]
    return did_you_mean(f"{at.task.name}/{at.name}", names) or "`overnight init` makes one"
