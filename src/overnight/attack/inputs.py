"""Attacks by text and bytes that the engine reads: each parser answers, or refuses in a sentence, and runs nothing."""

import json
import pickle
import struct
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from io import BytesIO
from itertools import pairwise
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np
import yaml as pyyaml

from overnight.attack.attacks import Attack
from overnight.errors import OvernightError
from overnight.evaluate import tensors
from overnight.evaluate.measure import RefereeFailed, measure
from overnight.machine import RealMachine
from overnight.ports import Finished
from overnight.records import strict_json
from overnight.records.codec import loads
from overnight.records.env import EnvSpec
from overnight.records.paths import why_unsafe
from overnight.records.policy import PolicySpec
from overnight.records.text import printable
from overnight.study import yaml
from overnight.study.layout import check_id

Reader = Callable[[bytes], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class InputAttack(Attack):
    """Some bytes, who reads them here, and who reads them elsewhere. A reader that refuses raises."""

    data: bytes
    ours: Reader
    theirs: Reader


class Fooled(Exception):
    """What a reader let through; the message says what it is."""


def _fooled(what: str) -> object:
    raise Fooled(what)


def _json(data: bytes) -> object:
    return strict_json.parse(data, where="input")


def _yaml(data: bytes) -> object:
    return yaml.load(data, where="input")


def _tensors(data: bytes) -> object:
    return tensors.parse(data, where="input")


def _spec(data: bytes) -> object:
    return loads(PolicySpec, data, where="policy.json")


def _plain_tensors(data: bytes) -> object:
    """The reader of the format's description, without a check."""
    (size,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + min(size, len(data))])
    body = data[8 + size :]
    for entry in header.values():
        begin, end = entry["data_offsets"]
        np.frombuffer(body[begin:end], np.float32)
    return header


def _pickled(data: bytes) -> object:
    return pickle.loads(data)  # noqa: S301 - what others do


def _arrays(data: bytes) -> object:
    return np.load(BytesIO(data), allow_pickle=True)


def _expanded(data: bytes) -> object:
    return json.dumps(pyyaml.safe_load(data))


def _unsafe_yaml(data: bytes) -> object:
    return pyyaml.unsafe_load(data)


def _bomb() -> bytes:
    lines = [b'a: &a ["x","x","x","x","x","x","x","x","x"]']
    names = b"abcdefg"
    for before, after in pairwise(names):
        lines.append(b"%c: &%c [%s]" % (after, after, b",".join([b"*%c" % before] * 9)))
    return b"\n".join(lines)


def _object_array() -> bytes:
    """An array file that holds a program."""
    with BytesIO() as file:
        np.save(file, np.array([_Run()], dtype=object), allow_pickle=True)
        return file.getvalue()


class _Run:
    def __reduce__(self) -> tuple[Callable[[str], object], tuple[str]]:
        return _fooled, ("the file's own code was run",)


def _safetensors(header: object, body: bytes = bytes(64), *, length: int | None = None) -> bytes:
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + body


def _tensor(shape: list[int], begin: int, end: int) -> dict[str, object]:
    return {"dtype": "F32", "shape": shape, "data_offsets": [begin, end]}


def _one(name: str, tries: str, data: bytes, readers: tuple[Reader, Reader], stopped_by: str) -> InputAttack:
    return InputAttack(
        id=name,
        family="parsers",
        tries=tries,
        stopped_by=stopped_by,
        seen="a parser is fooled",
        data=data,
        ours=readers[0],
        theirs=readers[1],
    )


_JSON, _YAML, _TENSORS = (_json, json.loads), (_yaml, pyyaml.safe_load), (_tensors, _plain_tensors)
_STRICT, _BOUNDED = "one strict reader of JSON", "every size and place is checked before it is used"

_TEXTS = (
    _one(
        "key-twice",
        "says its budget twice, so that the second one counts",
        b'{"budget": 1, "budget": 999}',
        _JSON,
        _STRICT,
    ),
    _one(
        "score-is-nan",
        "names a score that is no number, which no comparison finds worse",
        b'{"score": NaN}',
        _JSON,
        _STRICT,
    ),
    _one("score-is-endless", "names a score beyond every number", b'{"score": 1e999}', _JSON, _STRICT),
    _one("deep-text", "nests brackets until the reader breaks", b"[" * 100_000, _JSON, _STRICT),
    _one("long-number", "writes a number of five thousand digits", b'{"steps": ' + b"9" * 5000 + b"}", _JSON, _STRICT),
    _one(
        "half-a-character",
        "writes half of a character, which breaks whoever writes it down again",
        b'{"name": "\\ud800"}',
        (_json, lambda data: json.dumps(json.loads(data), ensure_ascii=False).encode()),
        _STRICT,
    ),
    _one(
        "yaml-runs-code",
        "calls a function from a contract",
        b"!!python/object/apply:os.getpid []",
        (_yaml, _unsafe_yaml),
        "the plain part of YAML only",
    ),
    _one(
        "yaml-bomb",
        "writes a few lines that unfold into megabytes",
        _bomb(),
        (_yaml, _expanded),
        "no anchors and no aliases",
    ),
    _one(
        "yaml-key-twice", "says its budget twice in a contract", b"hours: 1\nhours: 999\n", _YAML, "a key stands once"
    ),
    _one(
        "time-that-is-a-number",
        "writes 1:30 hours, which others read as 90",
        b"hours: 1:30\n",
        (
            lambda data: _yaml(data) == {"hours": "1:30"} or _fooled("90 hours"),
            lambda data: pyyaml.safe_load(data) == {"hours": "1:30"} or _fooled("90 hours"),
        ),
        "text stays text",
    ),
    _one(
        "score-in-the-policy",
        "says its own score where its shape is asked for",
        b'{"schema": "overnight/policy/1", "kind": "code", "entry": "act:load", "score": 500.0}',
        (_spec, lambda data: json.loads(data)["score"]),
        "a record has its own keys and no others",
    ),
    _one(
        "drive-the-screen",
        "hides and turns words on the screen of whoever reads them",
        "fine \x1b[2J\x1b]0;owned\x07 \u202etxet\u202c \u200bend\r".encode(),
        (
            lambda data: [_fooled(repr(char)) for char in printable(data.decode()) if not char.isprintable()],
            lambda data: [_fooled(repr(char)) for char in data.decode() if not char.isprintable()],
        ),
        "only what can be seen is told",
    ),
    _one(
        "forge-a-line",
        "ends a line of a record to begin one of its own",
        b"It failed.\nc-0001 was kept.",
        (
            lambda data: "\n" in printable(data.decode()) and _fooled("two lines"),
            lambda data: "\n" in data.decode() and _fooled("two lines"),
        ),
        "a sentence is one line",
    ),
)

