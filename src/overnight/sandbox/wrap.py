"""Tier T3 in bubblewrap's words: which namespaces are new, and what there is to be seen inside."""

import os
import shutil
import sys
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path

from overnight.sandbox.bounds import Bounds, accelerators
from overnight.sandbox.landlock import Ruleset

SHARED_MEMORY_BYTES = 1 << 30
TEMPORARY_BYTES = 256 << 20
PERL = "/usr/bin/perl"
PRIVATE = ("/tmp", "/dev/shm")  # noqa: S108 - these are made anew in the view
"""Folders that exist in memory, for one run alone."""


def bubblewrap() -> str | None:
    """Where bubblewrap is, or None."""
    return shutil.which("bwrap")


def namespaces(*, network: bool) -> tuple[str, ...]:
    """What is apart from the rest of the machine. The user stays the same one, without a capability."""
    who = ("--unshare-user", "--cap-drop", "ALL")
    apart = ("--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try", "--die-with-parent")
    return (*who, *apart, *(() if network else ("--unshare-net",)))


def view(bounds: Bounds) -> tuple[str, ...]:
    """The files that there are inside: folders of our own making first, what may be read and written over them."""
    words = ["--proc", "/proc", "--dev", "/dev"]
    for path, size in zip(PRIVATE, (TEMPORARY_BYTES, SHARED_MEMORY_BYTES), strict=True):
        words += ["--size", str(size), "--perms", "1777", "--tmpfs", path]
    for path in _ancestors((*bounds.readable, *bounds.writable)):
        words += ["--perms", "0755", "--dir", path]
    for path in bounds.readable:
        words += ["--ro-bind-try", path, path]
    for path in accelerators():
        words += ["--dev-bind-try", path, path]
    for path in bounds.writable:
        words += ["--bind", path, path]
    return tuple(words)


def _ancestors(paths: tuple[str, ...]) -> list[str]:
    made = {"/", "/tmp", "/dev", "/proc"}  # noqa: S108 - names of the view, not files
    return sorted({str(parent) for path in paths for parent in Path(path).parents} - made)


def is_above(folder: str, paths: tuple[str, ...]) -> bool:
    """Whether one of these paths lies in a folder, so that the view has it."""
    return any(path.startswith(folder.rstrip("/") + "/") for path in paths)


def inner(report: int, rules: Ruleset | None, command: tuple[str, ...], made: Mapping[str, int]) -> tuple[str, ...]:
    """The program that applies Landlock inside, after it has given folders that are made there their rights.

    Perl starts it fastest.
    """
    held = (str(report), str(rules.fd if rules is not None else -1))
    return (
        *_starter(),
        *held,
        *(word for path, rights in made.items() for word in (str(rights), path)),
        "--",
        *command,
    )


@cache
def _starter() -> tuple[str, ...]:
    code = files("overnight.sandbox")
    if os.access(PERL, os.X_OK):
        return PERL, "-e", (code / "inside.pl").read_text(), "--"
    return os.path.realpath(sys.executable), "-I", "-S", "-B", "-c", (code / "inside.py").read_text()
