"""What the race is told, one thing after the other, and what it asks for."""

from dataclasses import dataclass

from overnight.decide.belief import Score
from overnight.decide.screened import RaceRule
from overnight.records.decision import Verdict


@dataclass(frozen=True, slots=True)
class Entered:
    """A candidate was let in, as a child of the tip of that moment."""

    candidate: str
    simpler: bool = False
    """It takes away more than it adds: inside the noise the smaller change wins."""


@dataclass(frozen=True, slots=True)
class Ran:
    """One arm was trained and measured on one tuning seed."""

    candidate: str
    number: int
    score: Score
    """Higher is better; None when the seed was lost by this arm's own fault."""


@dataclass(frozen=True, slots=True)
class Attempted:
    """An attempt to certify the tip has ended."""

    verdict: Verdict
    scores: tuple[Score, ...] = ()
    """What the tip scored on the attempt's fresh seeds: they selected nothing, so the tip's level learns from them."""


@dataclass(frozen=True, slots=True)
class Planned:
    """The study was given more or fewer runs, and raced on by these lines."""

    rule: RaceRule


@dataclass(frozen=True, slots=True)
class Left:
    """A candidate is out of the race without a verdict of it."""

    candidate: str


@dataclass(frozen=True, slots=True)
class Moved:
    """What the record says is the tip and the incumbent now, which the race must not contradict."""

    tip: str
    incumbent: str


@dataclass(frozen=True, slots=True)
class Settled:
    """What was decided is on record: whoever is next in the line may be looked at."""


Event = Entered | Ran | Attempted | Planned | Left | Moved | Settled


@dataclass(frozen=True, slots=True)
class Want:
    """One run that the race needs next: this arm on this tuning seed."""

    candidate: str
    number: int
