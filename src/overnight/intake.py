"""How an idea becomes a candidate, whoever had it: search, an agent, or a person while the night runs.

The engine alone may write a study that it holds. A person's proposal then waits in the inbox, and the engine takes it
up before it asks anybody else; what the gate says is left there as the answer.
"""

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

from overnight.admission import admit_candidate, drafted, propose_copy, propose_params, record_refusal
from overnight.candidate.copy import write_copy
from overnight.candidate.tree import Store
from overnight.errors import OvernightError, UserError
from overnight.ports import Machine
from overnight.records.codec import dumps, loads
from overnight.records.handed import Handed, Heard
from overnight.records.lifecycle import State
from overnight.records.proposal import Edited, Proposal
from overnight.records.refusal import Reason, Refusal
from overnight.records.text import sentence
from overnight.study.durable import make_folder, write_file
from overnight.study.layout import StudyFolder
from overnight.study.state import CandidateState
from overnight.study.study import Study


def take_up(study: Study, store: Store, idea: Proposal | Edited) -> Heard:
    """Draft a candidate from an idea and put it before the gate. Whatever comes of it is in the ledger.

    An edited copy is removed at the end: while it is there, nobody has taken it up.
    """
    heard = _taken(study, store, idea)
    if isinstance(idea, Edited):
        shutil.rmtree(idea.folder, ignore_errors=True)
    return heard


def _taken(study: Study, store: Store, idea: Proposal | Edited) -> Heard:
    try:
        if isinstance(idea, Edited):
            found = propose_copy(study, store, idea.proposal, Path(idea.folder), base=idea.base)
        else:
            found = propose_params(study, store, idea)
    except UserError as error:  # an idea that is none: it changes nothing, or cannot be read at all
        return _kept_out(study, (Reason(rule="one-hypothesis", says=f"{error.where} {error.what}."),))
    if isinstance(found, Refusal):
        return Heard(candidate=None, refused=tuple(reason.says for reason in found.reasons))
    reasons = admit_candidate(study, store, found.id)
    return Heard(candidate=found.id, refused=tuple(reason.says for reason in reasons))


def _kept_out(study: Study, reasons: tuple[Reason, ...]) -> Heard:
    record_refusal(study, None, reasons)
    return Heard(candidate=None, refused=tuple(reason.says for reason in reasons))


# The inbox


def hand_in(machine: Machine, at: StudyFolder, handed: Handed, copy: Path | None) -> Path:
    """Leave a proposal for the engine that holds the study; return the folder in which its answer will be."""
    made = at.inbox / f".{secrets.token_hex(6)}"
    make_folder(machine, made)
    if copy is not None:
        shutil.copytree(copy, made / "copy", symlinks=True)
    write_file(machine, made / "proposal.json", dumps(handed))
    ready = at.inbox / f"{machine.now():.0f}-{made.name[1:]}"
    machine.replace(str(made), str(ready))
    return ready


def hear_inbox(study: Study, store: Store) -> Iterator[tuple[Proposal, Heard]]:
    """Take up what was handed in, oldest first; each one with what became of it."""
    waiting = sorted(study.at.inbox.glob("[0-9]*")) if study.at.inbox.is_dir() else []
    for folder in waiting:
        if (folder / "answer.json").exists():
            continue
        try:
            handed = loads(Handed, (folder / "proposal.json").read_bytes(), where=str(folder / "proposal.json"))
        except (OSError, UserError) as error:
            write_file(study.machine, folder / "answer.json", dumps(_unread(error)))
            continue
        idea = _idea(handed, folder)
        heard = take_up(study, store, idea)
        write_file(study.machine, folder / "answer.json", dumps(heard))
        yield handed.proposal, heard


def carry_over(study: Study, store: Store) -> Iterator[tuple[Proposal, Heard]]:
    """Draft ideas anew that waited while the tip moved on, and that never ran or were ahead of the tip before.

    What search had in mind and did not run is left alone, because it draws by the tip that is there now.
    """
    carried = {parent for one in study.state.ideas() for parent in one.parents}
    for one in study.state.ideas():
        waits = one.state in (State.DRAFT, State.VALIDATED) and one.validated_under is not None and not one.runs
        overtaken = one.state is State.INCONCLUSIVE and one.gain is not None and one.gain > 0
        wanted = overtaken or (waits and one.proposer != "search")
        if wanted and one.base != study.state.tip and one.id not in carried:
            proposal = drafted(study.machine, study.at, one).proposal
            again = replace(proposal, parents=(*proposal.parents, one.id))
            yield proposal, take_up(study, store, _moved(study, store, one, again))


def _moved(study: Study, store: Store, one: CandidateState, proposal: Proposal) -> Proposal | Edited:
    if proposal.params:
        return proposal
    folder = study.at.inbox / f".{one.id}"
    shutil.rmtree(folder, ignore_errors=True)
    write_copy(store, one.tree, folder)
    return Edited(proposal=proposal, folder=str(folder), base=one.base)


def _idea(handed: Handed, folder: Path) -> Proposal | Edited:
    if handed.base is None:
        return handed.proposal
    return Edited(proposal=handed.proposal, folder=str(folder / "copy"), base=handed.base)


def _unread(error: Exception) -> Heard:
    return Heard(candidate=None, refused=(sentence(f"It cannot be read: {error}."),))


def answer_of(machine: Machine, folder: Path) -> Heard | None:
    """What became of a proposal that was handed in; None while nobody has taken it up. Clears what was read."""
    text = machine.read(str(folder / "answer.json"))
    if text is None:
        return None
    heard = loads(Heard, text, where=str(folder / "answer.json"))
    shutil.rmtree(folder, ignore_errors=True)
    return heard


# Which tip a copy was made from


def note_copy(machine: Machine, at: StudyFolder, copy: Path, tip: str) -> None:
    """Remember which tip a plain copy was made from, so that it can be carried over when the tip moves."""
    make_folder(machine, at.edits)
    write_file(machine, _note(at, copy), f"{tip}\n".encode())


def base_of(machine: Machine, at: StudyFolder, copy: Path) -> str | None:
    """The tip that a plain copy was made from; None where nobody knows."""
    with suppress(OvernightError, UnicodeDecodeError):
        text = machine.read(str(_note(at, copy)))
        return text.decode().strip() if text is not None else None
    return None


def _note(at: StudyFolder, copy: Path) -> Path:
    return at.edits / sha256(os.fsencode(copy.resolve())).hexdigest()[:32]
