"""From entries to the state of a study. The only way state comes about.

Each kind of entry has one function here. It first checks that the entry is lawful
(right order, right actor, right lifecycle step, evidence with provenance) and raises
`Unlawful` with a full sentence if it is not; only then does it change anything. The
same functions run before an entry is written and when a ledger is read, so a ledger
that was written by other means is refused.

The payloads are read as they stand in the file, without decoding them into records,
because `status` must fold a long ledger quickly. `decode_entry` gives the record of one
entry where it is needed, and `overnight ledger verify --deep` decodes them all.
"""

from collections.abc import Callable
from math import isfinite
from typing import Literal, cast

from overnight.errors import LedgerDamaged, UserError
from overnight.records.approval import Strength
from overnight.records.codec import decode, encode
from overnight.records.contract import Clause
from overnight.records.entry import PAYLOADS, Kind, Payload
from overnight.records.lifecycle import Actor, State
from overnight.records.run import Outcome
from overnight.study import sittings
from overnight.study.ablations import check_knock_out, fold_ablation
from overnight.study.asks import fold_answered, fold_asked
from overnight.study.binding import binding
from overnight.study.ledger import RawEntry, Scan
from overnight.study.state import (
    CandidateState,
    Data,
    Moment,
    RunState,
    StudyState,
    Unlawful,
    candidate_of,
    check_comparable,
    check_evidence,
    check_step,
    check_tree,
    only,
    run_of,
    text,
)
from overnight.study.verdicts import apply_verdict, fold_schedule


def apply(state: StudyState, entry: RawEntry) -> None:
    """Take one entry into the state, or raise `Unlawful` and change nothing.

    `state.ledger_bytes` must be where the entry begins, or will begin, in the file.
    """
    kind = entry["kind"]
    step = _FOLDS.get(kind)
    if step is None:
        raise Unlawful(f"Entries of the kind {kind!r} are unknown to this version of Overnight.")
    if bool(state.task) is (kind == "created"):
        raise Unlawful("A ledger begins with exactly one `created` entry.")
    try:
        step(state, entry["data"], entry["actor"])
    except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError, RecursionError) as error:
        raise Unlawful(f"A `{kind}` entry does not have the fields it needs ({error!r:.120}).") from error
    state.entries += 1


class Fold:
    """Takes entries as they are read, and holds on to the first that is unlawful.

    It is raised only by `state`, after the reader has compared the chain with its anchor, so
    that a rewritten ledger is called rewritten.
    """

    def __init__(self, onto: StudyState | None = None) -> None:
        self._state = onto if onto is not None else StudyState()
        self._unlawful = ""

    def __call__(self, entry: RawEntry, offset: int) -> None:
        """Take one entry in, unless an earlier one was unlawful."""
        if self._unlawful:
            return
        self._state.ledger_bytes = offset
        try:
            apply(self._state, entry)
        except Unlawful as unlawful:
            self._unlawful = f"holds an unlawful entry {entry['seq']}: {unlawful}"

    def state(self, found: Scan, *, where: str) -> StudyState:
        """The state after everything that was read."""
        if self._unlawful:
            raise LedgerDamaged(where, self._unlawful)
        if found.hashes:
            self._state.head = found.hashes[-1]
        self._state.ledger_bytes = found.good_bytes
        return self._state


def decode_entry(entry: RawEntry, *, where: str) -> Payload:
    """The record that an entry holds, strictly decoded."""
    kind = PAYLOADS.get(cast(Kind, entry["kind"]))
    if kind is None:
        raise LedgerDamaged(where, f"entry {entry['seq']} is of the unknown kind {entry['kind']!r}.")
    try:
        return cast(Payload, decode(kind, entry["data"], where=where))
    except UserError as error:
        raise LedgerDamaged(where, f"entry {entry['seq']} does not fit its kind: {error.what}.") from error


def raw(payload: Payload) -> Data:
    """A payload as it will stand in the file."""
    return cast(Data, encode(payload))


# One function for each kind of entry, in the order in which they first occur.


