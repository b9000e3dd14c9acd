"""Artefacts by content: written once under their SHA-256, and read back only if they still have it."""

from hashlib import sha256
from pathlib import Path

from overnight.errors import LedgerDamaged
from overnight.ports import Disk
from overnight.study.durable import write_file


def store_bytes(disk: Disk, folder: Path, data: bytes) -> str:
    """Keep some bytes for ever, and return their digest. The same bytes are kept once."""
    digest = sha256(data).hexdigest()
    path = folder / digest
    if not path.exists():
        write_file(disk, path, data, mode=0o444)
    return digest


def read_bytes(disk: Disk, folder: Path, digest: str) -> bytes:
    """The bytes of a digest, or a refusal when they are gone or have changed."""
    data = disk.read(str(folder / digest))
    if data is None:
        raise LedgerDamaged(str(folder / digest), "is missing, although the ledger names it.")
    if sha256(data).hexdigest() != digest:
        raise LedgerDamaged(str(folder / digest), "is not what was stored under this digest.")
    return data
