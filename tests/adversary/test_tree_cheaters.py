"""Cheaters who change what they may not, or hide what they change. Each loses, and the ledger says why."""

import base64
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from overnight import admission as loop
from overnight.errors import Refused, UserError
from overnight.records.lifecycle import State
from scenes import Scene, refused_in_ledger, said


def loses(scene: Scene, copy: Path, rule: str, sentence: str) -> None:
    """The copy is refused by this rule in these words, the ledger holds them, and the candidate stays a draft."""
    reasons = scene.propose(copy, kind="code")
    assert sentence in said(reasons, rule)
    assert refused_in_ledger(scene, "c-0001", rule, sentence)
    assert scene.state_of("c-0001") is State.DRAFT


def is_never_drafted(scene: Scene, copy: Path, rule: str, sentence: str) -> None:
    """The copy cannot even become a candidate; the ledger says why."""
    reasons = scene.propose(copy, kind="code")
    assert sentence in said(reasons, rule)
    assert refused_in_ledger(scene, None, rule, sentence)
    assert scene.state().candidates == {}


def edit_evaluator(copy: Path) -> None:
    (copy / "evaluate.py").write_text("print('500')\n")


def add_file(copy: Path) -> None:
    (copy / "sitecustomize.py").write_text("score = 500\n")


def delete_evaluator(copy: Path) -> None:
    (copy / "evaluate.py").unlink()


def rename_evaluator(copy: Path) -> None:
    (copy / "evaluate.py").rename(copy / "policy" / "evaluate.py")


def make_executable(copy: Path) -> None:
    (copy / "evaluate.py").chmod(0o755)


def edit_protected(copy: Path) -> None:
    (copy / "policy" / "frozen.py").write_text("LIMIT = 100.0\n")


@pytest.mark.cheater("surface")
@pytest.mark.feature("A28", "A70")
@pytest.mark.parametrize(
    ("cheat", "path"),
    [
        pytest.param(edit_evaluator, "evaluate.py", id="edits the evaluator"),
        pytest.param(add_file, "sitecustomize.py", id="adds a file that Python loads by itself"),
        pytest.param(delete_evaluator, "evaluate.py", id="deletes the evaluator"),
        pytest.param(rename_evaluator, "evaluate.py", id="renames the evaluator into the surface"),
        pytest.param(make_executable, "evaluate.py", id="changes a mode alone"),
        pytest.param(edit_protected, "policy/frozen.py", id="edits a protected file inside the surface"),
    ],
)
def test_a_change_outside_the_surface_is_refused(repository: Scene, cheat: Callable[[Path], None], path: str) -> None:
    copy = repository.copy()
    cheat(copy)
    opens = "but the contract opens only train.py, config.json, policy/**."
    loses(repository, copy, "surface", f"The candidate changes {path}, {opens}")


def link_file(copy: Path) -> None:
    (copy / "policy" / "best.py").symlink_to("/etc/passwd")


def link_over_file(copy: Path) -> None:
    (copy / "train.py").unlink()
    (copy / "train.py").symlink_to("evaluate.py")


def link_folder(copy: Path) -> None:
    (copy / "policy" / "data").symlink_to("/")


@pytest.mark.cheater("file-modes")
@pytest.mark.parametrize(
    ("cheat", "path"),
    [
        pytest.param(link_file, "policy/best.py", id="to a secret"),
        pytest.param(link_over_file, "train.py", id="over a file"),
        pytest.param(link_folder, "policy/data", id="to a folder"),
    ],
)
def test_a_symbolic_link_is_refused(repository: Scene, cheat: Callable[[Path], None], path: str) -> None:
    copy = repository.copy()
    cheat(copy)
    loses(repository, copy, "file-modes", f"{path} would become a symbolic link, and a candidate changes plain")


@pytest.mark.cheater("file-modes")
@pytest.mark.parametrize("name", [".git", ".GIT"])
def test_a_nested_repository_is_refused(repository: Scene, name: str) -> None:
    copy = repository.copy()
    (copy / "policy" / name).mkdir()
    (copy / "policy" / name / "config").write_text("[core]\n\tfsmonitor = touch /tmp/x\n")
    is_never_drafted(repository, copy, "file-modes", f"The copy holds a git repository at policy/{name}")


@pytest.mark.cheater("file-modes")
def test_a_git_file_that_points_elsewhere_is_refused(repository: Scene) -> None:
    copy = repository.copy()
    (copy / ".git").write_text("gitdir: ./evil\n")
    is_never_drafted(repository, copy, "file-modes", "The copy holds a git repository at .git")


@pytest.mark.cheater("file-modes")
def test_a_pipe_is_refused_without_waiting_for_it(repository: Scene) -> None:
    copy = repository.copy()
    os.mkfifo(copy / "policy" / "pipe.py")
    is_never_drafted(repository, copy, "file-modes", "policy/pipe.py is not a regular file.")


