"""Writing a file so that a crash leaves the old one or the new one, never a mixture."""

import os
from pathlib import Path

from overnight.ports import Disk


def write_file(disk: Disk, path: Path, data: bytes, *, mode: int = 0o644) -> None:
    """Replace a file as a whole: write beside it, sync, rename, sync the folder."""
    beside = path.with_name(f".{path.name}.new")
    fd = disk.open(str(beside), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    try:
        write_all(disk, fd, data)
        disk.sync(fd)
    finally:
        disk.close(fd)
    disk.replace(str(beside), str(path))
    disk.sync_folder(str(path.parent))


def write_all(disk: Disk, fd: int, data: bytes) -> None:
    """Write every byte, however little the disk takes at a time."""
    done = 0
    while done < len(data):
        done += disk.write(fd, data[done:])


def make_folder(disk: Disk, path: Path) -> None:
    """Create a folder and its parents, and make each new name durable."""
    missing = []
    at = path
    while not at.exists():
        missing.append(at)
        at = at.parent
    disk.make_folder(str(path))
    for folder in reversed(missing):
        disk.sync_folder(str(folder.parent))
