"""An idea, before anything was built from it, and what its author was shown."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Annotated, ClassVar, Literal

from overnight.records.agent import Ask, Operator
from overnight.records.codec import Misfit
from overnight.records.contract import Kind
from overnight.records.limits import AtLeast, CandidateId, Items, ObjectId, Scalar, Sentence, Slug, Text
from overnight.records.space import Space, StartingPoint


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """One hypothesis with its predicted effect. A bundle of changes must be declared as one."""

    SCHEMA: ClassVar[str] = "overnight/proposal/1"

    proposer: Slug
    """Who had the idea, such as `search`, `agent` or `human`."""
    kind: Kind
    """What sort of change it is."""
    hypothesis: Sentence
    """Why it should help, in one sentence."""
    predicted_effect: Sentence
    """What will be seen if the hypothesis holds."""
    params: Mapping[str, Scalar] = field(default_factory=lambda: MappingProxyType({}))
    """Parameters and their new values; empty when the change is an edited copy."""
    bundle: Annotated[tuple[Sentence, ...], Items(0, 20)] = ()
    """The separate changes of a declared bundle, one sentence each; a winner is ablated."""
    parents: tuple[CandidateId, ...] = ()
    """Candidates that the idea builds on."""
    operator: Operator | None = None
    """What it does with earlier ideas; null where nobody said."""

    def __post_init__(self) -> None:
        """Refuse a bundle of one."""
        if len(self.bundle) == 1:
            raise Misfit(("bundle",), "lists one change, but a bundle has at least two")
        if len(self.params) > 1 and self.bundle and len(self.bundle) < len(self.params):
            raise Misfit(("bundle",), f"lists {len(self.bundle)} changes, but {len(self.params)} parameters change")


Ending = Literal["kept", "rejected", "inconclusive", "crashed", "refused", "pending", "certified", "reverted"]
"""How an idea ended, in the words that a proposer is told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """One earlier idea and what became of it, rounded so that no hidden seed shows through."""

    candidate: CandidateId
    """The candidate that carried the idea."""
    proposal: Proposal
    """The idea as it was proposed."""
    params: Mapping[str, Scalar]
    """The whole parameter set of the candidate, the unchanged keys too; empty where it has none."""
    outcome: Ending
    """How it ended; `pending` while nothing is decided, `refused` when the gate said no."""
    gain: float | None = None
    """The gain over the candidate it was built on, rounded to the metric's precision; null where none was measured."""
    base: CandidateId | None = None
    """The kept candidate it was built on; null for the baseline. It makes gains over different tips comparable."""
    because: tuple[Sentence, ...] = ()
    """What the gate or its own failure said; empty where it ran and was judged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What a proposer may see: never a hidden seed, never more than rounded aggregates.

    It holds everything a proposer needs to go on where it stopped, so that a proposer keeps no
    store of its own and two processes with the same view propose the same thing.
    """

    SCHEMA: ClassVar[str] = "overnight/view/1"

    task: Slug
    """The task's name."""
    study: Slug
    """The study's name."""
    program: Text
    """The direction in prose, as it stands now."""
    surface: tuple[str, ...]
    """Path patterns that may change."""
    keys: tuple[str, ...]
    """Parameter keys that may change; empty allows all of them."""
    space: Space | None
    """What the trainer declares about its parameters; null for a command that declares nothing."""
    params: Mapping[str, Scalar]
    """The parameters of the tip."""
    tried: tuple[Tried, ...]
    """Every idea so far in the order of their ids, the refuted ones too."""
    runs_left: Annotated[int, AtLeast(0)]
    """Training runs that the budget still holds."""
    candidates_left: Annotated[int, AtLeast(0)]
    """Candidates that the contract still allows."""
    seed: Annotated[int, AtLeast(0)]
    """The seed of a proposer's own random choices: derived from the study, and no secret."""
    asks: tuple[Ask, ...] = ()
    """Every time that a coding agent was asked, in order."""
    dollars_left: Annotated[float, AtLeast(0)] = 0.0
    """What coding agents may still cost."""
    tokens_left: Annotated[int, AtLeast(0)] = 0
    """What coding agents may still read and write."""
    operator: Operator | None = None
    """What sort of idea is wanted; null leaves it to the proposer."""
    starting: tuple[StartingPoint, ...] = ()
    """Known settings of the trainer that may be tried, the nearest to the task first; a cold night has fewer."""
    diagnostics: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    """What the tip's trainings reported about themselves, averaged and rounded; hints, never evidence."""
    kept_out: tuple[Sentence, ...] = ()
    """What the gate said about the last copy that it would not even draft."""

    def opens(self, key: str) -> bool:
        """Whether a parameter is there, and the contract lets it be changed."""
        return key in self.params and (not self.keys or key in self.keys)


@dataclass(frozen=True, slots=True, kw_only=True)
class Edited:
    """A proposer's answer when the idea is an edited copy of a tip."""

    proposal: Proposal
    """The idea; its parameters are read from the copy."""
    folder: str
    """Where the copy lies; the engine reads it, and whoever made it may remove it afterwards."""
    base: ObjectId
    """The tip that the copy was made from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """A proposer's answer when it has no idea yet but may have one later."""

    until_seconds: Annotated[float, AtLeast(0)]
    """How many seconds from now asking again makes sense."""
    because: Sentence
    """What it is waiting for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exhausted:
    """A proposer's answer when it will have no further idea under this view."""

    because: Sentence
    """Why there is nothing left to propose."""