def _created(state: StudyState, data: Data, actor: str) -> None:
    only(actor, Actor.ENGINE)
    task, study, tree, commit = (text(data[key]) for key in ("task", "study", "tree", "commit"))
    sealed = data.get("seed_commitment")
    commitment = None if sealed is None else text(sealed)
    if not task:
        raise Unlawful("A study has a task.")
    state.task, state.study, state.tree = task, study, tree
    state.tip = state.incumbent = commit
    state.seed_commitment = commitment


def _approved(state: StudyState, data: Data, actor: str) -> None:
    only(actor, Actor.PERSON)
    clause = Clause(data["clause"])
    for key in ("digest", "approver", "strength"):
        text(data[key])
    before = state.approvals.get(clause)
    if data["replaces"] != (before["digest"] if before else None):
        raise Unlawful(f"The approval of `{clause}` does not name the one that it replaces.")
    if before is not None and before["strength"] == Strength.SIGNED != data["strength"]:
        raise Unlawful(f"The approval of `{clause}` is signed, and only a signed one may replace it.")
    shown = data.get("calibration")
    if shown is not None and (clause is not Clause.EXPERIMENTS or shown != state.calibration_digest()):
        raise Unlawful(f"The approval of `{clause}` names a calibration that is not the last one of this study.")
    if before is not None and before["digest"] != data["digest"]:
        state.amendments.append(data)
    state.approvals[clause] = data


def _entered(state: StudyState, data: Data, actor: str) -> None:
    only(actor, Actor.PERSON)
    calibrating = data.get("calibrating", False) is True
    needed = [clause for clause in Clause if not calibrating or clause is not Clause.EXPERIMENTS]
    missing = [str(clause) for clause in needed if clause not in state.approvals]
    if missing:
        raise Unlawful(f"The loop may not be entered: {', '.join(missing)} was never approved.")
    now, bound = text(data["contract"]), binding(state.approvals)
    _rebind_baseline(state, now)
    if calibrating:
        state.calibrating, state.refused = now, []
        return
    if state.entered is not None and state.entered_terms == bound:  # only amounts were changed since
        for one in state.candidates.values():
            if one.validated_under == state.entered:
                one.validated_under = now
    state.entered, state.entered_terms = now, bound
    state.refused = []
    sittings.go_on(state)


def _rebind_baseline(state: StudyState, now: str) -> None:
    """The baseline changes nothing, so the class of experiments does not bind it: only the other clauses do."""
    own = binding({clause: data for clause, data in state.approvals.items() if clause is not Clause.EXPERIMENTS})
    baseline = state.candidates.get(state.baseline)
    if baseline is not None and baseline.validated_under is not None and state.baseline_terms == own:
        baseline.validated_under = now
    state.baseline_terms = own


def _calibrated(state: StudyState, data: Data, actor: str) -> None:
    only(actor, Actor.ENGINE)
    check_evidence(state, data["evidence"])
    key = text(data["comparability"])
    for name in data["evidence"]:
        run = state.runs[name]
        settled = (*state.incumbents, state.incumbent)
        if run.candidate != state.baseline and state.candidates[run.candidate].commit not in settled:
            raise Unlawful(f"{name} is no run of the baseline, so nothing can be calibrated on it.")
        if run.comparability != key or run.phase != "screen":
            raise Unlawful(f"{name} was made under other terms, so nothing can be calibrated on it.")
    if state.attempt_is_open():
        raise Unlawful("A certification has begun, so its looks cannot be changed.")
    if data["plan"]["looks"] != sorted(set(data["plan"]["looks"])) or sum(data["plan"]["shares"]) > 1 + 1e-9:
        raise Unlawful("Looks come at a rising number of seeds, and spend no more than there is.")
    state.moments.append(Moment("planned", key, str(len(state.calibrations))))
    state.calibrations.append(data)


