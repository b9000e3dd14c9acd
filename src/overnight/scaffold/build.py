"""A new repository with one editable file: fixed harness, `train.py`, a page of direction, a branch for each run tag.

This is the one place besides `take` that writes to a repository of the user's, because it makes that repository. A
folder that holds anything else is left alone.
"""

import re
import time
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

from overnight.candidate.tree import Store, run_git, uncommitted, user_commit
from overnight.errors import UserError
from overnight.ports import Machine
from overnight.report.exports import HEADER
from overnight.study.durable import write_file

PRESETS = ("single-file",)
USUAL = ("BipedalWalker-v3", 720)
"""The environment of a new repository, and the seconds of a run in it."""
BRANCH = "overnight"
"""Branches of run tags are called `overnight/<tag>`."""
_FILES = {
    "evaluate.py": "evaluate.txt",
    "train.py": "train.txt",
    "program.md": "program.txt",
    "README.md": "readme.txt",
    ".gitignore": "gitignore.txt",
}
READ_FIRST = ("README.md", "evaluate.py", "train.py")
"""What whoever begins reads before anything else; named in a note of the ledger when the loop starts."""
_IDENTITY = {
    "GIT_AUTHOR_NAME": "Overnight",
    "GIT_AUTHOR_EMAIL": "overnight@localhost",
    "GIT_COMMITTER_NAME": "Overnight",
    "GIT_COMMITTER_EMAIL": "overnight@localhost",
}
_TAG = re.compile(r"[a-z0-9][a-z0-9-]{0,30}")


class Wish(NamedTuple):
    """What the repository is about."""

    env: str
    seconds: int
    """The time budget of one run."""
    tag: str
    """The run tag, which names the branch and the study."""


def wish_for(machine: Machine, folder: Path, env: str | None, seconds: int | None, tag: str | None) -> Wish:
    """What was said, else what the repository's harness says, or what is usual; the usual tag is the day."""
    usual = settings_of(folder) if is_scaffold(folder) else USUAL
    today = time.strftime("%b%d", time.localtime(machine.now())).lower()
    return Wish(env or usual[0], seconds or usual[1], tag or free_tag(machine, folder, today))


def build(machine: Machine, folder: Path, wish: Wish) -> tuple[str, ...]:
    """Write the repository, or add a tag to one that was written before; return what was done, in sentences."""
    if not _TAG.fullmatch(wish.tag):
        raise UserError("--tag", f"is {wish.tag[:40]!r}, but a short word is needed", hint="for example `nov16`")
    if is_scaffold(folder):
        _check_same(folder, wish)
        return (_branch(machine, folder, wish.tag),)
    if folder.exists() and any(folder.iterdir()):
        raise UserError(str(folder), "is not empty", hint="name a new folder")
    folder.mkdir(parents=True, exist_ok=True)
    for name, template in _FILES.items():
        write_file(machine, folder / name, _filled(template, folder, wish).encode())
    write_file(machine, folder / "results.tsv", f"{HEADER}\n".encode())
    _git(machine, folder, "init", "--quiet", "--initial-branch=main", str(folder), alone=True)
    _git(machine, folder, "add", "--all")
    _git(machine, folder, "commit", "--quiet", "--message=One file to change")
    (folder / "evaluate.py").chmod(0o444)
    return (f"{folder}: a repository with one file to change, train.py.", _branch(machine, folder, wish.tag))


def is_scaffold(folder: Path) -> bool:
    """Whether a folder holds a repository of this shape."""
    return all((folder / name).exists() for name in ("evaluate.py", "train.py", "program.md", ".git"))


def read_first(store: Store, tree: str) -> str:
    """Read the files that are read before anything else, and say which they were and what they held."""
    told = {name: store.file(tree, name) for name in READ_FIRST}
    read = ", ".join(f"{name} ({sha256(data).hexdigest()[:12]})" for name, data in told.items() if data is not None)
    return f"Read before the first run: {read}; in brackets is how the SHA-256 of each begins."


def settings_of(folder: Path) -> tuple[str, int]:
    """The environment and the time budget that a repository's harness names."""
    text = (folder / "evaluate.py").read_text()
    env, seconds = re.search(r'(?m)^ENV_ID = "([^"]+)"', text), re.search(r"(?m)^TIME_BUDGET = (\d+)", text)
    if env is None or seconds is None:
        raise UserError(str(folder / "evaluate.py"), "does not say ENV_ID and TIME_BUDGET as it was written")
    return env[1], int(seconds[1])


def _check_same(folder: Path, wish: Wish) -> None:
    """A repository has one environment and one budget: results of others would not be comparable."""
    if (found := settings_of(folder)) != (wish.env, wish.seconds):
        raise UserError(
            str(folder),
            f"is about {found[0]} for {found[1]} s, not {wish.env} for {wish.seconds} s",
            hint="name another folder, so that each environment has a table of its own",
        )


def _filled(template: str, folder: Path, wish: Wish) -> str:
    text = files("overnight.scaffold").joinpath("single_file", template).read_text("utf-8")
    for word, value in (("@ENV@", wish.env), ("@SECONDS@", str(wish.seconds)), ("@NAME@", folder.resolve().name)):
        text = text.replace(word, value)
    return text


def free_tag(machine: Machine, folder: Path, tag: str) -> str:
    """A tag, or the first of `tag-2`, `tag-3`, … whose branch is not there yet."""
    if not is_scaffold(folder) or (found := user_commit(machine, folder)) is None:
        return tag
    taken = Store(machine, found.git_dir).refs(f"refs/heads/{BRANCH}/")
    tags = (tag, *(f"{tag}-{number}" for number in range(2, 10_000)))
    return next(one for one in tags if f"refs/heads/{BRANCH}/{one}" not in taken)


def _branch(machine: Machine, folder: Path, tag: str) -> str:
    """Make the branch of a tag from the commit of `main`, and stand on it."""
    main = user_commit(machine, folder, "main") or user_commit(machine, folder)
    if main is None:
        raise UserError(str(folder), "is no git repository any more")
    name = f"{BRANCH}/{tag}"
    if (free := free_tag(machine, folder, tag)) != tag:
        raise UserError("--tag", f"the branch {name} is there already", hint=f"`--tag {free}` is free")
    if dirty := [one for one in uncommitted(machine, folder) if one != "program.md"]:  # edited at any time
        says = f"has changes that are not committed: {', '.join(dirty[:5])}"
        raise UserError(str(folder), says, hint="commit or discard them first")
    _git(machine, folder, "checkout", "--quiet", "-b", name, "main")
    return f"The branch {name} grows from {main.commit[:7]}."


def _git(machine: Machine, folder: Path, *words: str, alone: bool = False) -> str:
    where = () if alone else (f"--git-dir={folder.resolve() / '.git'}", f"--work-tree={folder.resolve()}")
    done = run_git(machine, *where, *words, extra=_IDENTITY)
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip()[:300]
        raise UserError(str(folder), f"git {words[0]} failed: {said}")
    return done.stdout.decode(errors="replace")
