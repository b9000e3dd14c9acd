"""A stack without some of its parts: the other parts laid on what it started from, one after the other."""

from collections.abc import Sequence
from pathlib import Path

from overnight.candidate.build import params_bytes, params_of
from overnight.candidate.tree import ABSENT, REGULAR, Store
from overnight.errors import UserError
from overnight.records.contract import PARAMS_FILE


def lay_on(store: Store, root: str, steps: Sequence[tuple[str, str]], *, scratch: Path) -> str | None:
    """The tree that comes of a root when each step, from one tree to another, is repeated on it in order.

    None where a step changes a file that does not stand there as the step found it: then a part that was left out
    had changed the same file, and nobody can say what the step would have been without it. Of parameter files, the
    changed keys are repeated.
    """
    tree = root
    for before, after in steps:
        laid = _step(store, tree, (before, after), scratch)
        if laid is None:
            return None
        tree = laid
    return tree


def _step(store: Store, tree: str, step: tuple[str, str], scratch: Path) -> str | None:
    here = {file.path: (file.mode, file.blob) for file in store.files(tree)}
    laid: dict[str, tuple[str, str]] = {}
    for change in store.changes(*step):
        now = here.get(change.path, (ABSENT, change.old_blob if change.old_mode == ABSENT else ""))
        if now == (change.old_mode, change.old_blob):
            laid[change.path] = (change.new_mode, change.new_blob)
        elif change.path == PARAMS_FILE and now[0] == change.old_mode == change.new_mode == REGULAR:
            blob = _keys(store, tree, step)
            if blob is None:
                return None
            laid[change.path] = (REGULAR, blob)
        elif now != (change.new_mode, change.new_blob):
            return None
    return store.write_tree(tree, laid, scratch=scratch) if laid else tree


def _keys(store: Store, tree: str, step: tuple[str, str]) -> str | None:
    """The parameter file of a tree with the keys that a step changes; None where one of them is no such file."""
    try:
        here, before, after = (params_of(store, one) for one in (tree, *step))
    except UserError:
        return None
    moved = {key: value for key, value in after.items() if key not in before or before[key] != value}
    kept = {key: value for key, value in here.items() if key in after or key not in before}
    return store.write_blob(params_bytes({**kept, **moved}))
