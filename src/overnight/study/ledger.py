"""The ledger: append-only, hash-chained, durable before it is acknowledged.

One entry a line, `{"h": <hash>, "e": <entry>}`, where the hash is SHA-256 over the
previous hash, a newline and the entry's canonical bytes. An append is one write, one
sync, one anchor; only then does it return. An error while writing cuts the partial
line off, latches the ledger, and is never retried: after a failed sync nobody knows
what the disk holds, so the next opening finds out.

What the chain proves: order and integrity relative to a known head. It does not stop
a program with the user's own rights from writing everything anew; see `anchor`.
"""

import json
import os
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple, Self

from overnight.errors import DiskTrouble, LedgerDamaged, StudyHeld
from overnight.ports import Machine
from overnight.records.lifecycle import Actor
from overnight.records.strict_json import canonical
from overnight.study import anchor
from overnight.study.anchor import GENESIS, Anchor
from overnight.study.durable import write_all

MAX_LINE_BYTES = 64 * 1024
_LEAD, _MIDDLE, _TAIL = b'{"h":"', b'","e":', b"}\n"
_BODY_AT = len(_LEAD) + 64 + len(_MIDDLE)
ENTRY_KEYS = frozenset({"seq", "epoch", "at", "actor", "kind", "data"})
_ENTRY_TYPES = (("seq", int), ("epoch", int), ("actor", str), ("kind", str), ("data", dict))

RawEntry = dict[str, Any]
"""An entry as it stands in the file, before its payload is decoded."""


class Scan(NamedTuple):
    """What a file of bytes holds, as far as its chain is unbroken."""

    entries: list[RawEntry]
    hashes: list[str]
    good_bytes: int
    broken: str
    """What is wrong with the bytes after that; empty when there are none."""


def scan(data: bytes) -> Scan:
    """Follow the chain from the start, and stop at the first line that is not part of it."""
    entries: list[RawEntry] = []
    hashes: list[str] = []
    head, at, size, epoch = GENESIS, 0, len(data), 0
    while at < size:
        end = data.find(b"\n", at) + 1
        if end == 0:
            return Scan(entries, hashes, at, "the last line has no end")
        line = data[at:end]
        found = _open_line(line, head)
        if isinstance(found, str):
            return Scan(entries, hashes, at, found)
        if found["seq"] != len(entries) or found["epoch"] < epoch:
            return Scan(entries, hashes, at, "its place in the order is wrong")
        epoch = found["epoch"]
        head = line[len(_LEAD) : len(_LEAD) + 64].decode()
        entries.append(found)
        hashes.append(head)
        at = end
    return Scan(entries, hashes, at, "")


def _open_line(line: bytes, head: str) -> RawEntry | str:
    """The entry of one line, or what is wrong with it."""
    if not (line.startswith(_LEAD) and line[_BODY_AT - len(_MIDDLE) : _BODY_AT] == _MIDDLE and line.endswith(_TAIL)):
        return "it is not a ledger line"
    if len(line) > MAX_LINE_BYTES:
        return f"it is longer than {MAX_LINE_BYTES:,} bytes"
    body = line[_BODY_AT : -len(_TAIL)]
    if _hash(head, body).encode() != line[len(_LEAD) : len(_LEAD) + 64]:
        return "its hash does not follow from the line before"
    try:
        entry = json.loads(body)
    except (ValueError, RecursionError):
        return "it is not JSON"
    if not isinstance(entry, dict) or entry.keys() != ENTRY_KEYS:
        return "it does not have the keys of an entry"
    if any(type(entry[key]) is not kind for key, kind in _ENTRY_TYPES):
        return "it does not have the shape of an entry"
    return entry


def _hash(head: str, body: bytes) -> str:
    return sha256(head.encode() + b"\n" + body).hexdigest()


