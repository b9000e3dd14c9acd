"""What a fold accumulates, and the questions every entry is asked."""

from dataclasses import dataclass, field
from typing import Any

from overnight.records.contract import Clause
from overnight.records.lifecycle import Actor, State, why_not
from overnight.records.run import Outcome
from overnight.study.anchor import GENESIS

Data = dict[str, Any]


class Unlawful(Exception):
    """An entry that may not follow the ones before it; the message is a full sentence."""


@dataclass(slots=True)
class CandidateState:
    """One candidate as the ledger tells it."""

    id: str
    data: Data
    """The drafted candidate, as it stands in the file."""
    state: State = State.DRAFT
    kept: bool = False
    validated_under: str | None = None
    """The contract under which the gate last said yes."""
    permitted_under: str | None = None
    """The contract under which a person approved this very candidate."""
    refusals: list[Data] = field(default_factory=list)
    runs: list[str] = field(default_factory=list)
    failure: str = ""
    """The failure signature of the last broken run."""
    verdicts: list[Data] = field(default_factory=list)


@dataclass(slots=True)
class RunState:
    """One run as the ledger tells it."""

    data: Data
    ended: Data | None = None
    evidence: list[Data] = field(default_factory=list)


@dataclass(slots=True)
class StudyState:
    """Where a study stands after its entries so far."""

    task: str = ""
    study: str = ""
    tree: str = ""
    tip: str = ""
    incumbent: str = ""
    entered: str | None = None
    approvals: dict[Clause, Data] = field(default_factory=dict)
    """The last approval of each clause, in force or void."""
    amendments: list[Data] = field(default_factory=list)
    """Approvals that replaced an earlier one."""
    candidates: dict[str, CandidateState] = field(default_factory=dict)
    runs: dict[str, RunState] = field(default_factory=dict)
    stack: list[str] = field(default_factory=list)
    """Candidates kept since the incumbent, in order."""
    incumbents: list[str] = field(default_factory=list)
    """Every incumbent before the present one."""
    wall_seconds: float = 0.0
    entries: int = 0
    head: str = GENESIS
    last_refusal: Data | None = None

    def next_candidate(self) -> str:
        """The id of the next candidate."""
        return f"c-{len(self.candidates) + 1:04d}"

    def next_run(self) -> str:
        """The id of the next run."""
        return f"r-{len(self.runs) + 1:04d}"


def only(actor: str, allowed: Actor) -> None:
    """Refuse an entry from the wrong hand."""
    if actor != allowed:
        raise Unlawful(f"Only the {allowed} may write this entry, but the {actor} did.")


def check_step(now: State | None, then: State, actor: str) -> None:
    """Refuse a lifecycle step that the table does not allow."""
    what = why_not(now, then, Actor(actor))
    if what is not None:
        raise Unlawful(what[0].upper() + what[1:] + ".")


def candidate_of(state: StudyState, data: Data) -> CandidateState:
    """The candidate that an entry is about."""
    found = state.candidates.get(data["candidate"])
    if found is None:
        raise Unlawful(f"There is no candidate {data['candidate']}.")
    return found


def run_of(state: StudyState, name: str) -> RunState:
    """A run that was launched, or the refusal of a result that came from nowhere."""
    found = state.runs.get(name)
    if found is None:
        raise Unlawful(f"There is no run {name}: a result without a launched run does not exist.")
    return found


def check_tree(one: CandidateState, data: Data) -> None:
    """Refuse an entry about another tree than the one that was drafted."""
    if one.data["tree"] != data["tree"]:
        raise Unlawful(f"{one.id} was drafted with the tree {one.data['tree'][:12]}, not {data['tree'][:12]}.")


def check_evidence(state: StudyState, runs: list[str]) -> None:
    """Refuse a verdict that names runs without evidence."""
    for name in runs:
        run = run_of(state, name)
        if not run.evidence and (run.ended is None or not Outcome(run.ended["outcome"]).is_candidates_fault()):
            raise Unlawful(f"{name} has no evidence, so nothing can be decided on it.")
