"""Taking a policy out of a trainer's folder: regular files of bounded size, nothing else, following nothing."""

import os
import stat
from hashlib import sha256
from itertools import islice
from pathlib import Path

from overnight.errors import UserError

MAX_FILES = 100
MAX_BYTES = 256 * 1024 * 1024


def harvest(source: Path, target: Path) -> str:
    """Copy a policy folder, and return the digest of its names and bytes.

    Every part is opened relative to its parent without following a link, must be a regular
    file with one name, and is copied, so that nothing the trainer still holds can change it.
    """
    total, names, digest = 0, _names(source), sha256()
    target.mkdir(exist_ok=True)
    parent = os.open(source, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        for name in names:
            data = _read(parent, name, MAX_BYTES - total)
            total += len(data)
            digest.update(os.fsencode(name) + f"\0{len(data)}\0".encode() + data)
            (target / name).write_bytes(data)
    finally:
        os.close(parent)
    return digest.hexdigest()


def _names(source: Path) -> list[str]:
    if source.is_symlink() or not source.is_dir():
        raise UserError(source.name, "there is no policy folder")
    with os.scandir(source) as entries:
        names = sorted(entry.name for entry in islice(entries, MAX_FILES + 1))
    if len(names) > MAX_FILES:
        raise UserError(source.name, f"the policy folder has more than {MAX_FILES} entries")
    if "policy.json" not in names:
        raise UserError(source.name, "the policy folder has no policy.json")
    return names


def _read(parent: int, name: str, room: int) -> bytes:
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        fd = os.open(name, flags, dir_fd=parent)
    except OSError as error:
        raise UserError(name, f"it holds {ascii(name)[:60]}, which cannot be opened: {error.strerror}") from error
    how = os.fstat(fd)
    if not stat.S_ISREG(how.st_mode) or how.st_nlink != 1:
        os.close(fd)
        raise UserError(name, f"it holds {ascii(name)[:60]}, which is not a plain file with one name")
    with os.fdopen(fd, "rb") as file:
        data = file.read(room + 1)
    if len(data) > room:
        raise UserError(name, f"it is larger than {MAX_BYTES:,} bytes")
    return data
