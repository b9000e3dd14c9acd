"""Arrays from a file that nobody trusts: what fits is read exactly, and everything else is one sentence."""

import json
import os
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from overnight.errors import UserError
from overnight.evaluate.tensors import MAX_FILE_BYTES, MAX_HEADER_BYTES, parse, read
from overnight.guest.train import write_tensors


def packed(header: object, body: bytes = b"") -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + body


def one(**changes: Any) -> bytes:
    """A file of one good array, with something changed."""
    body = changes.pop("body", bytes(8))
    return packed({"w": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]} | changes}, body)


def test_what_the_guest_writes_is_what_the_referee_reads(tmp_path: Path) -> None:
    arrays = {
        "a": np.arange(6, dtype="<f4").reshape(2, 3),
        "b": np.array([-1.5, 2.5], "<f8"),
        "c": np.array(7, "<i4"),
        "d": np.array([1 << 40], "<i8"),
        "e": np.zeros((0, 3), "<f4"),
    }
    names = {"f4": "F32", "f8": "F64", "i4": "I32", "i8": "I64"}
    tensors = {name: (names[a.dtype.str[1:]], a.shape, a.tobytes()) for name, a in arrays.items()}
    write_tensors(tmp_path / "x.safetensors", tensors)
    found = read(tmp_path / "x.safetensors")
    assert found.keys() == arrays.keys()
    for name, array in arrays.items():
        assert found[name].dtype == array.dtype
        np.testing.assert_array_equal(found[name], array)


def test_metadata_is_passed_over() -> None:
    header = {"__metadata__": {"format": "pt"}, "w": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}
    assert list(parse(packed(header, struct.pack("<f", 2.0)), where="x")) == ["w"]


@pytest.mark.parametrize(
    ("data", "says"),
    [
        pytest.param(b"", "has 0 bytes", id="empty"),
        pytest.param(b"\x80\x04", "has 2 bytes", id="the beginning of a pickle"),
        pytest.param(struct.pack("<Q", 100) + b"{}", "ends inside its header", id="cut off"),
        pytest.param(struct.pack("<Q", MAX_HEADER_BYTES + 1), "but at most 1,048,576 are read", id="a huge header"),
        pytest.param(packed(b"not json"), "is not JSON", id="not JSON"),
        pytest.param(packed([1]), "is not a mapping", id="a list"),
        pytest.param(packed(b'{"w": 1, "w": 2}'), "twice", id="a name twice"),
        pytest.param(packed({"w": {}}), "needs exactly the keys", id="no keys"),
        pytest.param(one(more=1), "needs exactly the keys", id="a key too many"),
        pytest.param(one(dtype="F16"), "one of F32, F64, I32, I64 is read", id="an unknown type"),
        pytest.param(one(dtype=["F32"]), "one of F32, F64, I32, I64 is read", id="a type that is a list"),
        pytest.param(one(shape=[-2]), "sizes are needed", id="a negative size"),
        pytest.param(one(shape=[2.0]), "sizes are needed", id="a size with a point"),
        pytest.param(one(shape=[True, 2]), "sizes are needed", id="a size that is true"),
        pytest.param(one(shape=[1] * 9), "sizes are needed", id="nine dimensions"),
        pytest.param(one(shape=[MAX_FILE_BYTES] * 8), "bytes, but its shape", id="a shape beyond memory"),
        pytest.param(one(shape=[3]), "has 8 bytes, but its shape [3] needs 12", id="a shape beyond its bytes"),
        pytest.param(one(data_offsets=[0, 80]), "which is not inside the file", id="an offset beyond the end"),
        pytest.param(one(data_offsets=[8, 0]), "which is not inside the file", id="backwards"),
        pytest.param(one(data_offsets=[0]), "which is not inside the file", id="half a place"),
        pytest.param(one(body=bytes(12)), "has 4 bytes that belong to no array", id="bytes left over"),
        pytest.param(one(data_offsets=[4, 12], body=bytes(12)), "leaves 4 bytes unused", id="a hole"),
        pytest.param(
            packed(
                {
                    "v": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]},
                    "w": {"dtype": "F32", "shape": [2], "data_offsets": [4, 12]},
                },
                bytes(12),
            ),
            "`w` overlaps another array",
            id="an overlap",
        ),
    ],
)
def test_what_does_not_fit_is_refused_with_a_sentence(data: bytes, says: str) -> None:
    with pytest.raises(UserError) as caught:
        parse(data, where="model.safetensors")
    assert says in caught.value.what


@given(st.binary(max_size=64), st.integers(0, 80))
def test_arbitrary_bytes_are_never_anything_but_a_sentence(tail: bytes, length: int) -> None:
    for data in (tail, struct.pack("<Q", length) + tail, one()[: len(tail)] + tail):
        try:
            parse(data, where="x")
        except UserError:
            continue


def test_a_link_a_pipe_and_a_folder_are_not_files(tmp_path: Path) -> None:
    (tmp_path / "real").write_bytes(one())
    (tmp_path / "link").symlink_to("real")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    assert list(read(tmp_path / "real")) == ["w"]
    for name in ("link", "pipe", "folder", "nothing"):
        with pytest.raises(UserError):
            read(tmp_path / name)


def test_a_file_beyond_the_bound_is_refused_before_it_is_read(tmp_path: Path) -> None:
    with (tmp_path / "big").open("wb") as file:
        file.truncate(MAX_FILE_BYTES + 1)
    with pytest.raises(UserError, match="at most 268,435,456 are read"):
        read(tmp_path / "big")
