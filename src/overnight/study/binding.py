"""Which terms a candidate is bound to: all of them but the amounts, which the gate counts anew at every launch."""

from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from overnight.records.contract import Clause
from overnight.records.strict_json import canonical

AMOUNTS: dict[Clause, tuple[tuple[str, ...], ...]] = {
    Clause.BUDGET: (("max_runs",), ("max_wall_hours",), ("max_dollars",), ("max_tokens",)),
    Clause.EXPERIMENTS: (("automation", "max_candidates"), ("stop", "max_candidates")),
}
"""The keys that say how much, and nothing about what: raising them makes no result incomparable."""


def binding(approvals: Mapping[Clause, Mapping[str, Any]]) -> str:
    """The digest of everything that is approved, without the amounts."""
    terms = {str(clause): _without_amounts(clause, data["terms"]) for clause, data in approvals.items()}
    return sha256(canonical(terms)).hexdigest()


def _without_amounts(clause: Clause, terms: Mapping[str, Any]) -> dict[str, Any]:
    found = dict(terms)
    for *above, key in AMOUNTS.get(clause, ()):
        below = found
        for name in above:
            below[name] = dict(below.get(name) or {})
            below = below[name]
        below.pop(key, None)
    return found
