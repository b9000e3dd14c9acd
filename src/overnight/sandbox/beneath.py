"""Opening a file that somebody else has named: beneath one folder, following no link, at any depth.

By `openat2`, which Linux has from 5.6 on; elsewhere part by part, each without following a link.
"""

import ctypes
import errno
import os
import struct

_LIBC = ctypes.CDLL(None, use_errno=True)
_OPENAT2 = 437  # the same number on every processor
_NO_MAGIC_LINKS, _NO_LINKS, _BENEATH = 0x02, 0x04, 0x08


def open_beneath(folder: int, name: str, flags: int = 0) -> int:
    """Open a file below an open folder for reading; `OSError` where a link or `..` is on the way."""
    flags |= os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW
    how = struct.pack("QQQ", flags, 0, _NO_MAGIC_LINKS | _NO_LINKS | _BENEATH)
    fd = int(_LIBC.syscall(_OPENAT2, folder, os.fsencode(name), how, ctypes.c_size_t(len(how))))
    if fd >= 0:
        return fd
    number = ctypes.get_errno()
    if number in (errno.ENOSYS, errno.EPERM):
        return open_step_by_step(folder, name, flags)
    raise OSError(number, os.strerror(number), name)


def open_step_by_step(folder: int, name: str, flags: int) -> int:
    """The same without `openat2`."""
    *parents, last = name.split("/")
    if not last or any(part in ("", ".", "..") for part in (*parents, last)):
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV), name)
    at = os.dup(folder)
    try:
        for part in parents:
            inner = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=at)
            os.close(at)
            at = inner
        return os.open(last, flags, dir_fd=at)
    finally:
        os.close(at)
