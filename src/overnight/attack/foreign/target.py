"""What is attacked: one evaluator, the files that a candidate may edit, and how the score is read."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

Shape = Literal["in-process", "function", "sb3", "script"]
SHAPES: dict[Shape, str] = {
    "in-process": "the evaluator and the candidate's file are imported into one process",
    "function": "a module with `evaluate(policy)` or the like, and no script that prints its result",
    "sb3": "a script that calls `evaluate_policy` of Stable-Baselines3",
    "script": "a script that prints a metric",
}
"""The usual shapes of an evaluator, each with one sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One evaluator as it was found, or as it was named. Paths are relative to the folder that is attacked."""

    root: Path
    shape: Shape
    command: tuple[str, ...]
    cwd: str = "."
    evaluators: tuple[str, ...]
    """The files that a candidate must not change, the most telling one first."""
    candidates: tuple[str, ...]
    """The files that a candidate may edit; the attacks are put into the first one."""
    metric: str | None = None
    lower: bool = False
    driver: str = ""
    """A small script of ours that calls the function and prints what it returns; only for the shape `function`."""
    also: tuple[str, ...] = ()
    """Other evaluators that were found and are not attacked."""


@dataclass(frozen=True, slots=True)
class Line:
    """A line of somebody's file."""

    path: str
    number: int

    def __str__(self) -> str:
        """As `file:line`."""
        return f"{self.path}:{self.number}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scouted:
    """What an honest candidate saw that looks around: who imports it, who calls it, and who prints the score."""

    imported: Line | None = None
    called: Line | None = None
    printed: Line | None = None
    calls: int = 0
    told: bool = False
    """Whether it could tell anything: one that may write nowhere cannot."""

    def is_called(self) -> bool:
        """Whether the candidate's functions are called, as far as is known."""
        return self.calls > 0 or not self.told


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How one attack went."""

    attack: str
    says: str
    got_in: bool
    score: float | None
    """What the evaluator reported under attack; None where it reported nothing."""
    line: Line | None
    fix: str
    because: str
    """One sentence: what happened."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Siege:
    """Everything that was tried against one evaluator."""

    target: Target
    tier: str
    metric: str
    honest: tuple[float, ...]
    seconds: float
    outcomes: tuple[Outcome, ...]
    not_applicable: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    notes: tuple[str, ...] = field(default=())

    def holes(self) -> tuple[Outcome, ...]:
        """The attacks that got in."""
        return tuple(one for one in self.outcomes if one.got_in)