def check_anchor(where: str, found: Scan, mark: Anchor | None) -> None:
    """Refuse a ledger that its anchor does not vouch for, with a sentence that says how."""
    have = len(found.entries)
    if mark is None:
        if have or found.good_bytes or found.broken:
            raise LedgerDamaged(where, f"holds {have} entries but its anchor, head.json, is missing.", hint=_RESTORE)
        return
    if have < mark.entries:
        if found.broken:
            raise LedgerDamaged(
                where, f"is damaged at entry {have} (byte {found.good_bytes}): {found.broken}.", hint=_RESTORE
            )
        raise LedgerDamaged(
            where,
            f"ends after {have} entries, but {mark.entries} were acknowledged: it was rolled back.",
            hint=_RESTORE,
        )
    if mark.entries and found.hashes[mark.entries - 1] != mark.head:
        raise LedgerDamaged(
            where,
            f"was rewritten: entry {mark.entries - 1} is not the one that was acknowledged.",
            hint=_RESTORE,
        )
    if have > mark.entries + 1:
        raise LedgerDamaged(
            where,
            f"holds {have - mark.entries} entries beyond its anchor, but one append writes one: "
            "Overnight did not write them, or head.json was rolled back.",
            hint=_RESTORE,
        )


_RESTORE = "restore the study's folder from a backup; `overnight ledger show` prints what is still sound"


def read_sound(machine: Machine, ledger: Path, head: Path) -> Scan:
    """Read a ledger without writing: every acknowledged entry, or an error that says what is wrong.

    Takes no lock. A line that another process is writing just now is left out.
    """
    mark = anchor.read(machine, str(head))
    found = scan(machine.read(str(ledger)) or b"")
    check_anchor(str(ledger), found, mark)
    return found


