"""Disk is freed, and no evidence is lost: checked on a real night, with real policies."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import nights
from nights import params_study
from overnight.records.codec import decode
from overnight.records.evidence import Evidence
from overnight.records.lifecycle import Actor
from overnight.records.proposal import Exhausted, Proposal, View
from scenes import Said, Scene, at_terminal, digest_of, scene_in

Verb = Callable[..., Said]
BAD, GOOD, OTHER = {"learning_rate": 1e-05}, {"learning_rate": 0.01}, {"gamma": 0.98}


class Ideas:
    """Has a bad idea, then a good one, then as many others as it may."""

    def __init__(self, most: int) -> None:
        self.most = most

    def ask(self, view: View) -> Proposal | Exhausted:
        number = len(view.tried)
        if number >= self.most:
            return Exhausted(because="These were all ideas.")
        params = (BAD, GOOD, OTHER)[number]
        return Proposal(
            proposer="search",
            kind="hyperparameter",
            hypothesis=f"Idea {number} helps.",
            predicted_effect="The score rises.",
            params=params,
        )


def sit(scene: Scene, ideas: int) -> str:
    """One sitting, to its end."""
    return nights.sit(scene, Ideas(ideas))


@pytest.fixture(scope="module")
def _after_a_night(tmp_path_factory: pytest.TempPathFactory) -> Path:
    project = tmp_path_factory.mktemp("night") / "project"
    scene = params_study(project)
    scene.approve()
    assert sit(scene, 2) == "These were all ideas."
    return project


@pytest.fixture
def slept(_after_a_night: Path, tmp_path: Path) -> Scene:
    """A study after a real night with two ideas, of which at least one came to nothing."""
    return scene_in(shutil.copytree(_after_a_night, tmp_path / "slept", symlinks=True))


def policies(scene: Scene, candidate: str) -> set[bool]:
    """Whether the runs of a candidate still have their policies."""
    runs = [name for name, run in scene.state().runs.items() if run.candidate == candidate]
    return {(scene.at.runs / name / "policy" / "policy.json").exists() for name in runs}


def losers(scene: Scene) -> list[str]:
    """The candidates that were judged and on which nothing rests."""
    over = ("rejected", "inconclusive", "reverted")
    found = [one.id for one in scene.state().candidates.values() if one.state in over]
    assert found, "a night without a loser shows nothing"
    return found


EVIDENCE = ("ledger.jsonl", "contract.yaml", "contract.lock", "head.json")


def evidence(scene: Scene) -> dict[str, str]:
    """Everything that may never be touched."""
    folders = (scene.at.objects, scene.at.approvals, scene.at.audits, scene.at.candidates, scene.at.task.root.store)
    return digest_of(*folders) | {name: (scene.at.folder / name).read_text() for name in EVIDENCE}


def test_after_cleaning_report_verification_and_the_next_night_still_work(slept: Scene, verb: Verb) -> None:
    before, state = evidence(slept), slept.state()
    (slept.at.runs / "r-0001" / "tmp").mkdir()
    done = verb("clean", "--dir", str(slept.project))
    assert (done.code, "freed" in done.stdout) == (0, True), done.stderr
    assert evidence(slept) == before
    assert policies(slept, state.baseline) == {True}
    assert all(policies(slept, name) == {False} for name in losers(slept))
    assert not (slept.at.runs / "r-0001" / "tmp").exists()
    assert all((slept.at.runs / name / "exit.json").exists() for name in state.runs)
    assert verb("ledger", "verify", "--deep", "--dir", str(slept.project)).code == 0
    assert verb("report", "--dir", str(slept.project)).code == 0
    assert verb("clean", "--dir", str(slept.project)).stdout == "There is nothing to remove.\n"
    assert sit(slept, 3) == "These were all ideas."
    assert len(slept.state().candidates) == 4


def test_what_is_kept_keeps_its_policies_and_what_is_rejected_does_not(cartpole: Scene, verb: Verb) -> None:
    cartpole.enter()
    cartpole.propose({"gamma": 0.95})
    cartpole.keep(cartpole.train("c-0001"))
    cartpole.propose({"gamma": 0.9})
    run = cartpole.train("c-0002", number=2)
    named = {"run": run.id, "candidate": run.candidate, "tree": run.tree, "comparability": run.comparability}
    measured = {"phase": "screen", "score": 1.0, "episodes": 20, "guardrails": {}, "artefact": "0" * 64}
    with cartpole.open() as study:
        study.append(Actor.REFEREE, decode(Evidence, {**named, **measured}, where="a test"))
    for name in ("r-0001", "r-0002"):
        (cartpole.at.runs / name / "policy").mkdir(parents=True)
    assert verb("clean", "--dir", str(cartpole.project)).code == 0
    assert [path.parent.name for path in cartpole.at.runs.glob("*/policy")] == ["r-0001"]


def test_a_dry_run_lists_sizes_and_removes_nothing(slept: Scene, verb: Verb) -> None:
    before = digest_of(slept.at.runs)
    done = verb("clean", "--dry-run", "--dir", str(slept.project))
    assert (done.code, digest_of(slept.at.runs) == before) == (0, True)
    assert "runs/" in done.stdout and f"a run of {losers(slept)[0]}" in done.stdout
    assert done.stdout.endswith("would be freed; nothing was removed.\n")


def test_a_study_that_is_extended_goes_on_with_the_tip_it_had(slept: Scene) -> None:
    runs = len(slept.state().runs)
    assert at_terminal("extend", "--hours", "1", "--candidates", "5", cwd=slept.project).code == 0
    assert sit(slept, 3) == "These were all ideas."
    state = slept.state()
    assert len(state.runs) > runs
    assert state.candidates["c-0004"].verdict, "the new idea was compared with the old tip"


def test_a_study_whose_protocol_changed_does_not_go_on_with_the_old_tip(slept: Scene) -> None:
    slept.edit("screen_episodes: 5", "screen_episodes: 6")
    slept.approve()
    slept.enter()
    under = {one.validated_under for one in slept.state().candidates.values()}
    assert slept.state().entered not in under


def test_an_engine_that_holds_the_study_is_not_disturbed(slept: Scene, verb: Verb) -> None:
    before = digest_of(slept.at.runs)
    with slept.open():
        done = verb("clean", "--cache", "--dir", str(slept.project))
    assert (done.code, "is held by pid" in done.stderr) == (3, True)
    assert digest_of(slept.at.runs) == before


def test_a_run_that_is_going_is_never_touched(cartpole: Scene, verb: Verb) -> None:
    cartpole.enter()
    cartpole.propose({"gamma": 0.95})
    with cartpole.open() as study:
        study.append(Actor.RUNNER, cartpole.run_of("c-0001"))
    for name in ("policy", "out", "source", "tmp"):
        (cartpole.at.runs / "r-0001" / name).mkdir(parents=True)
    assert verb("clean", "--dir", str(cartpole.project)).stdout == "There is nothing to remove.\n"
    assert len(list((cartpole.at.runs / "r-0001").iterdir())) == 4


def test_a_policy_that_is_still_to_be_measured_stays(cartpole: Scene, verb: Verb) -> None:
    cartpole.enter()
    cartpole.propose({"gamma": 0.95})
    cartpole.train("c-0001")
    (cartpole.at.runs / "r-0001" / "policy").mkdir(parents=True)
    assert verb("clean", "--dir", str(cartpole.project)).code == 0
    assert (cartpole.at.runs / "r-0001" / "policy").is_dir()


def test_links_are_removed_and_not_followed_and_closed_folders_are_opened(slept: Scene, verb: Verb) -> None:
    run = next(name for name, one in slept.state().runs.items() if one.candidate in losers(slept))
    outside, folder = slept.project.parent / "outside", slept.at.runs / run
    (outside / "deep").mkdir(parents=True)
    (outside / "deep" / "mine").write_text("keep")
    (outside / "deep").chmod(0o500)
    shutil.rmtree(folder / "policy")
    (folder / "policy").symlink_to(outside)
    (folder / "out" / "link").symlink_to(outside / "deep")
    (folder / "out" / "closed" / "below").mkdir(parents=True)
    (folder / "out" / "closed").chmod(0o000)
    assert verb("clean", "--dir", str(slept.project)).code == 0
    assert (outside / "deep" / "mine").read_text() == "keep"
    assert (outside / "deep").stat().st_mode & 0o777 == 0o500
    assert not (folder / "out").exists() and not (folder / "policy").is_symlink()


def test_the_compile_cache_goes_only_when_asked(slept: Scene, verb: Verb) -> None:
    cache = slept.at.task.root.cache
    cache.mkdir()
    (cache / "compiled").write_bytes(b"by a trainer")
    assert verb("clean", "--dir", str(slept.project)).code == 0
    assert cache.exists()
    assert verb("clean", "--cache", "--dir", str(slept.project)).code == 0
    assert not cache.exists()


def test_reproductions_go(slept: Scene, verb: Verb) -> None:
    (slept.at.reproductions / "r-0001").mkdir(parents=True)
    assert verb("clean", "--dir", str(slept.project)).code == 0
    assert not slept.at.reproductions.exists()
