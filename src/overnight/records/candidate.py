"""A proposed change, pinned to one git tree."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from overnight.records.contract import Plant
from overnight.records.limits import AtLeast, CandidateId, Digest, Items, Name, ObjectId
from overnight.records.proposal import Proposal


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One path that differs between the tip and the candidate."""

    path: str
    """The path inside the tree, as git names it."""
    old_mode: str
    """Git's mode before; `000000` where the path is new."""
    new_mode: str
    """Git's mode after; `000000` where the path is gone."""
    old_blob: ObjectId
    """The object before."""
    new_blob: ObjectId
    """The object after."""
    new_bytes: Annotated[int, AtLeast(0)]
    """The size of the object after."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One hypothesis, one git tree. What is checked, approved and run is this tree and no other."""

    SCHEMA: ClassVar[str] = "overnight/candidate/1"

    id: CandidateId
    """Given by the engine, in order."""
    proposal: Proposal
    """The idea it carries."""
    base: ObjectId
    """The commit it was built on: the tip of that moment."""
    commit: ObjectId
    """Its own commit in the candidate store."""
    tree: ObjectId
    """The tree of that commit: what is run."""
    changed_paths: Annotated[int, AtLeast(0)]
    """How many paths differ from the base."""
    changes: Digest
    """Digest of the list of changes, which the two trees give again at any time."""
    contract: Digest
    """The contract under which it was drafted."""
    lines: int = 0
    """Lines of code that it adds, less those that it takes away; below 0 it is the simpler one where none is better."""
    plant: Plant | None = None
    """What it tests when the engine planted it; null for every idea that is meant."""
    ablates: CandidateId | None = None
    """The certified tip that it knocks parts out of; null for every candidate that is an idea of its own."""
    without: Annotated[tuple[Name, ...], Items(0, 1000)] = ()
    """The parts that it leaves out: candidates of the certified stack, or parameters of a bundle."""
    idea: Digest | None = None
    """What candidates share that come to the same thing: parameters to three digits, code without its layout."""
