"""Named arrays from a safetensors file that nobody trusts: no pickle, no library, every size bounded.

The format is an eight-byte length, a JSON header of that length, and the arrays' bytes. The
header's offsets must tile the rest of the file exactly, so no byte is read twice and none is
left over. What does not fit is one sentence.

Protects against: code in the file, sizes that exhaust memory, offsets outside the file, links
and devices in the place of the file. Does not: judge the numbers; they may be NaN or infinite.
"""

import math
import os
import stat
import struct
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from overnight.errors import UserError
from overnight.records import strict_json
from overnight.records.codec import show

MAX_HEADER_BYTES = 1024 * 1024
MAX_FILE_BYTES = 256 * 1024 * 1024
MAX_TENSORS = 4096
MAX_DIMENSIONS = 8
DTYPES: dict[str, np.dtype[Any]] = {
    "F32": np.dtype("<f4"),
    "F64": np.dtype("<f8"),
    "I32": np.dtype("<i4"),
    "I64": np.dtype("<i8"),
}
"""The types of number that are read; all are little-endian."""

Tensors = dict[str, NDArray[Any]]


def read(path: Path) -> Tensors:
    """Read every array of one file."""
    return parse(read_bounded(path, MAX_FILE_BYTES), where=path.name)


def read_bounded(path: Path, most: int) -> bytes:
    """Read one plain file of at most so many bytes, without following a link or waiting on a pipe."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise UserError(path.name, f"cannot be read: {error.strerror}") from error
    try:
        how = os.fstat(fd)
        if not stat.S_ISREG(how.st_mode):
            raise UserError(path.name, "is not a plain file")
        if how.st_size > most:
            raise UserError(path.name, f"has {how.st_size:,} bytes, but at most {most:,} are read")
        with os.fdopen(fd, "rb", closefd=False) as file:
            return file.read(how.st_size)
    finally:
        os.close(fd)


def parse(data: bytes, *, where: str) -> Tensors:
    """Read every array of a file's bytes."""
    if len(data) < 8:
        raise UserError(where, f"has {len(data)} bytes, but a safetensors file has at least 8")
    (length,) = struct.unpack("<Q", data[:8])
    if length > MAX_HEADER_BYTES:
        raise UserError(where, f"has a header of {length:,} bytes, but at most {MAX_HEADER_BYTES:,} are read")
    if 8 + length > len(data):
        raise UserError(where, f"ends inside its header of {length:,} bytes")
    header = strict_json.parse(data[8 : 8 + length], where=where, max_bytes=MAX_HEADER_BYTES)
    if not isinstance(header, dict):
        raise UserError(where, "has a header that is not a mapping")
    header.pop("__metadata__", None)
    if len(header) > MAX_TENSORS:
        raise UserError(where, f"has {len(header):,} arrays, but at most {MAX_TENSORS:,} are read")
    body = memoryview(data)[8 + length :]
    found, spans = {}, []
    for name, entry in header.items():
        dtype, shape, begin, end = _entry(entry, name, len(body), where)
        spans.append((begin, end, name))
        found[name] = np.frombuffer(body[begin:end], dtype=dtype).reshape(shape)
    _check_tiling(spans, len(body), where)
    return found


def _entry(entry: object, name: str, available: int, where: str) -> tuple[np.dtype[Any], tuple[int, ...], int, int]:
    """One array's type, shape and place, proven to fit."""
    called = f"`{name[:80]}`"
    if not isinstance(entry, dict) or entry.keys() != {"dtype", "shape", "data_offsets"}:
        raise UserError(where, f"{called} needs exactly the keys `dtype`, `shape` and `data_offsets`")
    dtype = DTYPES.get(entry["dtype"]) if isinstance(entry["dtype"], str) else None
    if dtype is None:
        raise UserError(where, f"{called} has the type {show(entry['dtype'])}, but one of {', '.join(DTYPES)} is read")
    shape, offsets = entry["shape"], entry["data_offsets"]
    if not _whole_numbers(shape) or len(shape) > MAX_DIMENSIONS:
        raise UserError(where, f"{called} has the shape {show(shape)}, but up to {MAX_DIMENSIONS} sizes are needed")
    if not _whole_numbers(offsets) or len(offsets) != 2 or not offsets[0] <= offsets[1] <= available:
        raise UserError(where, f"{called} lies at {show(offsets)}, which is not inside the file")
    needed = dtype.itemsize * math.prod(shape)
    if offsets[1] - offsets[0] != needed:
        has = offsets[1] - offsets[0]
        raise UserError(where, f"{called} has {has:,} bytes, but its shape {show(shape)} needs {needed:,}")
    return dtype, tuple(shape), offsets[0], offsets[1]


def _whole_numbers(value: object) -> bool:
    return isinstance(value, list) and all(type(item) is int and 0 <= item <= MAX_FILE_BYTES for item in value)


def _check_tiling(spans: list[tuple[int, int, str]], available: int, where: str) -> None:
    """Refuse arrays that overlap, and bytes that belong to no array."""
    reached = 0
    for begin, end, name in sorted(spans):
        if begin != reached:
            what = "overlaps another array" if begin < reached else f"leaves {begin - reached:,} bytes unused before it"
            raise UserError(where, f"`{name[:80]}` {what}")
        reached = end
    if reached != available:
        raise UserError(where, f"has {available - reached:,} bytes that belong to no array")
