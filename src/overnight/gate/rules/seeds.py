"""Refuse a change of a random seed: a lucky seed is not a discovery."""

import re

from overnight.gate.case import Admission
from overnight.gate.rules.parameters import changed_keys
from overnight.records.refusal import Reason

_SEED_KEY = re.compile(r"(?:^|_)seeds?(?:_|$)", re.IGNORECASE)
_SEED_LINE = re.compile(
    rb"^[^#\n]*\b\w*(?:seed|default_rng|PRNGKey|random\.key)\w*[\"']?\s*(?::\s*int\s*)?[=:(]\s*[0-9]",
    re.IGNORECASE | re.MULTILINE,
)


def refuse(case: Admission) -> tuple[Reason, ...]:
    """Seeds belong to the engine: it gives each run its own, and both sides of a comparison the same."""
    found = [f"It sets `{key[:80]}`" for key in changed_keys(case) if _SEED_KEY.search(key)]
    for path, data in case.after.items():
        if not path.endswith(".json") and _seed_lines(data) - _seed_lines(case.before.get(path, b"")):
            found.append(f"{path} fixes a seed")
    return tuple(Reason(rule="seeds", says=f"{what}, and seeds are given by the engine.") for what in found[:20])


def _seed_lines(data: bytes) -> set[bytes]:
    return {match.group().strip() for match in _SEED_LINE.finditer(data)}