_BYTES = (
    _one(
        "array-with-a-program",
        "puts a program into an array file",
        _object_array(),
        (_tensors, _arrays),
        "weights are safetensors, and never a pickle",
    ),
    _one(
        "checkpoint-with-a-program",
        "puts a program into a checkpoint",
        pickle.dumps(_Run()),
        (_tensors, _pickled),
        "weights are safetensors, and never a pickle",
    ),
    _one(
        "header-without-end", "claims a header of four exabytes", _safetensors({}, length=1 << 62), _TENSORS, _BOUNDED
    ),
    _one(
        "weights-from-outside",
        "claims weights that lie outside of its file",
        _safetensors({"a": _tensor([8], 60, 92)}),
        _TENSORS,
        _BOUNDED,
    ),
    _one(
        "weights-that-overlap",
        "claims the same bytes twice",
        _safetensors({"a": _tensor([16], 0, 64), "b": _tensor([8], 0, 32)}),
        _TENSORS,
        _BOUNDED,
    ),
    _one(
        "shape-that-overflows",
        "claims a shape whose size no number holds",
        _safetensors({"a": _tensor([1 << 62, 1 << 62], 0, 64)}),
        _TENSORS,
        _BOUNDED,
    ),
    _one(
        "hidden-bytes",
        "carries bytes behind its weights that nobody reads",
        _safetensors({"a": _tensor([8], 0, 32)}),
        _TENSORS,
        _BOUNDED,
    ),
)

_NAMES = tuple(
    _one(
        name,
        tries,
        path,
        (
            lambda data: why_unsafe(data.decode()) is None and _fooled("the name is taken"),
            lambda data: _fooled(f"it becomes {Path('/project', data.decode())}"),
        ),
        "names that mean the same everywhere",
    )
    for name, tries, path in (
        ("leave-by-name", "changes a file outside by its name", b"policy/../../evaluate.py"),
        ("hide-as-git", "changes git's own settings by a name that looks like another", b"policy/.GIT/config"),
        ("name-that-hides", "has a name that looks like a trusted file's", "evaluate\u200b.py".encode()),
    )
)

_FORGED = json.dumps({"episodes": [[11, 99999.0, 500]], "ticket": "0" * 32}).encode()


class _Forger(RealMachine):
    """A machine on which something else than the referee answers."""

    def __init__(self, answer: bytes) -> None:
        self._answer = answer

    def run_process(self, argv: Any, *, env: Any, stdin: bytes = b"", limit_seconds: float) -> Finished:  # noqa: ANN401, ARG002
        """See the port."""
        return Finished(0, self._answer, b"")


def _asked(data: bytes) -> object:
    cartpole = EnvSpec(backend="gymnasium", id="CartPole-v1")
    return measure(_Forger(data), cartpole, Path("/nowhere"), (11,), tier="T1").episodes


_OTHERS = (
    _one(
        "id-that-leaves",
        "names a candidate by a path that leads elsewhere",
        b"../../../etc/passwd",
        (
            lambda data: check_id(data.decode(), letter="c", called="candidate"),
            lambda data: Path("/project/candidates", data.decode()),
        ),
        "ids are the engine's own",
    ),
    _one(
        "result-without-a-ticket",
        "answers in the referee's place",
        _FORGED,
        (_asked, json.loads),
        "a ticket that only the referee was given",
    ),
)

ATTACKS: tuple[InputAttack, ...] = (*_TEXTS, *_BYTES, *_NAMES, *_OTHERS)


def try_input(attack: InputAttack, *, naive: bool) -> str:
    """Let one reader read, and say what got in; empty where it was refused in a sentence, or read as what it is."""
    try:
        found = (attack.theirs if naive else attack.ours)(attack.data)
    except (OvernightError, RefereeFailed):
        return ""
    except Fooled as fooled:
        return str(fooled)
    except Exception as broken:  # noqa: BLE001 - whatever else a reader raises is what the attack wanted
        return f"the reader broke: {type(broken).__name__}"
    if attack.id in _JUDGED:
        return ""
    with suppress(TypeError, ValueError, AttributeError):
        if isinstance(found, dict) and not all(isfinite(one) for one in found.values()):
            return "a number that is none was read"
    return f"it was read: {str(found)[:40]}"


_JUDGED = {"time-that-is-a-number", "drive-the-screen", "forge-a-line", *(one.id for one in _NAMES)}
"""Where the reader itself says that it was fooled."""
