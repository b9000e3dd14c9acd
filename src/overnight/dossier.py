"""Everything that the ledger, the store and the disk hold about one claim, put together to be audited.

Reads only. The ledger is folded anew and nothing derived is believed; scores come from the stored episodes.
"""

import json
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass

from overnight.admission import read_terms
from overnight.candidate.tree import Store
from overnight.claims import arm, claims
from overnight.decide.audit import AuditedLooks, AuditedRun, Dossier, Episodes
from overnight.decide.certify import Certification
from overnight.decide.looks import SeedsWanted, attempt
from overnight.errors import OvernightError, UserError
from overnight.evaluate.measure import Measured
from overnight.evaluate.seeds import Phase, Seeds, load_key
from overnight.ports import Machine
from overnight.records.audit import ResultAudit
from overnight.records.codec import digest, loads
from overnight.records.contract import Clause, Contract
from overnight.records.decision import Verdict
from overnight.records.run import Outcome
from overnight.records.schedule import LookSchedule
from overnight.schedules import derive, look_plan
from overnight.study.artifacts import read_bytes
from overnight.study.fold import Fold
from overnight.study.layout import StudyFolder
from overnight.study.ledger import RawEntry, read_sound
from overnight.study.state import Data, StudyState


@dataclass(frozen=True, slots=True)
class _Papers:
    """A study as it lies on disk."""

    machine: Machine
    at: StudyFolder
    contract: Contract
    state: StudyState
    entries: list[RawEntry]
    measured: dict[str, list[Data]]
    """Every measurement of a run, by the run's id."""
    gated: set[str]
    """The runs whose tree the gate had let in before they were launched."""


def gather(machine: Machine, at: StudyFolder, candidate: str | None) -> Dossier:
    """The dossier of a candidate's claim; of the newest claim where none is named.

    Raises `LedgerDamaged` where the ledger itself is not sound, because nothing else means anything then.
    """
    papers = _read(machine, at)
    decision = _claimed(papers, candidate)
    named = tuple(decision["evidence"])
    both = {papers.state.runs[name].candidate for name in named if name in papers.state.runs}
    trees = {one: _stored_tree(papers, one) for one in both}
    known = {name: _run(papers, name, trees) for name in papers.state.runs}
    runs = tuple(known[name] for name in named if name in known)
    mates = {(run.phase, run.round) for run in runs}
    round_mates = tuple(run for run in known.values() if (run.phase, run.round) in mates and run.candidate in both)
    own = {run.id for run in round_mates}
    others = [run for run in known.values() if run.id not in own]
    derive, unkeyed = _derivation(papers)
    return Dossier(
        candidate=decision["candidate"],
        metric=papers.contract.metric,
        comparability=papers.contract.at(_rung(papers, named)).comparability(),
        metric_digests=_metric_digests(papers),
        allowed=decision.get("error_spent") or papers.contract.evaluation.max_false_claims,
        claimed=(decision["gain"], decision["gain_low"], decision["gain_high"]),
        guardrails={one["name"]: one["worse_by"] for one in decision["guardrails"]},
        runs=runs,
        missing=tuple(name for name in named if name not in known),
        round_mates=round_mates,
        other_train_seeds=frozenset(run.train_seed for run in others),
        other_episode_seeds=frozenset(seed for run in others for seed, _, _ in run.episodes or ()),
        derive=derive,
        unkeyed=unkeyed,
        recomputed=_again(papers, decision, {run.id: run for run in runs}),
        looks=_looks(papers, decision, {run.id: run for run in runs}),
        first_audit=_first_audit(papers, decision),
    )


def _rung(papers: _Papers, named: tuple[str, ...]) -> int:
    """The rung of the ladder of budgets that a claim's runs were on."""
    return next((papers.state.runs[name].rung for name in named if name in papers.state.runs), 0)


