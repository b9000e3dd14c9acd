"""What an attack is, and what came of one. The attacks themselves are data, in the modules beside this one."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

from overnight.sandbox.tiers import Layer

Family = Literal["measurement", "files", "host", "budget", "statistics", "leaks", "parsers"]
Seen = Literal[
    "the score is raised",
    "a host file is read",
    "a host file is changed",
    "a right is gained",
    "a process is harmed",
    "something is left behind",
    "the budget is exceeded",
    "a secret gets out",
    "a parser is fooled",
    "a verdict is bought",
    "a change gets past the gate",
]
Rung = Literal["T0", "T1", "T2", "T3"]
"""A tier, or T0: no isolation and no rule, as in evaluators that import the candidate. Only the gallery has T0."""
RUNGS: tuple[Rung, ...] = ("T0", "T1", "T2", "T3")


@dataclass(frozen=True, slots=True, kw_only=True)
class Attack:
    """One thing that a candidate tries."""

    id: str
    """Its name, in words and hyphens."""
    family: Family
    """What it is aimed at."""
    tries: str
    """What it tries, as a sentence without a subject."""
    stopped_by: str
    """The layer or the rule that stops it."""
    seen: Seen
    """How it is told that it got in."""
    alone: Mapping[Rung, Layer] = field(default_factory=lambda: MappingProxyType({}))
    """The one layer of isolation that stops it at a tier; switched off, it gets in."""
    naive: bool = True
    """Whether it gets in at T0; some need a part that a naive evaluator does not even have."""


@dataclass(frozen=True, slots=True)
class Result:
    """What came of one attack."""

    attack: Attack
    got_in: bool
    evidence: str
    """What was seen, in a few words."""