@pytest.mark.cheater("file-modes")
def test_a_submodule_written_into_the_store_is_refused(repository: Scene) -> None:
    tip = repository.state().tip
    reasons = repository.smuggle({"policy/vendored": ("160000", tip)}, kind="code")
    sentence = "policy/vendored would become a submodule, and a candidate changes plain files only."
    assert sentence in said(reasons, "file-modes")
    assert refused_in_ledger(repository, "c-0001", "file-modes", sentence)
    assert repository.state_of("c-0001") is State.DRAFT


@pytest.mark.cheater("path-names")
@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        pytest.param("policy/con.py", "is one that some systems keep for themselves", id="a device on Windows"),
        pytest.param("policy/net\u200b.py", "holds a character that cannot be seen", id="an invisible twin"),
        pytest.param("policy/ne\u0301t.py", "is not in Unicode's composed form", id="a decomposed twin"),
        pytest.param("policy/a\\b.py", "holds a backslash or a colon", id="a backslash"),
        pytest.param("policy/net.py ", "begins or ends with a space", id="a space at the end"),
        pytest.param("policy/git~1", "is one that git keeps for itself", id="git by its short name"),
        pytest.param("policy/\x1b[2J.py", "holds a character that cannot be seen", id="an escape sequence"),
    ],
)
def test_a_copy_with_a_deceiving_name_is_refused(repository: Scene, name: str, wrong: str) -> None:
    copy = repository.copy()
    (copy / name).write_text("x = 1\n")
    is_never_drafted(repository, copy, "path-names", wrong)


@pytest.mark.cheater("path-names")
@pytest.mark.parametrize("name", ["policy/nul", "policy/net\u202e.py", "policy/a:b"])
def test_a_deceiving_name_written_into_the_store_is_refused(repository: Scene, name: str) -> None:
    blob = repository.store.write_blob(b"x = 1\n")
    reasons = repository.smuggle({name: ("100644", blob)}, kind="code")
    assert f"The path {name!a}" in said(reasons, "path-names")
    assert refused_in_ledger(repository, "c-0001", "path-names", ascii(name))
    assert repository.state_of("c-0001") is State.DRAFT


@pytest.mark.cheater("change-size")
@pytest.mark.parametrize("count", [21, 1000], ids=["one too many", "a flood"])
def test_a_change_of_too_many_files_is_refused(repository: Scene, count: int) -> None:
    copy = repository.copy()
    for number in range(count):
        (copy / "policy" / f"part_{number}.py").write_text(f"PART = {number}\n")
    loses(repository, copy, "change-size", f"The candidate changes {count:,} files, and at most 20 are allowed.")


@pytest.mark.cheater("change-size")
def test_a_change_of_too_many_bytes_is_refused(repository: Scene) -> None:
    copy = repository.copy()
    (copy / "policy" / "net.py").write_text("WIDTH = 64\n" * 10_000)
    loses(repository, copy, "change-size", "The candidate writes 110,000 bytes, and at most 100,000 are allowed.")


@pytest.mark.cheater("embedded-data")
def test_the_incumbents_weights_as_base64_are_refused(repository: Scene) -> None:
    copy = repository.copy()
    weights = base64.b64encode((copy / "weights" / "incumbent.bin").read_bytes()).decode()
    (copy / "policy" / "net.py").write_text(f"WIDTH = 64\nSTART = '{weights}'\n")
    loses(repository, copy, "embedded-data", "policy/net.py holds a long run of encoded data.")


@pytest.mark.cheater("embedded-data")
def test_a_binary_file_is_refused(repository: Scene) -> None:
    copy = repository.copy()
    (copy / "policy" / "start.npz").write_bytes(b"PK\3\4\0\0" + bytes(range(256)))
    loses(repository, copy, "embedded-data", "policy/start.npz is a binary file.")


@pytest.mark.cheater("embedded-data")
def test_a_file_that_is_too_large_to_be_read_is_refused(repository: Scene) -> None:
    repository.rewrite(lambda terms: terms["scope"].update(max_changed_bytes=10_000_000))
    repository.approve()
    copy = repository.copy()
    (copy / "policy" / "start.txt").write_text("0.25\n" * 400_000)
    loses(repository, copy, "embedded-data", "policy/start.txt is 2,000,000 bytes, which is too much to be checked.")


@pytest.mark.cheater("embedded-data")
def test_a_table_of_numbers_on_one_line_is_refused(repository: Scene) -> None:
    copy = repository.copy()
    numbers = ", ".join(f"{number / 7:.4f}" for number in range(400))
    (copy / "policy" / "net.py").write_text(f"WIDTH = 64\nSTART = [{numbers}]\n")
    loses(repository, copy, "embedded-data", "policy/net.py has a line of more than 2,000 bytes.")


def validated(scene: Scene) -> str:
    """One honest candidate that passed the gate; returns its commit."""
    assert scene.propose({"learning_rate": 0.001}) == ()
    assert scene.state_of("c-0001") is State.VALIDATED
    return scene.store.ref(scene.at.ref("candidates", "c-0001")) or ""


