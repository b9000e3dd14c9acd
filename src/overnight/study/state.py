"""What a fold accumulates, and the questions every entry is asked."""

from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, ClassVar, Literal

from overnight.records.contract import Clause
from overnight.records.lifecycle import Actor, State, why_not
from overnight.records.run import Outcome
from overnight.records.strict_json import canonical
from overnight.study.anchor import GENESIS

Data = dict[str, Any]


class Unlawful(Exception):
    """An entry that may not follow the ones before it; the message is a full sentence."""


@dataclass(slots=True, kw_only=True)
class CandidateState:
    """One candidate as the ledger tells it."""

    id: str
    """Its id."""
    drafted_at: int
    """Where in the ledger file the entry stands that drafted it, in bytes."""
    hypothesis: str
    """Its idea."""
    base: str
    """The commit it was built on."""
    commit: str
    """Its own commit."""
    tree: str
    """Its tree."""
    lines: int = 0
    """Lines of code that it adds, less those that it takes away."""
    state: State = State.DRAFT
    """Where it stands."""
    kept: bool = False
    """Whether it joined the tip."""
    provisional: bool = False
    """Whether it is kept only until fresh tuning seeds have spoken."""
    racing: bool = False
    """Whether it runs against the tip, and nothing is decided yet."""
    validated_under: str | None = None
    """The contract under which the gate last said yes."""
    permitted_under: str | None = None
    """The contract under which a person approved this very candidate."""
    permit: Data | None = None
    """That approval as it stands in the ledger, with its signature."""
    refused: list[str] = field(default_factory=list)
    """What the gate said when it last said no."""
    runs: list[str] = field(default_factory=list)
    """Its runs."""
    failure: str = ""
    """The failure signature of the last broken run."""
    verdict: str = ""
    """The sentence of the last verdict."""
    gain: float | None = None
    """The gain of the last verdict; null where none was measured."""
    plant: str = ""
    """What it tests when the engine planted it; empty for every idea that is meant."""
    ablates: str = ""
    """The certified tip that it knocks parts out of; empty for every idea of its own."""
    without: list[str] = field(default_factory=list)
    """The parts that it leaves out."""
    proposer: str = ""
    """Who had the idea."""
    parents: list[str] = field(default_factory=list)
    """Candidates that the idea builds on."""
    idea: str = ""
    """What it shares with candidates that come to the same thing; empty where nobody compared it."""


@dataclass(slots=True, kw_only=True)
class RunState:
    """One run as the ledger tells it."""

    candidate: str
    """What was trained."""
    tree: str
    """The tree that was run."""
    comparability: str
    """The key that its results carry."""
    train_seed: int
    """The seed given to the trainer."""
    phase: str
    """What it is for."""
    round: int
    """Which reign or attempt its seeds belong to."""
    number: int
    """Which of the round's seeds it has."""
    outcome: Outcome | None = None
    """How it ended; null while it has not."""
    evidence: int = 0
    """How many times it was measured."""
    score: float | None = None
    """The last score; null where there is none."""
    guardrails: dict[str, float] = field(default_factory=dict)
    """The guarded measures of the last measurement."""
    quarantined: str = ""
    """Why a first measurement was set aside; empty where none was."""
    wall_seconds: float = 0.0
    """How long it took."""
    rung: int = 0
    """Which rung of the ladder it was run on."""


@dataclass(frozen=True, slots=True)
class Moment:
    """One thing that the race is told, in the order in which the ledger has it."""

    kind: Literal["planned", "entered", "left", "ran", "decided", "attempted"]
    """What happened."""
    about: str
    """The run, the candidate, or the comparability key of a plan."""
    verdict: str = ""
    """What was decided; for a plan, the number of its calibration."""
    tip: str = ""
    """The commit of the tip afterwards, where something was decided."""
    incumbent: str = ""
    """The commit of the incumbent afterwards."""


@dataclass(slots=True, kw_only=True)
class AskState:
    """One time that a coding agent was asked, as the ledger tells it."""

    operator: str
    """What sort of idea was asked for."""
    base: str
    """The tip that its copy was made from."""
    reserved_dollars: float
    """What it may cost at most."""
    outcome: str = ""
    """How it ended; empty while it has not."""
    because: str = ""
    """In one sentence."""
    until: float | None = None
    """Until when its service turns everybody away."""
    at: float = 0.0
    """When it ended."""


