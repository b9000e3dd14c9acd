"""Holes that were found and closed. Each stays here as the attack that found it."""

import json
import os
import zlib
from pathlib import Path

import pytest

from overnight.begin import Place, begin_env, begin_repository
from overnight.candidate.build import with_copy
from overnight.candidate.copy import read_copy, write_copy
from overnight.contract.draft import Stated
from overnight.errors import Refused, UserError
from overnight.machine import RealMachine
from overnight.records.lifecycle import State
from overnight.study import anchor
from overnight.study.study import read_state
from scenes import Scene, git, overnight, refused_in_ledger, said, write_repository

MACHINE = RealMachine()


def test_a_tree_with_a_link_and_a_folder_of_one_name_writes_nothing_outside(cartpole: Scene, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    store = cartpole.store
    inner = cartpole.git("mktree", stdin=f"100644 blob {store.write_blob(b'evil')}\tfile\n")
    link = store.write_blob(os.fsencode(outside))
    tree = cartpole.git("mktree", stdin=f"120000 blob {link}\ta\n040000 tree {inner}\ta\n")
    with pytest.raises(UserError, match="the tree has this name twice"):
        write_copy(store, tree, tmp_path / "copy")
    assert list(outside.iterdir()) == []


@pytest.mark.cheater("seeds")
@pytest.mark.parametrize(
    "line",
    ["SEED = 17", "torch.manual_seed(17)", "SEED = int('7')", "random.seed(a=7)", "rng = np.random.default_rng(3)"],
)
def test_a_seed_in_another_form_is_refused(repository: Scene, line: str) -> None:
    copy = repository.copy()
    (copy / "train.py").write_text(f"{line}\n")
    assert "sets a seed" in said(repository.propose(copy, kind="code"), "seeds")


@pytest.mark.cheater("seeds")
@pytest.mark.parametrize(
    ("text", "says"),
    [
        pytest.param('{"train": {"seed": 7}}', "sets `train.seed`", id="below another key"),
        pytest.param('{"runs": [{"env_seed": 7}]}', "sets `runs.0.env_seed`", id="in a list"),
        pytest.param('{"seed": 7, "x": NaN}', "cannot be searched for seeds", id="in a file that only Python reads"),
    ],
)
def test_a_seed_deep_in_a_configuration_is_refused(repository: Scene, text: str, says: str) -> None:
    copy = repository.copy()
    (copy / "config.json").write_text(text)
    assert says in said(repository.propose(copy, kind="code"), "seeds")


@pytest.mark.cheater("parameters")
def test_removing_the_parameters_is_refused(cartpole: Scene) -> None:
    copy = cartpole.copy()
    (copy / "params.json").unlink()
    assert "removes params.json" in said(cartpole.propose(copy), "parameters")


@pytest.mark.cheater("one-hypothesis")
@pytest.mark.parametrize("how", ["another newline", "executable"])
def test_a_change_that_changes_no_parameter_is_refused(cartpole: Scene, how: str) -> None:
    path = cartpole.copy() / "params.json"
    if how == "executable":
        path.chmod(0o755)
    else:
        path.write_text(path.read_text() + "\n")
    assert "another roll of the dice" in said(cartpole.propose(path.parent), "one-hypothesis")


@pytest.mark.cheater("provenance")
def test_a_ref_that_points_to_no_commit_is_refused(cartpole: Scene) -> None:
    assert cartpole.propose({"learning_rate": 0.001}) == ()
    cartpole.git("update-ref", cartpole.at.ref("candidates", "c-0001"), cartpole.store.write_blob(b"no commit"))
    assert "it was swapped" in said(cartpole.check("c-0001"), "provenance")
    assert cartpole.state_of("c-0001") is State.DRAFT


def test_an_object_with_other_bytes_than_its_name_says_is_refused(cartpole: Scene) -> None:
    assert cartpole.propose({"learning_rate": 0.001}) == ()
    tree = cartpole.state().candidates["c-0001"].tree
    blob = cartpole.store.files(tree)[0].blob
    loose = cartpole.store.git_dir / "objects" / blob[:2] / blob[2:]
    data = zlib.decompress(loose.read_bytes()).replace(b"0.001", b"0.009")
    loose.chmod(0o644)
    loose.write_bytes(zlib.compress(data))
    with pytest.raises(Refused, match="holds other bytes than it was stored with"):
        cartpole.check("c-0001")


def test_compiled_files_that_were_committed_stay_where_they_are(tmp_path: Path) -> None:
    project = write_repository(tmp_path / "repo", {"train.py": "x = 1\n", "lib/__pycache__/old.pyc": "compiled"})
    begun = begin_repository(MACHINE, Place(project), Stated())
    scene = Scene(begun.at)
    copy = scene.copy()
    tree = scene.store.tree_of(scene.state().tip)
    assert with_copy(scene.store, tree, read_copy(copy), scratch=tmp_path) == tree


def test_what_the_engine_writes_it_can_always_read(repository: Scene) -> None:
    copy = repository.copy()
    for number in range(120):
        (copy / f"nested-{number}" / ".git").mkdir(parents=True)
    assert "more of these" in repository.propose(copy, kind="code")[-1].says
    assert overnight("ledger", "verify", "--deep", cwd=repository.project).returncode == 0


def test_a_refusal_after_a_mended_one_is_recorded_again(cartpole: Scene) -> None:
    for _ in range(2):
        cartpole.edit("max_wall_hours: 8.0", "max_wall_hours: 9.0")
        with pytest.raises(Refused):
            cartpole.enter()
        cartpole.edit("max_wall_hours: 9.0", "max_wall_hours: 8.0")
        cartpole.enter()
    assert len(cartpole.entries("refused")) == 2
    assert refused_in_ledger(cartpole, None, "approvals", "is void")


@pytest.mark.parametrize(
    "because", ["bytes that are no text: \udcff", "x\nc-0009  accepted  kept"], ids=["bytes", "lines"]
)
def test_an_idea_is_text_on_one_line(cartpole: Scene, because: str) -> None:
    with pytest.raises(UserError, match=r"hypothesis"):
        cartpole.propose({"learning_rate": 0.001}, hypothesis=because)
    assert not cartpole.state().candidates


@pytest.mark.parametrize("left", ["a torn first line", "half a store", "a stale lock"])
def test_a_beginning_that_was_killed_is_finished_by_beginning_again(tmp_path: Path, left: str) -> None:
    at = begin_env(MACHINE, Place(tmp_path), Stated(env="CartPole-v1")).at
    at.head.unlink()
    at.ledger.unlink()
    if left == "a torn first line":
        at.head.unlink(missing_ok=True)
        begin_env(MACHINE, Place(tmp_path), Stated(env="CartPole-v1"))
        anchor.create(MACHINE, str(at.head))
        at.ledger.write_bytes(at.ledger.read_bytes()[:40])
    elif left == "half a store":
        for name in ("config", "objects"):
            (at.task.root.store / name).rename(tmp_path / name)
    else:
        (at.task.root.store / at.ref("tip")).with_suffix(".lock").write_text("")
        (at.task.root.store / at.ref("tip")).unlink()
    begun = begin_env(MACHINE, Place(tmp_path), Stated(env="CartPole-v1"))
    assert read_state(MACHINE, begun.at).task == "cartpole"


def test_a_folder_with_a_colon_in_its_name_is_a_folder(tmp_path: Path) -> None:
    project = write_repository(tmp_path / 'a:b"c')
    begun = begin_repository(MACHINE, Place(project), Stated())
    assert read_state(MACHINE, begun.at).tree == git(project, "rev-parse", "HEAD^{tree}")


def test_a_folder_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    done = overnight("init", "CartPole-v1", "--dir", str(tmp_path / "missing"), cwd=tmp_path)
    assert done.returncode == 2 and "is not a folder" in done.stderr
    assert not (tmp_path / "missing").exists()


def test_an_unattended_word_cannot_replace_a_persons(cartpole: Scene) -> None:
    cartpole.edit("max_wall_hours: 8.0", "max_wall_hours: 9000.0")
    done = overnight("approve", "--yes", cwd=cartpole.project)
    assert done.returncode == 3 and "an unattended word cannot replace that" in done.stderr
    assert cartpole.standings()["budget"] == "void"


def test_a_state_file_that_lies_does_not_lead_anywhere_else(cartpole: Scene) -> None:
    assert cartpole.propose({"learning_rate": 0.001}) == ()
    state = json.loads(cartpole.at.state.read_text())
    state["candidates"]["c-0001"]["drafted_at"] = 7
    cartpole.at.state.write_text(json.dumps(state))
    done = overnight("show", "c-0001", cwd=cartpole.project)
    assert done.returncode == 3 and "has no entry at byte 7" in done.stderr
