"""What a field's value must keep to, written beside its type, and the types that every record uses."""

from dataclasses import dataclass
from typing import Annotated


@dataclass(frozen=True, slots=True)
class AtLeast:
    """The least number allowed."""

    least: float


@dataclass(frozen=True, slots=True)
class Above:
    """A number that must be exceeded."""

    bound: float


@dataclass(frozen=True, slots=True)
class AtMost:
    """The greatest number allowed."""

    most: float


@dataclass(frozen=True, slots=True)
class Items:
    """The least and the greatest number of items in a tuple."""

    least: int
    most: int = 1000


@dataclass(frozen=True, slots=True)
class Shape:
    """A pattern that the whole text must match, and what to call it."""

    pattern: str
    called: str


@dataclass(frozen=True, slots=True)
class Length:
    """The greatest number of characters, and whether the text may be empty."""

    most: int
    least: int = 0


@dataclass(frozen=True, slots=True)
class OneLine:
    """Only characters that can be seen, on one line: nothing that could pretend to be another line."""


Slug = Annotated[
    str,
    Shape(r"[a-z0-9][a-z0-9-]{0,39}", "1 to 40 lower-case letters, digits and hyphens, not led by a hyphen"),
]
Digest = Annotated[str, Shape(r"[0-9a-f]{64}", "64 hexadecimal digits")]
ObjectId = Annotated[str, Shape(r"[0-9a-f]{40}|[0-9a-f]{64}", "a git object id")]
CandidateId = Annotated[str, Shape(r"c-[0-9]{4,9}", "`c-` and at least four digits")]
AskId = Annotated[str, Shape(r"a-[0-9]{4,9}", "`a-` and at least four digits")]
RunId = Annotated[str, Shape(r"r-[0-9]{4,9}", "`r-` and at least four digits")]
Sentence = Annotated[str, Length(2000, 1), OneLine()]
Text = Annotated[str, Length(20_000)]
Name = Annotated[str, Length(200, 1), OneLine()]
Scalar = str | int | float | bool | None
