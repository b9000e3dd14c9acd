"""The one YAML loader: strict, bounded, and free of surprises.

People's files are YAML, read by this module alone. It takes the plain part of the
language: mappings, lists, text, numbers, `true`, `false` and `null`. Tags, anchors,
aliases, merge keys, duplicate keys and several documents are errors, and `no`, `1:30`,
`010`, `0x10` and dates stay text, because that is what people mean by them.
"""

import re
from collections.abc import Iterator
from math import isfinite
from typing import Any, NoReturn

import yaml as pyyaml

from overnight.errors import UserError
from overnight.records.strict_json import MAX_BYTES, MAX_DEPTH

MAX_NODES = 20_000
_FLOW_WIDTH = 90
_LOADER: Any = getattr(pyyaml, "CSafeLoader", pyyaml.SafeLoader)
_DIGITS = r"[0-9]+(?:_[0-9]+)*"
_INT = re.compile(rf"[-+]?(?:0|(?!0){_DIGITS})")
_FLOAT = re.compile(rf"[-+]?(?:0|(?!0){_DIGITS})?(?:\.(?:{_DIGITS})?)?(?:[eE][-+]?[0-9]{{1,4}})?")
_MAX_DIGITS = 300
_WORDS: dict[str, object] = {"true": True, "false": False, "null": None, "~": None, "": None}
_PLAIN = re.compile(r"(?!\.\.\.)[A-Za-z_./][A-Za-z0-9_./@+-]*(?: [A-Za-z0-9_./@+()-]+)*")


def load(text: bytes | str, *, where: str) -> object:
    """Read one YAML document into plain data."""
    if len(text) > MAX_BYTES:
        raise UserError(where, f"is {len(text):,} bytes long, but at most {MAX_BYTES:,} are read")
    try:
        decoded = text.decode() if isinstance(text, bytes) else text
        decoded.encode()
        return _Builder(pyyaml.parse(decoded, Loader=_LOADER), where).document()
    except UnicodeDecodeError as error:
        raise UserError(where, f"is not UTF-8 text (byte {error.start})") from error
    except UnicodeEncodeError as error:
        raise UserError(where, "holds half of a surrogate pair, which is not text") from error
    except pyyaml.YAMLError as error:
        raise UserError(where, f"is not YAML: {_problem(error)}") from error


def dump(data: object) -> str:
    """Write plain data so that `load` reads back exactly the same."""
    return "\n".join(_lines(data, 0)) + "\n"


def scalar(value: object) -> str:
    """Write one text, number, true, false or null."""
    if isinstance(value, str):
        plain = _PLAIN.fullmatch(value) and not _is_special(value)
        return value if plain else _quoted(value)
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    return repr(value)


def with_value(text: str, path: tuple[str, ...], value: object, *, where: str) -> str:
    """Exchange one text or number in a file, by its keys, and leave every other byte as it is."""
    start, end = _place(text, path, where)
    changed = text[:start] + scalar(value) + text[end:]
    before, after = (load(one, where=where) for one in (text, changed))
    if _without(before, path) != _without(after, path) or _at(after, path) != value:
        raise UserError(where, f"`{'.'.join(path)}` is written in a way that cannot be edited here", hint="edit it")
    return changed


def _place(text: str, path: tuple[str, ...], where: str) -> tuple[int, int]:
    """Where a value begins and ends, in characters. By the parser in Python: the one in C may count bytes."""
    inside: list[str | None] = []
    key: str | None = None
    events: Iterator[Any] = pyyaml.parse(text, Loader=pyyaml.SafeLoader)
    for event in events:
        if isinstance(event, (pyyaml.MappingStartEvent, pyyaml.SequenceStartEvent)):
            inside.append(key if isinstance(event, pyyaml.MappingStartEvent) else "-")
            key = None
        elif isinstance(event, (pyyaml.MappingEndEvent, pyyaml.SequenceEndEvent)):
            inside.pop()
            key = None
        elif isinstance(event, pyyaml.ScalarEvent) and inside and inside[-1] != "-":
            if key is None:
                key = event.value
                continue
            if (*inside[1:], key) == path:
                found: Any = event
                return found.start_mark.index, found.end_mark.index
            key = None
    raise UserError(where, f"has no `{'.'.join(path)}`")


def _at(data: object, path: tuple[str, ...]) -> object:
    for key in path:
        data = data[key] if isinstance(data, dict) else None
    return data


def _without(data: object, path: tuple[str, ...]) -> object:
    """The same data with one value blanked out."""
    if not path or not isinstance(data, dict):
        return None
    return {**data, path[0]: _without(data.get(path[0]), path[1:])}


