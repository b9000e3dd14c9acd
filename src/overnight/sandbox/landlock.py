"""Landlock: a list of the only folders and files that a process and its descendants may touch, kept by the kernel.

Linux 5.13 and newer, by plain system calls. Protects against: reading and writing files outside of the list, TCP
connections (Linux 6.7), signals and abstract sockets to processes outside (6.12), and tracing any process outside.

Does not: hide that a file exists, its size or its mode; stop `chmod` and the like; stop UDP, Multipath TCP or sockets
that have a path. The filter in `seccomp` does that. Light, as it is loaded for every start.
"""

import ctypes
import os
import struct

_LIBC = ctypes.CDLL(None, use_errno=True)
_CREATE, _ADD, _RESTRICT = 444, 445, 446  # the same numbers on every processor
_EXECUTE, _WRITE, _READ, _LIST = 1, 2, 4, 8
_REFER, _TRUNCATE, _DEVICE_CONTROL = 1 << 13, 1 << 14, 1 << 15
_ON_FILES = _EXECUTE | _WRITE | _READ | _TRUNCATE | _DEVICE_CONTROL
_OLDEST_RIGHTS = (1 << 13) - 1
_TCP_RIGHTS = 3
_SCOPES = 3  # abstract sockets, signals
READING = _EXECUTE | _READ | _LIST
"""The rights of a folder whose files may be read and executed."""
LISTING = _LIST
"""The rights of a folder whose names may be seen, and no more."""


def version() -> int:
    """The newest set of rules that this kernel knows; 0 where there is none."""
    return max(int(_LIBC.syscall(_CREATE, None, 0, 1)), 0)


def keeps_signals_in() -> bool:
    """Whether this kernel can keep a process from sending signals to those outside."""
    return version() >= 6


class Ruleset:
    """A list that is made before a fork, so that the child has only one call to make."""

    def __init__(self, *, network: bool) -> None:
        known = version()
        if known < 1:
            raise OSError("this kernel has no Landlock")
        self.rights = _OLDEST_RIGHTS
        for since, right in ((2, _REFER), (3, _TRUNCATE), (5, _DEVICE_CONTROL)):
            self.rights |= right if known >= since else 0
        tcp = _TCP_RIGHTS if known >= 4 and not network else 0
        scopes = _SCOPES if known >= 6 else 0
        size = 8 if known < 4 else 16 if known < 6 else 24
        self.fd = _checked(_LIBC.syscall(_CREATE, struct.pack("QQQ", self.rights, tcp, scopes)[:size], size, 0))

    def allow_reading(self, paths: list[str] | tuple[str, ...]) -> None:
        """Let files be read, listed and executed."""
        self._add(paths, READING)

    def allow_listing(self, paths: list[str] | tuple[str, ...]) -> None:
        """Let folders be listed, without a file in them being read."""
        self._add(paths, LISTING)

    def allow_everything(self, paths: list[str] | tuple[str, ...]) -> None:
        """Let files be made, written and removed."""
        self._add(paths, self.rights)

    def allow_devices(self, paths: list[str] | tuple[str, ...]) -> None:
        """Let devices be read, written and controlled."""
        self._add(paths, _READ | _WRITE | _DEVICE_CONTROL)

    def restrict(self) -> None:
        """Hold this process to the list for good; the process must have given up new privileges."""
        _checked(_LIBC.syscall(_RESTRICT, self.fd, 0))

    def close(self) -> None:
        """Let go of the list; whoever is held to it stays so."""
        os.close(self.fd)

    def _add(self, paths: list[str] | tuple[str, ...], rights: int) -> None:
        for path in paths:
            try:
                self._add_one(path, rights & self.rights)
            except FileNotFoundError:
                continue

    def _add_one(self, path: str, rights: int) -> None:
        fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
        try:
            allowed = rights if os.path.isdir(path) else rights & _ON_FILES
            _checked(_LIBC.syscall(_ADD, self.fd, 1, struct.pack("=Qi", allowed, fd), 0))
        finally:
            os.close(fd)


def _checked(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"Landlock: {os.strerror(number)}")
    return result
