"""The first draft of a contract. What was not stated and is proven by no file stays `unknown`.

The draft is text for a person to read and edit, with a sentence beside every key.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from overnight.contract import agents, length
from overnight.contract.length import UNKNOWN_STEPS
from overnight.contract.read import UNKNOWN
from overnight.records.contract import CALLED, CLAUSE_TYPES, Clause, Contract
from overnight.records.schema import field_sentences
from overnight.records.tier import Tier
from overnight.study import yaml

Sections = dict[Clause, dict[str, Any]]


@dataclass(frozen=True, slots=True)
class EnvFacts:
    """What the installed packages prove about an environment; None where they prove nothing."""

    max_episode_steps: int | None = None
    reward_threshold: float | None = None
    actions: str | None = None
    """The kind of its actions, as `contract.trainers.ACTIONS` calls them."""
    proven: bool = False


@dataclass(frozen=True, slots=True)
class Stated:
    """What the person said on the command line; None where they said nothing."""

    env: str | None = None
    mission: str | None = None
    hours: float | None = None
    env_steps: int | None = None
    metric: str | None = None
    candidates: int | None = None
    plants: bool = False
    trainer: str | None = None
    recipe: bool = False
    cold: bool = False
    runs: int | None = None
    params: Mapping[str, object] = field(default_factory=dict)
    agent: str | None = None
    policy: str = "certify"


@dataclass(frozen=True, slots=True)
class Ground:
    """What the draft stands on: the task's name and the baseline's tree."""

    task: str
    tree: str
    commit: str | None = None
    evidence: tuple[str, ...] = ()
    """Files of the repository that look like entry points; written as comments, never as values."""
    tier: Tier = "T1"
    """The isolation that this machine was seen to have, as far as drafts ask for it."""
    slots: int = 1
    """How many runs this machine takes at a time."""


def for_env(
    stated: Stated, facts: EnvFacts, ground: Ground, *, keys: tuple[str, ...], trainer: Mapping[str, Any]
) -> str:
    """Draft for a Gymnasium environment and a built-in trainer, complete as far as both are known."""
    hours = stated.hours if stated.hours is not None else 8.0
    usual = length.steps(stated.env or "", hours, ground.slots) if stated.trainer in (None, "ppo") else UNKNOWN_STEPS
    steps = stated.env_steps if stated.env_steps is not None else usual
    sections: Sections = {
        Clause.TASK: {
            "name": ground.task,
            "mission": stated.mission or f"Raise the episode return that training reaches on {stated.env}.",
            "constraints": [],
            "non_goals": ["Anything beyond this environment: other tasks, real hardware, safety."],
            "env": _env(stated.env, facts),
        },
        Clause.METRIC: _metric(stated.metric or "episode_return", facts),
        Clause.SCOPE: {
            "preset": "params",
            "paths": ["params.json"],
            "keys": list(keys),
            "max_files": 1,
            "max_changed_bytes": 10_000,
        },
        Clause.BUDGET: _budget("env_steps", steps, hours, stated),
        Clause.HARDWARE: _hardware(),
        Clause.BASELINE: {"trainer": "built-in", "tree": ground.tree, **trainer, "source_commit": None},
        Clause.EVALUATION: _evaluation(ground),
        Clause.EXPERIMENTS: _experiments(["hyperparameter", "algorithm", "network"], ["search", "human"], stated),
    }
    return render(sections, ())


def for_repository(stated: Stated, facts: EnvFacts, ground: Ground) -> str:
    """Draft for a training repository: its commands, its metric and its surface must be said by a person."""
    sections: Sections = {
        Clause.TASK: {
            "name": ground.task,
            "mission": stated.mission or UNKNOWN,
            "constraints": [],
            "non_goals": [UNKNOWN],
            "env": _env(stated.env, facts),
        },
        Clause.METRIC: _metric(stated.metric or UNKNOWN, facts),
        Clause.SCOPE: {"preset": "repo", "paths": [UNKNOWN], "keys": [], "protected": []},
        Clause.BUDGET: _budget(
            "env_steps", UNKNOWN if stated.env_steps is None else stated.env_steps, stated.hours or UNKNOWN, stated
        ),
        Clause.HARDWARE: _hardware(),
        Clause.BASELINE: {
            "trainer": "repository",
            "command": [UNKNOWN],
            "tree": ground.tree,
            "source": f"The repository as committed at {ground.commit}.",
            "source_commit": ground.commit,
        },
        Clause.EVALUATION: _evaluation(ground),
        Clause.EXPERIMENTS: _experiments([UNKNOWN], ["human"], stated),
    }
    return render(sections, ground.evidence)


def for_single_file(stated: Stated, facts: EnvFacts, ground: Ground, *, seconds: int) -> str:
    """Draft for a repository with one file to change, complete: everything is known about what we wrote ourselves."""
    greedy = stated.policy == "greedy"
    budget = _budget("wall_seconds", seconds, stated.hours if stated.hours is not None else 8.0, stated)
    evaluation = {**_evaluation(ground), "screen_episodes": 100}
    sections: Sections = {
        Clause.TASK: {
            "name": ground.task,
            "mission": stated.mission or f"Raise the mean return on {stated.env} after {seconds} s of training.",
            "constraints": ["One file changes, train.py; no package is added."],
            "non_goals": ["Anything beyond this environment: other tasks, real hardware, safety."],
            "env": _env(stated.env, facts),
        },
        Clause.METRIC: _metric("episode_return", facts),
        Clause.SCOPE: {
            "preset": "single-file",
            "paths": ["train.py"],
            "keys": [],
            "protected": ["evaluate.py", "program.md"],
            "max_files": 1,
            "max_changed_bytes": 60_000,
        },
        Clause.BUDGET: {**budget, "run_wall_seconds": max(round(seconds * 5 / 3), seconds + 120)},
        Clause.HARDWARE: _hardware(),
        Clause.BASELINE: {
            "trainer": "repository",
            "command": ["python", "train.py"],
            "tree": ground.tree,
            "source": "The repository as it was written: CleanRL's settings of PPO, in one file.",
            "source_commit": ground.commit,
        },
        Clause.EVALUATION: evaluation | ({"screen_train_seeds": 1, "policy": "greedy"} if greedy else {}),
        Clause.EXPERIMENTS: _experiments(["code", "hyperparameter", "algorithm", "network"], ["human"], stated),
    }
    return render(sections, ())


def render(sections: Sections, evidence: tuple[str, ...]) -> str:
    """Write the sections as YAML, with the meaning of each key beside it."""
    lines = [
        "# The terms of this study. Edit what is not right, then read and approve it:",
        "#   overnight contract check    says what is missing",
        "#   overnight approve           asks once for all eight clauses",
        "# Editing an approved clause voids exactly that approval.",
        f"schema: {Contract.SCHEMA}",
    ]
    for number, clause in enumerate(Clause, 1):
        lines += ["", f"# {number}. {CALLED[clause].capitalize()}"]
        if clause is Clause.BASELINE:
            lines += [f"# seen in the repository, not assumed: {found}" for found in evidence]
        lines.append(f"{clause}:")
        lines += _section(sections[clause], field_sentences(CLAUSE_TYPES[clause]))
    return "\n".join(lines) + "\n"


def _section(data: Mapping[str, Any], sentences: Mapping[str, str]) -> list[str]:
    lines = []
    for key, value in data.items():
        rendered = yaml.dump({key: value}).rstrip("\n").split("\n")
        if sentences.get(key):
            rendered[0] = f"{rendered[0]}  # {sentences[key]}"
        lines += [f"  {line}" for line in rendered]
    return lines


def _env(env: str | None, facts: EnvFacts) -> dict[str, Any]:
    return {
        "backend": "gymnasium",
        "id": env or UNKNOWN,
        "kwargs": {},
        "max_episode_steps": facts.max_episode_steps,
        "clip_actions": True,
    }


def _metric(name: str, facts: EnvFacts) -> dict[str, Any]:
    known = name == "episode_return"
    guardrail = {"name": "worst_decile_return", "direction": "higher", "margin": 0.0}
    return {
        "name": name,
        "unit": "return" if known else UNKNOWN,
        "direction": "higher" if known else UNKNOWN,
        "source": "episode_return" if known else UNKNOWN,
        "lowest": None,
        "highest": None,
        "least_gain": 0.0,
        "guardrails": [guardrail if known else dict.fromkeys(guardrail, UNKNOWN)],
        "rollback_drop": 0.0,
        "solved": facts.reward_threshold if known else None,
    }


def _budget(unit: str, amount: object, hours: object, stated: Stated) -> dict[str, Any]:
    speaks = agents.section(stated.agent)["speaks"] if stated.agent is not None else "plain"
    return {
        "stop_unit": unit,
        "stop_amount": amount,
        "metered": False,
        "run_wall_seconds": 1800,
        "max_runs": stated.runs if stated.runs is not None else 1000,
        "max_wall_hours": hours,
        "disk_gigabytes": 10,
        **agents.ceilings(speaks),
    }


def _hardware() -> dict[str, Any]:
    return {"host": "any", "device": "cpu", "cores_per_run": 1, "memory_gigabytes": None}


def _evaluation(ground: Ground) -> dict[str, Any]:
    return {
        "screen_train_seeds": None,
        "confirm_train_seeds": None,
        "screen_episodes": 20,
        "confirm_episodes": 100,
        "max_false_claims": 0.05,
        "min_tier": ground.tier,
    }


def _experiments(kinds: list[str], proposers: list[str], stated: Stated) -> dict[str, Any]:
    most = stated.candidates if stated.candidates is not None else 200
    plants = ["placebo", "cheat"] if stated.plants else []
    agent = {"agent": agents.section(stated.agent)} if stated.agent is not None else {}
    return {
        "kinds": kinds,
        "proposers": [*proposers, *agent],
        "automation": {"max_candidates": most},
        "stop": {"max_candidates": most, "plateau_candidates": None, "target_score": None},
        "permissions": {"network": False, "trackers": []},
        "plants": plants,
        **({"start": "cold"} if stated.cold else {}),
        **agent,
    }
