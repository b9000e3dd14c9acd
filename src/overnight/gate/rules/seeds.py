"""Refuse a change of a random seed: a lucky seed is not a discovery."""

import re
from collections.abc import Iterator

from overnight.errors import UserError
from overnight.gate.case import Admission
from overnight.records import strict_json
from overnight.records.refusal import Reason

_MISSING = object()

_SEED_KEY = re.compile(r"(?:^|_)seeds?(?:_|$)", re.IGNORECASE)
_SEED_LINE = re.compile(
    rb"^[^#\n]*(?:seed|default_rng|PRNGKey|random\.key)[^#\n]*[0-9][^#\n]*", re.IGNORECASE | re.MULTILINE
)


def refuse(case: Admission) -> tuple[Reason, ...]:
    """Seeds belong to the engine: it gives each run its own, and both sides of a comparison the same."""
    found = []
    for path, data in case.after.items():
        before = case.before.get(path, b"")
        if path.endswith(".json"):
            found += _in_json(path, before, data)
        elif _seed_lines(data) - _seed_lines(before):
            found.append(f"{path} sets a seed")
    return tuple(Reason(rule="seeds", says=f"{what}, and seeds are given by the engine.") for what in found[:20])


def _in_json(path: str, before: bytes, after: bytes) -> list[str]:
    try:
        new = dict(_seed_keys(strict_json.parse(after, where=path), ""))
    except UserError as error:
        return [f"{path} cannot be searched for seeds ({error.what})"]
    try:
        old = dict(_seed_keys(strict_json.parse(before or b"{}", where=path), ""))
    except UserError:
        old = {}
    return [f"{path} sets `{key[:80]}`" for key, value in new.items() if old.get(key, _MISSING) != value]


def _seed_keys(data: object, lead: str) -> Iterator[tuple[str, object]]:
    if isinstance(data, dict):
        for key, value in data.items():
            if _SEED_KEY.search(key):
                yield f"{lead}{key}", value
            yield from _seed_keys(value, f"{lead}{key}.")
    elif isinstance(data, list):
        for number, value in enumerate(data):
            yield from _seed_keys(value, f"{lead}{number}.")


def _seed_lines(data: bytes) -> set[bytes]:
    return {match.group().strip() for match in _SEED_LINE.finditer(data)}
