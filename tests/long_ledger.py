"""Lawful ledgers of any length, made quickly: for measuring, not for durability."""

from itertools import count
from pathlib import Path

from overnight.machine import RealMachine
from overnight.records.lifecycle import Actor
from overnight.study.fold import apply
from overnight.study.ledger import Ledger
from overnight.study.state import Data, StudyState

A, B, C = "a" * 40, "b" * 40, "c" * 64


class Unsynced(RealMachine):
    """A machine that does not wait for the disk."""

    def sync(self, fd: int) -> None:
        pass

    def sync_folder(self, path: str) -> None:
        pass


def lawful(entries: int) -> list[tuple[Actor, str, Data]]:
    """The entries of a study that drafts, validates, runs, measures and rejects one candidate after another."""
    found: list[tuple[Actor, str, Data]] = [
        (Actor.ENGINE, "created", {"task": "cartpole", "study": "first", "commit": A, "tree": A, "version": "0"})
    ]
    for number, clause in enumerate(
        ("task", "metric", "scope", "budget", "hardware", "baseline", "evaluation", "experiments")
    ):
        terms: Data = {"command": ["train"], "guardrails": []}
        found.append((Actor.PERSON, "approved", approval(clause, terms, number)))
    found.append((Actor.PERSON, "entered", {"contract": C, "approver": "tester", "strength": "terminal"}))
    for number in count(1):
        found += candidate(f"c-{number:04d}", f"r-{number:04d}")
        if len(found) >= entries:
            return found[:entries]
    raise AssertionError


def approval(clause: str, terms: Data, number: int) -> Data:
    return {
        "clause": clause,
        "digest": f"{number}" * 64,
        "terms": terms,
        "approver": "tester",
        "strength": "terminal",
        "replaces": None,
        "signature": None,
    }


def candidate(name: str, run: str) -> list[tuple[Actor, str, Data]]:
    proposal = {
        "proposer": "search",
        "kind": "hyperparameter",
        "hypothesis": f"A larger step size learns faster ({name}).",
        "predicted_effect": "The score rises by about ten.",
        "params": {"learning_rate": 0.001},
        "bundle": [],
        "parents": [],
    }
    drafted = {
        "id": name,
        "proposal": proposal,
        "base": A,
        "commit": B,
        "tree": B,
        "changed_paths": 1,
        "changes": C,
        "contract": C,
    }
    launched = {
        "id": run,
        "candidate": name,
        "tree": B,
        "command": ["train"],
        "train_seed": 7,
        "phase": "screen",
        "round": 0,
        "number": 0,
        "contract": C,
        "comparability": C,
    }
    ended = {
        "run": run,
        "outcome": "completed",
        "because": "It ended.",
        "wall_seconds": 1.5,
        "cpu_seconds": 1.0,
        "exit_status": 0,
    }
    measured = {
        "run": run,
        "candidate": name,
        "tree": B,
        "phase": "screen",
        "score": 212.5,
        "episodes": 20,
        "guardrails": {"worst_decile_return": 100.0},
        "comparability": C,
        "artefact": C,
    }
    decided = {
        "candidate": name,
        "verdict": "reject",
        "because": "Gain lies in [-3.0, 1.0] over 3 paired seeds; the bar is 0.",
        "loop": "continue",
        "rule": "The whole interval lies above 0.",
        "gain": -1.0,
        "gain_low": -3.0,
        "gain_high": 1.0,
        "guardrails": [],
        "evidence": [run],
        "audit": None,
    }
    return [
        (Actor.PROPOSER, "drafted", drafted),
        (Actor.GATE, "validated", {"candidate": name, "tree": B, "contract": C, "rules": C}),
        (Actor.RUNNER, "launched", launched),
        (Actor.RUNNER, "ended", ended),
        (Actor.REFEREE, "measured", measured),
        (Actor.JUDGE, "decided", decided),
    ]


def write(folder: Path, entries: int) -> None:
    """Write a lawful ledger into a folder, and prove on the way that it is lawful."""
    folder.mkdir(parents=True, exist_ok=True)
    state = StudyState()
    with Ledger.open(Unsynced(), folder, holder="test") as ledger:
        for actor, kind, data in lawful(entries):
            apply(state, {"kind": kind, "actor": str(actor), "data": data})
            ledger.append(actor, kind, data)