class _Builder:
    """Builds plain data from parser events, so that no limit depends on recursion."""

    def __init__(self, events: Iterator[Any], where: str) -> None:
        self.events = events
        self.where = where
        self.nodes = 0

    def document(self) -> object:
        """The one document of the stream."""
        found: object = None
        documents = 0
        for event in self.events:
            if isinstance(event, pyyaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    self.fail(event, "a second document begins")
            elif isinstance(event, (pyyaml.NodeEvent)):
                found = self.value(event, 0)
        return found

    def value(self, event: Any, depth: int) -> object:  # noqa: ANN401 - PyYAML's events are untyped
        """One value, with everything below it."""
        self.check(event, depth)
        if isinstance(event, pyyaml.ScalarEvent):
            return self.resolve(event)
        if isinstance(event, pyyaml.SequenceStartEvent):
            return self.sequence(depth)
        return self.mapping(depth)

    def check(self, event: Any, depth: int) -> None:  # noqa: ANN401
        """Refuse what a plain file does not need."""
        self.nodes += 1
        if isinstance(event, pyyaml.AliasEvent) or getattr(event, "anchor", None) is not None:
            self.fail(event, "an anchor or alias (`&` or `*`) is used")
        if getattr(event, "tag", None) is not None:
            self.fail(event, f"the tag {event.tag[:40]!r} is used")
        if depth > MAX_DEPTH:
            self.fail(event, f"the nesting is more than {MAX_DEPTH} levels deep")
        if self.nodes > MAX_NODES:
            self.fail(event, f"there are more than {MAX_NODES:,} values")

    def sequence(self, depth: int) -> list[object]:
        """A list."""
        found = []
        while not isinstance(event := next(self.events), pyyaml.SequenceEndEvent):
            found.append(self.value(event, depth + 1))
        return found

    def mapping(self, depth: int) -> dict[str, object]:
        """A mapping with unique text keys."""
        found: dict[str, object] = {}
        while not isinstance(event := next(self.events), pyyaml.MappingEndEvent):
            if not isinstance(event, pyyaml.ScalarEvent):
                self.fail(event, "a key is not plain text")
            self.check(event, depth + 1)
            key = event.value
            if key in found:
                self.fail(event, f"the key `{key[:80]}` stands here a second time")
            if key == "<<" and event.implicit[0]:
                self.fail(event, "a merge key (`<<`) is used")
            found[key] = self.value(next(self.events), depth + 1)
        return found

    def resolve(self, event: Any) -> object:  # noqa: ANN401
        """Text stays text; only unmistakable numbers, true, false and null are anything else."""
        text: str = event.value
        if not event.implicit[0]:
            return text
        if text in _WORDS:
            return _WORDS[text]
        if _INT.fullmatch(text):
            if len(text.lstrip("+-")) > _MAX_DIGITS:
                self.fail(event, f"the number {text[:40]} is too large")
            return int(text)
        if text[-1:].isdigit() and text[:1] in "+-.0123456789" and _FLOAT.fullmatch(text) and _has_digit(text):
            number = float(text)
            if not isfinite(number):
                self.fail(event, f"the number {text[:40]} is too large")
            return number
        return text

    def fail(self, event: Any, what: str) -> NoReturn:  # noqa: ANN401
        """Name the line."""
        raise UserError(f"{self.where} line {event.start_mark.line + 1}", f"{what}, but only plain YAML is read")


def _has_digit(text: str) -> bool:
    return re.match(r"[-+]?\.?[0-9]", text) is not None


def _problem(error: pyyaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or "it cannot be read"
    return f"{problem} (line {mark.line + 1})" if mark is not None else str(problem)


def _is_special(text: str) -> bool:
    return text.lower() in {*_WORDS, "yes", "no", "on", "off", "y", "n"} or (text[-1:].isdigit() and text[:1] in "+-.")


def _quoted(text: str) -> str:
    escapes = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}
    return '"' + "".join(escapes.get(char) or _printable(char) for char in text) + '"'


def _printable(char: str) -> str:
    code = ord(char)
    if code in (0x2028, 0x2029):
        return f"\\u{code:04x}"
    if 0x20 <= code < 0x7F or (0xA0 <= code < 0xD800) or (0xE000 <= code < 0xFEFF):
        return char
    return f"\\U{code:08x}" if code > 0xFFFF else f"\\u{code:04x}"


def _lines(data: object, indent: int) -> Iterator[str]:
    pad = "  " * indent
    if isinstance(data, dict) and data:
        for key, value in data.items():
            yield from _item(f"{pad}{scalar(key)}:", value, indent)
    elif isinstance(data, (list, tuple)) and data:
        for value in data:
            yield from _list_item(pad, value, indent)
    else:
        yield pad + _leaf(data)


def _list_item(pad: str, value: object, indent: int) -> Iterator[str]:
    if isinstance(value, dict) and value:
        lines = list(_lines(value, indent + 1))
        yield f"{pad}- {lines[0].lstrip()}"
        yield from lines[1:]
    else:
        yield from _item(f"{pad}-", value, indent)


def _item(lead: str, value: object, indent: int) -> Iterator[str]:
    if isinstance(value, (list, tuple)) and value and not any(isinstance(one, (dict, list, tuple)) for one in value):
        flow = f"{lead} [{', '.join(scalar(one) for one in value)}]"
        if len(flow) <= _FLOW_WIDTH:
            yield flow
            return
    if isinstance(value, (dict, list, tuple)) and value:
        yield lead
        yield from _lines(value, indent + 1)
    else:
        yield f"{lead} {_leaf(value)}"


def _leaf(value: object) -> str:
    if isinstance(value, dict):
        return "{}"
    if isinstance(value, (list, tuple)):
        return "[]"
    return scalar(value)