def _drafted(state: StudyState, data: Data, actor: str) -> None:
    name = data["id"]
    if name in state.candidates:
        raise Unlawful(f"There is a candidate {name} already.")
    if name != state.next_candidate():
        raise Unlawful(f"The next candidate is {state.next_candidate()}, not {name}.")
    if data["base"] != state.tip:
        raise Unlawful(f"{name} was built on {data['base'][:12]}, which is not the tip.")
    check_step(None, State.DRAFT, actor)
    plant = data.get("plant")
    if plant is not None and actor != Actor.ENGINE:
        raise Unlawful(f"Only the engine plants candidates, but the {actor} drafted {name} as a {plant}.")
    ablates = data.get("ablates") or ""
    check_knock_out(state, data, actor)
    state.candidates[name] = CandidateState(
        id=name,
        drafted_at=state.ledger_bytes,
        hypothesis=text(data["proposal"]["hypothesis"]),
        base=data["base"],
        commit=text(data["commit"]),
        tree=text(data["tree"]),
        lines=int(data.get("lines", 0)),
        plant="" if plant is None else text(plant),
        ablates=text(ablates),
        without=[text(one) for one in data.get("without", ())],
        proposer=text(data["proposal"].get("proposer", "")),
        parents=[text(one) for one in data["proposal"].get("parents", ())],
        idea=text(data.get("idea") or ""),
    )
    sittings.go_on(state)
    if actor == Actor.ENGINE and not state.baseline:
        state.baseline = name


def _permitted(state: StudyState, data: Data, actor: str) -> None:
    only(actor, Actor.PERSON)
    one = candidate_of(state, data)
    check_tree(one, data)
    text(data["strength"])
    one.permitted_under, one.permit = text(data["contract"]), data


def _refused(state: StudyState, data: Data, actor: str) -> None:
    only(actor, Actor.GATE)
    says = [text(reason["says"]) for reason in data["reasons"]]
    if not says:
        raise Unlawful("A refusal has at least one reason.")
    if data["candidate"] is None:
        state.refused = says
        return
    one = candidate_of(state, data)
    if one.state is State.VALIDATED:
        check_step(one.state, State.DRAFT, actor)
        one.state = State.DRAFT
    elif one.state is not State.DRAFT:
        raise Unlawful(f"{one.id} is {one.state}, so the gate has nothing more to say about it.")
    one.refused = says
    if one.racing:
        one.racing = False
        state.moments.append(Moment("left", one.id))


def _validated(state: StudyState, data: Data, actor: str) -> None:
    one = candidate_of(state, data)
    check_step(one.state, State.VALIDATED, actor)
    check_tree(one, data)
    one.validated_under = text(data["contract"])
    one.refused = []
    one.state = State.VALIDATED


def _launched(state: StudyState, data: Data, actor: str) -> None:
    one, run = candidate_of(state, data), data["id"]
    only(actor, Actor.RUNNER)
    settled = one.state in (State.LAUNCHED, State.ACCEPTED)  # the incumbent is measured anew, and stays what it is
    if not settled:
        check_step(one.state, State.LAUNCHED, actor)
    check_tree(one, data)
    if data.get("rung", 0) != state.rung:
        raise Unlawful(f"{run} may not start: it is for rung {data.get('rung', 0)}, and the study is on {state.rung}.")
    if run != state.next_run():
        raise Unlawful(f"The next run is {state.next_run()}, not {run}.")
    calibrates = one.id == state.baseline and data["phase"] == "screen" and state.calibrating == data["contract"]
    if not calibrates and (state.entered is None or state.entered != data["contract"]):
        raise Unlawful(f"{run} may not start: nobody asked to enter the loop under this contract.")
    if one.validated_under != data["contract"]:
        raise Unlawful(f"{run} may not start: {one.id} was not validated under this contract.")
    if data["command"] != state.approvals[Clause.BASELINE]["terms"]["command"]:
        raise Unlawful(f"{run} may not start: its command is not the approved one.")
    state.runs[run] = RunState(
        candidate=one.id,
        tree=data["tree"],
        comparability=text(data["comparability"]),
        train_seed=int(data["train_seed"]),
        phase=text(data["phase"]),
        round=int(data["round"]),
        number=int(data["number"]),
        rung=int(data.get("rung", 0)),
    )
    one.runs.append(run)
    sittings.go_on(state)
    if not settled:
        one.state = State.LAUNCHED
    is_idea = not (one.kept or one.plant or one.ablates or one.id == state.baseline)
    if data["phase"] == "screen" and is_idea and not one.racing and one.state is State.LAUNCHED:
        one.racing = True
        state.moments.append(Moment("entered", one.id))


