"""The candidate store: a bare git repository of ours, used by plumbing commands alone.

Git is the quiet way out of a sandbox: hooks, filters, fsmonitor, a swapped `.git` file
and nested repositories all run programs when an innocent command is given. So every
command here names its own git directory, reads no configuration but ours, has no
working tree, and moves bytes in and out by object id. Attributes, filters and line-end
conversions never apply, because nothing is ever checked out or added by name.

The user's repository is only read: one `rev-parse`, and then objects by id, for a copy through
an alternate object directory, so that its configuration is not even looked at. Only
`branch.py` writes to it, when somebody asks for a branch.

Does not protect against a git program that is itself hostile.
"""

import os
import re
from collections.abc import Iterable, Mapping
from hashlib import sha1, sha256
from pathlib import Path
from typing import NamedTuple

from overnight.errors import DiskTrouble, Refused, UserError
from overnight.ports import Finished, Processes
from overnight.records.candidate import Change

REGULAR, EXECUTABLE, SYMLINK, GITLINK, ABSENT = "100644", "100755", "120000", "160000", "000000"
MAX_TREE_PATHS = 100_000
MAX_BLOB_BYTES = 50_000_000
_LIMIT_SECONDS = 120.0
_OBJECT_ID = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_HARDENED = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.attributesFile=/dev/null",
    "core.excludesFile=/dev/null",
    "core.protectHFS=true",
    "core.protectNTFS=true",
    "core.fsync=all",
    "core.untrackedCache=false",
    "core.splitIndex=false",
    "protocol.allow=never",
    "safe.bareRepository=explicit",
    "gc.auto=0",
    "maintenance.auto=false",
    "commit.gpgSign=false",
    "user.name=Overnight",
    "user.email=overnight@localhost",
)


class TreeFile(NamedTuple):
    """One path of a tree."""

    path: str
    mode: str
    blob: str
    size: int


class Identity(NamedTuple):
    """Who a commit is by."""

    name: str
    email: str