@pytest.mark.cheater("provenance")
def test_a_tree_swapped_between_check_and_use_is_refused(cartpole: Scene) -> None:
    honest = validated(cartpole)
    blob = cartpole.store.write_blob(b'{"learning_rate": 0.03}')
    tree = cartpole.git("mktree", stdin=f"100644 blob {blob}\tparams.json\n")
    evil = cartpole.store.write_commit(tree, (cartpole.state().tip,), "c-0001: It helps.\n", at=0)
    cartpole.git("update-ref", cartpole.at.ref("candidates", "c-0001"), evil)
    sentence = f"c-0001 was drafted as commit {honest[:12]}, but its ref now points to {evil[:12]}: it was swapped."
    assert sentence in said(cartpole.check("c-0001"), "provenance")
    assert refused_in_ledger(cartpole, "c-0001", "provenance", sentence)
    assert cartpole.state_of("c-0001") is State.DRAFT


@pytest.mark.cheater("provenance")
def test_a_second_swap_is_refused_like_the_first(cartpole: Scene) -> None:
    honest, tip, ref = validated(cartpole), cartpole.state().tip, cartpole.at.ref("candidates", "c-0001")
    for _ in range(2):
        cartpole.git("update-ref", ref, tip)
        assert "it was swapped" in said(cartpole.check("c-0001"), "provenance")
        assert cartpole.state_of("c-0001") is State.DRAFT
        cartpole.git("update-ref", ref, honest)
        assert (cartpole.check("c-0001"), cartpole.state_of("c-0001")) == ((), State.VALIDATED)
    assert len(cartpole.entries("refused")) == 2


@pytest.mark.cheater("provenance")
def test_a_candidate_whose_commit_vanished_is_refused(cartpole: Scene) -> None:
    validated(cartpole)
    cartpole.git("update-ref", "-d", cartpole.at.ref("candidates", "c-0001"))
    sentence = "c-0001 has no commit in the candidate store."
    assert sentence in said(cartpole.check("c-0001"), "provenance")
    assert refused_in_ledger(cartpole, "c-0001", "provenance", sentence)
    assert cartpole.state_of("c-0001") is State.DRAFT


@pytest.mark.cheater("provenance")
def test_a_change_that_was_not_declared_is_refused(repository: Scene) -> None:
    blob = repository.store.write_blob(b"WIDTH = 128\n")
    reasons = repository.smuggle({"policy/net.py": ("100644", blob)}, hide=True, kind="code")
    sentence = "The recorded changes of c-0001 are not the difference of its trees."
    assert sentence in said(reasons, "provenance")
    assert refused_in_ledger(repository, "c-0001", "provenance", sentence)
    assert repository.state_of("c-0001") is State.DRAFT


@pytest.mark.cheater("provenance")
def test_a_commit_and_a_folder_without_a_ledger_entry_are_no_candidate(cartpole: Scene) -> None:
    validated(cartpole)
    folder = cartpole.at.candidates / "c-0002"
    folder.mkdir()
    (folder / "candidate.json").write_bytes((cartpole.at.candidates / "c-0001" / "candidate.json").read_bytes())
    cartpole.git("update-ref", cartpole.at.ref("candidates", "c-0002"), cartpole.at.ref("candidates", "c-0001"))
    sentence = "There is no candidate c-0002 in the ledger, so it has no provenance"
    with pytest.raises(Refused, match=sentence):
        cartpole.check("c-0002")
    assert refused_in_ledger(cartpole, None, "provenance", sentence)
    assert set(cartpole.state().candidates) == {"c-0001"}


@pytest.mark.cheater("provenance")
@pytest.mark.parametrize("name", ["tip", "incumbent"])
def test_a_ref_that_another_hand_moved_stops_everything(cartpole: Scene, name: str) -> None:
    tree = cartpole.store.tree_of(cartpole.state().tip)
    evil = cartpole.store.write_commit(tree, (), "Better than it is\n", at=0)
    cartpole.git("update-ref", cartpole.at.ref(name), evil)
    sentence = f"points to {evil[:12]}, which the ledger does not name: another hand"
    with pytest.raises(Refused, match=sentence):
        cartpole.propose({"learning_rate": 0.001})
    assert refused_in_ledger(cartpole, None, "provenance", sentence)
    assert not cartpole.state().candidates


@pytest.mark.cheater("provenance")
def test_a_tip_moved_back_to_a_known_commit_follows_the_ledger_again(cartpole: Scene) -> None:
    commit = validated(cartpole)
    cartpole.git("update-ref", cartpole.at.ref("tip"), commit)
    with cartpole.open() as study:
        loop.follow_ledger(study, cartpole.store)
    assert cartpole.store.ref(cartpole.at.ref("tip")) == cartpole.state().tip != commit


@pytest.mark.cheater("provenance")
def test_the_tip_itself_is_no_candidate(cartpole: Scene) -> None:
    with pytest.raises(UserError, match="changes nothing"):
        cartpole.propose(cartpole.copy())
    assert cartpole.state().candidates == {}
