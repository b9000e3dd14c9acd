"""What the gate is asked about. Everything a rule may know is in here, so rules are pure."""

from collections.abc import Mapping
from dataclasses import dataclass

from overnight.records.candidate import Candidate, Change
from overnight.records.contract import Contract
from overnight.records.lifecycle import State
from overnight.records.space import Space
from overnight.records.standing import ClauseStanding


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """May this study train at all?"""

    standings: tuple[ClauseStanding, ...]
    """Each of the eight approvals against the contract as it stands."""
    contract: Contract | None
    """The contract, once every clause is sound."""
    digest: str | None
    """Its digest."""
    entered: str | None
    """The contract for which somebody asked to enter the loop."""
    tree: str
    """The baseline's tree, as the ledger's first entry has it."""
    runs: int
    """Training runs launched so far, without those that the machine lost."""
    wall_seconds: float
    """Wall time that runs took, those that went side by side counted once."""
    admitted: frozenset[str]
    """Candidates that the gate has ever said yes to; refused ones do not count, and neither does the baseline."""
    host: str
    """The name of this machine."""
    baseline: str = ""
    """The candidate that is the baseline itself; its clause approves it, and no number of ideas limits it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """May this candidate run? Everything about it was read from the store a moment ago."""

    opening: Opening
    """The study as it stands."""
    contract: Contract
    """The contract as it stands."""
    candidate: Candidate
    """The candidate as the ledger tells it."""
    state: State
    """Where it stands."""
    permitted: bool
    """Whether a person approved this very candidate under this contract."""
    tip: str
    """The commit that the next candidate is built on."""
    stored_commit: str | None
    """What the candidate's ref points to now."""
    stored_tree: str | None
    """The tree of that commit now."""
    stored_parents: tuple[str, ...]
    """The parents of that commit now."""
    changes: tuple[Change, ...]
    """The difference of the two trees now."""
    before: Mapping[str, bytes]
    """The bytes of each changed file before, as far as they are small enough to be read."""
    after: Mapping[str, bytes]
    """The bytes of each changed file after."""
    space: Space | None
    """The built-in trainer's declared parameters; None for a repository's own command."""
    twin: str = ""
    """The earlier candidate that comes to the same thing and what became of it; empty where there is none."""