class Store:
    """Every candidate of a project, reachable for ever under `refs/overnight/`."""

    def __init__(self, processes: Processes, git_dir: Path) -> None:
        self._processes = processes
        self.git_dir = git_dir

    def create(self, *, object_format: str = "sha1") -> None:
        """Make the repository; an existing one is left as it is."""
        if not all((self.git_dir / part).exists() for part in ("HEAD", "config", "objects", "refs")):
            where = str(self.git_dir)
            self._git(
                "init",
                "--quiet",
                "--bare",
                "--template=",
                f"--object-format={object_format}",
                where,
                bare=True,
            )

    def object_format(self) -> str:
        """The hash that git names objects by here."""
        return self._git("rev-parse", "--show-object-format").decode().strip()

    def write_blob(self, data: bytes) -> str:
        """Store bytes exactly as they are."""
        return self._git("hash-object", "-w", "--no-filters", "--stdin", stdin=data).decode().strip()

    def write_tree(self, base: str | None, changes: Mapping[str, tuple[str, str]], *, scratch: Path) -> str:
        """Store the tree that has `changes` (path to mode and blob) on top of a base tree.

        The index is a private file in `scratch`, so nothing else can interfere with it.
        """
        index = scratch / f"index-{os.getpid()}"
        zero = "0" * len(next((blob for _, blob in changes.values()), "0" * 40))
        lines = b"".join(
            f"{mode} {zero if mode == ABSENT else blob}\t".encode() + path.encode() + b"\0"
            for path, (mode, blob) in sorted(changes.items())
        )
        extra = {"GIT_INDEX_FILE": str(index)}
        try:
            self._git("read-tree", base if base is not None else "--empty", extra=extra)
            self._git("update-index", "-z", "--index-info", stdin=lines, extra=extra)
            return self._git("write-tree", extra=extra).decode().strip()
        finally:
            index.unlink(missing_ok=True)

    def write_commit(
        self, tree: str, parents: Iterable[str], message: str, *, at: float, by: "Identity | None" = None
    ) -> str:
        """Store a commit, in our own name or in somebody's; the same inputs give the same id."""
        when = f"@{int(at)} +0000"
        argv = ["commit-tree", tree]
        for parent in parents:
            argv += ["-p", parent]
        stamp = {"GIT_AUTHOR_DATE": when, "GIT_COMMITTER_DATE": when}
        if by is not None:
            stamp |= {"GIT_AUTHOR_NAME": by.name, "GIT_COMMITTER_NAME": by.name}
            stamp |= {"GIT_AUTHOR_EMAIL": by.email, "GIT_COMMITTER_EMAIL": by.email}
        return self._git(*argv, stdin=message.encode(errors="replace"), extra=stamp).decode().strip()

    def tree_of(self, commit: str) -> str:
        """The tree of a commit."""
        return self._git("rev-parse", "--verify", "--end-of-options", f"{_checked(commit)}^{{tree}}").decode().strip()

    def parents_of(self, commit: str) -> tuple[str, ...]:
        """The parents of a commit."""
        head = self._git("cat-file", "commit", _checked(commit)).split(b"\n\n", 1)[0].decode(errors="replace")
        return tuple(line[7:] for line in head.splitlines() if line.startswith("parent "))

    def has(self, commit: str) -> bool:
        """Whether the store holds this object."""
        done = self._run("cat-file", "-e", f"{_checked(commit)}^{{commit}}")
        return done.returncode == 0

    def files(self, tree: str) -> list[TreeFile]:
        """Every path below a tree, exactly as git stores it."""
        out = self._git("ls-tree", "-r", "-z", "-l", "--full-tree", _checked(tree))
        lines = out.split(b"\0")[:-1]
        if len(lines) > MAX_TREE_PATHS:
            raise UserError(tree[:12], f"has {len(lines):,} paths, but at most {MAX_TREE_PATHS:,} are handled")
        return [_tree_file(line) for line in lines]

    def changes(self, base: str, tree: str) -> tuple[Change, ...]:
        """Every path in which two trees differ, compared as objects: no renames, no attributes."""
        before = {file.path: file for file in self.files(base)}
        after = {file.path: file for file in self.files(tree)}
        zero = "0" * len(tree)
        found = []
        for path in sorted(before.keys() | after.keys()):
            old = before.get(path, TreeFile(path, ABSENT, zero, 0))
            new = after.get(path, TreeFile(path, ABSENT, zero, 0))
            if (old.mode, old.blob) != (new.mode, new.blob):
                found.append(
                    Change(
                        path=path,
                        old_mode=old.mode,
                        new_mode=new.mode,
                        old_blob=old.blob,
                        new_blob=new.blob,
                        new_bytes=new.size,
                    )
                )
        return tuple(found)

    def blob(self, blob: str, *, max_bytes: int = MAX_BLOB_BYTES) -> bytes:
        """The bytes of one object, or an error when there are too many."""
        size = int(self._git("cat-file", "-s", _checked(blob)))
        if size > max_bytes:
            raise UserError(blob[:12], f"is {size:,} bytes, but at most {max_bytes:,} are read")
        return self.blobs([blob])[blob]

    def blobs(self, wanted: Iterable[str]) -> dict[str, bytes]:
        """The bytes of many objects, read by one process."""
        ids = sorted(set(wanted))
        out = self._git("cat-file", "--batch", stdin="".join(f"{_checked(blob)}\n" for blob in ids).encode())
        found, at = {}, 0
        for blob in ids:
            end = out.index(b"\n", at)
            size = int(out[at:end].split()[2])
            found[blob] = out[end + 1 : end + 1 + size]
            at = end + size + 2
            if self.blob_id(found[blob], like=blob) != blob:
                raise Refused(
                    str(self.git_dir), (f"The object {blob[:12]} holds other bytes than it was stored with.",)
                )
        return found

    def blob_id(self, data: bytes, *, like: str) -> str:
        """The id that bytes would have in the store, in the same hash as another id; nothing is written."""
        kind = sha1 if len(like) == 40 else sha256  # git's own object names, not a secret
        return kind(b"blob %d\0" % len(data) + data).hexdigest()

    def file(self, tree: str, path: str) -> bytes | None:
        """One file of a tree, or None where there is none."""
        for found in self.files(tree):
            if found.path == path:
                return self.blob(found.blob)
        return None

    def diff(self, base: str, tree: str) -> bytes:
        """The difference of two trees as text for people; nothing is decided by it."""
        return self._git(
            "diff-tree", "-r", "-p", "--no-renames", "--no-ext-diff", "--no-textconv", "--no-color",
            "--full-index", "--src-prefix=a/", "--dst-prefix=b/", _checked(base), _checked(tree),
        )  # fmt: skip

    def patch(self, base: str, tree: str) -> bytes:
        """The difference of two trees as `git apply` takes it, binary files included."""
        return self._git(
            "diff-tree", "-r", "-p", "--binary", "--no-renames", "--no-ext-diff", "--no-textconv", "--no-color",
            "--full-index", "--src-prefix=a/", "--dst-prefix=b/", _checked(base), _checked(tree),
        )  # fmt: skip

    def ref(self, name: str) -> str | None:
        """What a ref points to, or None."""
        done = self._run("rev-parse", "--verify", "--quiet", "--end-of-options", name)
        return done.stdout.decode().strip() if done.returncode == 0 else None

    def move_ref(self, name: str, new: str, *, old: str | None) -> None:
        """Move a ref from exactly `old` to `new`, or refuse."""
        before = old if old is not None else "0" * len(new)
        lines = f"start\nupdate {name} {_checked(new)} {before}\nprepare\ncommit\n"
        done = self._run("update-ref", "--no-deref", "--stdin", stdin=lines.encode())
        if done.returncode != 0:
            raise Refused(name, (f"It points to {self.ref(name)}, not to {old}: another hand has moved it.",))

    def clear_stale_locks(self, prefix: str) -> None:
        """Remove lock files that a killed git left on refs. Only for whoever holds the study, and so the refs."""
        for lock in (self.git_dir / prefix).rglob("*.lock"):
            lock.unlink(missing_ok=True)

    def drop_ref(self, name: str, *, old: str) -> None:
        """Remove a ref that points to exactly `old`."""
        self._git("update-ref", "--no-deref", "-d", name, _checked(old))

    def refs(self, prefix: str) -> dict[str, str]:
        """Every ref below a prefix."""
        out = self._git("for-each-ref", "--format=%(objectname) %(refname)", prefix).decode()
        return {name: commit for commit, name in (line.split(" ", 1) for line in out.splitlines())}

    def adopt_tree(self, objects: Path, commit: str) -> str:
        """Copy the tree of a commit from another repository's objects, and return its id."""
        quoted = str(objects).replace("\\", "\\\\").replace('"', '\\"')
        extra = {"GIT_ALTERNATE_OBJECT_DIRECTORIES": f'"{quoted}"'}  # the list is split at colons outside quotes
        tree = self._git("rev-parse", "--verify", f"{_checked(commit)}^{{tree}}", extra=extra).decode().strip()
        wanted = self._git("rev-list", "--objects", "--no-object-names", tree, extra=extra)
        pack = self._git("pack-objects", "--stdout", "-q", stdin=wanted, extra=extra)
        self._git("index-pack", "--stdin", stdin=pack)
        return tree

    def copy_trees(self, trees: Iterable[str], to: "Store", *, known: str) -> None:
        """Copy trees into another repository that has the tree `known` already."""
        wanted = self._git(
            "rev-list", "--objects", "--no-object-names", *map(_checked, trees), f"^{_checked(known)}"
        )  # fmt: skip
        to._git("index-pack", "--stdin", stdin=self._git("pack-objects", "--stdout", "-q", stdin=wanted))

    def _git(self, *argv: str, stdin: bytes = b"", extra: Mapping[str, str] | None = None, bare: bool = False) -> bytes:
        done = self._run(*argv, stdin=stdin, extra=extra, bare=bare)
        if done.returncode != 0:
            said = done.stderr.decode(errors="replace").strip().splitlines()
            raise DiskTrouble(str(self.git_dir), f"`git {argv[0]}` failed: {(said or ['it said nothing'])[-1][:300]}")
        return done.stdout

    def _run(
        self, *argv: str, stdin: bytes = b"", extra: Mapping[str, str] | None = None, bare: bool = False
    ) -> Finished:
        words = argv if bare else (f"--git-dir={self.git_dir}", *argv)
        return run_git(self._processes, *words, stdin=stdin, extra=extra)


