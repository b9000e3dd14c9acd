"""Taking a policy out of a trainer's folder: regular files of bounded size, nothing else, following nothing."""

import hashlib
import os
import shutil
import stat
from itertools import islice
from pathlib import Path

from overnight.errors import UserError
from overnight.sandbox.beneath import open_beneath

MAX_FILES = 100
MAX_BYTES = 256 * 1024 * 1024
_PIECE_BYTES = 1 << 20


def harvest(source: Path, target: Path) -> str:
    """Copy a policy folder, and return the digest of its names and bytes.

    Every part is opened beneath its parent without following a link, must be a regular file with one name, and is
    copied piece by piece, so that nothing the trainer still holds can change it. The last two parts of `source` are
    the trainer's own doing, and links in them are not followed either.
    """
    outer = os.open(source.parent.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        folder = _open_folder(outer, f"{source.parent.name}/{source.name}")
    finally:
        os.close(outer)
    try:
        names = _names(folder)
        _make(target)
        total, digest = 0, hashlib.sha256()
        for name in names:
            total += _copy(folder, name, target / name, MAX_BYTES - total, digest)
    finally:
        os.close(folder)
    return digest.hexdigest()


def _open_folder(outer: int, name: str) -> int:
    try:
        return open_beneath(outer, name, os.O_DIRECTORY)
    except FileNotFoundError as error:
        raise UserError("policy", "there is no policy folder") from error
    except OSError as error:
        raise UserError("policy", f"there is no policy folder: {error.strerror}") from error


def _names(folder: int) -> list[str]:
    with os.scandir(folder) as entries:
        names = sorted(entry.name for entry in islice(entries, MAX_FILES + 1))
    if len(names) > MAX_FILES:
        raise UserError("policy", f"the policy folder has more than {MAX_FILES} entries")
    if "policy.json" not in names:
        raise UserError("policy", "the policy folder has no policy.json")
    return names


def _make(target: Path) -> None:
    """A new folder of our own, whatever lay there; every user may read it, as the policy's process may be another."""
    if target.is_symlink():
        target.unlink()
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir()
    target.chmod(0o755)


def _copy(folder: int, name: str, target: Path, room: int, digest: "hashlib._Hash") -> int:
    """Copy one file, and return its size."""
    shown = ascii(name)[:60]
    try:
        fd = open_beneath(folder, name, os.O_NONBLOCK)
    except OSError as error:
        raise UserError(name, f"it holds {shown}, which cannot be opened: {error.strerror}") from error
    how = os.fstat(fd)
    if not stat.S_ISREG(how.st_mode) or how.st_nlink != 1:
        os.close(fd)
        raise UserError(name, f"it holds {shown}, which is not a plain file with one name")
    with os.fdopen(fd, "rb") as file:
        if how.st_size > room:
            raise UserError(name, f"it is larger than {MAX_BYTES:,} bytes")
        digest.update(os.fsencode(name) + f"\0{how.st_size}\0".encode())
        left = how.st_size
        with target.open("xb") as copy:
            while left and (piece := file.read(min(left, _PIECE_BYTES))):
                digest.update(piece)
                copy.write(piece)
                left -= len(piece)
    if left:
        raise UserError(name, f"it holds {shown}, which became shorter while it was copied")
    target.chmod(0o644)
    return how.st_size