def _ended(state: StudyState, data: Data, actor: str) -> None:
    only(actor, Actor.RUNNER)
    run = run_of(state, data["run"])
    if run.outcome is not None:
        raise Unlawful(f"{data['run']} has ended already.")
    one = state.candidates[run.candidate]
    outcome, because = Outcome(data["outcome"]), text(data["because"])
    seconds, cpu = (_seconds(data, key) for key in ("wall_seconds", "cpu_seconds"))
    outcomes = {state.runs[name].outcome for name in one.runs if name != data["run"]} | {outcome}
    settled = one.state is not State.LAUNCHED or None in outcomes
    after = one.state if settled else _after_runs(outcomes)
    if after is not one.state:
        check_step(one.state, after, actor)
    run.outcome, run.wall_seconds = outcome, seconds
    state.wall_seconds += seconds
    state.cpu_seconds += cpu
    state.lost_runs += outcome.is_machines_fault()
    if outcome.is_candidates_fault():
        one.failure = because
        state.moments.append(Moment("ran", data["run"]))
    one.state = after


def _seconds(data: Data, key: str) -> float:
    seconds = float(data[key])
    if not (isfinite(seconds) and seconds >= 0):
        raise Unlawful(f"{data['run']} cannot have taken {seconds} seconds.")
    return seconds


def _after_runs(outcomes: set[Outcome | None]) -> State:
    """What becomes of a candidate when its last open run has ended."""
    if Outcome.COMPLETED in outcomes:
        return State.COMPLETED
    if any(outcome is not None and outcome.is_candidates_fault() for outcome in outcomes):
        return State.DEBUG
    return State.VALIDATED


def _measured(state: StudyState, data: Data, actor: str) -> None:
    only(actor, Actor.REFEREE)
    run = run_of(state, data["run"])
    if run.outcome is not Outcome.COMPLETED:
        raise Unlawful(f"{data['run']} did not complete, so there is nothing to measure.")
    for key, own in (("candidate", run.candidate), ("tree", run.tree), ("comparability", run.comparability)):
        if data[key] != own:
            raise Unlawful(f"The evidence on {data['run']} names another {key} than the run itself.")
    score = None if data["score"] is None else float(data["score"])
    guardrails = {text(name): float(value) for name, value in data["guardrails"].items()}
    run.score, run.guardrails, run.quarantined = score, guardrails, text(data.get("quarantined", ""))
    run.evidence += 1
    if run.evidence == 1:
        state.moments.append(Moment("ran", data["run"]))


def _decided(state: StudyState, data: Data, actor: str) -> None:
    only(actor, Actor.JUDGE)
    one = candidate_of(state, data)
    check_evidence(state, data["evidence"])
    sittings.check_one_rung(state, data["evidence"])
    check_comparable(state, data["evidence"])
    because = text(data["because"])
    gain = None if data["gain"] is None else float(data["gain"])
    attempts = state.attempts
    apply_verdict(state, one, data)
    one.verdict, one.gain = because, gain
    one.racing = one.provisional
    state.decided_on_rung += one.id != state.baseline and not one.racing
    kind: Literal["attempted", "decided"] = "attempted" if state.attempts > attempts else "decided"
    state.moments.append(Moment(kind, one.id, str(data["verdict"]), state.tip, state.incumbent))


_FOLDS: dict[str, Callable[[StudyState, Data, str], None]] = {
    "created": _created,
    "approved": _approved,
    "entered": _entered,
    "calibrated": _calibrated,
    "drafted": _drafted,
    "permitted": _permitted,
    "refused": _refused,
    "validated": _validated,
    "launched": _launched,
    "ended": _ended,
    "measured": _measured,
    "scheduled": fold_schedule,
    "verified": sittings.fold_verification,
    "decided": _decided,
    "ablated": fold_ablation,
    "asked": fold_asked,
    "answered": fold_answered,
    "promoted": sittings.fold_promotion,
    "stood_still": sittings.fold_standstill,
    "handed_off": sittings.fold_handoff,
    "turned": sittings.fold_turn,
    "noted": sittings.fold_note,
}
