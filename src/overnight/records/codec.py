"""The one codec: frozen dataclasses to plain data and back, by their type hints alone.

Decoding is strict. An unknown key, a missing key, a wrong type, a number out of its
range or a NaN is an error that names the key, what was found and what was needed.
Nothing is coerced, except a whole number where a decimal one is wanted.

Field types it knows: `str`, `int`, `float`, `bool`, `StrEnum`, `Literal`, `X | None`,
`tuple[X, ...]`, `Mapping[str, X]`, other records, `object` for any plain data, and
`Annotated` with the limits below. `list` and `dict` are read as themselves: records have
none, only the accumulator of the ledger's fold does.
"""

import re
from collections.abc import Callable, Hashable, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from enum import StrEnum
from functools import cache
from hashlib import sha256
from math import isfinite
from types import MappingProxyType, NoneType, UnionType
from typing import (
    Annotated,
    Any,
    ClassVar,
    Literal,
    Protocol,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

from overnight.errors import UserError, did_you_mean
from overnight.records import strict_json
from overnight.records.limits import Above, AtLeast, AtMost, Items, Length, OneLine, Shape

R = TypeVar("R")
Reader = Callable[[object], Any]


class Misfit(Exception):
    """A value that does not fit its place; `path` leads from the record's root to it."""

    def __init__(self, path: tuple[str, ...], what: str, *, hint: str = "") -> None:
        super().__init__(what)
        self.path = path
        self.what = what
        self.hint = hint

    def under(self, *outer: str) -> "Misfit":
        """The same finding, seen from further out."""
        return Misfit((*outer, *self.path), self.what, hint=self.hint)


class Versioned(Protocol):
    """A record that is stored in a file of its own, under a versioned schema name."""

    SCHEMA: ClassVar[str]


V = TypeVar("V", bound=Versioned)


def decode(kind: type[R], data: object, *, where: str) -> R:
    """Turn plain data into a record, or say what does not fit, and where."""
    try:
        found: R = reader_of(cast(Hashable, kind))(data)
    except Misfit as misfit:
        key = ".".join(misfit.path)
        raise UserError(where, f"`{key}` {misfit.what}" if key else misfit.what, hint=misfit.hint) from None
    return found


def encode(value: object) -> Any:  # noqa: ANN401 - plain JSON data has no tighter type
    """Turn a record into plain data, in the order of its fields."""
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: encode(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, StrEnum):
        return str(value)
    if isinstance(value, (tuple, list)):
        return [encode(item) for item in value]
    if isinstance(value, Mapping):
        return {str(key): encode(item) for key, item in value.items()}
    return value


def digest(value: object) -> str:
    """SHA-256 of a record's canonical form."""
    return sha256(strict_json.canonical(encode(value))).hexdigest()


def loads(kind: type[V], text: bytes | str, *, where: str) -> V:
    """Read a record from a file of its own, which must name the record's schema."""
    data = strict_json.parse(text, where=where)
    if not isinstance(data, dict) or "schema" not in data:
        raise UserError(where, "has no `schema` key", hint=f'its first key should be "schema": "{kind.SCHEMA}"')
    check_schema(data.pop("schema"), kind.SCHEMA, where=where)
    return decode(kind, data, where=where)


def dumps(record: Versioned) -> bytes:
    """Write a record as a file of its own."""
    return strict_json.pretty({"schema": record.SCHEMA, **encode(record)})


def check_schema(found: object, needed: str, *, where: str) -> None:
    """Refuse a file that was written under another schema, or under a newer version of it."""
    if found == needed:
        return
    family, _, version = needed.rpartition("/")
    newer = isinstance(found, str) and found.startswith(family + "/") and found.rpartition("/")[2].isdigit()
    hint = "it was written by another version of Overnight" if newer else ""
    raise UserError(where, f"`schema` is {show(found)}, but `{family}/{version}` is needed", hint=hint)


def show(value: object) -> str:
    """Quote a found value, shortened."""
    text = repr(value) if isinstance(value, str) else str(strict_json_or_repr(value))
    return text if len(text) <= 80 else text[:77] + "…"


def strict_json_or_repr(value: object) -> str:
    """Write a value as JSON where that is possible, else as Python shows it."""
    try:
        return strict_json.canonical(value).decode()
    except (TypeError, ValueError, RecursionError):
        return type(value).__name__


def frozen(data: object) -> object:
    """Freeze plain data all the way down."""
    if isinstance(data, dict):
        return MappingProxyType({key: frozen(item) for key, item in data.items()})
    if isinstance(data, list):
        return tuple(frozen(item) for item in data)
    return data


@cache
def reader_of(kind: Any) -> Reader:  # noqa: ANN401 - any type hint
    """Build, once for each type, the function that reads plain data into it."""
    origin, args = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _limited(reader_of(args[0]), args[1:])
    if origin in (Union, UnionType):
        return _union(args)
    if origin is Literal:
        return _choice(args)
    if origin in (tuple, list):
        return _sequence(reader_of(args[0]), origin)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return _mapping(reader_of(args[0]), reader_of(args[1]), dict if origin is dict else MappingProxyType)
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return _enum(kind)
    if is_dataclass(kind):
        return _record(kind)
    return _PLAIN_READERS.get(kind) or _scalar(kind)


def hints_of(kind: type) -> dict[str, Any]:
    """The type of each field of a record, with its limits."""
    return get_type_hints(kind, include_extras=True)


_CALLED = {str: "text", int: "a whole number", bool: "true or false", NoneType: "null"}


def _text(data: object) -> object:
    if type(data) is not str:
        raise Misfit((), f"is {show(data)}, but text is needed")
    if not data.isascii():
        try:
            data.encode()
        except UnicodeEncodeError:
            raise Misfit((), "holds bytes that are not text") from None
    return data


def _scalar(kind: type) -> Reader:
    called = _CALLED[kind]

    def read(data: object) -> object:
        if type(data) is not kind:
            raise Misfit((), f"is {show(data)}, but {called} is needed")
        return data

    return read


def _float(data: object) -> float:
    if type(data) not in (int, float):
        raise Misfit((), f"is {show(data)}, but a number is needed")
    try:
        value = float(data)  # type: ignore[arg-type]
    except OverflowError:
        raise Misfit((), "is a number too large to use") from None
    if not isfinite(value):
        raise Misfit((), f"is {value}, but a finite number is needed")
    return value


_PLAIN_READERS: dict[Any, Reader] = {str: _text, float: _float, object: frozen, Any: lambda data: data}


def _union(args: tuple[Any, ...]) -> Reader:
    others = [arg for arg in args if arg is not NoneType]
    optional = len(others) < len(args)
    if len(others) == 1:
        inner = reader_of(others[0])
        return lambda data: None if data is None else inner(data)
    allowed = tuple(others)  # scalars only: the exact type decides

    def read(data: object) -> object:
        if (data is None and optional) or type(data) in allowed:
            if isinstance(data, str):
                _text(data)
            if isinstance(data, float) and not isfinite(data):
                raise Misfit((), f"is {data}, but a finite number is needed")
            return data
        raise Misfit((), f"is {show(data)}, but text, a number, true or false is needed")

    return read


def _choice(args: tuple[Any, ...]) -> Reader:
    def read(data: object) -> object:
        if data in args and type(data) in {type(arg) for arg in args}:
            return data
        needed = " or ".join(f"`{arg}`" for arg in args)
        raise Misfit((), f"is {show(data)}, but {needed} is needed", hint=_near(data, args))

    return read


def _enum(kind: type[StrEnum]) -> Reader:
    by_name = {member.value: member for member in kind}

    def read(data: object) -> object:
        member = by_name.get(data) if isinstance(data, str) else None
        if member is None:
            needed = " or ".join(f"`{value}`" for value in by_name)
            raise Misfit((), f"is {show(data)}, but {needed} is needed", hint=_near(data, by_name))
        return member

    return read


def _near(data: object, known: Any) -> str:  # noqa: ANN401 - any collection of choices
    words = [str(word) for word in known]
    return did_you_mean(data, words) if isinstance(data, str) and len(data) < 200 else ""


def _sequence(inner: Reader, kind: Callable[[list[object]], object]) -> Reader:
    def read(data: object) -> object:
        if type(data) is not list:
            raise Misfit((), f"is {show(data)}, but a list is needed")
        found = []
        for index, item in enumerate(data):
            try:
                found.append(inner(item))
            except Misfit as misfit:
                raise misfit.under(str(index)) from None
        return kind(found)

    return read


def _mapping(key_reader: Reader, inner: Reader, kind: Callable[[dict[object, object]], object]) -> Reader:
    def read(data: object) -> object:
        if type(data) is not dict:
            raise Misfit((), f"is {show(data)}, but a mapping is needed")
        found = {}
        for key, item in data.items():
            try:
                found[key_reader(key)] = inner(item)
            except Misfit as misfit:
                raise misfit.under(str(key)) from None
        return kind(found)

    return read


def _limited(inner: Reader, limits: tuple[object, ...]) -> Reader:
    if len(limits) == 1 and isinstance(limits[0], Shape):
        return _shaped(inner, limits[0])
    checks = tuple(check for limit in limits if (check := _check_of(limit)) is not None)

    def read(data: object) -> object:
        value = inner(data)
        for check in checks:
            if (what := check(value)) is not None:
                raise Misfit((), what)
        return value

    return read


def _shaped(inner: Reader, shape: Shape) -> Reader:
    """The reader of ids and digests, of which a ledger has hundreds of thousands."""
    matches = re.compile(shape.pattern).fullmatch

    def read(data: object) -> object:
        if type(data) is not str:
            return inner(data)
        if matches(data) is None:
            raise Misfit((), f"is {show(data)}, but {shape.called} is needed")
        return data

    return read


def _check_of(limit: object) -> Callable[[Any], str | None] | None:
    match limit:
        case AtLeast(least):
            return lambda n: None if n >= least else f"is {show(n)}, but at least {least:g} is needed"
        case Above(bound):
            return lambda n: None if n > bound else f"is {show(n)}, but more than {bound:g} is needed"
        case AtMost(most):
            return lambda n: None if n <= most else f"is {show(n)}, but at most {most:g} is allowed"
        case Items(fewest, greatest):
            return lambda t: None if fewest <= len(t) <= greatest else _count(len(t), fewest, greatest)
        case OneLine():
            return lambda s: None if s.isprintable() else "holds a line break or a character that cannot be seen"
        case Length(most, least):
            return lambda s: None if least <= len(s) <= most else _length(len(s), least, most)
    return None


def _count(found: int, least: int, most: int) -> str:
    if found < least:
        return f"has {found} items, but at least {least} is needed"
    return f"has {found} items, but at most {most} are allowed"


def _length(found: int, least: int, most: int) -> str:
    if found < least:
        return "is empty, but text is needed"
    return f"is {found:,} characters long, but at most {most:,} are allowed"


def _required(field: "Field[Any]") -> bool:
    return field.default is MISSING and field.default_factory is MISSING


def _record(kind: Any) -> Reader:  # noqa: ANN401 - any dataclass
    hints = hints_of(kind)
    readers = {f.name: reader_of(hints[f.name]) for f in fields(kind)}
    required = frozenset(f.name for f in fields(kind) if _required(f))

    def read(data: object) -> object:
        if type(data) is not dict:
            raise Misfit((), f"is {show(data)}, but a mapping is needed")
        if not required <= data.keys():
            missing = min(required - data.keys(), key=list(readers).index)
            raise Misfit((missing,), "is missing")
        found = {}
        try:
            for key, item in data.items():
                if key not in readers:
                    break
                found[key] = readers[key](item)
            else:
                return kind(**found)
        except Misfit as misfit:
            raise (misfit.under(key) if key not in found else misfit) from None
        raise Misfit((str(key)[:80],), "is not a known key", hint=did_you_mean(str(key)[:80], readers))

    return read
