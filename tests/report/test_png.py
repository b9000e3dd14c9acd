"""Pictures made by hand hold what a reader of PNG files expects, byte for byte."""

import struct
import zlib

import numpy as np
import pytest

from overnight.report.png import SIGNATURE, BadPicture, assemble_apng, chunk, chunks, encode_png, size


def picture(*, shade: int = 0, height: int = 2, width: int = 3) -> bytes:
    return encode_png(np.full((height, width, 3), shade, np.uint8))


def test_an_encoded_picture_decodes_to_its_pixels() -> None:
    pixels = np.arange(2 * 3 * 3, dtype=np.uint8).reshape(2, 3, 3)
    parts = list(chunks(encode_png(pixels)))
    assert [one.kind for one in parts] == [b"IHDR", b"IDAT", b"IEND"]
    assert struct.unpack(">IIBBBBB", parts[0].data) == (3, 2, 8, 2, 0, 0, 0)
    assert zlib.decompress(parts[1].data) == b"\0" + bytes(range(9)) + b"\0" + bytes(range(9, 18))


def test_rows_that_are_not_contiguous_are_encoded_all_the_same() -> None:
    pixels = np.arange(4 * 4 * 3, dtype=np.uint8).reshape(4, 4, 3)
    assert encode_png(pixels[::-1, ::2]) == encode_png(np.ascontiguousarray(pixels[::-1, ::2]))


def test_a_moving_picture_keeps_every_frame_and_numbers_its_parts() -> None:
    frames = tuple(picture(shade=shade) for shade in (0, 90, 180))
    parts = list(chunks(assemble_apng(frames, seconds_per_frame=0.05, hold_seconds=1)))
    kinds = [one.kind for one in parts]
    assert kinds == [b"IHDR", b"acTL", b"fcTL", b"IDAT", b"fcTL", b"fdAT", b"fcTL", b"fdAT", b"IEND"]
    assert parts[1].data == struct.pack(">II", 3, 0)
    numbered = [one.data[:4] for one in parts if one.kind in (b"fcTL", b"fdAT")]
    assert [int.from_bytes(data) for data in numbered] == [0, 1, 2, 3, 4]
    pixels = [one.data if one.kind == b"IDAT" else one.data[4:] for one in parts if one.kind in (b"IDAT", b"fdAT")]
    assert pixels == [next(one.data for one in chunks(frame) if one.kind == b"IDAT") for frame in frames]


def test_a_moving_picture_rests_on_its_last_frame() -> None:
    whole = assemble_apng((picture(), picture(shade=9)), seconds_per_frame=0.05, hold_seconds=1.5)
    controls = [struct.unpack(">IIIIIHHBB", one.data) for one in chunks(whole) if one.kind == b"fcTL"]
    assert [(control[1:5], control[5], control[6]) for control in controls] == [
        ((3, 2, 0, 0), 50, 1000),
        ((3, 2, 0, 0), 1500, 1000),
    ]


def test_the_size_is_read_from_the_header() -> None:
    assert size(picture(height=7, width=5)) == (5, 7)


@pytest.mark.parametrize(
    ("frames", "seconds"),
    [
        pytest.param((), 0.1, id="no frames"),
        pytest.param((picture(), picture(width=4)), 0.1, id="another size"),
        pytest.param((b"GIF89a",), 0.1, id="no PNG"),
        pytest.param((picture()[:-6],), 0.1, id="cut short"),
        pytest.param((picture().replace(b"IDAT", b"IDAX"),), 0.1, id="a wrong checksum"),
        pytest.param((SIGNATURE + chunk(b"IEND", b""),), 0.1, id="no header"),
        pytest.param((SIGNATURE + chunk(b"IHDR", b"\0" * 13),), 0.1, id="no pixels"),
        pytest.param((picture(),), 0.0, id="no time"),
        pytest.param((picture(),), float("nan"), id="no number"),
    ],
)
def test_what_cannot_be_shown_is_told_in_a_sentence(frames: tuple[bytes, ...], seconds: float) -> None:
    with pytest.raises(BadPicture, match=r"\.$"):
        assemble_apng(frames, seconds_per_frame=seconds)


@pytest.mark.parametrize(
    "pixels",
    [
        np.zeros((2, 2), np.uint8),
        np.zeros((2, 2, 4), np.uint8),
        np.zeros((2, 2, 3), np.int16),
        np.zeros((0, 2, 3), np.uint8),
    ],
)
def test_only_plain_colour_arrays_are_encoded(pixels: np.typing.NDArray[np.uint8]) -> None:
    with pytest.raises(BadPicture, match="height × width × 3"):
        encode_png(pixels)
