"""Which candidates come to the same thing, so that what was tried once is not paid for twice."""

from overnight.candidate.tree import ABSENT, GITLINK, Store
from overnight.contract import trainers
from overnight.propose.novelty import ENDED, idea_of
from overnight.propose.view import ending
from overnight.records.contract import Contract
from overnight.records.lifecycle import State
from overnight.study.state import CandidateState
from overnight.study.study import Study

_READ_BYTES = 1_000_000


def idea_in(study: Study, store: Store, tree: str, contract: Contract) -> str:
    """What a tree shares with every other that comes to the same thing; compared with the baseline's own tree."""
    changes = store.changes(study.state.tree, tree)
    read = [change for change in changes if change.new_bytes <= _READ_BYTES]
    ids = [change.old_blob for change in read if change.old_mode not in (ABSENT, GITLINK)]
    ids += [change.new_blob for change in read if change.new_mode not in (ABSENT, GITLINK)]
    blobs = store.blobs(ids)

    def held(mode: str, blob: str) -> bytes:
        return b"" if mode == ABSENT else blobs.get(blob, blob.encode())

    changed = {one.path: (held(one.old_mode, one.old_blob), held(one.new_mode, one.new_blob)) for one in changes}
    trainer = trainers.trainer_of(contract.baseline.command)
    return idea_of(changed, trainers.space(trainer) if trainer is not None else None)


def twin_of(study: Study, one: CandidateState, idea: str, contract: str | None) -> str:
    """The last earlier candidate that comes to the same thing, and how it ended.

    One that was refused, or waits under other terms or on another tip, was never tried and never will be.
    """
    found = ""
    for other in study.state.candidates.values():
        if other.id == one.id:
            break
        waits = other.state in (State.DRAFT, State.VALIDATED)
        dead = waits and (other.validated_under != contract or other.base != study.state.tip)
        if other.idea == idea and not (other.plant or other.ablates) and (not dead or other.id == study.state.baseline):
            baseline = other.id == study.state.baseline
            found = "the baseline itself" if baseline else f"{other.id}, which {ENDED[ending(other)]}"
    return found
