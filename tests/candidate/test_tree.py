"""The candidate store: exact bytes, exact ids, and refs that only move as they should."""

import os
import subprocess
from pathlib import Path

import pytest

from overnight.candidate.build import Ground, build, params_bytes, params_of, with_copy, with_params
from overnight.candidate.copy import read_copy, write_copy
from overnight.candidate.tree import ABSENT, EXECUTABLE, GITLINK, REGULAR, SYMLINK, Store, uncommitted, user_commit
from overnight.candidate.without import lay_on
from overnight.errors import DiskTrouble, Refused, UserError
from overnight.machine import RealMachine
from overnight.records.codec import digest
from overnight.records.proposal import Proposal

MACHINE = RealMachine()


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = Store(MACHINE, tmp_path / "store.git")
    store.create()
    return store


def tree_with(store: Store, tmp_path: Path, files: dict[str, bytes]) -> str:
    changes = {path: (REGULAR, store.write_blob(data)) for path, data in files.items()}
    return store.write_tree(None, changes, scratch=tmp_path)


def git(folder: Path, *words: str) -> str:
    env = {"PATH": os.environ["PATH"], "HOME": str(folder), "GIT_CONFIG_GLOBAL": "/dev/null"}
    identity = ("-c", "user.name=t", "-c", "user.email=t@localhost")
    done = subprocess.run(["git", *identity, *words], cwd=folder, env=env, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def repository(folder: Path) -> Path:
    folder.mkdir()
    git(folder, "init", "-q")
    (folder / "train.py").write_bytes(b"print('train')\r\n")
    (folder / "run.sh").write_bytes(b"#!/bin/sh\n")
    (folder / "run.sh").chmod(0o755)
    (folder / "link").symlink_to("train.py")
    (folder / ".gitattributes").write_text("* text=auto eol=lf\n*.py ident export-subst\n")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "first")
    return folder


def test_the_same_change_gives_the_same_tree_and_commit(store: Store, tmp_path: Path) -> None:
    first, second = (tree_with(store, tmp_path, {"a": b"1", "b/c": b"2"}) for _ in range(2))
    assert first == second
    assert store.write_commit(first, (), "m", at=1) == store.write_commit(second, (), "m", at=1)


def test_bytes_go_in_and_come_out_unchanged(store: Store, tmp_path: Path) -> None:
    data = bytes(range(256)) + b"\r\n$Id$\n"
    tree = tree_with(store, tmp_path, {"blob": data, ".gitattributes": b"* text=auto ident filter=evil\n"})
    assert store.file(tree, "blob") == data
    write_copy(store, tree, tmp_path / "copy")
    assert (tmp_path / "copy" / "blob").read_bytes() == data


def test_changes_are_the_difference_of_two_trees(store: Store, tmp_path: Path) -> None:
    old = tree_with(store, tmp_path, {"same": b"1", "edited": b"1", "gone": b"1"})
    blob = store.write_blob(b"2")
    new = store.write_tree(
        old,
        {"edited": (EXECUTABLE, blob), "gone": (ABSENT, blob), "new": (SYMLINK, blob), "sub": (GITLINK, "1" * 40)},
        scratch=tmp_path,
    )
    modes = {change.path: (change.old_mode, change.new_mode) for change in store.changes(old, new)}
    assert modes == {
        "edited": (REGULAR, EXECUTABLE),
        "gone": (REGULAR, ABSENT),
        "new": (ABSENT, SYMLINK),
        "sub": (ABSENT, GITLINK),
    }


def test_the_id_of_a_blob_is_known_without_storing_it(store: Store) -> None:
    assert store.blob_id(b"abc", like="0" * 40) == store.write_blob(b"abc")


