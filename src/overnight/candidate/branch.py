"""A new branch in the user's repository, made of objects and one ref.

The one place where the user's `.git` is written, and only because somebody asked. The index,
HEAD, the working tree and every other ref stay as they are; no hook runs, because the hooks'
folder is named as an empty one; nothing is fetched, because objects are copied by id.
"""

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from overnight.candidate.tree import REGULAR, Identity, Store, UserCommit, run_git, user_commit
from overnight.errors import UserError
from overnight.ports import Processes

NOBODY = Identity("Overnight", "overnight@localhost")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/+@-]{0,199}")


class Step(NamedTuple):
    """One commit of the branch."""

    message: str
    tree: str | None = None
    """The whole tree, as the candidate store has it; or null for a change of one file."""
    file: tuple[str, bytes] | None = None
    """The one file that changes, and what it holds."""


class Ground(NamedTuple):
    """Where a branch is about to grow."""

    repository: UserCommit
    name: str


def find_ground(processes: Processes, project: Path, name: str, *, revision: str) -> Ground:
    """Check that the branch can be made, before anything is written."""
    found = user_commit(processes, project, revision)
    if found is None:
        raise UserError(
            str(project),
            "belongs to no git repository, so it can have no branch",
            hint="`git init` and commit, or take `--patch`, `--config` or `--policy`",
        )
    valid = run_git(processes, "check-ref-format", f"refs/heads/{name}").returncode == 0
    if not _NAME.fullmatch(name) or name == "HEAD" or not valid:
        raise UserError("--branch", f"is {name[:80]!r}, which is not a branch name", hint="for example `better`")
    theirs, parts = Store(processes, found.git_dir), name.split("/")
    above = ["/".join(parts[:count]) for count in range(1, len(parts) + 1)]
    taken = [one for one in above if theirs.ref(f"refs/heads/{one}") is not None]
    taken += [ref.removeprefix("refs/heads/") for ref in theirs.refs(f"refs/heads/{name}/")]
    if taken:
        raise UserError("--branch", f"{taken[0]} is there already", hint="name a new one")
    return Ground(found, name)


def grow(processes: Processes, ground: Ground, steps: Sequence[Step], *, store: Store, at: float, scratch: Path) -> str:
    """Write the commits, oldest first, and then the branch that ends in the last one."""
    theirs, by = Store(processes, ground.repository.git_dir), identity(processes, ground.repository)
    commit = ground.repository.commit
    tree = theirs.tree_of(commit)
    if trees := [step.tree for step in steps if step.tree is not None]:
        store.copy_trees(trees, theirs, known=tree)
    for step in steps:
        if step.file is not None:
            path, data = step.file
            tree = theirs.write_tree(tree, {path: (REGULAR, theirs.write_blob(data))}, scratch=scratch)
        tree = step.tree or tree
        commit = theirs.write_commit(tree, (commit,), step.message, at=at, by=by)
    theirs.move_ref(f"refs/heads/{ground.name}", commit, old=None)
    return commit


def identity(processes: Processes, repository: UserCommit) -> Identity:
    """Whom the user's git would name as the author; a neutral name where it would name nobody."""
    local = repository.objects.parent / "config"
    files = (local, *_own_files())

    def ask(key: str) -> str:
        for file in files:
            done = run_git(processes, "config", f"--file={file}", "--includes", "--get", key)
            if done.returncode == 0 and (found := done.stdout.decode(errors="replace").strip()):
                return found
        return ""

    name = os.environ.get("GIT_AUTHOR_NAME") or ask("user.name")
    email = os.environ.get("GIT_AUTHOR_EMAIL") or ask("user.email")
    return Identity(name, email) if name and email else NOBODY


def _own_files() -> tuple[Path, ...]:
    """The user's own configuration files, the one that git believes most first."""
    if named := os.environ.get("GIT_CONFIG_GLOBAL"):
        return (Path(named),)
    home = Path(os.environ.get("HOME") or "/nonexistent")
    return (home / ".gitconfig", Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config") / "git" / "config")