def _read(machine: Machine, at: StudyFolder) -> _Papers:
    entries: list[RawEntry] = []
    fold = Fold()

    def take(entry: RawEntry, offset: int) -> None:
        fold(entry, offset)
        entries.append(entry)

    state = fold.state(read_sound(machine, at.folder, take), where=str(at.ledger))
    contract = read_terms(machine, at).contract()
    if contract is None:
        raise UserError(str(at.contract), "is not complete, so no claim can be judged by it")
    measured: dict[str, list[Data]] = {}
    for entry in entries:
        if entry["kind"] == "measured":
            measured.setdefault(entry["data"]["run"], []).append(entry["data"])
    return _Papers(machine, at, contract, state, entries, measured, _gated(entries))


def _claimed(papers: _Papers, candidate: str | None) -> Data:
    decided: list[Data] = [entry["data"] for entry in papers.entries if entry["kind"] == "decided"]
    certified = [one for one in decided if one["verdict"] == Verdict.CERTIFIED]
    if not certified:
        raise UserError(papers.at.name, "claims nothing yet, so there is nothing to audit", hint="`overnight status`")
    found = [one for one in certified if candidate in (None, one["candidate"])]
    if not found:
        have = ", ".join(one["candidate"] for one in certified)
        raise UserError(str(candidate)[:40], "has no certified claim", hint=f"certified: {have}")
    return found[-1]


def _metric_digests(papers: _Papers) -> tuple[str, ...]:
    """The metric as the contract has it, as it was approved when the first run began, and as it was ever after."""
    first = next((place for place, one in enumerate(papers.entries) if one["kind"] == "launched"), len(papers.entries))
    approved = [
        (place, entry["data"]["digest"])
        for place, entry in enumerate(papers.entries)
        if entry["kind"] == "approved" and entry["data"]["clause"] == Clause.METRIC
    ]
    before, after = [one for place, one in approved if place < first], [one for place, one in approved if place > first]
    return (digest(papers.contract.metric), *before[-1:], *after)


def _run(papers: _Papers, name: str, trees: Mapping[str, str | None]) -> AuditedRun:
    run, measured = papers.state.runs[name], papers.measured.get(name, [])
    episodes, flaw = _episodes(papers, measured[-1]["artefact"]) if measured else (None, "")
    return AuditedRun(
        id=name,
        candidate=run.candidate,
        tree=run.tree,
        drafted_tree=papers.state.candidates[run.candidate].tree,
        stored_tree=trees.get(run.candidate),
        gated=name in papers.gated,
        phase=run.phase,
        round=run.round,
        number=run.number,
        train_seed=run.train_seed,
        comparability=run.comparability,
        outcome=run.outcome,
        score=run.score,
        guardrails=run.guardrails,
        measured=len(measured),
        episodes=episodes,
        flaw=flaw,
        again=Measured(episodes, "").guardrails() if episodes else None,
    )


def _episodes(papers: _Papers, artefact: str) -> tuple[Episodes | None, str]:
    try:
        data = json.loads(read_bytes(papers.machine, papers.at.objects, artefact))["episodes"]
        found = tuple((int(seed), float(total), int(steps)) for seed, total, steps in data)
    except OvernightError as error:
        return None, str(error)
    except (ValueError, KeyError, TypeError):
        return None, f"objects/{artefact[:12]}… does not hold episodes"
    return found or None, ""


def _stored_tree(papers: _Papers, candidate: str) -> str | None:
    store = Store(papers.machine, papers.at.task.root.store)
    try:
        commit = store.ref(papers.at.ref("candidates", candidate))
        return None if commit is None else store.tree_of(commit)
    except OvernightError:
        return None


def _gated(entries: list[RawEntry]) -> set[str]:
    admitted: set[tuple[str, str]] = set()
    found: set[str] = set()
    for entry in entries:
        data = entry["data"]
        if entry["kind"] == "validated":
            admitted.add((data["candidate"], data["tree"]))
        elif entry["kind"] == "launched" and (data["candidate"], data["tree"]) in admitted:
            found.add(data["id"])
    return found


