"""Pictures without an image library: a PNG encoder for plain RGB arrays, and PNG frames made into one moving picture.

Does not: decode pixels. Frames are joined as they are, so they must agree in size and pixel format.
"""

import struct
import zlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SIGNATURE = b"\x89PNG\r\n\x1a\n"
_SHARED = (b"IHDR", b"PLTE", b"tRNS", b"gAMA", b"cHRM", b"sRGB", b"iCCP")
_LONGEST_DELAY = 65.535


class BadPicture(ValueError):
    """Bytes that are not a PNG, or PNGs that cannot be shown as one moving picture."""


class Chunk(NamedTuple):
    """One part of a PNG file."""

    kind: bytes
    """Its four letters."""
    data: bytes
    """What it holds."""


def chunk(kind: bytes, data: bytes) -> bytes:
    """One part of a PNG file as bytes: length, letters, data, checksum."""
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def chunks(picture: bytes) -> Iterator[Chunk]:
    """The parts of a PNG file in order, each with its checksum confirmed."""
    if not picture.startswith(SIGNATURE):
        raise BadPicture("The picture does not begin as a PNG does.")
    at = len(SIGNATURE)
    while at < len(picture):
        if len(picture) - at < 12:
            raise BadPicture(f"The picture ends inside a part, {len(picture) - at} bytes before its end.")
        (length,) = struct.unpack_from(">I", picture, at)
        kind, data = picture[at + 4 : at + 8], picture[at + 8 : at + 8 + length]
        if len(picture) < at + 12 + length:
            raise BadPicture(f"The picture ends inside its {kind!r} part.")
        if struct.unpack_from(">I", picture, at + 8 + length) != (zlib.crc32(kind + data),):
            raise BadPicture(f"The checksum of the picture's {kind!r} part is wrong.")
        yield Chunk(kind, data)
        at += 12 + length


def encode_png(pixels: "NDArray[np.uint8]") -> bytes:
    """A PNG of an array of shape height × width × 3 with 8-bit red, green and blue."""
    if pixels.ndim != 3 or pixels.shape[2] != 3 or pixels.dtype != "uint8" or 0 in pixels.shape:
        raise BadPicture(f"The array is {pixels.dtype} of shape {pixels.shape}; uint8 of height × width × 3 is needed.")
    height, width, _ = pixels.shape
    # Each row begins with its filter; 0 leaves the row as it is, which suits drawn pictures with flat colours.
    rows = b"".join(b"\0" + pixels[row].tobytes() for row in range(height))
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return SIGNATURE + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows, 9)) + chunk(b"IEND", b"")


def size(picture: bytes) -> tuple[int, int]:
    """The width and height of a PNG."""
    first = next(chunks(picture), None)
    if first is None or first.kind != b"IHDR" or len(first.data) != 13:
        raise BadPicture("The picture has no header.")
    width, height = struct.unpack(">II", first.data[:8])
    return width, height


def assemble_apng(frames: tuple[bytes, ...], *, seconds_per_frame: float, hold_seconds: float = 1.0) -> bytes:
    """One PNG that plays the frames in a loop and rests on the last; old viewers show the first.

    The compressed pixels of each frame are carried over byte for byte.
    """
    if not frames:
        raise BadPicture("There are no frames.")
    if not 0 < seconds_per_frame <= _LONGEST_DELAY:
        raise BadPicture(
            f"A frame is shown for {seconds_per_frame} s; more than 0 and at most {_LONGEST_DELAY} is needed."
        )
    width, height = size(frames[0])
    shared = _shared(frames[0])
    parts = [SIGNATURE, *(chunk(*one) for one in shared), chunk(b"acTL", struct.pack(">II", len(frames), 0))]
    sequence = 0
    for place, frame in enumerate(frames):
        if _shared(frame) != shared:
            raise BadPicture(f"Frame {place} differs from the first in size, palette or pixel format.")
        last = place == len(frames) - 1
        shown = min(_LONGEST_DELAY, max(seconds_per_frame, hold_seconds) if last else seconds_per_frame)
        control = struct.pack(">IIIIIHHBB", sequence, width, height, 0, 0, round(shown * 1000), 1000, 0, 0)
        parts.append(chunk(b"fcTL", control))
        sequence += 1
        for pixels in (one.data for one in chunks(frame) if one.kind == b"IDAT"):
            if place == 0:
                parts.append(chunk(b"IDAT", pixels))
            else:
                parts.append(chunk(b"fdAT", struct.pack(">I", sequence) + pixels))
                sequence += 1
    return b"".join((*parts, chunk(b"IEND", b"")))


def _shared(frame: bytes) -> tuple[Chunk, ...]:
    """The parts that say how pixels are to be read; one picture can have them only once."""
    found = tuple(chunks(frame))
    if not any(one.kind == b"IDAT" for one in found):
        raise BadPicture("A frame has no pixels.")
    return tuple(one for one in found if one.kind in _SHARED)
