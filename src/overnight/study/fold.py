"""From entries to the state of a study. The only way state comes about.

Each kind of entry has one function here. It first checks that the entry is lawful
(right order, right actor, right lifecycle step, evidence with provenance) and raises
`Unlawful` with a full sentence if it is not; only then does it change anything. The
same functions run before an entry is written and when a ledger is read, so a ledger
that was written by other means is refused.

The payloads are read as they stand in the file, without decoding them into records,
because `status` folds 100,000 entries in well under a second. `decode_entry` gives the
record of one entry where it is needed, and `overnight ledger verify` decodes them all.
"""

from collections.abc import Callable
from typing import cast

from overnight.errors import LedgerDamaged
from overnight.records.codec import decode, encode
from overnight.records.contract import Clause
from overnight.records.entry import PAYLOADS, Kind, Payload
from overnight.records.lifecycle import Actor, State
from overnight.records.run import Outcome
from overnight.records.status import CandidateLine, Status
from overnight.study.anchor import GENESIS
from overnight.study.ledger import RawEntry, Scan
from overnight.study.state import (
    CandidateState,
    Data,
    RunState,
    StudyState,
    Unlawful,
    candidate_of,
    check_evidence,
    check_step,
    check_tree,
    only,
    run_of,
)
from overnight.study.verdicts import apply_verdict