def run_git(processes: Processes, *argv: str, stdin: bytes = b"", extra: Mapping[str, str] | None = None) -> Finished:
    """Run one git command with our configuration and an environment of our own making."""
    settings = tuple(word for setting in _HARDENED for word in ("-c", setting))
    env = {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": "/nonexistent",
        "LC_ALL": "C",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_CONFIG_SYSTEM": "/dev/null",
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_NO_LAZY_FETCH": "1",
        **(extra or {}),
    }
    try:
        return processes.run_process(
            ("git", "--no-pager", *settings, *argv), env=env, stdin=stdin, limit_seconds=_LIMIT_SECONDS
        )
    except FileNotFoundError as error:
        raise UserError("git", "was not found on this machine", hint="install git") from error
    except TimeoutError as error:
        raise DiskTrouble("git", f"did not answer: {error}") from error


class UserCommit(NamedTuple):
    """A commit of the user's repository, and where its objects lie."""

    commit: str
    objects: Path
    object_format: str
    git_dir: Path


def user_commit(processes: Processes, repository: Path, revision: str = "HEAD") -> UserCommit | None:
    """Find the approved commit of the user's repository; None where there is no repository.

    Only `rev-parse` is run there: it starts no hook, no filter and no monitor.
    """
    found = _git_dir(repository)
    if found is None:
        return None

    def ask(*argv: str) -> str | None:
        # Whoever owns the repository, reading a ref of it runs nothing.
        done = run_git(processes, "-c", "safe.directory=*", f"--git-dir={found}", "rev-parse", *argv)
        return done.stdout.decode().strip() if done.returncode == 0 else None

    commit = ask("--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    common = ask("--git-common-dir")
    if commit is None or common is None:
        raise UserError(
            str(repository),
            f"is a git repository, but {revision} names no commit in it",
            hint="commit your work first",
        )
    common_dir = Path(common) if Path(common).is_absolute() else found / common
    return UserCommit(commit, common_dir.resolve() / "objects", ask("--show-object-format") or "sha1", found)


def uncommitted(processes: Processes, repository: Path) -> tuple[str, ...]:
    """Files of the last commit that lie otherwise in the user's folder, or not at all.

    Compared by their bytes, so that no filter runs; a file that one rewrites on its way counts as otherwise.
    A file that was never committed is none of them.
    """
    head = user_commit(processes, repository)
    if head is None:
        return ()
    theirs = Store(processes, head.git_dir)
    files = [file for file in theirs.files(theirs.tree_of(head.commit)) if file.mode != GITLINK]
    return tuple(file.path for file in files if _id_on_disk(theirs, repository / file.path, file) != file.blob)


def _id_on_disk(store: Store, path: Path, like: TreeFile) -> str | None:
    """The id of what lies at a path; None where there is nothing of the kind."""
    try:
        data = os.fsencode(path.readlink()) if like.mode == SYMLINK else path.read_bytes()
    except OSError:
        return None
    return store.blob_id(data, like=like.blob)


def _git_dir(repository: Path) -> Path | None:
    for folder in (repository, *repository.parents):
        dot = folder / ".git"
        if dot.is_dir():
            return dot
        if dot.is_file():
            lead, _, target = dot.read_text(errors="replace").strip().partition("gitdir: ")
            if not lead and target:
                return (folder / target).resolve()
    return None


def _checked(name: str) -> str:
    if not _OBJECT_ID.fullmatch(name):
        raise UserError("git", f"{name[:80]!r} is not an object id")
    return name


def _tree_file(line: bytes) -> TreeFile:
    lead, _, path = line.partition(b"\t")
    mode, _, blob, size = lead.decode().split()
    return TreeFile(path.decode(errors="backslashreplace"), mode, blob, 0 if size == "-" else int(size))
