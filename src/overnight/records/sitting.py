"""What happens to a sitting as a whole: it stood still for a while, and it ended."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from overnight.records.limits import Above, Name, Sentence


@dataclass(frozen=True, slots=True, kw_only=True)
class StoodStill:
    """The engine stood still, as in a laptop that was closed. No budget counts that time."""

    SCHEMA: ClassVar[str] = "overnight/stood-still/1"

    seconds: Annotated[float, Above(0)]
    """For how long."""
    until: Name
    """When it went on, in UTC."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HandedOff:
    """A sitting ended, and left a handoff from which anybody can go on."""

    SCHEMA: ClassVar[str] = "overnight/handed-off/1"

    because: Sentence
    """Why it ended."""
    next: Sentence
    """The command that leads on."""
