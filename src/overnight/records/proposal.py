"""An idea, before anything was built from it, and what its author was shown."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Annotated, ClassVar

from overnight.records.codec import Misfit
from overnight.records.contract import Kind
from overnight.records.limits import CandidateId, Items, Scalar, Sentence, Slug, Text


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

    def __post_init__(self) -> None:
        """Refuse a bundle of one."""
        if len(self.bundle) == 1:
            raise Misfit(("bundle",), "lists one change, but a bundle has at least two")
        if len(self.params) > 1 and self.bundle and len(self.bundle) < len(self.params):
            raise Misfit(("bundle",), f"lists {len(self.bundle)} changes, but {len(self.params)} parameters change")


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What a proposer may see: never a hidden seed, never more than rounded aggregates."""

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
    """Parameter keys that may change."""
    params: Mapping[str, Scalar]
    """The parameters of the tip."""
    tried: tuple[Proposal, ...]
    """Every idea so far, the refuted ones too."""
    runs_left: int
    """Training runs that the budget still holds."""