class Ledger:
    """The one writer of a study's ledger, for as long as it holds the engine lock."""

    def __init__(self, machine: Machine, folder: Path, fds: tuple[int, int, int], found: Scan, mark: Anchor) -> None:
        self._machine = machine
        self._where = str(folder / "ledger.jsonl")
        self._lock_fd, self._fd, self._head_fd = fds
        self._size = found.good_bytes
        self._mark = mark._replace(entries=len(found.entries), head=found.hashes[-1] if found.hashes else GENESIS)
        self.epoch = mark.epoch + 1
        self.recovered = found
        self._latched = ""

    @property
    def entries(self) -> int:
        """How many entries are durable."""
        return self._mark.entries

    @property
    def head(self) -> str:
        """The hash of the last durable entry."""
        return self._mark.head

    @classmethod
    def open(cls, machine: Machine, folder: Path, *, holder: str) -> Self:
        """Take the lock, check the chain against its anchor, mend a torn tail, and be ready to append.

        Only bytes that were never acknowledged are cut. Anything else that is wrong is refused.
        """
        lock_fd = _take_lock(machine, folder / "engine.lock", holder)
        opened = [lock_fd]
        try:
            path, head = folder / "ledger.jsonl", folder / "head.json"
            mark = anchor.read(machine, str(head))
            data = machine.read(str(path))
            if mark is None:
                check_anchor(str(path), scan(data or b""), None)
                anchor.create(machine, str(head))
                mark = anchor.EMPTY
            opened.append(machine.open(str(path), os.O_RDWR | os.O_CREAT | os.O_APPEND))
            opened.append(machine.open(str(head), os.O_RDWR))
            machine.sync_folder(str(folder))
            found = scan(data or b"")
            check_anchor(str(path), found, mark)
            if found.broken:
                machine.truncate(opened[1], found.good_bytes)
                machine.sync(opened[1])
            return cls(machine, folder, (opened[0], opened[1], opened[2]), found, mark)
        except OSError as error:
            _close_all(machine, opened)
            raise DiskTrouble(str(folder), f"the ledger could not be opened: {error.strerror or error}.") from error
        except BaseException:
            _close_all(machine, opened)
            raise

    def append(self, actor: Actor, kind: str, data: RawEntry) -> RawEntry:
        """Write one entry; when this returns, the entry survives a power cut."""
        if self._latched:
            raise DiskTrouble(self._where, f"is closed to further entries: {self._latched}.", hint=_AGAIN)
        entry = {
            "seq": self._mark.entries,
            "epoch": self.epoch,
            "at": datetime.fromtimestamp(self._machine.now(), UTC).isoformat(timespec="milliseconds"),
            "actor": str(actor),
            "kind": str(kind),
            "data": data,
        }
        body = canonical(entry)
        head = _hash(self._mark.head, body)
        line = _LEAD + head.encode() + _MIDDLE + body + _TAIL
        if len(line) > MAX_LINE_BYTES:
            raise DiskTrouble(self._where, f"an entry of {len(line):,} bytes is larger than {MAX_LINE_BYTES:,}.")
        self._write(line, head)
        return entry

    def _write(self, line: bytes, head: str) -> None:
        mark = Anchor(self._mark.writes + 1, self._mark.entries + 1, head, self.epoch)
        anchoring = False
        try:
            if self._machine.size(self._fd) != self._size:
                self._latched = "another program has written to it"
                raise StudyHeld(self._where, "was changed by another program while this engine held it.")
            write_all(self._machine, self._fd, line)
            self._machine.sync(self._fd)
            anchoring = True
            anchor.put(self._machine, self._head_fd, mark)
        except OSError as error:
            self._latched = f"an earlier write failed ({error.strerror or error})"
            if not anchoring:  # once the anchor may name the line, cutting it would look like a roll-back
                self._cut_partial_line()
            raise DiskTrouble(
                self._where, f"an entry could not be made durable: {error.strerror or error}.", hint=_AGAIN
            ) from error
        self._size += len(line)
        self._mark = mark

    def _cut_partial_line(self) -> None:
        try:
            self._machine.truncate(self._fd, self._size)
        except OSError as error:
            self._latched += f", and so did cutting it off ({error.strerror or error})"

    def close(self) -> None:
        """Let go of the study."""
        _close_all(self._machine, [self._fd, self._head_fd, self._lock_fd])

    def __enter__(self) -> Self:
        """Use the ledger as a context."""
        return self

    def __exit__(self, *_: object) -> None:
        """Let go of the study, whatever happened."""
        self.close()


_AGAIN = "everything acknowledged before is safe; make room on the disk and run the command again"


def _close_all(machine: Machine, fds: list[int]) -> None:
    for fd in fds:
        machine.close(fd)


def _take_lock(machine: Machine, path: Path, holder: str) -> int:
    opened: list[int] = []
    try:
        opened.append(machine.open(str(path), os.O_RDWR | os.O_CREAT))
        if not machine.lock(opened[0]):
            who = _holder(machine.read(str(path)) or b"")
            _close_all(machine, opened)
            raise StudyHeld(
                str(path.parent),
                f"is held by {who}, and one study has one engine.",
                hint="wait for it, or stop it",
            )
        machine.truncate(opened[0], 0)
        machine.pwrite(opened[0], (holder + "\n").encode(), 0)
    except OSError as error:
        _close_all(machine, opened)
        raise DiskTrouble(str(path), f"the study could not be locked: {error.strerror or error}.") from error
    return opened[0]


def _holder(data: bytes) -> str:
    text = data.decode(errors="replace").strip()
    return "".join(char for char in text if char.isprintable())[:200] or "another engine"


def check_canonical(found: Scan, data: bytes, *, where: str) -> None:
    """Refuse lines that mean the same as ours but are written otherwise: a second key, other spacing, a NaN."""
    lines = data.split(b"\n")
    for entry, line in zip(found.entries, lines, strict=False):
        try:
            same = canonical(entry) == line[_BODY_AT:-1]
        except ValueError:
            same = False
        if not same:
            raise LedgerDamaged(where, f"entry {entry['seq']} is not in the form in which Overnight writes entries.")
