"""A filter of system calls, assembled here for the kernel: no library is needed.

Protects against: network sockets of every family, tracing and reading other processes, mounts, namespaces, kernel
interfaces that ordinary training never needs, System V memory and queues, and changing the mode, owner or attributes
of a file by its path, which Landlock lets through.

Does not: keep the times of a file from being changed; look at paths or at memory. A call that is allowed is allowed
wherever its pointers lead.
"""

import platform
import struct
from typing import NamedTuple

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _KILL, _ERROR = 0x7FFF0000, 0x80000000, 0x00050000
_NUMBER_AT, _ARCHITECTURE_AT, _FIRST_ARGUMENT_AT = 0, 4, 16
_NOT_PERMITTED, _DENIED, _NOT_THERE, _NO_FAMILY = 1, 13, 38, 97
_NEW_NAMESPACES = 0x7E020080
_UNIX, _INET, _INET6 = 1, 2, 10
_FOREIGN_CALLS = 0x40000000


class _Processor(NamedTuple):
    """The numbers of one processor's system calls."""

    architecture: int
    socket: int
    connect: int
    clone: int
    refused: tuple[int, ...]
    pretended: tuple[int, ...]
    """Calls that change a file's mode, owner or attributes by its path: they succeed and do nothing.

    Changing times is not among them: programs make new files by trying it and seeing it fail.
    """


_NEW_CALLS = (425, 426, 427, 428, 429, 430, 431, 432, 433, 438, 442)  # io_uring, the new mount calls, pidfd_getfd
_NEW_PRETENDED = (452, 463, 466, 469)  # fchmodat2, setxattrat, removexattrat, file_setattr
_CLONE3 = 435
_PROCESSORS = {
    "x86_64": _Processor(
        architecture=0xC000003E,
        socket=41,
        connect=42,
        clone=56,
        refused=(
            *(101, 310, 311, 312, 248, 249, 250, 321, 298, 323),  # ptrace, process_vm, kcmp, keys, bpf, perf, faults
            *(165, 166, 155, 161, 246, 320, 175, 313, 176, 169, 167, 168),  # mounts, chroot, kexec, modules, swap
            *(308, 272, 304, 29, 68, 64, 240, 134, 179, 103),  # namespaces, handles, System V, queues, quotas, log
            *(227, 305, 159, 164),  # the clock
            *_NEW_CALLS,
        ),
        pretended=(90, 268, 92, 94, 260, 188, 189, 197, 198, *_NEW_PRETENDED),
    ),
    "aarch64": _Processor(
        architecture=0xC00000B7,
        socket=198,
        connect=203,
        clone=220,
        refused=(
            *(117, 270, 271, 272, 217, 218, 219, 280, 241, 282),
            *(40, 39, 41, 51, 104, 294, 105, 273, 106, 142, 224, 225),
            *(268, 97, 265, 194, 186, 190, 180, 60, 116),
            *(112, 266, 171, 170),
            *_NEW_CALLS,
        ),
        pretended=(53, 54, 5, 6, 14, 15, *_NEW_PRETENDED),
    ),
}


def is_known() -> bool:
    """Whether a filter is written for this processor."""
    return platform.machine() in _PROCESSORS


def assemble(*, network: bool, local_sockets: bool) -> bytes:
    """The filter's code for this processor."""
    if not is_known():
        raise OSError(f"no filter is written for the processor {platform.machine()}")
    return _assemble(_PROCESSORS[platform.machine()], network=network, local_sockets=local_sockets)


def _assemble(cpu: _Processor, *, network: bool, local_sockets: bool) -> bytes:
    """Classic BPF: each piece is a test that either answers or falls through to the next."""
    steps = [(_LOAD, 0, 0, _ARCHITECTURE_AT), (_EQUAL, 1, 0, cpu.architecture), (_RETURN, 0, 0, _KILL)]
    steps += [(_LOAD, 0, 0, _NUMBER_AT), (_AT_LEAST, 0, 1, _FOREIGN_CALLS), (_RETURN, 0, 0, _ERROR | _NOT_THERE)]
    for number in cpu.refused:
        steps += _answer(number, _ERROR | _NOT_PERMITTED)
    steps += _answer(_CLONE3, _ERROR | _NOT_THERE)  # libraries then use `clone`, whose flags a filter can read
    steps += [(_EQUAL, 0, 4, cpu.clone), (_LOAD, 0, 0, _FIRST_ARGUMENT_AT), (_ANY_BIT, 0, 1, _NEW_NAMESPACES)]
    steps += [(_RETURN, 0, 0, _ERROR | _NOT_PERMITTED), (_LOAD, 0, 0, _NUMBER_AT)]
    for number in cpu.pretended:
        steps += _answer(number, _ERROR)
    if not network and not local_sockets:
        steps += _answer(cpu.connect, _ERROR | _DENIED)
    families = (_UNIX, _INET, _INET6) if network else (_UNIX,)
    steps += [(_EQUAL, 0, len(families) + 3, cpu.socket), (_LOAD, 0, 0, _FIRST_ARGUMENT_AT)]
    steps += [(_EQUAL, len(families) - place, 0, family) for place, family in enumerate(families)]
    steps += [(_RETURN, 0, 0, _ERROR | _NO_FAMILY), (_LOAD, 0, 0, _NUMBER_AT)]
    steps.append((_RETURN, 0, 0, _ALLOW))
    return b"".join(struct.pack("HBBI", code, yes, no, value) for code, yes, no, value in steps)


def _answer(number: int, result: int) -> list[tuple[int, int, int, int]]:
    return [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, result)]
