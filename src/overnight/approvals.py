"""The terms of a study, and the words that people give about them: eight clauses, and candidates by themselves."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from overnight import signatures
from overnight.contract import approve as approving
from overnight.contract.read import Reading, digests, read
from overnight.errors import Refused, UserError
from overnight.ports import Machine
from overnight.records.approval import Approval, Permit, Strength
from overnight.records.codec import digest, dumps
from overnight.records.contract import Clause, ContractLock
from overnight.records.lifecycle import Actor
from overnight.records.standing import ClauseStanding
from overnight.study.durable import write_file
from overnight.study.layout import StudyFolder
from overnight.study.state import CandidateState, StudyState
from overnight.study.study import Study


@dataclass(frozen=True, slots=True)
class Who:
    """Who gives a word, and how."""

    name: str
    strength: Strength
    key: Path | None = None
    """The SSH key that signs; only for a signed word."""


def read_terms(machine: Machine, at: StudyFolder) -> Reading:
    """The contract of a study as it stands on disk."""
    text = machine.read(str(at.contract))
    if text is None:
        raise UserError(str(at.contract), "does not exist", hint="`overnight init` drafts it")
    return read(text, where=str(at.contract))


def standings(reading: Reading, state: StudyState) -> tuple[ClauseStanding, ...]:
    """Each of the eight approvals against the contract as it stands."""
    return approving.standings(reading, state.approvals, signatures.flaws(state))


def approve_clauses(study: Study, reading: Reading, clauses: Iterable[Clause], who: Who) -> tuple[Approval, ...]:
    """Write one approval for each clause, and the readable copies beside the contract.

    A clause that is unknown or wrong stops the whole call before anything is written.
    """
    wanted = tuple(clauses)
    problems = [problem for clause in wanted if (problem := reading.problem(clause)) is not None]
    if problems:
        raise Refused(str(study.at.contract), problems, hint="`overnight contract check` lists what is missing")
    _check_signing(who)
    now, given = digests(reading), []
    weaker = [
        clause for clause in wanted if approving.weakens(who.strength, study.state.approvals.get(clause), now[clause])
    ]
    if weaker:
        raise Refused("overnight approve", (_weaker(study.state, weaker),), hint=_how_to_replace(study.state, weaker))
    flawed = signatures.flaws(study.state)
    due = [clause for clause in wanted if _is_due(study.state, clause, now[clause], who, flawed)]
    shown = study.state.calibration_digest() if Clause.EXPERIMENTS in due else None
    lines = [signatures.clause_line(clause, now[clause]) for clause in due]
    lines += [signatures.calibration_line(shown)] if shown is not None else []
    word = _given(study, who, reading, lines)
    for clause in due:
        approval = approving.approval(
            reading.clauses[clause], clause, given=word, before=study.state.approvals.get(clause)
        )
        if clause is Clause.EXPERIMENTS:
            approval = replace(approval, calibration=shown)
        study.append(Actor.PERSON, approval)
        write_file(study.machine, study.at.approvals / f"{_number(clause)}-{clause}.json", dumps(approval))
        given.append(approval)
    _write_lock(study, reading)
    return tuple(given)


def _is_due(state: StudyState, clause: Clause, now: str, who: Who, flawed: Mapping[Clause, str]) -> bool:
    """Whether a clause needs this word: it is not approved as it stands, or not as strongly, or not provably."""
    before = state.approvals.get(clause)
    return before is None or before["digest"] != now or approving.stronger(who.strength, before) or clause in flawed


def _given(study: Study, who: Who, reading: Reading, lines: list[str]) -> approving.Given:
    """The word for these things, signed where it is to be."""
    if who.key is None or not lines:
        return approving.Given(who.name, who.strength)
    contract = reading.contract()
    text = signatures.text_for(study.state, digest(contract) if contract is not None else None, lines)
    return approving.Given(who.name, who.strength, text, signatures.sign(text, who.key))


def _check_signing(who: Who) -> None:
    if who.strength is not Strength.SIGNED and signatures.settings().require_signature:
        says = f"Your configuration asks for signed approvals, and this one is {who.strength}."
        raise Refused("overnight approve", (says,), hint="`overnight approve --sign` signs with your SSH key")


def _weaker(state: StudyState, clauses: list[Clause]) -> str:
    how = "signed" if _one_is_signed(state, clauses) else "approved by a person"
    word = "an unsigned word" if _one_is_signed(state, clauses) else "an unattended word"
    return f"{', '.join(clauses)} was {how}, and {word} cannot replace that."


def _how_to_replace(state: StudyState, clauses: list[Clause]) -> str:
    return f"run `overnight approve{' --sign' if _one_is_signed(state, clauses) else ''}` in a terminal"


def _one_is_signed(state: StudyState, clauses: list[Clause]) -> bool:
    return any(state.approvals[clause]["strength"] == Strength.SIGNED for clause in clauses)


def _number(clause: Clause) -> int:
    return list(Clause).index(clause) + 1


def _write_lock(study: Study, reading: Reading) -> None:
    contract = reading.contract()
    lock = ContractLock(
        contract=digest(contract) if contract is not None else None,
        clauses={str(clause): data["digest"] for clause, data in study.state.approvals.items()},
    )
    write_file(study.machine, study.at.lock, dumps(lock))


def give_permit(study: Study, one: CandidateState, who: Who) -> Permit:
    """Approve one candidate by itself, as its tree stands, under the contract as it stands."""
    reading = read_terms(study.machine, study.at)
    contract = reading.contract()
    if contract is None:
        raise Refused(str(study.at.contract), ("The contract is not complete, so no candidate can be approved.",))
    _check_signing(who)
    word = _given(study, who, reading, [signatures.permit_line(one.id, one.tree)])
    given = Permit(
        candidate=one.id,
        tree=one.tree,
        contract=digest(contract),
        approver=word.approver,
        strength=word.strength,
        signed=word.signed,
        signature=word.signature,
    )
    study.append(Actor.PERSON, given)
    return given
