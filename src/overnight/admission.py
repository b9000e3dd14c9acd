"""Everything before a run: the terms, the word to enter, candidates, the gate, and refs that follow the ledger.

Nothing here launches anything. `loop` calls it for every candidate, and again right before
every launch; the command line calls it for people.
"""

import platform
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from overnight import signatures
from overnight.approvals import Who, approve_clauses, give_permit, read_terms, standings
from overnight.candidate.build import Ground, Overtaken, build, params_of, with_copy, with_params
from overnight.candidate.copy import Found, read_copy
from overnight.candidate.tree import ABSENT, GITLINK, Store, uncommitted
from overnight.contract import trainers
from overnight.contract.read import Reading
from overnight.decide.simplicity import balance
from overnight.errors import LedgerDamaged, Refused, UserError, did_you_mean
from overnight.gate.admit import admit, rules_digest
from overnight.gate.case import Admission, Opening
from overnight.gate.opening import may_launch, may_open
from overnight.gate.rules.secrets import leak
from overnight.likeness import idea_in, twin_of
from overnight.ports import Machine
from overnight.records.approval import LoopEntry, Permit
from overnight.records.candidate import Candidate
from overnight.records.codec import Misfit, decode, digest, dumps, encode
from overnight.records.contract import PARAMS_FILE, Clause, Contract, Plant
from overnight.records.entry import Validation
from overnight.records.lifecycle import Actor, State
from overnight.records.limits import CandidateId
from overnight.records.proposal import Proposal
from overnight.records.refusal import Reason, Refusal
from overnight.records.text import lines
from overnight.room import usable_cores
from overnight.study.durable import make_folder, write_file
from overnight.study.layout import StudyFolder
from overnight.study.state import CandidateState, StudyState
from overnight.study.study import Study, read_entry

__all__ = ["Who", "approve_clauses", "read_terms", "standings"]  # whoever admits also reads and approves the terms
_READ_BYTES = 1_000_000


# The word to enter


def opening(state: StudyState, reading: Reading, *, calibrating: bool = False) -> Opening:
    """Everything the gate must know before the study may train.

    `calibrating` asks about the baseline alone: the eighth clause, which is about candidates, is not needed for it.
    """
    contract = reading.contract()
    given = standings(reading, state)
    return Opening(
        standings=tuple(one for one in given if not calibrating or one.clause is not Clause.EXPERIMENTS),
        contract=contract,
        digest=digest(contract) if contract is not None else None,
        entered=state.calibrating if calibrating else state.entered,
        tree=state.tree,
        runs=state.paid_runs,
        wall_seconds=state.wall_seconds / _slots(contract),
        admitted=frozenset(one.id for one in state.ideas() if one.validated_under is not None),
        host=platform.node(),
        baseline=state.baseline,
    )


def _calibrates(state: StudyState, reading: Reading, candidate: str) -> bool:
    """Whether this is the baseline, before the eighth clause is approved as it stands."""
    if candidate != state.baseline or state.calibrating is None:
        return False
    eighth = next(one for one in standings(reading, state) if one.clause is Clause.EXPERIMENTS)
    return eighth.standing != "in force"


def _slots(contract: Contract | None) -> int:
    """How many runs go side by side, so that an hour of two of them is one hour of the budget."""
    return slots(contract) if contract is not None else 1