def test_a_ref_moves_only_from_where_it_was_thought_to_be(store: Store, tmp_path: Path) -> None:
    tree = tree_with(store, tmp_path, {"a": b"1"})
    one, two = (store.write_commit(tree, (), name, at=1) for name in ("one", "two"))
    store.move_ref("refs/overnight/t/s/tip", one, old=None)
    with pytest.raises(Refused, match="another hand has moved it"):
        store.move_ref("refs/overnight/t/s/tip", two, old=two)
    with pytest.raises(Refused, match="another hand has moved it"):
        store.move_ref("refs/overnight/t/s/tip", two, old=None)
    store.move_ref("refs/overnight/t/s/tip", two, old=one)
    assert store.refs("refs/overnight") == {"refs/overnight/t/s/tip": two}


@pytest.mark.parametrize("name", ["HEAD", "--help", "-x", "a" * 39, "A" * 40, "a" * 40 + "\n", "../x", ""])
def test_only_object_ids_are_handed_to_git(store: Store, name: str) -> None:
    with pytest.raises(UserError, match="is not an object id"):
        store.tree_of(name)


def test_a_missing_object_is_told_in_a_sentence(store: Store) -> None:
    with pytest.raises(DiskTrouble, match="`git rev-parse` failed"):
        store.tree_of("1" * 40)


def test_the_tree_of_a_users_commit_is_adopted_whole(store: Store, tmp_path: Path) -> None:
    folder = repository(tmp_path / "repo")
    found = user_commit(MACHINE, folder)
    assert found is not None
    tree = store.adopt_tree(found.objects, found.commit)
    assert tree == git(folder, "rev-parse", "HEAD^{tree}")
    (folder / ".git").rename(tmp_path / "gone")  # nothing of the user's is needed any more
    assert {file.path: file.mode for file in store.files(tree)} == {
        ".gitattributes": REGULAR,
        "link": SYMLINK,
        "run.sh": EXECUTABLE,
        "train.py": REGULAR,
    }


def test_a_worktree_of_the_user_is_found_too(store: Store, tmp_path: Path) -> None:
    folder = repository(tmp_path / "repo")
    git(folder, "worktree", "add", "-q", str(tmp_path / "tree"))
    found = user_commit(MACHINE, tmp_path / "tree")
    assert found is not None
    assert store.adopt_tree(found.objects, found.commit) == git(folder, "rev-parse", "HEAD^{tree}")


def test_what_lies_otherwise_than_in_the_last_commit_is_found_by_its_bytes(tmp_path: Path) -> None:
    folder = repository(tmp_path / "repo")
    (folder / "train.py").write_bytes(b"print('train')\n")  # as it was stored: the line end was rewritten on its way
    git(folder, "worktree", "add", "-q", str(tmp_path / "tree"))
    (folder / "notes.txt").write_text("never committed")
    assert uncommitted(MACHINE, folder) == () == uncommitted(MACHINE, tmp_path / "tree")
    (folder / "train.py").write_bytes(b"print('other')\n")
    (folder / "run.sh").unlink()
    (folder / "link").unlink()
    (folder / "link").symlink_to("run.sh")
    assert uncommitted(MACHINE, folder) == ("link", "run.sh", "train.py")
    assert uncommitted(MACHINE, tmp_path) == (), "there is no repository"


