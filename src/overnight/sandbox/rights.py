"""Giving rights up for good: capabilities, the user root, and system calls. Light, as it is loaded for every start."""

import ctypes
import os

_LIBC = ctypes.CDLL(None, use_errno=True)
_SET_SECCOMP, _DROP_BOUND, _NO_NEW_PRIVILEGES, _FILTER = 22, 24, 38, 2  # options of prctl
_LAST_CAPABILITY = 63


def give_up_privileges() -> None:
    """Leave no capability to any program that is started from here on, even where the user is root."""
    for capability in range(_LAST_CAPABILITY + 1):
        _LIBC.prctl(_DROP_BOUND, capability, 0, 0, 0)
    _LIBC.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)


def become(user: int | None) -> None:
    """Become another user for good, with no group but that one's; None stays who it is."""
    if user is not None:
        os.setgroups([])
        os.setgid(user)
        os.setuid(user)


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_void_p))


class Filter:
    """An assembled filter of system calls, ready before a fork, so that the child has only one call to make."""

    def __init__(self, code: bytes) -> None:
        self._code = ctypes.create_string_buffer(code, len(code))
        self._program = _Program(len(code) // 8, ctypes.addressof(self._code))

    def install(self) -> None:
        """Hold this process and its descendants to the filter for good."""
        if _LIBC.prctl(_SET_SECCOMP, _FILTER, ctypes.byref(self._program), 0, 0) != 0:
            number = ctypes.get_errno()
            raise OSError(number, f"seccomp: {os.strerror(number)}")
