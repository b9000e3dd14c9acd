"""Whether an idea was had before: memory of refuted ideas, so that duplicates cost nothing."""

import io
import tokenize
from collections.abc import Mapping

from overnight.errors import UserError
from overnight.records import strict_json
from overnight.records.alike import DIGITS, fingerprint
from overnight.records.codec import digest
from overnight.records.limits import Scalar
from overnight.records.proposal import Ending, Tried
from overnight.records.space import Space

ENDED: dict[Ending, str] = {
    "kept": "was kept",
    "rejected": "was rejected",
    "inconclusive": "was left undecided",
    "crashed": "was broken by its own fault",
    "refused": "was refused by the gate",
    "pending": "is not decided yet",
    "certified": "was certified",
    "reverted": "was undone",
}
"""How an idea ended, as the rest of a sentence that names it."""

_LAYOUT = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING}
_LAYOUT_TEXT = {tokenize.NEWLINE: ";", tokenize.INDENT: "{", tokenize.DEDENT: "}"}


def idea_of(changed: Mapping[str, tuple[bytes, bytes]], space: Space | None) -> str:
    """What two candidates share when they come to the same thing.

    `changed` holds each path in which the candidate differs from the baseline, with its bytes there and here.
    Parameters count to three digits of their own scale, JSON without its layout, Python without layout and
    comments, every other text without white space at the ends of its lines. What is only laid out anew is no change.
    """
    plain = {path: (_plain(path, old, space), _plain(path, new, space)) for path, (old, new) in changed.items()}
    return digest(tuple((path, new) for path, (old, new) in sorted(plain.items()) if old != new))


def _plain(path: str, data: bytes, space: Space | None) -> str:
    if path.endswith(".json"):
        try:
            return _plain_json(strict_json.parse(data, where=path), space)
        except UserError:
            pass
    if path.endswith(".py"):
        try:
            return _plain_python(data)
        except (tokenize.TokenError, SyntaxError, ValueError, RecursionError):
            pass
    lines = (line.strip() for line in data.decode(errors="backslashreplace").splitlines())
    return "\n".join(line for line in lines if line)


def _plain_json(found: object, space: Space | None) -> str:
    if isinstance(found, dict) and all(isinstance(value, Scalar) for value in found.values()):
        return repr(fingerprint(found, space))
    return strict_json.canonical(found).decode()


def _plain_python(data: bytes) -> str:
    words = []
    for token in tokenize.tokenize(io.BytesIO(data).readline):
        if token.type not in _LAYOUT:
            words.append(token.string)
        elif token.type in _LAYOUT_TEXT:
            words.append(_LAYOUT_TEXT[token.type])
    return " ".join(words)


def is_duplicate(params: Mapping[str, Scalar], tried: tuple[Tried, ...], space: Space | None) -> str | None:
    """Say which earlier idea these parameters repeat, or return None when they are new.

    `params` is the whole parameter set, not only the changed keys. Two sets are the same
    when every value is equal after rounding to three digits in its own scale (see
    `overnight.records.alike`). The latest earlier idea that matches is named.

    Does not: compare code. Ideas that changed no parameter are passed over, because their
    parameters say nothing about them.
    """
    wanted = fingerprint(params, space)
    for one in reversed(tried):
        if not one.proposal.params or fingerprint(one.params, space) != wanted:
            continue
        if dict(one.params) == dict(params):
            return f"The same parameters were tried as {one.candidate}, which {ENDED[one.outcome]}."
        near = ", ".join(
            f"{key} {params[key]} and {one.params[key]}" for key in params if params[key] != one.params[key]
        )
        return (
            f"Nearly the same parameters were tried as {one.candidate}, which {ENDED[one.outcome]}: "
            f"{near} do not differ in the first {DIGITS} digits."
        )
    return None
