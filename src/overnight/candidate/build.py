"""From a proposal to a candidate: one hypothesis, one commit, one tree."""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from overnight.candidate.copy import Found, changed
from overnight.candidate.tree import REGULAR, Store
from overnight.errors import UserError
from overnight.records import strict_json
from overnight.records.candidate import Candidate
from overnight.records.codec import digest
from overnight.records.contract import PARAMS_FILE, Plant
from overnight.records.limits import Scalar
from overnight.records.proposal import Proposal


def params_of(store: Store, tree: str) -> dict[str, Scalar]:
    """The parameters of a tree of the `params` preset."""
    data = store.file(tree, PARAMS_FILE)
    if data is None:
        raise UserError(PARAMS_FILE, "is not in the tip, so there are no parameters to change")
    found = strict_json.parse(data, where=PARAMS_FILE)
    if not isinstance(found, dict) or not all(isinstance(one, Scalar) for one in found.values()):
        raise UserError(PARAMS_FILE, "is not a mapping of names to plain values")
    return found


def params_bytes(params: Mapping[str, object]) -> bytes:
    """Write a parameter file; the same parameters give the same bytes."""
    return strict_json.pretty(dict(sorted(params.items())))


def with_params(store: Store, base: str, params: Mapping[str, object], *, scratch: Path) -> str:
    """The tree that has some parameters changed."""
    merged = {**params_of(store, base), **params}
    blob = store.write_blob(params_bytes(merged))
    return store.write_tree(base, {PARAMS_FILE: (REGULAR, blob)}, scratch=scratch)


def with_copy(store: Store, base: str, found: Found, *, scratch: Path, onto: str | None = None) -> str:
    """The tree that an edited copy of a base has become, or becomes when its changes are carried over to another tree.

    What differs between the base and that other tree stays as it is there. Raises `Overtaken` where both changed
    the same file; of parameter files, the changed keys are carried over.
    """
    changes = changed(store, base, found)
    if onto is None or onto == base:
        return store.write_tree(base, changes, scratch=scratch)
    old, new = ({file.path: (file.mode, file.blob) for file in store.files(tree)} for tree in (base, onto))
    overtaken = [path for path in changes if old.get(path) != new.get(path) and changes[path] != new.get(path)]
    if overtaken == [PARAMS_FILE] == list(changes) and changes[PARAMS_FILE][0] == REGULAR:
        before, after = params_of(store, base), strict_json.parse(found.files[PARAMS_FILE][1], where=PARAMS_FILE)
        if isinstance(after, dict) and before.keys() <= after.keys():
            moved = {key: value for key, value in after.items() if key not in before or before[key] != value}
            return with_params(store, onto, moved, scratch=scratch)
    if overtaken:
        raise Overtaken(", ".join(sorted(overtaken)[:10]))
    return store.write_tree(onto, changes, scratch=scratch)


class Overtaken(Exception):
    """A copy and the tip that it was made from have both changed since; the message names the files."""


class Ground(NamedTuple):
    """What a candidate is built on, and when."""

    name: str
    """The candidate's id."""
    base: str
    """The tip's commit."""
    contract: str
    """Digest of the contract in force."""
    at: float
    """Seconds since 1970."""
    plant: Plant | None = None
    """What it tests, when it is a plant of the engine."""


def build(store: Store, proposal: Proposal, tree: str, *, on: Ground) -> Candidate:
    """Pin a proposal to a commit. What is checked, approved and run later is this commit's tree."""
    lines = (
        f"{on.name}: {proposal.hypothesis}",
        "",
        f"Predicted: {proposal.predicted_effect}",
        f"Proposer: {proposal.proposer}",
    )
    changes = store.changes(store.tree_of(on.base), tree)
    commit = store.write_commit(tree, (on.base,), "\n".join(lines) + "\n", at=on.at)
    return Candidate(
        id=on.name,
        proposal=proposal,
        base=on.base,
        commit=commit,
        tree=tree,
        changed_paths=len(changes),
        changes=digest(changes),
        contract=on.contract,
        plant=on.plant,
    )
