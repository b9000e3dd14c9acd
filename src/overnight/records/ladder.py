"""A ladder of budgets: small runs first, and more only for what is clearly learning."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from overnight.records.limits import Above, AtLeast, AtMost, CandidateId, RunId, Sentence


@dataclass(frozen=True, slots=True, kw_only=True)
class Rung:
    """One budget of the ladder."""

    amount: Annotated[float, Above(0)]
    """How much of the stop unit one training run gets on this rung."""
    episodes: Annotated[int, AtLeast(1), AtMost(100_000)]
    """Episodes behind one screening score on this rung."""
    candidates: Annotated[int, AtLeast(1), AtMost(100_000)] = 4
    """How many candidates are decided on this rung before the next one is looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Promoted:
    """The study goes on with a greater budget. It never comes down again."""

    SCHEMA: ClassVar[str] = "overnight/promoted/1"

    rung: Annotated[int, AtLeast(1)]
    """The new rung, counted from 0."""
    candidate: CandidateId
    """The tip, which is clearly learning; it is run again there, and is what others are compared with."""
    because: Sentence
    """The sentence, with the numbers in it."""
    learning_gain: Annotated[float, Above(0)]
    """By how much it is better than acting at random, by the low end of the interval over its train seeds."""
    evidence: tuple[RunId, ...]
    """The runs behind it."""
