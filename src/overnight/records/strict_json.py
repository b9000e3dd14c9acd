"""From untrusted bytes to plain data, in bounded time and memory, or one clear sentence.

Refuses what the standard parser lets through: duplicate keys, NaN and Infinity,
numbers that overflow, unpaired surrogates, deep nesting, and anything too large.
"""

import json
import re
from collections.abc import Iterable
from math import isfinite
from typing import NoReturn

from overnight.errors import UserError
from overnight.records.text import BLANK

MAX_BYTES = 256 * 1024
MAX_DEPTH = 32
_MAX_DIGITS = 300
_BEYOND_ASCII = re.compile(r"[^\n -~]")
_BRACKETS_OR_STRINGS = re.compile(r'"(?:[^"\\]|\\.)*"?|[\[{]|[\]}]', re.DOTALL)


class _Unfit(ValueError):
    """What a parser hook found wrong; becomes the sentence of the UserError."""


def parse(text: bytes | str, *, where: str, max_bytes: int = MAX_BYTES) -> object:
    """Parse one JSON value, strictly."""
    if len(text) > max_bytes:
        raise UserError(where, f"is {len(text):,} bytes long, but at most {max_bytes:,} are read")
    try:
        decoded = text.decode() if isinstance(text, bytes) else text
        check_depth(decoded)
        found: object = json.loads(
            decoded,
            object_pairs_hook=_unique,
            parse_constant=_no_constant,
            parse_float=_finite,
            parse_int=_short,
        )
        json.dumps(found, ensure_ascii=False).encode()
    except UnicodeDecodeError as error:
        raise UserError(where, f"is not UTF-8 text (byte {error.start})") from error
    except json.JSONDecodeError as error:
        raise UserError(where, f"is not JSON: {error.msg} (line {error.lineno})") from error
    except UnicodeEncodeError as error:
        raise UserError(where, "holds half of a surrogate pair, which is not text") from error
    except _Unfit as unfit:
        raise UserError(where, str(unfit)) from None
    return found


def canonical(data: object) -> bytes:
    """Write plain data in its one canonical form: sorted keys, no spaces, ASCII, no NaN."""
    return json.dumps(data, sort_keys=True, separators=(",", ":"), allow_nan=False, ensure_ascii=True).encode()


def pretty(data: object) -> bytes:
    """Write plain data for people: indented, in the order given, nothing in it unseen, ending in a newline."""
    text = json.dumps(data, indent=2, allow_nan=False, ensure_ascii=False)
    return (_BEYOND_ASCII.sub(_seen, text) + "\n").encode()


def _seen(found: re.Match[str]) -> str:
    char = found[0]
    return char if char.isprintable() and not BLANK.match(char) else json.dumps(char)[1:-1]


def check_depth(text: str) -> None:
    """Raise a `ValueError` for deep nesting, without parsing."""
    depth = 0
    for match in _BRACKETS_OR_STRINGS.finditer(text):
        first = text[match.start()]
        if first in "[{":
            depth += 1
            if depth > MAX_DEPTH:
                raise _Unfit(f"is nested more than {MAX_DEPTH} levels deep")
        elif first in "]}":
            depth -= 1


def _unique(pairs: Iterable[tuple[str, object]]) -> dict[str, object]:
    found: dict[str, object] = {}
    for key, value in pairs:
        if key in found:
            raise _Unfit(f"has the key `{key[:80]}` twice")
        found[key] = value
    return found


def _no_constant(name: str) -> NoReturn:
    raise _Unfit(f"holds {name}, which is not a number")


def _finite(digits: str) -> float:
    value = float(digits)
    if not isfinite(value):
        raise _Unfit(f"holds the number {digits[:40]}, which is too large")
    return value


def _short(digits: str) -> int:
    if len(digits) > _MAX_DIGITS:
        raise _Unfit(f"holds a number of {len(digits):,} digits")
    return int(digits)