def test_a_repository_without_a_commit_is_told_in_a_sentence(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    with pytest.raises(UserError, match="names no commit"):
        user_commit(MACHINE, tmp_path)


def test_an_untouched_copy_is_the_same_tree(store: Store, tmp_path: Path) -> None:
    tree = tree_with(store, tmp_path, {"a.py": b"1\r\n", "b/c.py": b"2"})
    write_copy(store, tree, tmp_path / "copy")
    (tmp_path / "copy" / "__pycache__").mkdir()
    (tmp_path / "copy" / "__pycache__" / "a.cpython-311.pyc").write_bytes(b"poison")
    assert with_copy(store, tree, read_copy(tmp_path / "copy"), scratch=tmp_path) == tree


def test_an_edited_copy_becomes_what_it_is(store: Store, tmp_path: Path) -> None:
    tree = tree_with(store, tmp_path, {"a.py": b"1", "b/c.py": b"2", "d": b"3"})
    copy = tmp_path / "copy"
    write_copy(store, tree, copy)
    (copy / "a.py").write_bytes(b"changed")
    (copy / "b" / "c.py").unlink()
    (copy / "e").symlink_to("/etc/passwd")
    new = with_copy(store, tree, read_copy(copy), scratch=tmp_path)
    assert {file.path: file.mode for file in store.files(new)} == {"a.py": REGULAR, "d": REGULAR, "e": SYMLINK}
    assert store.file(new, "a.py") == b"changed"


def test_a_copy_is_read_without_following_or_waiting(tmp_path: Path) -> None:
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "key").write_text("secret")
    copy = tmp_path / "copy"
    copy.mkdir()
    (copy / "folder").symlink_to(tmp_path / "secret")
    os.mkfifo(copy / "pipe")
    (copy / ".git").mkdir()
    found = read_copy(copy)
    assert found.files == {"folder": (SYMLINK, os.fsencode(tmp_path / "secret"))}
    assert sorted(reason.says.split(";")[0] for reason in found.reasons) == [
        "The copy holds a git repository at .git",
        "pipe is not a regular file.",
    ]


def test_parameters_change_key_by_key(store: Store, tmp_path: Path) -> None:
    tree = tree_with(store, tmp_path, {"params.json": params_bytes({"b": 1, "a": 0.5})})
    new = with_params(store, tree, {"b": 2}, scratch=tmp_path)
    assert params_of(store, new) == {"a": 0.5, "b": 2}
    assert with_params(store, tree, {"b": 1}, scratch=tmp_path) == tree


def test_a_candidate_is_pinned_to_one_commit_on_its_base(store: Store, tmp_path: Path) -> None:
    base = store.write_commit(tree_with(store, tmp_path, {"a": b"1"}), (), "base", at=0)
    tree = tree_with(store, tmp_path, {"a": b"2"})
    proposal = Proposal(proposer="human", kind="code", hypothesis="Two is more.", predicted_effect="More.")
    candidate = build(store, proposal, tree, on=Ground("c-0001", base, "0" * 64, 5))
    assert (store.tree_of(candidate.commit), store.parents_of(candidate.commit)) == (tree, (base,))
    assert candidate.changed_paths == 1
    assert candidate.changes == digest(store.changes(store.tree_of(base), tree))


def test_a_stack_without_one_part_is_the_other_parts_on_what_it_started_from(store: Store, tmp_path: Path) -> None:
    root = tree_with(store, tmp_path, {"a": b"1", "b": b"1", "params.json": params_bytes({"x": 1, "y": 1})})
    first = store.write_tree(root, {"a": (REGULAR, store.write_blob(b"2"))}, scratch=tmp_path)
    second = store.write_tree(first, {"b": (ABSENT, "0" * 40)}, scratch=tmp_path)
    third = with_params(store, second, {"x": 2}, scratch=tmp_path)
    fourth = with_params(store, third, {"y": 2}, scratch=tmp_path)
    steps = [(root, first), (first, second), (second, third), (third, fourth)]
    assert lay_on(store, root, steps, scratch=tmp_path) == fourth
    less = lay_on(store, root, [steps[1], steps[3]], scratch=tmp_path)
    assert less is not None and store.file(less, "a") == b"1" and store.file(less, "b") is None
    assert params_of(store, less) == {"x": 1, "y": 2}, "of parameters, the keys of the other parts stay"


def test_a_part_whose_file_another_part_changed_too_cannot_be_taken_out_by_itself(store: Store, tmp_path: Path) -> None:
    root = tree_with(store, tmp_path, {"train.py": b"1"})
    first = tree_with(store, tmp_path, {"train.py": b"2"})
    second = tree_with(store, tmp_path, {"train.py": b"3"})
    assert lay_on(store, root, [(first, second)], scratch=tmp_path) is None
    assert lay_on(store, root, [(root, first)], scratch=tmp_path) == first
