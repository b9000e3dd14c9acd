"""The terms of a study: eight clauses, each approved on its own."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Annotated, ClassVar, Literal

from overnight.records.agent import Agent
from overnight.records.codec import Misfit, digest
from overnight.records.env import EnvSpec
from overnight.records.ladder import Rung
from overnight.records.limits import Above, AtLeast, AtMost, Digest, Items, Length, Name, ObjectId, Sentence, Slug
from overnight.records.metric import MetricSpec
from overnight.records.tier import Tier


class Clause(StrEnum):
    """The eight approvals, in the order in which they are asked."""

    TASK = "task"
    METRIC = "metric"
    SCOPE = "scope"
    BUDGET = "budget"
    HARDWARE = "hardware"
    BASELINE = "baseline"
    EVALUATION = "evaluation"
    EXPERIMENTS = "experiments"


CALLED = {
    Clause.TASK: "task definition",
    Clause.METRIC: "metric with its guardrails",
    Clause.SCOPE: "scope of change",
    Clause.BUDGET: "budget",
    Clause.HARDWARE: "hardware target",
    Clause.BASELINE: "baseline command",
    Clause.EVALUATION: "evaluation protocol",
    Clause.EXPERIMENTS: "class of experiments",
}

PARAMS_FILE = "params.json"
"""The one file of the `params` preset."""
_TRAINER = re.compile(r"overnight\.rl\.trainers\.[a-z][a-z0-9_]{0,40}")

Glob = Annotated[str, Length(200, 1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """Clause 1: what the study is about, and what it is not about."""

    name: Slug
    """The task's short name, which is also its folder."""
    mission: Sentence
    """What should become better, in one sentence."""
    constraints: tuple[Sentence, ...]
    """What any solution must respect."""
    non_goals: Annotated[tuple[Sentence, ...], Items(1, 50)]
    """What the study does not try to do; at least one."""
    env: EnvSpec
    """The environment in which the referee measures."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """Clause 3: what a candidate may change. Everything else is protected."""

    preset: Literal["params", "single-file", "candidate-dir", "repo"]
    """The shape of the surface; `params` holds no code at all."""
    paths: Annotated[tuple[Glob, ...], Items(1, 200)]
    """Path patterns that may change; `*` stays inside a folder, `**` does not."""
    keys: tuple[Name, ...]
    """For JSON and parameter files: the keys that may change; empty allows all of them."""
    symbols: tuple[Name, ...] = ()
    """Functions and classes that the change is about; recorded for the reader."""
    protected: tuple[Glob, ...] = ()
    """Path patterns that may never change, even where `paths` allows them."""
    max_files: Annotated[int, AtLeast(1), AtMost(1000)] = 20
    """The greatest number of files one candidate may change."""
    max_changed_bytes: Annotated[int, AtLeast(1), AtMost(10_000_000)] = 100_000
    """The greatest size, added up, of the files one candidate writes."""

    def __post_init__(self) -> None:
        """Refuse a parameter surface that would open more than the parameter file."""
        if self.preset == "params" and self.paths != (PARAMS_FILE,):
            raise Misfit(
                ("paths",),
                f"opens {', '.join(self.paths)}, but the preset `params` opens {PARAMS_FILE} and nothing else",
            )

    def allows(self, path: str) -> bool:
        """Whether a candidate may touch this path."""
        return any(_matches(path, glob) for glob in self.paths) and not self.protects(path)

    def protects(self, path: str) -> bool:
        """Whether this path is closed even inside the surface."""
        return any(_matches(path, glob) for glob in self.protected)


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """Clause 4: what one run and the whole study may cost. Reaching any limit ends with a handoff."""

    stop_unit: Literal["env_steps", "cpu_seconds", "wall_seconds"]
    """The unit in which one training run is limited, and which the trainer obeys."""
    stop_amount: Annotated[float, Above(0)]
    """How much of that unit one training run gets."""
    run_wall_seconds: Annotated[float, Above(0)]
    """The hard limit of one run, held by the supervisor."""
    max_runs: Annotated[int, AtLeast(1), AtMost(1_000_000)]
    """The greatest number of training runs in the study."""
    max_wall_hours: Annotated[float, Above(0), AtMost(10_000)]
    """The greatest time the study may take, all nights added up."""
    disk_gigabytes: Annotated[float, Above(0)] = 10.0
    """The greatest disk use of the study."""
    max_dollars: Annotated[float, AtLeast(0)] = 0.0
    """What coding agents may cost; 0 means that none is paid for."""
    max_tokens: Annotated[int, AtLeast(0)] = 0
    """What coding agents may read and write; 0 means that none is used."""
    metered: bool = False
    """Whether a broker holds the training environments and counts their steps, instead of believing the trainer."""
    ladder: Annotated[tuple[Rung, ...], Items(0, 20)] = ()
    """Smaller budgets that runs begin with, rising to `stop_amount`; empty for one budget all along."""

    def amount(self, rung: int) -> float:
        """How much of the unit one run gets on a rung."""
        return self.ladder[min(rung, len(self.ladder) - 1)].amount if self.ladder else self.stop_amount

    def on(self, rung: int) -> "Budget":
        """The budget as it is on one rung, without the ladder."""
        return replace(self, stop_amount=self.amount(rung), ladder=())

    def __post_init__(self) -> None:
        """Refuse a wall-clock budget that the hard limit cuts, a broker with nothing to count, and a broken ladder."""
        amounts = [rung.amount for rung in self.ladder]
        if amounts and (amounts != sorted(set(amounts)) or amounts[-1] != self.stop_amount):
            told = ", ".join(f"{amount:g}" for amount in amounts)
            raise Misfit(("ladder",), f"has the amounts {told}, but they must rise to {self.stop_amount:g}")
        if self.metered and self.stop_unit != "env_steps":
            raise Misfit(
                ("metered",), f"is true, but a run is limited in {self.stop_unit}, and a broker counts env_steps"
            )
        if self.stop_unit == "wall_seconds" and self.run_wall_seconds < self.stop_amount:
            raise Misfit(
                ("run_wall_seconds",),
                f"is {self.run_wall_seconds:g}, but a run is given {self.stop_amount:g} wall seconds",
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Hardware:
    """Clause 5: where training runs."""

    host: Name
    """The name of the one machine that may train, or `any`."""
    device: Name
    """`cpu`, or the accelerator that each run gets, such as `cuda:0`."""
    cores_per_run: Annotated[int, AtLeast(1), AtMost(1024)]
    """How many processor cores each run is pinned to."""
    memory_gigabytes: Annotated[float, Above(0)] | None = None
    """The greatest memory of one run, or null for no limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """Clause 6: the unmodified training that everything is compared with."""

    trainer: Literal["built-in", "repository"]
    """Whether the command is ours or the user's."""
    command: Annotated[tuple[Name, ...], Items(1, 200)]
    """The exact command, as a list of words; no shell reads it."""
    tree: ObjectId
    """The git tree that it runs from."""
    source: Sentence
    """Where the baseline's settings come from."""
    source_commit: ObjectId | None = None
    """The commit of the user's repository, or null without one."""

    def __post_init__(self) -> None:
        """Refuse a command that calls itself built-in and is not."""
        ours = len(self.command) == 3 and self.command[:2] == ("python", "-m") and _TRAINER.fullmatch(self.command[2])
        if self.trainer == "built-in" and not ours:
            raise Misfit(
                ("command",),
                f"is `{' '.join(self.command)[:120]}`, which is not the command of a built-in trainer",
                hint="for a command of your own, say `trainer: repository`",
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """Clause 7: how scores are measured and how sure a claim must be."""

    screen_train_seeds: Annotated[int, AtLeast(1), AtMost(1000)] | None = None
    """Train seeds on which the baseline is calibrated, or null: as many as the runs that fit allow."""
    confirm_train_seeds: Annotated[int, AtLeast(1), AtMost(1000)] | None = None
    """The most fresh train seeds of each side of a certification, or null: as many as the runs that fit allow."""
    screen_episodes: Annotated[int, AtLeast(1), AtMost(100_000)] = 20
    """Episodes behind one screening score."""
    confirm_episodes: Annotated[int, AtLeast(1), AtMost(100_000)] = 100
    """Episodes behind one certification score."""
    max_false_claims: Annotated[float, Above(0), AtMost(0.5)] = 0.05
    """The chance that the study claims a gain that is not there."""
    repeatable: bool = True
    """Whether a policy must play an episode twice in the same way; false for policies that draw random numbers."""
    min_tier: Tier = "T1"
    """The weakest isolation under which a result counts."""
    policy: Literal["certify", "greedy"] = "certify"
    """How the tip moves: `greedy` keeps whatever beat it in one run, certifies nothing, and is there for comparison."""


Kind = Literal["hyperparameter", "algorithm", "network", "reward", "curriculum", "randomization", "environment", "code"]


Plant = Literal["placebo", "cheat"]
"""What the engine may plant among the candidates to test its own judge: a change that is none, and one that cheats."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Automation:
    """The standing approval: which candidates run without being asked about one by one."""

    max_candidates: Annotated[int, AtLeast(0), AtMost(1_000_000)]
    """How many candidates of the class it covers; later ones need a permit each, and 0 covers none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StopRules:
    """When the loop ends by itself; the first rule that fires is named in the handoff."""

    max_candidates: Annotated[int, AtLeast(1), AtMost(1_000_000)]
    """The greatest number of candidates."""
    plateau_candidates: Annotated[int, AtLeast(1)] | None = None
    """Stop after this many candidates in a row without a kept one."""
    target_score: float | None = None
    """Stop when the certified score reaches this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Permissions:
    """What candidates may reach beyond their own folder."""

    network: bool
    """Whether training may use the network."""
    trackers: tuple[Name, ...] = ()
    """Experiment trackers that may be written to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiments:
    """Clause 8: which experiments may run, who proposes them, and when the loop stops."""

    kinds: Annotated[tuple[Kind, ...], Items(1, 8)]
    """The kinds of change that may be proposed."""
    proposers: Annotated[tuple[Slug, ...], Items(1, 10)]
    """Who may propose, such as `search`, `agent` or `human`."""
    automation: Automation
    """The standing approval."""
    stop: StopRules
    """The rules that end the loop."""
    permissions: Permissions
    """Network and trackers."""
    plants: Annotated[tuple[Plant, ...], Items(0, 2)] = ()
    """Candidates that test the judge: `placebo` is the baseline renamed, `cheat` tries to patch its evaluator."""
    agent: Agent | None = None
    """The coding agent that proposes as `agent`; null where none does."""
    novelty: Literal["on", "off"] = "on"
    """Whether an idea that was tried before, or nearly, is refused; `off` for nights in which nothing may help."""

    start: Literal["warm", "cold"] = "warm"
    """What search may know: `cold` withholds every recipe and published setting of the environment's own family."""

    def __post_init__(self) -> None:
        """Refuse an agent that may not propose, and a proposer that nobody described."""
        if ("agent" in self.proposers) is not (self.agent is not None):
            named = "names `agent`" if "agent" in self.proposers else "does not name `agent`"
            raise Misfit(
                ("proposers",), f"{named}, but `agent` says {'nothing' if self.agent is None else 'which one'}"
            )


Clauses = Task | MetricSpec | Scope | Budget | Hardware | Baseline | Evaluation | Experiments
CLAUSE_TYPES: dict[Clause, type[Clauses]] = {
    Clause.TASK: Task,
    Clause.METRIC: MetricSpec,
    Clause.SCOPE: Scope,
    Clause.BUDGET: Budget,
    Clause.HARDWARE: Hardware,
    Clause.BASELINE: Baseline,
    Clause.EVALUATION: Evaluation,
    Clause.EXPERIMENTS: Experiments,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Contract:
    """The whole of the terms: one record for each of the eight clauses."""

    SCHEMA: ClassVar[str] = "overnight/contract/1"

    task: Task
    """What the study is about."""
    metric: MetricSpec
    """What is measured, and what must not get worse."""
    scope: Scope
    """What a candidate may change."""
    budget: Budget
    """What it may cost."""
    hardware: Hardware
    """Where it runs."""
    baseline: Baseline
    """What everything is compared with."""
    evaluation: Evaluation
    """How it is measured."""
    experiments: Experiments
    """Which experiments may run, and when the loop stops."""

    def clause(self, name: Clause) -> Clauses:
        """The record of one clause."""
        found: Clauses = getattr(self, name.value)
        return found

    def runs_candidate_code(self) -> bool:
        """Whether a candidate may bring code of its own, or the command is not ours."""
        return self.scope.preset != "params" or self.baseline.trainer != "built-in"

    def comparability(self) -> str:
        """The key that two results must share before they may be compared; with a ladder, see `at` first."""
        budget = self.budget
        return digest(
            (budget.stop_unit, budget.stop_amount, budget.metered, self.hardware, self.evaluation, self.task.env)
        )

    def at(self, rung: int) -> "Contract":
        """The terms as they are on one rung of the ladder: its amount, its episodes, and no ladder."""
        if not self.budget.ladder:
            return self
        episodes = self.budget.ladder[min(rung, len(self.budget.ladder) - 1)].episodes
        return replace(self, budget=self.budget.on(rung), evaluation=replace(self.evaluation, screen_episodes=episodes))


@dataclass(frozen=True, slots=True, kw_only=True)
class ContractLock:
    """The digests of the terms as they were last approved, for people and for version control."""

    SCHEMA: ClassVar[str] = "overnight/contract-lock/1"

    contract: Digest | None
    """Digest of the whole contract; null while a clause is unknown."""
    clauses: Mapping[str, Digest]
    """Digest of each approved clause."""


def _matches(path: str, glob: str) -> bool:
    """Match a path against a pattern in which only `**` crosses folders."""
    return _match_parts(tuple(path.split("/")), tuple(glob.split("/")))


def _match_parts(path: tuple[str, ...], glob: tuple[str, ...]) -> bool:
    reachable: set[int] = {0}
    for part in glob:
        step: Callable[[int], set[int]] = _any_depth(path) if part == "**" else _one_part(path, part)
        reachable = set().union(*(step(at) for at in reachable)) if reachable else set()
    return len(path) in reachable


def _any_depth(path: tuple[str, ...]) -> Callable[[int], set[int]]:
    return lambda at: set(range(at, len(path) + 1))


def _one_part(path: tuple[str, ...], part: str) -> Callable[[int], set[int]]:
    return lambda at: {at + 1} if at < len(path) and fnmatchcase(path[at], part) else set()
