"""Where everything lies: one folder, found from anywhere below it, and names that cannot lead out of it."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import overnight as package
from overnight.errors import UserError
from overnight.study.layout import Root, StudyFolder, check_id, check_project, check_slug, find_root
from scenes import Said, Scene, draft_cartpole, overnight

Verb = Callable[..., Said]
PACKAGE = Path(package.__file__).parent
READERS = [["status"], ["contract", "show"], ["candidates"], ["ledger", "verify"], ["show", "c-0001"], ["start"]]


@pytest.mark.parametrize("name", ["cartpole", "a", "0", "rough-terrain-2", "a" * 40])
def test_a_plain_name_is_taken_as_it_is(name: str) -> None:
    assert check_slug(name, called="task") == name


@pytest.mark.parametrize(
    "name", ["", ".", "..", "../x", "a/b", "/etc", "A", "a_b", "-a", "a b", "a\n", "a\x00", "é", "a" * 41, "con.txt"]
)
def test_a_name_that_could_leave_its_folder_is_refused(name: str) -> None:
    with pytest.raises(UserError, match="lower-case letters, digits and hyphens are needed"):
        Root(Path("/project/.overnight")).task(name)


@pytest.mark.parametrize(
    "name", ["c-1", "c-0001/../..", "C-0001", "c-0001\n", "r-0001", "c-", "c-000000000000", "c-０００１"]
)
def test_an_id_that_could_leave_its_folder_is_refused(name: str) -> None:
    with pytest.raises(UserError, match="an id such as `c-0001` is needed"):
        check_id(name, letter="c", called="candidate")


def test_everything_of_a_study_lies_in_its_own_folder() -> None:
    at = Root(Path("/project/.overnight")).task("walk").study("first")
    places = [name for name, value in vars(StudyFolder).items() if isinstance(value, property) and name != "folder"]
    assert len(places) > 10
    assert [name for name in places if at.folder not in getattr(at, name).parents] == []


def test_the_refs_of_two_studies_share_no_prefix() -> None:
    task = Root(Path("/project/.overnight")).task("walk")
    assert not task.study("first-b").ref("tip").startswith(task.study("first").ref() + "/")


def test_a_study_is_found_from_any_folder_below_it(cartpole: Scene) -> None:
    below = cartpole.project / "deeply" / "nested"
    below.mkdir(parents=True)
    found = find_root(below)
    assert found is not None
    assert found.folder == cartpole.at.task.root.folder.resolve()


def test_no_study_is_found_where_there_is_none(tmp_path: Path) -> None:
    assert find_root(tmp_path) is None


def test_a_file_of_that_name_is_no_study(tmp_path: Path) -> None:
    (tmp_path / ".overnight").write_text("not a folder")
    assert find_root(tmp_path) is None


@pytest.mark.feature("R24", "A69")
@pytest.mark.parametrize("inside", [".", "rl", "rl/trainers"])
def test_no_study_is_kept_inside_the_package(verb: Verb, inside: str) -> None:
    landed = PACKAGE / inside / ".overnight"
    try:
        done = verb("init", "CartPole-v1", "--dir", str(PACKAGE / inside))
        assert (done.code, "is inside Overnight itself" in done.stderr) == (2, True)
        assert not landed.exists()
    finally:
        shutil.rmtree(landed, ignore_errors=True)


def test_a_link_into_the_package_is_seen_through(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(PACKAGE)
    with pytest.raises(UserError, match="is inside Overnight itself"):
        check_project(tmp_path / "link")


def test_no_study_is_kept_inside_a_state_folder(cartpole: Scene) -> None:
    with pytest.raises(UserError, match="is inside Overnight itself"):
        check_project(cartpole.at.task.root.folder)


# The registry


@pytest.mark.feature("R33")
@pytest.mark.parametrize("words", READERS, ids=" ".join)
def test_a_registry_that_names_a_missing_study_fails_with_that_message(
    cartpole: Scene, verb: Verb, words: list[str]
) -> None:
    cartpole.at.task.root.registry.write_text("task: cartpole\nstudy: secnd\n")
    done = verb(*words, "--dir", str(cartpole.project))
    assert (done.code, done.stdout) == (2, "")
    assert "registry.yaml: names cartpole/secnd, which does not exist" in done.stderr


def test_a_misspelt_study_is_corrected(cartpole: Scene, verb: Verb) -> None:
    cartpole.at.task.root.registry.write_text("task: cartpol\nstudy: first\n")
    assert "hint: did you mean `cartpole/first`?" in verb("status", "--dir", str(cartpole.project)).stderr


@pytest.mark.feature("R95")
@pytest.mark.parametrize(
    "text",
    [
        pytest.param("task: cartpole\nstudy: first\nstudy: second\n", id="two studies"),
        pytest.param("task: cartpole\nstudy: first\ntasks: [a, b]\n", id="a third key"),
        pytest.param("task: cartpole\n", id="no study"),
        pytest.param("task: cartpole\nstudy: [first, second]\n", id="a list"),
        pytest.param("task: cartpole\nstudy: first\n---\ntask: a\nstudy: b\n", id="two documents"),
        pytest.param("task: cartpole\nstudy: ../../../cartpole/studies/first\n", id="a path"),
        pytest.param("", id="nothing"),
    ],
)
def test_an_ambiguous_registry_is_an_error(cartpole: Scene, verb: Verb, text: str) -> None:
    draft_cartpole(cartpole.project, study="second")
    cartpole.at.task.root.registry.write_text(text)
    done = verb("status", "--dir", str(cartpole.project))
    assert (done.code, done.stdout) == (2, "")


def test_a_missing_registry_is_made_again_by_init(cartpole: Scene, verb: Verb) -> None:
    cartpole.at.task.root.registry.unlink()
    assert verb("status", "--dir", str(cartpole.project)).code == 2
    assert verb("init", "CartPole-v1", "--dir", str(cartpole.project)).code == 0
    assert verb("status", "--dir", str(cartpole.project)).code == 0


@pytest.mark.feature("R129")
def test_state_lands_in_the_named_folder_even_from_elsewhere(tmp_path: Path) -> None:
    project, elsewhere = tmp_path / "project", tmp_path / "elsewhere"
    project.mkdir()
    elsewhere.mkdir()
    done = overnight("init", "CartPole-v1", "--dir", str(project), "--json", cwd=elsewhere)
    assert json.loads(done.stdout)["contract"].startswith(f"{project.resolve()}/.overnight/")
    assert [path.name for path in project.iterdir()] == [".overnight"]
    assert list(elsewhere.iterdir()) == []