@dataclass(slots=True, kw_only=True)
class StudyState:
    """Where a study stands after its entries so far: the accumulator of the fold, and what `state.json` holds."""

    SCHEMA: ClassVar[str] = "overnight/state/1"

    task: str = ""
    """The task's name."""
    study: str = ""
    """The study's name."""
    tree: str = ""
    """The baseline's tree."""
    tip: str = ""
    """What the next candidate is built on."""
    incumbent: str = ""
    """The last certified tip."""
    seed_commitment: str | None = None
    """What commits the study to its hidden seed key."""
    baseline: str = ""
    """The candidate that is the baseline itself."""
    schedule: Data | None = None
    """The looks of the attempt that is open, as they were written down before its first run."""
    attempts: int = 0
    """How often a certification was decided."""
    attempts_certified: list[bool] = field(default_factory=list)
    """For each of these, whether it certified: what the next one may spend follows from it."""
    certified: list[str] = field(default_factory=list)
    """Every tip that was ever certified, in order."""
    claimed: list[float] = field(default_factory=list)
    """The gain of the last of these, with the two ends of its interval; empty where nothing was certified."""
    ablated: list[str] = field(default_factory=list)
    """Certified tips that were taken apart."""
    verified: list[str] = field(default_factory=list)
    """Candidates whose evidence was verified, with behaviour looked at."""
    calibrations: list[Data] = field(default_factory=list)
    """Every calibration with its frozen plan; the last is in force."""
    calibrating: str | None = None
    """The contract for which only the baseline may run, until the eighth clause is approved."""
    baseline_terms: str = ""
    """The digest of the first seven clauses without the amounts: what the baseline is bound to."""
    moments: list[Moment] = field(default_factory=list)
    """What the race is told: plans, candidates, results and verdicts, in order."""
    entered: str | None = None
    """The contract for which the loop was entered."""
    entered_terms: str = ""
    """The digest of its terms without the amounts; what was validated under them stays so when only amounts change."""
    approvals: dict[Clause, Data] = field(default_factory=dict)
    """The last approval of each clause, in force or void."""
    amendments: list[Data] = field(default_factory=list)
    """Approvals that replaced an earlier one."""
    candidates: dict[str, CandidateState] = field(default_factory=dict)
    """Every candidate by id."""
    runs: dict[str, RunState] = field(default_factory=dict)
    """Every run by id."""
    lost_runs: int = 0
    """How many of these were lost by the machine's fault; they are run again, and no budget of runs counts them."""
    asks: dict[str, AskState] = field(default_factory=dict)
    """Every time that a coding agent was asked, by id."""
    dollars: float = 0.0
    """What coding agents cost, as far as it counts."""
    tokens: int = 0
    """What coding agents read and wrote."""
    stack: list[str] = field(default_factory=list)
    """Candidates kept since the incumbent, in order."""
    incumbents: list[str] = field(default_factory=list)
    """Every incumbent before the present one."""
    wall_seconds: float = 0.0
    """Wall time that runs took, added up."""
    cpu_seconds: float = 0.0
    """Processor time that runs took, added up."""
    rung: int = 0
    """The rung of the ladder of budgets on which it stands."""
    decided_on_rung: int = 0
    """How many candidates were decided on this rung."""
    standstills: int = 0
    """How often the engine stood still."""
    still_seconds: float = 0.0
    """For how long, added up."""
    handed_off: str = ""
    """Why the last sitting ended; empty when something was begun since."""
    leads_on: str = ""
    """The command that its handoff named."""
    entries: int = 0
    """How many entries it is folded from."""
    head: str = GENESIS
    """The hash of the last of them."""
    ledger_bytes: int = 0
    """How long the ledger was."""
    ledger_sha256: str = ""
    """The digest of those bytes: how fresh this is."""
    refused: list[str] = field(default_factory=list)
    """What the gate said when it last refused to open the study."""

    def next_candidate(self) -> str:
        """The id of the next candidate."""
        return f"c-{len(self.candidates) + 1:04d}"

    def ideas(self) -> list[CandidateState]:
        """Every candidate that somebody means: not the baseline, no plant, and no certified stack without a part."""
        found = self.candidates.values()
        return [one for one in found if one.id != self.baseline and not (one.plant or one.ablates)]

    @property
    def calibration(self) -> Data | None:
        """The last calibration; None while there is none."""
        return self.calibrations[-1] if self.calibrations else None

    def calibration_digest(self) -> str | None:
        """The digest of the last calibration, by which an approval names it."""
        return None if self.calibration is None else sha256(canonical(self.calibration)).hexdigest()

    def attempt_is_open(self) -> bool:
        """Whether a certification has begun on which nothing is decided yet."""
        wanted = self.attempts + 1
        return self.schedule is not None or any(
            run.phase == "confirm" and run.round == wanted for run in reversed(self.runs.values())
        )

    @property
    def paid_runs(self) -> int:
        """The runs that the budget counts: all but those that the machine lost."""
        return len(self.runs) - self.lost_runs

    def lost_told(self) -> str:
        """What is said beside the number of runs where the machine lost some; empty where it lost none."""
        return f", {self.lost_runs:,} more lost by the machine" if self.lost_runs else ""

    def next_ask(self) -> str:
        """The id of the next time that a coding agent is asked."""
        return f"a-{len(self.asks) + 1:04d}"

    def next_run(self) -> str:
        """The id of the next run."""
        return f"r-{len(self.runs) + 1:04d}"


def text(value: object) -> str:
    """A value of an entry that must be text."""
    if not isinstance(value, str):
        raise TypeError("text is needed")
    return value


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
    if one.tree != data["tree"]:
        raise Unlawful(f"{one.id} was drafted with the tree {one.tree[:12]}, not {data['tree'][:12]}.")


def check_evidence(state: StudyState, runs: list[str]) -> None:
    """Refuse a verdict that names runs without evidence."""
    for name in runs:
        run = run_of(state, name)
        if not run.evidence and (run.outcome is None or not run.outcome.is_candidates_fault()):
            raise Unlawful(f"{name} has no evidence, so nothing can be decided on it.")


def check_comparable(state: StudyState, runs: list[str]) -> None:
    """Refuse a verdict that compares runs of different budgets, hardware or protocols."""
    for name in runs[1:]:
        if state.runs[name].comparability != state.runs[runs[0]].comparability:
            raise Unlawful(
                f"{name} was made at another budget, on other hardware or by another protocol than {runs[0]}, "
                "so the two are never compared."
            )
