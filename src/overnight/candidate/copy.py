"""Plain copies: a tree written out for someone to edit, and read back as what it has become.

Nothing in a copy is trusted. It is read without following a link, and what cannot be
part of a candidate (a nested repository, a device, a name that is not text) is reported,
not skipped. Only compiled Python files and caches are left out, because running a test
in the copy makes them, and they are never exported again.
"""

import os
import stat
from pathlib import Path
from typing import NamedTuple

from overnight.candidate.tree import ABSENT, EXECUTABLE, GITLINK, REGULAR, SYMLINK, Store
from overnight.errors import UserError
from overnight.records.paths import why_unsafe
from overnight.records.refusal import Reason

_LEFT_OUT_FOLDERS = {"__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache"}
_LEFT_OUT_ENDINGS = (".pyc", ".pyo")
MAX_REASONS = 20
MAX_FILES = 20_000
MAX_FILE_BYTES = 50_000_000


class Found(NamedTuple):
    """What a copy holds, and what in it can never be part of a candidate."""

    files: dict[str, tuple[str, bytes]]
    reasons: tuple[Reason, ...]


def write_copy(store: Store, tree: str, target: Path) -> None:
    """Write a tree out as plain files, byte for byte, into a new folder without any `.git`."""
    target.mkdir(parents=True)
    files = [file for file in store.files(tree) if file.mode != GITLINK]
    blobs = store.blobs(file.blob for file in files)
    files.sort(key=lambda file: file.mode == SYMLINK)  # links last, so that nothing is written through one
    for file in files:
        if (wrong := why_unsafe(file.path)) is not None:
            raise UserError(ascii(file.path)[:120], f"cannot be written out: its name {wrong}")
        path = target / file.path
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            _write_one(path, file.mode, blobs[file.blob])
        except FileExistsError as error:
            raise UserError(file.path, "cannot be written out: the tree has this name twice") from error


def _write_one(path: Path, mode: str, data: bytes) -> None:
    if mode == SYMLINK:
        path.symlink_to(os.fsdecode(data))
        return
    how = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(path, how, 0o755 if mode == EXECUTABLE else 0o644), "wb") as file:
        file.write(data)


def read_copy(folder: Path) -> Found:
    """Read a copy back, following nothing."""
    files: dict[str, tuple[str, bytes]] = {}
    reasons: list[Reason] = []
    if not folder.is_dir() or folder.is_symlink():
        raise UserError(str(folder), "is not a folder", hint="name the edited copy")
    for where, folders, names in os.walk(folder, followlinks=False):
        here = Path(where)
        inside = here.relative_to(folder)
        for name in sorted(folders):
            path = (inside / name).as_posix()
            if name.lower() == ".git":
                reasons.append(_nested(path))
            elif (here / name).is_symlink():
                _read_one(here / name, path, files, reasons)
        folders[:] = [name for name in folders if _enters(here / name)]
        for name in sorted(names):
            _read_one(here / name, (inside / name).as_posix(), files, reasons)
        if len(files) > MAX_FILES:
            raise UserError(str(folder), f"holds more than {MAX_FILES:,} files")
    if len(reasons) > MAX_REASONS:
        more = Reason(rule="file-modes", says=f"There are {len(reasons) - MAX_REASONS:,} more of these.")
        reasons = [*reasons[:MAX_REASONS], more]
    return Found(files, tuple(reasons))


def changed(store: Store, base: str, found: Found, *, store_it: bool = True) -> dict[str, tuple[str, str]]:
    """The paths in which a copy differs from its base tree, stored and ready for a new tree."""
    before = {file.path: file for file in store.files(base)}
    changes: dict[str, tuple[str, str]] = {}
    for path, (mode, data) in found.files.items():
        old = before.get(path)
        blob = store.blob_id(data, like=base)
        if store_it and (old is None or old.blob != blob):
            store.write_blob(data)
        if old is None or (old.mode, old.blob) != (mode, blob):
            changes[path] = (mode, blob)
    for path, old in before.items():
        if path not in found.files and old.mode != GITLINK and not _is_left_out(path):
            changes[path] = (ABSENT, old.blob)
    return changes


def _is_left_out(path: str) -> bool:
    return path.endswith(_LEFT_OUT_ENDINGS) or bool(_LEFT_OUT_FOLDERS & set(path.split("/")[:-1]))


def _enters(folder: Path) -> bool:
    return folder.name not in _LEFT_OUT_FOLDERS and folder.name.lower() != ".git" and not folder.is_symlink()


def _read_one(path: Path, name: str, files: dict[str, tuple[str, bytes]], reasons: list[Reason]) -> None:
    if name.endswith(_LEFT_OUT_ENDINGS):
        return
    if path.name.lower() == ".git":
        reasons.append(_nested(name))
        return
    if (wrong := why_unsafe(name)) is not None:
        reasons.append(Reason(rule="path-names", says=f"The copy holds {ascii(name)[:120]}, whose name {wrong}."))
        return
    how = path.lstat()
    if stat.S_ISLNK(how.st_mode):
        files[name] = (SYMLINK, os.fsencode(path.readlink()))
    elif not stat.S_ISREG(how.st_mode):
        reasons.append(Reason(rule="file-modes", says=f"{name} is not a regular file."))
    elif how.st_size > MAX_FILE_BYTES:
        reasons.append(Reason(rule="change-size", says=f"{name} is {how.st_size:,} bytes long."))
    else:
        files[name] = (EXECUTABLE if how.st_mode & 0o100 else REGULAR, _read_regular(path))


def _read_regular(path: Path) -> bytes:
    """Read a file that was regular a moment ago, and still is: no link, no device, no waiting."""
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(fd, "rb") as file:
        return file.read(MAX_FILE_BYTES + 1)[:MAX_FILE_BYTES]


def _nested(path: str) -> Reason:
    return Reason(rule="file-modes", says=f"The copy holds a git repository at {path}; a candidate is plain files.")
