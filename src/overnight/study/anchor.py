"""The ledger's anchor: how far it had come, kept beside it so that a roll-back shows.

`head.json` holds two slots of 512 bytes. Each write goes to the slot that was not
written last, so a torn write can only damage the older one. Writing in place costs
one small sync, which is why every single append is anchored.

Does not protect against someone who rewrites ledger and anchor together; for that,
compare the head with one you noted elsewhere (`overnight ledger verify --expect-head`).
"""

import json
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from overnight.errors import LedgerDamaged
from overnight.ports import Disk
from overnight.study.durable import write_file

SLOT_BYTES = 512
GENESIS = "0" * 64


class Anchor(NamedTuple):
    """How far the ledger had come when it was last written."""

    writes: int
    """How often the anchor was written; its parity names the slot."""
    entries: int
    """How many entries were durable."""
    head: str
    """The hash of the last of them."""
    epoch: int
    """The highest epoch handed out."""


EMPTY = Anchor(writes=1, entries=0, head=GENESIS, epoch=0)


def create(disk: Disk, path: str) -> None:
    """Write the anchor of an empty ledger: both slots, all or nothing."""
    write_file(disk, Path(path), _slot(EMPTY._replace(writes=0)) + _slot(EMPTY))


def put(disk: Disk, fd: int, anchor: Anchor) -> None:
    """Write one slot and make it durable."""
    data, offset = _slot(anchor), (anchor.writes % 2) * SLOT_BYTES
    done = 0
    while done < len(data):
        done += disk.pwrite(fd, data[done:], offset + done)
    disk.sync(fd)


def read(disk: Disk, path: str) -> Anchor | None:
    """Read the newest whole slot; None where there is no anchor at all."""
    data = disk.read(path)
    if data is None:
        return None
    slots = [_parse(data[at : at + SLOT_BYTES]) for at in (0, SLOT_BYTES)]
    whole = [slot for slot in slots if slot is not None]
    if not whole:
        raise LedgerDamaged(path, "holds no readable anchor, so nobody can tell whether the ledger is complete.")
    return max(whole)


def _slot(anchor: Anchor) -> bytes:
    body = json.dumps(anchor._asdict(), separators=(",", ":"))
    line = json.dumps(
        {"anchor": anchor._asdict(), "sum": sha256(body.encode()).hexdigest()[:16]}, separators=(",", ":")
    )
    return line.encode().ljust(SLOT_BYTES - 1) + b"\n"


def _parse(slot: bytes) -> Anchor | None:
    try:
        anchor = Anchor(**json.loads(slot)["anchor"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    if [type(value) for value in anchor] != [int, int, str, int] or min(
        anchor.writes, anchor.entries, anchor.epoch
    ) < 0:
        return None
    return anchor if _slot(anchor) == slot else None
