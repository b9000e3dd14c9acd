"""A coding agent as a proposer: what the contract says about it, and what becomes of each time it is asked."""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from overnight.records.codec import Misfit
from overnight.records.limits import Above, AskId, AtLeast, AtMost, Digest, Items, Name, ObjectId, Sentence
from overnight.records.tier import Tier

Operator = Literal["draft", "tune", "simplify", "ablate", "combine", "debug"]
"""What an idea does with earlier ones: begin anew, go on from the tip, leave something out of it, take one part of a
bundle away, join near misses, or mend what crashed."""

Spoken = Literal["claude", "codex", "plain"]
"""How an agent's output is read: the events of `claude -p`, those of `codex exec --json`, or not at all."""

AskOutcome = Literal[
    "proposal",
    "empty",
    "unclear",
    "refusal",
    "leak",
    "stalled",
    "timeout",
    "limited",
    "broken",
    "spent",
    "stopped",
    "lost",
]
"""How asking an agent ended. The first five are its own answers; the others are no answer, and no fault of an idea."""

EndedBy = Literal["ended", "stalled", "timeout", "stopped", "spent", "unstarted", "lost"]
"""What ended an agent's process: itself, a limit, the engine, or that there never was one."""

ANSWERS: tuple[AskOutcome, ...] = ("proposal", "empty", "unclear", "refusal", "leak")
"""The endings in which the agent itself had its say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    """The coding agent that may propose: the exact command, what it may reach, and what one answer may cost."""

    command: Annotated[tuple[Name, ...], Items(1, 100)]
    """The exact command, as a list of words; words in braces, such as `{brief}` and `{dollars}`, are filled in."""
    speaks: Spoken
    """How its output is read: `claude`, `codex`, or `plain` for a command that leaves `proposal.json`."""
    share: Annotated[float, Above(0), AtMost(1)] = 0.25
    """The part of all ideas that it is asked for; search has the rest, and a plateau doubles it."""
    wall_seconds: Annotated[float, Above(0)] = 1200.0
    """How long it may work on one answer."""
    silence_seconds: Annotated[float, Above(0)] = 300.0
    """How long it may say nothing before it counts as stalled."""
    max_asks: Annotated[int, AtLeast(1), AtMost(100_000)] = 100
    """How often it may be asked in the study."""
    dollars_each: Annotated[float, AtLeast(0)] = 0.0
    """What one answer may cost; also what is counted where the command does not tell."""
    variables: Annotated[tuple[Name, ...], Items(0, 50)] = ()
    """Environment variables that it is given, such as its key; no other variable of yours reaches it."""
    files: Annotated[tuple[Name, ...], Items(0, 20)] = ()
    """Files below your home, such as `.codex/auth.json`, that are copied into its private home for each answer."""
    readable: Annotated[tuple[Name, ...], Items(0, 20)] = ()
    """Folders that it may read besides its copy, programs and libraries."""
    tier: Tier = "T2"
    """The isolation it runs at, with the network open; it never runs at a weaker one."""

    def __post_init__(self) -> None:
        """Refuse files outside the home, and a command that never sees the brief."""
        for file in self.files:
            if file.startswith("/") or ".." in file.split("/"):
                raise Misfit(
                    ("files",), f"names {file}, but a path below your home is needed, such as .codex/auth.json"
                )
        if self.speaks != "plain" and not any("{brief}" in word for word in self.command):
            raise Misfit(("command",), "holds no `{brief}`, so the agent would not be told anything")


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """An agent is about to be asked: written before its process starts, so that nothing is spent unseen."""

    SCHEMA: ClassVar[str] = "overnight/asked/1"

    id: AskId
    """Given by the engine, in order."""
    speaks: Spoken
    """How its output is read."""
    operator: Operator
    """What sort of idea it is asked for."""
    base: ObjectId
    """The tip that its copy was made from."""
    brief: Digest
    """Digest of the brief, which lies beside the answer."""
    reserved_dollars: Annotated[float, AtLeast(0)]
    """What it may cost at most; counted in full where it never tells."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """What became of asking an agent, and what it cost. Only a proposal becomes a candidate."""

    SCHEMA: ClassVar[str] = "overnight/answered/1"

    ask: AskId
    """Which asking it ends."""
    outcome: AskOutcome
    """How it ended."""
    because: Sentence
    """In one sentence."""
    wall_seconds: Annotated[float, AtLeast(0)]
    """How long it took."""
    tokens: Annotated[int, AtLeast(0)]
    """Tokens read and written, without those that came from a cache; 0 where it did not tell."""
    dollars: Annotated[float, AtLeast(0)] | None
    """What it told that it cost; null where it did not tell."""
    counted_dollars: Annotated[float, AtLeast(0)]
    """What counts against the contract's ceiling."""
    until: float | None = None
    """Until when, in seconds since 1970, its service turns everybody away; null where nobody said so."""
    at: Annotated[float, AtLeast(0)] = 0.0
    """When it ended, in seconds since 1970."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """One earlier asking, as a proposer is told of it."""

    id: AskId
    """Its id."""
    outcome: AskOutcome | None
    """How it ended; null while it has not."""
    because: str
    """In one sentence; empty while it has not ended."""
    operator: Operator
    """What sort of idea was asked for."""
    base: ObjectId
    """The tip that its copy was made from."""
    reserved_dollars: Annotated[float, AtLeast(0)]
    """What it may cost at most."""
    until: float | None = None
    """Until when its service turns everybody away."""
    at: float = 0.0
    """When it ended, in seconds since 1970."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Errand:
    """What the keeper of one asking is told: the command, its limits and its reach. No secret stands in here."""

    SCHEMA: ClassVar[str] = "overnight/errand/1"

    command: tuple[str, ...]
    """The command, with everything filled in."""
    variables: tuple[Name, ...]
    """Environment variables of the keeper's own that are passed on."""
    secrets: tuple[Name, ...]
    """Those of them whose values may appear nowhere."""
    files: tuple[Name, ...]
    """Files below the home that are copied into the private one."""
    readable: tuple[str, ...]
    """What may be read besides."""
    hidden: tuple[str, ...]
    """What may never be read."""
    wall_seconds: Annotated[float, Above(0)]
    """How long it may take."""
    silence_seconds: Annotated[float, Above(0)]
    """How long it may say nothing."""
    tier: Tier
    """The isolation it is held at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Returned:
    """How the process of one asking ended: written by its keeper as the last thing."""

    SCHEMA: ClassVar[str] = "overnight/returned/1"

    why: EndedBy
    """What ended it: itself, a limit, the engine, or that it could not be started at all."""
    status: int
    """Its exit status."""
    wall_seconds: Annotated[float, AtLeast(0)]
    """How long it took."""
    said: str = ""
    """The last line of its errors, or why it could not be started."""
    leaked: tuple[str, ...] = ()
    """Files of the copy that held one of its own credentials; they were removed."""