def slots(contract: Contract) -> int:
    """How many runs this machine takes at a time, each on its own cores."""
    return max(usable_cores() // contract.hardware.cores_per_run, 1)


def enter(study: Study, who: Who) -> Contract:
    """Record the explicit word to enter the loop, or refuse and record why."""
    return _enter(study, who, calibrating=False)


def enter_to_calibrate(study: Study, who: Who) -> Contract:
    """Record the word to run the baseline alone, before the eighth clause is approved, or refuse and record why."""
    return _enter(study, who, calibrating=True)


def _enter(study: Study, who: Who, *, calibrating: bool) -> Contract:
    case = opening(study.state, read_terms(study.machine, study.at), calibrating=calibrating)
    reasons = may_open(case) or _not_committed(study, case.contract)
    if reasons or case.contract is None or case.digest is None:
        raise _refuse(study, None, reasons)
    if case.entered != case.digest:
        word = LoopEntry(contract=case.digest, approver=who.name, strength=who.strength, calibrating=calibrating)
        study.append(Actor.PERSON, word)
    return case.contract


def _not_committed(study: Study, contract: Contract | None) -> tuple[Reason, ...]:
    """In a repository with one file to change, an edit that is not committed would be taken for what is run."""
    if contract is None or contract.scope.preset != "single-file":
        return ()
    found = uncommitted(study.machine, study.at.task.root.project)
    names = [name for name in found if name != study.at.program.name]  # the direction is edited at any time
    if not names:
        return ()
    says = f"{', '.join(names[:5])} differs from the last commit, and no run would have it; commit or discard that."
    return (Reason(rule="repository", says=says),)


# Candidates


def propose_params(study: Study, store: Store, proposal: Proposal) -> Candidate:
    """Draft a candidate from changed parameters."""
    tree = with_params(store, store.tree_of(study.state.tip), proposal.params, scratch=study.at.folder)
    return _draft(study, store, proposal, tree)


def propose_copy(
    study: Study, store: Store, proposal: Proposal, copy: Path, *, base: str | None = None
) -> Candidate | Refusal:
    """Draft a candidate from an edited plain copy of the tip, or of an earlier tip, whose changes are carried over.

    A copy that holds a secret, or what can never be part of a candidate, is refused before anything of it is stored.
    """
    found, tip = read_copy(copy), store.tree_of(study.state.tip)
    made_from = store.tree_of(base) if base is not None else tip
    reasons = found.reasons or _secrets(store, made_from, found)
    try:
        tree = tip if reasons else with_copy(store, made_from, found, scratch=study.at.folder, onto=tip)
    except Overtaken as overtaken:
        says = f"The tip has changed {overtaken} since the copy was made, so it cannot be carried over."
        reasons = (Reason(rule="provenance", says=says),)
    if reasons:
        refusal = Refusal(candidate=None, reasons=reasons)
        study.append(Actor.GATE, refusal)
        return refusal
    return _draft(study, store, _with_params(store, proposal, tip, tree), tree)


def _secrets(store: Store, base: str, found: Found) -> tuple[Reason, ...]:
    """Keys and tokens that an edited copy brings, looked for before it is stored."""
    before = {file.path: file.blob for file in store.files(base) if file.mode != GITLINK}
    new = {path: data for path, (_, data) in found.files.items() if before.get(path) != store.blob_id(data, like=base)}
    old = store.blobs(before[path] for path in new if path in before)
    leaks = (leak(path, old.get(before.get(path, ""), b""), data) for path, data in new.items())
    return tuple(Reason(rule="secrets", says=says) for says in leaks if says)[:20]


def _with_params(store: Store, proposal: Proposal, base: str, tree: str) -> Proposal:
    """The proposal with the parameters that an edited copy changed, where both trees are nothing but parameters."""
    with suppress(UserError, Misfit):  # what cannot be read as parameters is for the gate to refuse
        if proposal.params or {file.path for file in store.files(tree)} != {PARAMS_FILE}:
            return proposal
        before, after = params_of(store, base), params_of(store, tree)
        moved = {key: value for key, value in after.items() if key not in before or before[key] != value}
        return replace(proposal, params=moved)
    return proposal


def _draft(study: Study, store: Store, proposal: Proposal, tree: str) -> Candidate:
    contract = read_terms(study.machine, study.at).contract()
    if contract is None:
        raise Refused(str(study.at.contract), ("The contract is not complete, so nothing can be proposed under it.",))
    if tree == store.tree_of(study.state.tip):
        raise UserError("proposal", "changes nothing: the tip has this very tree already")
    actor = Actor.PERSON if proposal.proposer == "human" else Actor.PROPOSER
    return draft_candidate(study, store, proposal, tree, Drafting(contract, actor))


class Drafting(NamedTuple):
    """Under which terms a candidate is drafted, and by whom."""

    contract: Contract
    actor: Actor
    plant: Plant | None = None
    ablates: CandidateId | None = None
    without: tuple[str, ...] = ()


def draft_candidate(study: Study, store: Store, proposal: Proposal, tree: str, how: Drafting) -> Candidate:
    """Pin an idea to a tree: a commit in the store, an entry, a ref, and files for people to read."""
    decode(Proposal, encode(proposal), where="proposal")  # whoever made it: an idea that no record takes is none
    base = study.state.tip
    on = Ground(study.state.next_candidate(), base, digest(how.contract), study.machine.now(), how.plant)
    diff = store.diff(store.tree_of(base), tree).decode(errors="replace")
    idea = idea_in(study, store, tree, how.contract)
    built = build(store, proposal, tree, on=on)
    candidate = replace(built, idea=idea, lines=balance(diff), ablates=how.ablates, without=how.without)
    study.append(how.actor, candidate)
    store.move_ref(study.at.ref("candidates", candidate.id), candidate.commit, old=None)
    folder = study.at.candidate(candidate.id)
    make_folder(study.machine, folder)
    write_file(study.machine, folder / "candidate.json", dumps(candidate))
    write_file(study.machine, folder / "change.diff", lines(diff).encode())
    return candidate


def admit_candidate(study: Study, store: Store, name: str) -> tuple[Reason, ...]:
    """Ask the gate about one candidate now, on its tree in the store, and record the answer.

    Used when it is drafted, on request, and immediately before its launch. What was valid
    before and is not any more becomes a draft again.
    """
    if name not in study.state.candidates:
        record_refusal(study, None, (Reason(rule="provenance", says=_NO_PROVENANCE.format(name)),))
    one = find_candidate(study.state, name)
    reading = read_terms(study.machine, study.at)
    case = opening(study.state, reading, calibrating=_calibrates(study.state, reading, name))
    if case.contract is None or case.digest is None:
        reasons = may_open(case)
    else:
        reasons = admit(_admission(study, store, one, case, case.contract))
    if reasons:
        record_refusal(study, name, reasons)
    elif one.state is State.DRAFT and case.digest is not None:
        validation = Validation(candidate=name, tree=one.tree, contract=case.digest, rules=rules_digest())
        study.append(Actor.GATE, validation)
        study.machine.unlink(str(study.at.candidate(name) / "refusal.json"))
    return reasons


def may_launch_now(study: Study, candidate: str = "") -> tuple[Reason, ...]:
    """What stands against launching a candidate, or anything, at this moment, read anew from disk."""
    reading = read_terms(study.machine, study.at)
    return may_launch(opening(study.state, reading, calibrating=_calibrates(study.state, reading, candidate)))


def permit(study: Study, name: str, who: Who) -> Permit:
    """Approve one candidate by itself, as its tree stands."""
    return give_permit(study, find_candidate(study.state, name), who)


_NO_PROVENANCE = "There is no candidate {} in the ledger, so it has no provenance."


def find_candidate(state: StudyState, name: str) -> CandidateState:
    """One candidate of the ledger; a folder or a ref without an entry is not a candidate."""
    found = state.candidates.get(name)
    if found is None:
        raise Refused(
            name,
            (_NO_PROVENANCE.format(name),),
            hint=did_you_mean(name, state.candidates) or "`overnight candidates` lists them",
        )
    return found


def drafted(machine: Machine, at: StudyFolder, one: CandidateState) -> Candidate:
    """A candidate in full, as its entry in the ledger has it."""
    entry = read_entry(machine, at, one.drafted_at)
    found = decode(Candidate, entry["data"], where=f"ledger candidate {one.id}")
    if (found.id, found.tree) != (one.id, one.tree):
        raise LedgerDamaged(
            str(at.ledger), f"has {found.id} where {one.id} was drafted.", hint=f"delete {at.state.name}"
        )
    return found


def record_refusal(study: Study, name: str | None, reasons: tuple[Reason, ...]) -> None:
    """Write a refusal down, unless the last one about the same thing said exactly the same."""
    refusal = Refusal(candidate=name, reasons=reasons)
    before = study.state.refused if name is None else study.state.candidates[name].refused
    if before == [reason.says for reason in reasons]:
        return
    with suppress(Refused):  # a candidate that has run is past refusing; the caller still gets the reasons
        study.append(Actor.GATE, refusal)
    if name is not None:
        folder = study.at.candidate(name)
        make_folder(study.machine, folder)
        write_file(study.machine, folder / "refusal.json", dumps(refusal))


def _refuse(study: Study, name: str | None, reasons: tuple[Reason, ...]) -> Refused:
    record_refusal(study, name, reasons)
    hint = "`overnight approve` asks for what is missing" if any(one.rule == "approvals" for one in reasons) else ""
    return Refused(f"{study.at.task.name}/{study.at.name}", (one.says for one in reasons), hint=hint)


def _admission(study: Study, store: Store, one: CandidateState, case: Opening, contract: Contract) -> Admission:
    candidate = drafted(study.machine, study.at, one)
    commit = store.ref(study.at.ref("candidates", one.id))
    known = commit is not None and store.has(commit)
    tree = store.tree_of(commit) if commit is not None and known else None
    changes = store.changes(store.tree_of(candidate.base), tree) if tree is not None else ()
    trainer = trainers.trainer_of(contract.baseline.command)
    old = [change.old_blob for change in changes if change.old_mode not in (ABSENT, GITLINK)]
    new = [change.new_blob for change in changes if _readable(change.new_mode, change.new_bytes)]
    blobs = store.blobs([*old, *new])
    return Admission(
        opening=case,
        contract=contract,
        candidate=candidate,
        state=one.state,
        permitted=one.permitted_under == case.digest and not signatures.permit_flaw(study.state, one),
        tip=study.state.tip,
        stored_commit=commit,
        stored_tree=tree,
        stored_parents=store.parents_of(commit) if commit is not None and known else (),
        changes=changes,
        before={change.path: blobs[change.old_blob] for change in changes if change.old_blob in blobs},
        after={change.path: blobs[change.new_blob] for change in changes if change.new_blob in blobs},
        space=trainers.space(trainer) if trainer is not None else None,
        twin=twin_of(study, one, idea_in(study, store, tree, contract), case.digest) if tree is not None else "",
    )


def _readable(mode: str, size: int) -> bool:
    return mode not in (ABSENT, GITLINK) and size <= _READ_BYTES


# Refs follow the ledger


def follow_ledger(study: Study, store: Store) -> None:
    """Bring the refs of the store to what the ledger says, as after a crash between the two.

    A missing ref is made. A ref that points to a commit which the ledger has never named
    was moved by another hand, and is refused.
    """
    known = {one.commit for one in study.state.candidates.values()} | {*study.state.incumbents}
    known |= {study.state.tip, study.state.incumbent}
    store.clear_stale_locks(study.at.ref())
    refs = store.refs(study.at.ref())
    for name, commit in (("tip", study.state.tip), ("incumbent", study.state.incumbent)):
        now = refs.get(study.at.ref(name))
        if now is not None and now not in known and now != commit:
            says = f"The {name} points to {now[:12]}, which the ledger does not name: another hand moved it."
            raise _refuse(study, None, (Reason(rule="provenance", says=says),))
        if now != commit:
            store.move_ref(study.at.ref(name), commit, old=now)
    _set_strangers_aside(study, store, refs)
    for one in study.state.candidates.values():
        ref = study.at.ref("candidates", one.id)
        if ref not in refs and store.has(one.commit):
            store.move_ref(ref, one.commit, old=None)


def _set_strangers_aside(study: Study, store: Store, refs: Mapping[str, str]) -> None:
    """Keep commits whose ids the ledger does not have, as after restoring a backup, but out of the candidates' way."""
    lead = study.at.ref("candidates") + "/"
    for ref, commit in refs.items():
        name = ref.removeprefix(lead)
        if ref.startswith(lead) and name not in study.state.candidates:
            store.move_ref(study.at.ref("strangers", f"{name}-{commit}"), commit, old=None)
            store.drop_ref(ref, old=commit)


# What comes next


def next_action(state: StudyState, reading: Reading) -> tuple[str, str]:
    """One sentence on where the study stands, and the command that leads on. Launches nothing."""
    unsound = [clause for clause in Clause if reading.problem(clause) is not None]
    if unsound:
        names = ", ".join(f"`{clause}`" for clause in unsound)
        return f"The contract is not complete: {names}.", "overnight contract check"
    case = opening(state, reading)
    open_approvals = [one for one in case.standings if one.standing != "in force"]
    if open_approvals:
        if len(open_approvals) == len(case.standings):
            return "The terms are drafted, and none of the eight clauses is approved.", "overnight approve"
        if [one.clause for one in open_approvals] == [Clause.EXPERIMENTS] and open_approvals[0].standing == "missing":
            return "Seven clauses are approved; the eighth is asked when the baseline is calibrated.", "overnight start"
        names = ", ".join(f"`{one.clause}` is {one.standing}" for one in open_approvals)
        return f"Approval is needed: {names}.", "overnight approve"
    refused = may_open(case)
    if refused:
        return refused[0].says, "overnight status"
    if may_launch(case):
        return "Everything is approved, and nobody has entered the loop yet.", "overnight start"
    ready = sum(one.state is State.VALIDATED for one in state.candidates.values())
    return f"The loop is entered; {ready} candidates are ready.", "overnight start"