def apply(state: StudyState, entry: RawEntry) -> None:
    """Take one entry into the state, or raise `Unlawful` and change nothing."""
    kind = entry["kind"]
    step = _FOLDS.get(kind)
    if step is None:
        raise Unlawful(f"Entries of the kind {kind!r} are unknown to this version of Overnight.")
    if bool(state.task) is (kind == "created"):
        raise Unlawful("A ledger begins with exactly one `created` entry.")
    try:
        step(state, entry["data"], entry["actor"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise Unlawful(f"A `{kind}` entry does not have the fields it needs ({error!r:.120}).") from error
    state.entries += 1


def fold(found: Scan, *, where: str) -> StudyState:
    """The state after every entry of a ledger."""
    state = StudyState()
    for entry in found.entries:
        try:
            apply(state, entry)
        except Unlawful as unlawful:
            raise LedgerDamaged(where, f"holds an unlawful entry {entry['seq']}: {unlawful}") from unlawful
    state.head = found.hashes[-1] if found.hashes else GENESIS
    return state


def decode_entry(entry: RawEntry, *, where: str) -> Payload:
    """The record that an entry holds, strictly decoded."""
    kind = PAYLOADS.get(cast(Kind, entry["kind"]))
    if kind is None:
        raise LedgerDamaged(where, f"entry {entry['seq']} is of the unknown kind {entry['kind']!r}.")
    return cast(Payload, decode(kind, entry["data"], where=f"{where} entry {entry['seq']}"))


def status(state: StudyState) -> Status:
    """The state as a record, for `state.json` and for people."""
    return Status(
        task=state.task,
        study=state.study,
        entries=state.entries,
        head=state.head,
        tip=state.tip,
        incumbent=state.incumbent,
        approved={str(clause): data["digest"] for clause, data in state.approvals.items()},
        entered=state.entered,
        runs=len(state.runs),
        wall_seconds=state.wall_seconds,
        candidates={
            name: CandidateLine(state=one.state, kept=one.kept, hypothesis=one.data["proposal"]["hypothesis"])
            for name, one in state.candidates.items()
        },
        open_runs=tuple(name for name, run in state.runs.items() if run.ended is None),
    )


def raw(payload: Payload) -> Data:
    """A payload as it will stand in the file."""
    return cast(Data, encode(payload))


# One function for each kind of entry, in the order in which they first occur.


def _created(state: StudyState, data: Data, actor: str) -> None:
    only(actor, Actor.ENGINE)
    state.task, state.study = data["task"], data["study"]
    state.tree = data["tree"]
    state.tip = state.incumbent = data["commit"]


def _approved(state: StudyState, data: Data, actor: str) -> None:
    only(actor, Actor.PERSON)
    clause = Clause(data["clause"])
    before = state.approvals.get(clause)
    if data["replaces"] != (before["digest"] if before else None):
        raise Unlawful(f"The approval of `{clause}` does not name the one that it replaces.")
    if before is not None:
        state.amendments.append(data)
    state.approvals[clause] = data


def _entered(state: StudyState, data: Data, actor: str) -> None:
    only(actor, Actor.PERSON)
    missing = [str(clause) for clause in Clause if clause not in state.approvals]
    if missing:
        raise Unlawful(f"The loop may not be entered: {', '.join(missing)} was never approved.")
    state.entered = data["contract"]


def _drafted(state: StudyState, data: Data, actor: str) -> None:
    name = data["id"]
    if name in state.candidates:
        raise Unlawful(f"There is a candidate {name} already.")
    if name != state.next_candidate():
        raise Unlawful(f"The next candidate is {state.next_candidate()}, not {name}.")
    if data["base"] != state.tip:
        raise Unlawful(f"{name} was built on {data['base'][:12]}, which is not the tip.")
    check_step(None, State.DRAFT, actor)
    if not isinstance(data["proposal"]["hypothesis"], str) or not isinstance(data["tree"], str):
        raise TypeError("hypothesis and tree are text")
    state.candidates[name] = CandidateState(name, data)


def _permitted(state: StudyState, data: Data, actor: str) -> None:
    only(actor, Actor.PERSON)
    one = candidate_of(state, data)
    check_tree(one, data)
    one.permitted_under = data["contract"]


def _refused(state: StudyState, data: Data, actor: str) -> None:
    only(actor, Actor.GATE)
    if not data["reasons"]:
        raise Unlawful("A refusal has at least one reason.")
    if data["candidate"] is None:
        state.last_refusal = data
        return
    one = candidate_of(state, data)
    if one.state is State.VALIDATED:
        check_step(one.state, State.DRAFT, actor)
        one.state = State.DRAFT
    elif one.state is not State.DRAFT:
        raise Unlawful(f"{one.id} is {one.state}, so the gate has nothing more to say about it.")
    one.refusals.append(data)
    state.last_refusal = data


def _validated(state: StudyState, data: Data, actor: str) -> None:
    one = candidate_of(state, data)
    check_step(one.state, State.VALIDATED, actor)
    check_tree(one, data)
    one.validated_under = data["contract"]
    one.state = State.VALIDATED


def _launched(state: StudyState, data: Data, actor: str) -> None:
    one, run = candidate_of(state, data), data["id"]
    if one.state is not State.LAUNCHED:
        check_step(one.state, State.LAUNCHED, actor)
    only(actor, Actor.RUNNER)
    check_tree(one, data)
    if run != state.next_run():
        raise Unlawful(f"The next run is {state.next_run()}, not {run}.")
    if state.entered is None or state.entered != data["contract"]:
        raise Unlawful(f"{run} may not start: nobody asked to enter the loop under this contract.")
    if one.validated_under != data["contract"]:
        raise Unlawful(f"{run} may not start: {one.id} was not validated under this contract.")
    if data["command"] != state.approvals[Clause.BASELINE]["terms"]["command"]:
        raise Unlawful(f"{run} may not start: its command is not the approved one.")
    state.runs[run] = RunState(data)
    one.runs.append(run)
    one.state = State.LAUNCHED


def _ended(state: StudyState, data: Data, actor: str) -> None:
    only(actor, Actor.RUNNER)
    run = run_of(state, data["run"])
    if run.ended is not None:
        raise Unlawful(f"{data['run']} has ended already.")
    one = state.candidates[run.data["candidate"]]
    outcome, seconds, because = Outcome(data["outcome"]), float(data["wall_seconds"]), data["because"]
    others = [name for name in one.runs if state.runs[name].ended is None and name != data["run"]]
    run.ended = data
    state.wall_seconds += seconds
    if outcome.is_candidates_fault():
        one.failure = because
    if not others:
        one.state = _after_runs(state, one)


def _after_runs(state: StudyState, one: CandidateState) -> State:
    """What becomes of a candidate when its last open run has ended: the worst outcome decides."""
    outcomes = {Outcome(ended["outcome"]) for name in one.runs if (ended := state.runs[name].ended) is not None}
    if Outcome.COMPLETED in outcomes:
        return State.COMPLETED
    if any(outcome.is_candidates_fault() for outcome in outcomes):
        return State.DEBUG
    return State.VALIDATED


def _measured(state: StudyState, data: Data, actor: str) -> None:
    only(actor, Actor.REFEREE)
    run = run_of(state, data["run"])
    if run.ended is None or run.ended["outcome"] != Outcome.COMPLETED:
        raise Unlawful(f"{data['run']} did not complete, so there is nothing to measure.")
    for key in ("candidate", "tree", "comparability"):
        if run.data[key] != data[key]:
            raise Unlawful(f"The evidence on {data['run']} names another {key} than the run itself.")
    run.evidence.append(data)


def _verified(state: StudyState, data: Data, actor: str) -> None:
    only(actor, Actor.JUDGE)
    check_evidence(state, data["evidence"])
    candidate_of(state, data)


def _decided(state: StudyState, data: Data, actor: str) -> None:
    only(actor, Actor.JUDGE)
    one = candidate_of(state, data)
    check_evidence(state, data["evidence"])
    apply_verdict(state, one, data)
    one.verdicts.append(data)


def _noted(state: StudyState, data: Data, actor: str) -> None:
    if not isinstance(data["says"], str):
        raise TypeError("a note is text")


_FOLDS: dict[str, Callable[[StudyState, Data, str], None]] = {
    "created": _created,
    "approved": _approved,
    "entered": _entered,
    "drafted": _drafted,
    "permitted": _permitted,
    "refused": _refused,
    "validated": _validated,
    "launched": _launched,
    "ended": _ended,
    "measured": _measured,
    "verified": _verified,
    "decided": _decided,
    "noted": _noted,
}
