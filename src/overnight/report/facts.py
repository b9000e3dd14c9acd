"""Everything a morning report says, as plain frozen facts.

The engine fills them from the ledger; the renderers read nothing else. Every text in here
counts as untrusted: it may have been written by a candidate, and is made plain and escaped
where it is printed. Gains are always "higher is better", whatever the metric's direction.
"""

from dataclasses import dataclass
from typing import Literal

from overnight.records.contract import Plant
from overnight.records.lifecycle import State
from overnight.records.metric import Direction

Arm = Literal["baseline", "winner"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """What was measured."""

    name: str
    """What the referee reports as the score."""
    unit: str
    """The unit in which gains are told."""
    direction: Direction
    """Which way is better."""
    solved: float | None = None
    """The score at which the task counts as solved, or None where nobody declared one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """The unmodified training that everything is compared with."""

    name: str
    """What it is called."""
    source: str
    """Where it comes from: a built-in trainer, or a repository and its commit."""
    command: str
    """The command that trains it."""
    commit: str
    """Its commit in the candidate store."""
    score: float | None
    """Its mean score, or None where it was not measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Night:
    """One sitting, and what it cost."""

    started: str
    """When it began, as the ledger tells it."""
    ended: str
    """When it ended."""
    hours: float
    """How long it lasted."""
    runs: int
    """How many trainings were launched, those aside that the machine lost."""
    candidates: int
    """How many candidates were drafted."""
    wall_seconds: float
    """The wall time of all runs, added up."""
    cpu_seconds: float
    """The processor time of all runs, added up."""
    asks: int = 0
    """How often a coding agent was asked."""
    answers: str = ""
    """How that ended, as counts."""
    dollars: float = 0.0
    """What counts of what it cost."""
    tokens: int = 0
    """What it read and wrote."""
    lost_runs: int = 0
    """How many more the machine lost; they were run again, and no budget of runs counts them."""
    gaps: tuple[tuple[str, float], ...] = ()
    """When the machine stood still: until when, and for how many seconds. No budget counts that time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceFile:
    """A file that a claim rests on."""

    path: str
    """Where it lies, from the study's folder."""
    digest: str
    """Its SHA-256."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One certified gain."""

    sentence: str
    """The verdict's own sentence, printed unchanged."""
    fixed_line: str
    """The line that stands under every claim and says what it does not say."""
    before: float
    """The mean score of what it is compared with."""
    after: float
    """The mean score of what was certified."""
    gain: float
    """The estimated gain."""
    low: float
    """The low end of the gain's interval."""
    high: float
    """The high end of the gain's interval."""
    seeds_each: int
    """Fresh train seeds on each side."""
    candidates: tuple[str, ...]
    """The ids of the stack that was certified."""
    evidence: tuple[EvidenceFile, ...]
    """What it rests on."""
    command: str
    """The command that reproduces it."""
    guardrails: tuple[tuple[str, float, float], ...] = ()
    """Each guarded measure, how much worse it is (below 0 it is better), and the margin that the contract allows."""
    confidence: float = 0.95
    """The level of the interval."""
    details: str = ""
    """What a statistician asks for and nobody else; shown only on request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shortfall:
    """What can be said when nothing was certified."""

    because: str
    """Why nothing was certified, as a full sentence."""
    would_decide: str
    """What would decide the question, as a full sentence."""
    ruled_out: float | None = None
    """A gain of this much or more is ruled out; None where nothing is."""
    gain: float | None = None
    """The tip's estimated gain over the incumbent, or None where nothing was measured."""
    low: float | None = None
    """The low end of its interval."""
    high: float | None = None
    """The high end of its interval."""
    confidence: float = 0.95
    """The level of the interval, and of what is ruled out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateLine:
    """One candidate, as far as the morning cares."""

    id: str
    """Its id."""
    commit: str
    """Its commit in the candidate store."""
    hypothesis: str
    """Why it should help, as its proposer wrote it."""
    proposer: str
    """Who had the idea."""
    state: State
    """Where it stands."""
    kept: bool
    """Whether it joined the tip."""
    verdict: str
    """The verdict's own sentence; for a crash, its failure; empty where nothing was decided."""
    gain: float | None = None
    """Its estimated gain over the tip, or None where nothing could be measured."""
    score: float | None = None
    """Its mean score, or None: a crash is an outcome without a number."""
    luckiest: float | None = None
    """Its best single score; shown as what a greedy loop would have seen, never as a result."""
    tip_mean: float | None = None
    """The mean score of the tip it was compared with."""
    crashed: bool = False
    """Whether no run brought a policy, by its own fault."""
    plant: Plant | None = None
    """Whether the engine planted it to test the judge."""
    refusals: tuple[str, ...] = ()
    """What the gate had against it, one sentence each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """How one arm learned: one series of (env_steps, value) for each train seed."""

    arm: Arm
    """Which arm."""
    seeds: tuple[tuple[tuple[float, float], ...], ...]
    """The series, each in order of env_steps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """One episode to watch."""

    title: str
    """Whose episode it is, and which: the median one."""
    seed: int
    """The train seed of the policy that plays."""
    score: float
    """The episode's score."""
    frames: tuple[bytes, ...]
    """PNG pictures of one size. The page holds each of them once, so a few hundred are plenty."""
    seconds_per_frame: float
    """How long each is shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """The score of somebody who learned nothing."""

    name: str
    """Who: `random`, `no-op`."""
    score: float
    """The score."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NextCommand:
    """A command that works when pasted."""

    says: str
    """What it does."""
    command: str
    """The command."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """All of one night."""

    study: str
    """The study's name."""
    task: str
    """The task's name."""
    environment: str
    """The environment's id."""
    metric: Metric
    """What was measured."""
    budget: str
    """What one run gets, as a sentence."""
    hardware: str
    """What it ran on, as a sentence."""
    isolation: str
    """The isolation tier that every result was made under."""
    baseline: Baseline
    """What everything is compared with."""
    night: Night
    """The sitting and its cost."""
    claims: tuple[Claim, ...]
    """What was certified; the first is the headline, and is told against the baseline."""
    shortfall: Shortfall | None
    """What can be said when there are no claims."""
    candidates: tuple[CandidateLine, ...]
    """What was tried, in order."""
    curves: tuple[Curve, ...]
    """How the arms learned."""
    replays: tuple[Replay, Replay] | None
    """The median episodes of baseline and winner, side by side."""
    references: tuple[Reference, ...]
    """Scores of those who learn nothing."""
    versions: tuple[tuple[str, str], ...]
    """Names and versions of what ran."""
    next_commands: tuple[NextCommand, NextCommand, NextCommand]
    """What to do now."""
    ledger_head: str
    """The hash of the last entry this report was made from."""
    ledger_entries: int
    """How many entries the ledger had."""
    error: str = ""
    """How the allowed chance of a false claim was spent; shown only on request."""
    search: str = ""
    """Whether the night was warm or cold, and what search began from; empty where search proposed nothing."""
    behaviour: tuple[str, ...] = ()
    """What was seen in episodes of what was certified."""
    attribution: tuple[str, ...] = ()
    """Which parts of the certified stack carry the gain, or why nobody knows; empty where nothing was certified."""
    total: str = ""
    """What a study of many runs gained in all, as a sentence; empty where nobody measured it."""
