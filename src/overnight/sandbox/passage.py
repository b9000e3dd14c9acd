"""Letting a user pass who could not: a private view in which closed folders hold only what a process needs.

Where the engine is root, a candidate becomes another user, and that one cannot enter a folder such as `/root`, below
which the interpreter or the run may lie. So the candidate's own mount namespace gets an empty folder in the closed
one's place, and in it the few paths that the candidate may reach. The view ends with the last process that has it.

Only root can make such a view. Does not: open a file or folder that is itself closed to others.
"""

import ctypes
import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

_LIBC = ctypes.CDLL(None, use_errno=True)
_NEW_MOUNTS = 0x00020000
_NOSUID, _NODEV, _BIND, _RECURSIVE, _PRIVATE = 2, 4, 4096, 16384, 1 << 18
_MOST_LINKS = 40


@dataclass(frozen=True, slots=True)
class Passage:
    """What has to be made anew."""

    closed: tuple[str, ...]
    """Folders that others cannot enter."""
    shown: tuple[str, ...]
    """What is to be seen below them, without links."""
    links: tuple[tuple[str, str], ...]
    """Symbolic links below them that lead to it, each with its target."""

    def make(self) -> None:
        """Give the calling process, which must be root, the view. Called between fork and exec."""
        if not self.closed:
            return
        _checked(_LIBC.unshare(_NEW_MOUNTS), "a private view")
        _mount(None, "/", None, _RECURSIVE | _PRIVATE)
        mask = os.umask(0o022)
        held = [(os.open(path, os.O_PATH), path) for path in self.shown]
        for folder in self.closed:
            _mount(b"tmpfs", folder, b"tmpfs", _NOSUID | _NODEV, b"mode=755,size=1m")
        for fd, path in held:
            _place(path, is_folder=stat.S_ISDIR(os.fstat(fd).st_mode))
            _mount(f"/proc/self/fd/{fd}".encode(), path, None, _BIND | _RECURSIVE)
            os.close(fd)
        for path, target in self.links:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            os.symlink(target, path)
        os.umask(mask)


def passage(paths: Iterable[str]) -> Passage:
    """What keeps another user from these paths, as far as it lies above them."""
    shown: dict[str, None] = {}
    links: dict[str, str] = {}
    for path in paths:
        shown |= dict.fromkeys([_resolved(path, links)])
    everywhere = (*shown, *links)
    closed = sorted({folder for path in everywhere for folder in _above(path) if not is_open(folder)})
    topmost = tuple(folder for folder in closed if not any(_is_below(folder, other) for other in closed))
    below = [path for path in shown if any(_is_below(path, folder) for folder in topmost)]
    outer = tuple(sorted(path for path in below if not any(_is_below(path, other) for other in below)))
    kept = ((path, target) for path, target in links.items() if any(_is_below(path, folder) for folder in topmost))
    needed = tuple((path, target) for path, target in kept if not any(_is_below(path, other) for other in outer))
    return Passage(topmost, outer, needed)


def is_open(path: str) -> bool:
    """Whether everybody may read a file, or enter a folder."""
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return False
    return bool(mode & (0o001 if stat.S_ISDIR(mode) else 0o004))


def _resolved(path: str, links: dict[str, str]) -> str:
    """Where a path leads in the end; every link on the way is noted where it really lies."""
    todo, real = path.strip("/").split("/")[::-1], ""
    while todo:
        part = todo.pop()
        if part in ("", "."):
            continue
        if part == "..":
            real = os.path.dirname(real)
            continue
        step = f"{real}/{part}"
        if not os.path.islink(step) or len(links) > _MOST_LINKS * 100:
            real = step
            continue
        links[step] = target = os.readlink(step)
        real = "" if target.startswith("/") else real
        todo += target.split("/")[::-1]
    return real or "/"


def _above(path: str) -> Iterator[str]:
    parts = path.strip("/").split("/")
    return ("/" + "/".join(parts[:count]) for count in range(len(parts)))


def _is_below(path: str, folder: str) -> bool:
    return path.startswith(folder.rstrip("/") + "/")


def _place(path: str, *, is_folder: bool) -> None:
    """Make an empty thing to mount over."""
    os.makedirs(path if is_folder else os.path.dirname(path), exist_ok=True)
    if not is_folder and not os.path.exists(path):
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o444))


def _mount(source: bytes | None, target: str, kind: bytes | None, flags: int, data: bytes | None = None) -> None:
    _checked(_LIBC.mount(source, os.fsencode(target), kind, ctypes.c_ulong(flags), data), target)


def _checked(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what} cannot be made: {os.strerror(number)}")
