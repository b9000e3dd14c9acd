"""The ledger: append-only, hash-chained, durable before it is acknowledged.

One entry a line, `{"h": <hash>, "e": <entry>}`, where the hash is SHA-256 over the
previous hash, a newline and the entry's canonical bytes. An append is one write, one
sync, one anchor; only then does it return. An error while writing cuts the partial
line off, latches the ledger, and is never retried: after a failed sync nobody knows
what the disk holds, so the next opening finds out.

What the chain proves: order and integrity relative to a known head. It does not stop
a program with the user's own rights from writing everything anew; see `anchor`.
"""

import gc
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple, Self

from overnight.errors import DiskTrouble, LedgerDamaged, Refused, StudyHeld
from overnight.ports import Machine
from overnight.records.lifecycle import Actor
from overnight.records.strict_json import MAX_DEPTH, canonical, check_depth
from overnight.records.text import line
from overnight.study import anchor
from overnight.study.anchor import GENESIS, Anchor
from overnight.study.durable import write_all

LEDGER_FILE, HEAD_FILE, LOCK_FILE = "ledger.jsonl", "head.json", "engine.lock"
MAX_LINE_BYTES = 64 * 1024
_LEAD, _MIDDLE, _TAIL = b'{"h":"', b'","e":', b"}\n"
_HASH_AT = slice(6, 70)
_LOCK_TRIES, _LOCK_SECONDS = 6, 0.02
_FRAME_BYTES = 300  # hash, sequence number, epoch, time, actor and kind around a record
_ENTRY_KEYS = {"seq", "epoch", "at", "actor", "kind", "data"}

RawEntry = dict[str, Any]
"""An entry as it stands in the file, before its payload is decoded."""


Take = Callable[[RawEntry, int], None]
"""Called with each sound entry and the offset at which it begins; entries are not kept, because they are many."""


class Scan(NamedTuple):
    """What a file of bytes holds, as far as its chain is unbroken."""

    hashes: list[str]
    """The hash of each entry."""
    good_bytes: int
    """How far the chain reaches."""
    broken: str
    """What is wrong with the bytes after that; empty when there are none."""
    epoch: int
    """The epoch of the last entry."""


class Since(NamedTuple):
    """A place in a ledger up to which everything is known to be sound."""

    entries: int = 0
    head: str = GENESIS
    offset: int = 0


START = Since()


def scan(data: bytes, since: Since = START, take: Take | None = None) -> Scan:
    """Follow the chain from a sound place, and stop at the first line that is not part of it."""
    hashes: list[str] = []
    seq, head, at = since
    epoch, broken = 0, ""
    lines = data[at:].split(b"\n")
    unfinished = lines.pop()
    with no_collection():
        for line in lines:
            found = _open_line(line, head)
            if isinstance(found, str):
                broken = found
                break
            if found["seq"] != seq or found["epoch"] < epoch:
                broken = "its place in the order is wrong"
                break
            seq, epoch, head = seq + 1, found["epoch"], line[_HASH_AT].decode()
            hashes.append(head)
            if take is not None:
                take(found, at)
            at += len(line) + 1
    return Scan(hashes, at, broken or ("the last line has no end" if unfinished else ""), epoch)


