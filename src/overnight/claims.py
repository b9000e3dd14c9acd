"""What the ledger claims: certified gains, the ideas that each is built of, and the runs that it rests on.

Pure: everything is computed from the entries, by the same computation that certified a gain.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from overnight.decide.certify import Arm, Certification
from overnight.decide.looks import SeedsWanted, attempt, promise
from overnight.decide.spending import LookPlan
from overnight.records.contract import Contract
from overnight.records.decision import Verdict
from overnight.records.run import Outcome
from overnight.study.ledger import RawEntry
from overnight.study.state import Data, RunState, StudyState


@dataclass(frozen=True, slots=True)
class Claim:
    """One certified gain."""

    candidate: str
    """The tip that was certified."""
    stack: tuple[str, ...]
    """The candidates that it is built of, oldest first."""
    runs: tuple[str, ...]
    """The runs behind it, of both arms."""
    found: Certification
    """The certification itself."""
    sentence: str
    """The claim in one sentence."""
    decision: Data
    """The decision as the ledger has it."""


def claims(state: StudyState, entries: Sequence[RawEntry], contract: Contract) -> Iterator[Claim]:
    """Every certified gain, newest first."""
    decided = [entry["data"] for entry in entries if entry["kind"] == "decided"]
    for data in reversed([one for one in decided if one["verdict"] == Verdict.CERTIFIED]):
        found = _certification(state, contract, data)
        yield Claim(
            candidate=data["candidate"],
            stack=stack(state, data["candidate"]),
            runs=tuple(data["evidence"]),
            found=found,
            sentence=f"{found.claim(contract.budget)} {promise(contract.evaluation.max_false_claims)}",
            decision=data,
        )


def incumbent(state: StudyState) -> str:
    """The candidate whose tree is the incumbent; at first the baseline."""
    return next((one.id for one in state.candidates.values() if one.commit == state.incumbent), state.baseline)


def stack(state: StudyState, tip: str) -> tuple[str, ...]:
    """The candidates that a tip is built of, oldest first and without the baseline."""
    by_commit = {one.commit: one for one in state.candidates.values()}
    found, one = [], state.candidates.get(tip)
    while one is not None and one.id != state.baseline:
        found.append(one.id)
        one = by_commit.get(one.base)
    return tuple(reversed(found))


def completed_runs(state: StudyState, candidate: str) -> list[tuple[str, RunState]]:
    """A candidate's runs that have a score: the fresh ones of a certification where there are any."""
    done = [
        (name, run)
        for name, run in state.runs.items()
        if run.candidate == candidate and run.outcome is Outcome.COMPLETED and run.score is not None
    ]
    return [pair for pair in done if pair[1].phase == "confirm"] or done


def median_run(state: StudyState, candidate: str) -> str | None:
    """The completed run whose score is in the middle, or None where nothing was completed."""
    runs = sorted(completed_runs(state, candidate), key=lambda pair: pair[1].score or 0.0)
    return runs[len(runs) // 2][0] if runs else None


def _certification(state: StudyState, contract: Contract, data: Data) -> Certification:
    """The numbers of a certified gain, from the runs it names. Whether they certify it was decided, and audited."""
    runs = [state.runs[name] for name in data["evidence"]]
    ours = [run for run in runs if run.candidate == data["candidate"]]
    theirs = [run for run in runs if run.candidate != data["candidate"]]
    one_look = LookPlan(looks=(len(ours),), shares=(1.0,), paired=data.get("paired", False))
    found = attempt(contract.metric, one_look, arm(contract, ours), arm(contract, theirs), alpha=0.5)
    if not isinstance(found, SeedsWanted):
        spent, details = data.get("error_spent"), data.get("details", "")
        return replace(found, verdict=Verdict.CERTIFIED, error_spent=spent, details=details)
    raise ValueError(f"{data['candidate']} is certified on fewer seeds than its incumbent.")


def arm(contract: Contract, runs: Sequence[RunState]) -> Arm:
    """One side of a certification, from the runs that it rests on."""
    names = [rail.name for rail in contract.metric.guardrails]
    return Arm(
        scores=tuple(run.score for run in runs),
        guardrails={name: tuple(run.guardrails.get(name) for run in runs) for name in names},
    )
