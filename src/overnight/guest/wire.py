"""The one crossing of the trust line: frames of fixed length over two pipes.

Observations go to the policy's process, actions come back. Lengths are fixed by the
handshake, which the referee writes and the policy's side only obeys:

    handshake   4 bytes length, then JSON: lanes, observation shape and type, action shape and type
    question    u32 number | 8 bytes nonce | u8 reset mask [lanes] | observations
    answer      u32 number | 8 bytes nonce | actions

Little endian, C order. No object crosses, only bytes.
"""

import os
import struct

HEAD = struct.Struct("<I8s")
LENGTH = struct.Struct("<I")
LOADED = b"\1"
"""What the policy's side says once, before the first question."""
MAX_HANDSHAKE_BYTES = 1 << 16


def read_exactly(fd: int, size: int) -> bytes:
    """Read a whole frame, or raise EOFError where the other side is gone."""
    parts = bytearray()
    while len(parts) < size:
        data = os.read(fd, size - len(parts))
        if not data:
            raise EOFError("the other side is gone")
        parts += data
    return bytes(parts)


def write_all(fd: int, data: bytes) -> None:
    """Write a whole frame."""
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