@contextmanager
def no_collection() -> Iterator[None]:
    """Hold the garbage collector back while many objects are made and none is garbage; it would double the time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _open_line(line: bytes, head: str) -> RawEntry | str:
    """The entry of one line, without its end, or what is wrong with it."""
    if line[:6] != _LEAD or line[70:76] != _MIDDLE or line[-1:] != b"}":
        return "it is not a ledger line"
    if len(line) >= MAX_LINE_BYTES:
        return f"it is longer than {MAX_LINE_BYTES:,} bytes"
    body = line[76:-1]
    if _hash(head, body).encode() != line[_HASH_AT]:
        return "its hash does not follow from the line before"
    try:
        if body.count(b"[") + body.count(b"{") > MAX_DEPTH:
            check_depth(body.decode())
        entry = json.loads(body)
    except (ValueError, RecursionError):
        return "it is not JSON"
    if type(entry) is not dict or entry.keys() != _ENTRY_KEYS:
        return "it does not have the keys of an entry"
    if type(entry["seq"]) is not int or type(entry["epoch"]) is not int or type(entry["data"]) is not dict:
        return "it does not have the shape of an entry"
    if type(entry["actor"]) is not str or type(entry["kind"]) is not str or type(entry["at"]) is not str:
        return "it does not have the shape of an entry"
    return entry


def _hash(head: str, body: bytes) -> str:
    return sha256(head.encode() + b"\n" + body).hexdigest()


def check_anchor(where: str, found: Scan, mark: Anchor | None, since: Since = START) -> None:
    """Refuse a ledger that its anchor does not vouch for, with a sentence that says how."""
    have = since.entries + len(found.hashes)
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
    if (since.head, *found.hashes)[mark.entries - since.entries] != mark.head:
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


def read_since(machine: Machine, folder: Path, known: tuple[Since, str], take: Take) -> Scan | None:
    """Read only what came after a known place, if the bytes before it still have the known SHA-256.

    None where they do not, or where the anchor is older than the place: then everything must be read.
    """
    since, digest = known
    mark = anchor.read(machine, str(folder / HEAD_FILE))
    data = machine.read(str(folder / LEDGER_FILE)) or b""
    if mark is None or mark.entries < since.entries or sha256(data[: since.offset]).hexdigest() != digest:
        return None
    found = scan(data, since, take)
    check_anchor(str(folder / LEDGER_FILE), found, mark, since)
    return found


def read_sound(machine: Machine, folder: Path, take: Take | None = None) -> Scan:
    """Read a ledger without writing: every acknowledged entry, or an error that says what is wrong.

    Takes no lock. A line that another process is writing just now is left out.
    """
    mark = anchor.read(machine, str(folder / HEAD_FILE))
    found = scan(machine.read(str(folder / LEDGER_FILE)) or b"", START, take)
    check_anchor(str(folder / LEDGER_FILE), found, mark)
    return found


class Ledger:
    """The one writer of a study's ledger, for as long as it holds the engine lock."""

    def __init__(self, machine: Machine, folder: Path, fds: tuple[int, int, int]) -> None:
        self._machine = machine
        self._where = str(folder / LEDGER_FILE)
        self._lock_fd, self._fd, self._head_fd = fds
        self._size = 0
        self._sha256 = sha256()
        self._mark = anchor.EMPTY
        self._latched = ""
        self.epoch = 0
        self.recovered = Scan([], 0, "", 0)
        """What was found at opening."""

    def _recover(self, data: bytes, mark: Anchor, take: Take | None) -> None:
        """Go on where the file ends, after cutting off what was never acknowledged."""
        found = scan(data, START, take)
        check_anchor(self._where, found, mark)
        if found.broken:
            self._machine.truncate(self._fd, found.good_bytes)
            self._machine.sync(self._fd)
        self.recovered = found
        self._size = found.good_bytes
        self._sha256 = sha256(data[: found.good_bytes])
        self._mark = mark._replace(entries=len(found.hashes), head=found.hashes[-1] if found.hashes else GENESIS)
        self.epoch = max(mark.epoch, found.epoch) + 1

    @property
    def entries(self) -> int:
        """How many entries are durable."""
        return self._mark.entries

    @property
    def head(self) -> str:
        """The hash of the last durable entry."""
        return self._mark.head

    @property
    def size(self) -> int:
        """The length of the durable part of the file in bytes."""
        return self._size

    def digest(self) -> str:
        """SHA-256 of the durable part of the file."""
        return self._sha256.hexdigest()

    def check_usable(self) -> None:
        """Raise when an earlier write failed: nothing more may be written before the study is opened again."""
        if self._latched:
            raise DiskTrouble(self._where, f"is closed to further entries: {self._latched}.", hint=_AGAIN)

    @classmethod
    def open(cls, machine: Machine, folder: Path, *, holder: str, take: Take | None = None) -> Self:
        """Take the lock, check the chain against its anchor, mend a torn tail, and be ready to append.

        Only bytes that were never acknowledged are cut. Anything else that is wrong is refused.
        """
        opened = [_take_lock(machine, folder / LOCK_FILE, holder)]
        try:
            path, head = str(folder / LEDGER_FILE), str(folder / HEAD_FILE)
            mark, data = anchor.read(machine, head), machine.read(path) or b""
            if mark is None:
                check_anchor(path, scan(data), None)
                anchor.create(machine, head)
                mark = anchor.EMPTY
            opened.append(machine.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND))
            opened.append(machine.open(head, os.O_RDWR))
            machine.sync_folder(str(folder))
            ledger = cls(machine, folder, (opened[0], opened[1], opened[2]))
            ledger._recover(data, mark, take)
        except OSError as error:
            _close_all(machine, opened)
            raise DiskTrouble(str(folder), f"the ledger could not be opened: {error.strerror or error}.") from error
        except BaseException:
            _close_all(machine, opened)
            raise
        return ledger

    def check_fits(self, data: RawEntry) -> None:
        """Refuse a record that is too large for one line, before anything is done with it."""
        size = len(canonical(data)) + _FRAME_BYTES
        if size > MAX_LINE_BYTES:
            what = f"A record of {size:,} bytes does not fit into an entry of {MAX_LINE_BYTES:,}."
            raise Refused(self._where, (what,), hint="shorten its texts, or change fewer things at once")

    def append(self, actor: Actor, kind: str, data: RawEntry) -> RawEntry:
        """Write one entry; when this returns, the entry survives a power cut."""
        self.check_usable()
        self.check_fits(data)
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
        self._sha256.update(line)
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
        if not _lock_soon(machine, opened[0]):
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


def _lock_soon(machine: Machine, fd: int) -> bool:
    """Take the lock, or find it held several times in a row: whoever only looks has it for a moment, too."""
    for _ in range(_LOCK_TRIES):
        if machine.lock(fd):
            return True
        machine.sleep(_LOCK_SECONDS)
    return False


def holder(machine: Machine, folder: Path) -> str:
    """Who holds a study just now; empty when nobody does. Reads only: it takes the lock and lets it go at once."""
    path = str(folder / LOCK_FILE)
    if (said := machine.read(path)) is None:
        return ""
    fd = machine.open(path, os.O_RDONLY)
    try:
        return "" if machine.lock(fd) else _holder(said)
    finally:
        machine.close(fd)


def _holder(data: bytes) -> str:
    return line(data.decode(errors="replace").strip(), 200) or "another engine"
