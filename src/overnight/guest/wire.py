"""The one crossing of the trust line: frames of fixed length over two pipes.

Observations go to the policy's process, actions come back. Lengths are fixed by the
handshake, which the referee writes and the policy's side only obeys:

    handshake   4 bytes length, then JSON: lanes, observation shape and type, action shape and type
    question    u32 number | 8 bytes nonce | u8 reset mask [lanes] | observations
    answer      u32 number | 8 bytes nonce | actions

Little endian, C order. No object crosses, only bytes. A question's head may come ahead of the rest:
who has it knows that the rest is a moment away, and stays awake for it.
"""

import os
import select
import struct
import time

HEAD = struct.Struct("<I8s")
LENGTH = struct.Struct("<I")
LOADED = b"\1"
"""What the policy's side says once, before the first question."""
MAX_HANDSHAKE_BYTES = 1 << 16
SOON_SECONDS = 3e-4
"""For how long one side stays awake for the other: a processor that sleeps takes half of it to wake up."""


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


def comes_soon(ready: "select.poll") -> bool:
    """Whether a pipe is ready within a moment, watched without falling asleep."""
    until = time.perf_counter() + SOON_SECONDS
    while not ready.poll(0):
        if time.perf_counter() >= until:
            return False
    return True