def _derivation(
    papers: _Papers,
) -> tuple[Callable[[AuditedRun], tuple[int, tuple[int, ...], tuple[int, ...]]] | None, str]:
    """The seeds of a run, as the committed key gives them; or why there is no key."""
    committed = papers.state.seed_commitment
    if committed is None:
        return None, "the ledger is committed to no key"
    try:
        seeds = Seeds(load_key(committed), f"{papers.at.task.name}/{papers.at.name}")
    except OvernightError as error:
        return None, str(error)

    def derive(run: AuditedRun) -> tuple[int, tuple[int, ...], tuple[int, ...]]:
        phase: Phase = "confirm" if run.phase == "confirm" else "screen"
        how = papers.contract.at(papers.state.runs[run.id].rung).evaluation
        count = how.confirm_episodes if phase == "confirm" else how.screen_episodes
        first = seeds.episodes(phase, run.round, count)
        return seeds.train(phase, run.round, run.number), first, seeds.other_episodes(phase, run.id, count)

    return derive, ""


def _again(papers: _Papers, decision: Data, runs: dict[str, AuditedRun]) -> Certification | None:
    """The certification as it comes out when every score is the one that the stored episodes give."""
    state = _from_episodes(papers, runs)
    if state is None:
        return None
    try:
        found = claims(state, papers.entries, papers.contract)
        return next((one.found for one in found if one.decision == decision), None)
    except (ValueError, LookupError, ArithmeticError):
        return None


def _from_episodes(papers: _Papers, runs: dict[str, AuditedRun]) -> StudyState | None:
    """The study with every score of these runs taken anew from its stored episodes; None where some are not there."""
    state = deepcopy(papers.state)
    for name, run in runs.items():
        if run.flaw or (run.score is not None and run.episodes is None):
            return None
        state.runs[name].score = Measured(run.episodes, "").score() if run.episodes else None
        state.runs[name].guardrails = dict(run.again or {})
        if run.outcome is not Outcome.COMPLETED:
            state.runs[name].score = None
    return state


def _looks(papers: _Papers, decision: Data, runs: dict[str, AuditedRun]) -> AuditedLooks | None:
    """The attempt's schedule as it was written and as it follows, and what its looks say about the stored episodes."""
    number = next((run.round for run in runs.values()), 0)
    try:
        found = derive(papers.entries, papers.contract, number)
    except (OvernightError, ValueError, LookupError, ArithmeticError):
        found = None
    if found is None:
        return None
    state = _from_episodes(papers, runs)
    replayed = None if state is None else _replayed(papers, state, found.written, runs)
    return AuditedLooks(
        written=found.written,
        follows=found.follows,
        runs_then=found.runs_then,
        total_error=found.total_error,
        allowed_error=papers.contract.evaluation.max_false_claims,
        told_error=decision.get("error_spent"),
        replayed=replayed,
    )


def _replayed(
    papers: _Papers, state: StudyState, looks: LookSchedule, runs: dict[str, AuditedRun]
) -> Certification | None:
    sides = [
        [state.runs[one.id] for one in sorted(runs.values(), key=lambda run: run.number) if one.candidate == side]
        for side in (looks.tip, looks.incumbent)
    ]
    ours, theirs = (arm(papers.contract, side) for side in sides)
    try:
        found = attempt(papers.contract.metric, look_plan(looks), ours, theirs, alpha=looks.error)
    except ValueError:
        return None
    return None if isinstance(found, SeedsWanted) else found


def _first_audit(papers: _Papers, decision: Data) -> str:
    path = papers.at.audits / f"{decision['audit']}.json"
    text = papers.machine.read(str(path))
    if text is None:
        return f"{path.name} is missing"
    try:
        found = loads(ResultAudit, text, where=str(path))
    except UserError as error:
        return error.what
    if found.candidate != decision["candidate"]:
        return f"{path.name} is about {found.candidate}"
    if found.claimed_gain != decision["gain"]:
        return f"{path.name} is about a gain of {found.claimed_gain:g}, and {decision['gain']:g} is claimed"
    return found.verdict
