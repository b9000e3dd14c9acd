"""A throw-away copy of somebody's folder, and the proof that the folder itself stayed as it was."""

import filecmp
import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from overnight.errors import UserError

_LEFT = {".git", ".hg", ".svn", ".overnight", "node_modules", "__pycache__", "wandb", "mlruns", ".tox", ".nox"}
_MOST_BYTES = 300_000_000
_MOST_FILES = 20_000


def is_left_out(path: Path) -> bool:
    """Whether a folder belongs to a tool and not to the code: a git folder, caches, an environment of packages."""
    cache = path.name.startswith(".") and path.name.endswith("_cache")
    return path.name in _LEFT or cache or (path / "pyvenv.cfg").exists()


def files(root: Path) -> Iterator[str]:
    """The files of the code, as relative paths, in order."""
    for where, folders, names in os.walk(root):
        folders[:] = sorted(one for one in folders if not is_left_out(Path(where) / one))
        links = [one for one in folders if (Path(where) / one).is_symlink()]
        yield from (os.path.relpath(Path(where) / name, root) for name in sorted([*names, *links]))


def digest(root: Path) -> str:
    """One hash of everything in a folder: contents of the code, and sizes and times of what is left out."""
    total = sha256()
    kept = set()
    for name in files(root):
        kept.add(name)
        path = root / name
        total.update(f"{name}\0{path.lstat().st_mode:o}\0".encode())
        if path.is_symlink():
            total.update(os.fsencode(path.readlink()))
        elif path.is_file():
            total.update(sha256(path.read_bytes()).digest())
    for where, folders, names in os.walk(root):
        folders.sort()
        for name in sorted(names):
            path = Path(where) / name
            if os.path.relpath(path, root) not in kept:
                with suppress(FileNotFoundError):  # a tool's own file may come and go
                    found = path.lstat()
                    total.update(f"{path}\0{found.st_size}\0{found.st_mtime_ns}\0".encode())
    return total.hexdigest()


def copy(root: Path, to: Path) -> None:
    """Copy the code; refuse a folder that is too large to be copied for a minute's work."""
    bytes_left, files_left = _MOST_BYTES, _MOST_FILES
    for name in files(root):
        source, target = root / name, to / name
        files_left -= 1
        bytes_left -= source.lstat().st_size
        if bytes_left < 0 or files_left < 0:
            what = f"is larger than {_MOST_BYTES // 1_000_000} MB or {_MOST_FILES:,} files, which is too much to copy"
            raise UserError(str(root), what, hint="name the folder with the evaluator alone")
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_symlink() or source.is_file():
            shutil.copy2(source, target, follow_symlinks=False)


def restore(pristine: Path, work: Path) -> None:
    """Make a copy equal to the pristine one again, whatever an attack did to it."""
    wanted = set(files(pristine))
    folders = {str(parent) for name in wanted for parent in Path(name).parents}
    for where, below, names in os.walk(work, topdown=False):
        for name in (*names, *below):
            path = Path(where) / name
            inside = os.path.relpath(path, work)
            if path.is_symlink() or not path.is_dir():
                if inside not in wanted:
                    path.unlink()
            elif inside not in folders:
                shutil.rmtree(path, ignore_errors=True)
    for name in wanted:
        if not _same(pristine / name, work / name):
            _put_back(pristine / name, work / name)


def _same(one: Path, other: Path) -> bool:
    if one.is_symlink() or other.is_symlink():
        return one.is_symlink() and other.is_symlink() and one.readlink() == other.readlink()
    return other.is_file() and filecmp.cmp(one, other, shallow=False)


def _put_back(source: Path, target: Path) -> None:
    if target.is_dir() and not target.is_symlink():
        shutil.rmtree(target)
    target.unlink(missing_ok=True)
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(source, target, follow_symlinks=False)
