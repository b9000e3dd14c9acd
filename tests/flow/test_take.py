"""Bringing a result home: what is written, that it works there, and what is refused."""

import json
import os
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from overnight.cli.main import main
from overnight.errors import Refused
from overnight.guest.train import write_tensors
from overnight.home import choose, expected_returns, read_source
from overnight.machine import RealMachine
from overnight.records.env import EnvSpec
from scenes import Said, Scene, digest_of, git

Verb = Callable[..., Said]
PROBE = "import importlib.util, sys; sys.exit(importlib.util.find_spec('overnight') is not None)"


def took(verb: Verb, scene: Scene, *words: str) -> Said:
    """What `overnight take` says about a scene."""
    return verb("take", *words, "--dir", str(scene.project))


@pytest.fixture(scope="session")
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python that has NumPy and Gymnasium, and no Overnight."""
    place = tmp_path_factory.mktemp("elsewhere")
    for name in ("numpy", "gymnasium", "numpy.libs", "cloudpickle", "farama_notifications", "typing_extensions.py"):
        found = [Path(folder, name) for folder in sys.path if Path(folder, name).exists()]
        if found:
            (place / name).symlink_to(found[0])
    return place


def run_elsewhere(place: Path, folder: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    """Run Python in a folder as on another machine: no site packages but those of `place`."""
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(place), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        [sys.executable, "-S", *words], cwd=folder, env=env, capture_output=True, text=True, check=False
    )


@pytest.fixture(scope="session")
def _taken(_params_night: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("taken") / "home"
    assert main(["take", "--policy", str(folder), "--dir", str(_params_night)]) == 0
    return folder


@pytest.fixture
def home(_taken: Path, tmp_path: Path) -> Path:
    """A folder with a taken policy of weights."""
    return shutil.copytree(_taken, tmp_path / "home")


@pytest.mark.parametrize("kind", ["weights", "code"])
def test_a_taken_policy_plays_as_measured_where_overnight_is_not_installed(
    kind: str, request: pytest.FixtureRequest, elsewhere: Path, tmp_path: Path, verb: Verb
) -> None:
    if kind == "weights":
        home: Path = request.getfixturevalue("home")
    else:
        home = tmp_path / "code"
        said = took(verb, request.getfixturevalue("certified"), "--policy", str(home))
        assert said.code == 0, said.stderr
    names = {"act.py", "README.md", "expected.json"}
    assert {path.name for path in home.iterdir()} - names == (
        {"policy.json", "model.safetensors"} if kind == "weights" else {"policy"}
    )
    assert run_elsewhere(elsewhere, home, "-c", PROBE).returncode == 0, "overnight can be imported there"
    played = run_elsewhere(elsewhere, home, "act.py")
    assert played.returncode == 0, played.stdout + played.stderr
    assert "20 of 20 returns are as expected." in played.stdout and "seed 0: " in played.stdout


def test_the_example_of_the_readme_runs(home: Path, elsewhere: Path) -> None:
    page = (home / "README.md").read_text()
    example = page.split("```python\n")[1].split("```")[0]
    done = run_elsewhere(elsewhere, home, "-c", example + "print(action)")
    assert done.stdout.strip() in ("0", "1"), done.stderr
    assert "4 fresh seeds each" in page, "the claim stands on the page"


def test_a_policy_that_plays_otherwise_is_told_with_status_1(home: Path, elsewhere: Path) -> None:
    expected = json.loads((home / "expected.json").read_text())
    expected["episodes"][3]["return"] += 1.0
    (home / "expected.json").write_text(json.dumps(expected))
    played = run_elsewhere(elsewhere, home, "act.py")
    assert played.returncode == 1 and "19 of 20" in played.stdout and "was expected" in played.stdout


def test_a_machine_without_gymnasium_is_told_so(home: Path, tmp_path: Path, elsewhere: Path) -> None:
    place = tmp_path / "numpy-only"
    place.mkdir()
    for name in ("numpy", "numpy.libs"):
        if (elsewhere / name).exists():
            (place / name).symlink_to((elsewhere / name).resolve())
    played = run_elsewhere(place, home, "act.py")
    assert played.returncode == 1 and "pip install gymnasium" in played.stderr


def test_a_continuous_policy_with_a_normaliser_plays_to_the_last_digit(
    params: Scene, home: Path, elsewhere: Path, tmp_path: Path
) -> None:
    """Pendulum, two layers, clipped actions: where the referee's and the taken arithmetic could differ."""
    source = read_source(RealMachine(), params.at)
    env = EnvSpec(backend="gymnasium", id="Pendulum-v1")
    run = tmp_path / "run"
    (run / "policy").mkdir(parents=True)
    write_pendulum(run / "policy")
    object.__setattr__(source.contract.task, "env", env)
    source.at.runs.joinpath("r-9999").symlink_to(run)
    measured = expected_returns(source, "r-9999")
    for name in ("policy.json", "model.safetensors"):
        (home / name).write_bytes((run / "policy" / name).read_bytes())
    episodes = [{"seed": seed, "return": total} for seed, total, _ in measured]
    (home / "expected.json").write_text(json.dumps({"env": {"id": env.id}, "episodes": episodes}))
    played = run_elsewhere(elsewhere, home, "act.py")
    assert played.returncode == 0, played.stdout + played.stderr


def write_pendulum(folder: Path) -> None:
    numbers = [((7 * n) % 13 - 6) / 4 for n in range(64)]

    def tensor(*shape: int) -> tuple[str, tuple[int, ...], bytes]:
        size = shape[0] * (shape[1] if len(shape) > 1 else 1)
        return "F32", shape, struct.pack(f"<{size}f", *numbers[:size])

    tensors = {"layer0.weight": tensor(3, 8), "layer0.bias": tensor(8)}
    tensors |= {"layer1.weight": tensor(8, 1), "layer1.bias": tensor(1)}
    tensors |= {"obs_mean": tensor(3), "obs_scale": ("F32", (3,), struct.pack("<3f", 1.5, 0.7, 0.3))}
    write_tensors(folder / "model.safetensors", tensors)
    spec = {"schema": "overnight/policy/1", "kind": "weights", "architecture": "mlp", "activation": "tanh"}
    spec |= {"head": "gaussian", "observation_size": 3, "action_size": 1, "hidden": [8], "normalizer": True}  # type: ignore[dict-item]
    (folder / "policy.json").write_text(json.dumps(spec))


def test_the_median_run_is_taken_unless_another_is_named(params: Scene, tmp_path: Path, verb: Verb) -> None:
    runs = {name: run for name, run in params.state().runs.items() if run.candidate == "c-0001"}
    confirm = sorted((run.score or 0.0, name) for name, run in runs.items() if run.phase == "confirm")
    told = json.loads(took(verb, params, "--policy", str(tmp_path / "one"), "--json").stdout)
    assert runs[told["run"]].score == confirm[len(confirm) // 2][0] and runs[told["run"]].phase == "confirm"
    screened = next(name for name, run in runs.items() if run.phase == "screen")
    told = json.loads(took(verb, params, "--policy", str(tmp_path / "two"), "--run", screened, "--json").stdout)
    assert told["run"] == screened
    assert took(verb, params, "--policy", str(tmp_path / "three"), "--run", "r-0001").code == 2, "a baseline's run"


def test_a_policy_that_was_changed_after_its_run_is_refused(params: Scene, tmp_path: Path, verb: Verb) -> None:
    for run in params.at.runs.iterdir():
        with (run / "policy" / "model.safetensors").open("r+b") as file:
            file.seek(-1, os.SEEK_END)
            file.write(b"\x01")
    said = took(verb, params, "--policy", str(tmp_path / "home"))
    assert said.code == 3 and "not the one that its supervisor took" in said.stderr
    assert not (tmp_path / "home").exists() and not list(tmp_path.glob(".home*"))


def test_a_full_folder_is_left_alone(params: Scene, tmp_path: Path, verb: Verb) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "mine").write_text("mine")
    said = took(verb, params, "--policy", str(home), "--config", str(tmp_path / "best.json"))
    assert said.code == 2 and "not an empty folder" in said.stderr
    assert not (tmp_path / "best.json").exists(), "nothing is written when one part is refused"


def test_parameters_come_home_with_the_claim(params: Scene, tmp_path: Path, verb: Verb) -> None:
    target = tmp_path / "best.json"
    assert took(verb, params, "--config", str(target)).code == 0
    found = json.loads(target.read_text())
    assert found["params"]["learning_rate"] == 0.01
    claim = found["claim"]
    assert claim["certified"] and claim["candidate"] == "c-0001" and claim["gain_low"] > 0
    assert claim["study"] == "cartpole/first" and claim["reproduce"] == "overnight reproduce c-0001"
    assert took(verb, params, "--config", str(target)).code == 2
    assert took(verb, params, "--config", str(target), "--force").code == 0


def test_a_repository_has_no_parameters_to_take(certified: Scene, tmp_path: Path, verb: Verb) -> None:
    said = took(verb, certified, "--config", str(tmp_path / "best.json"))
    assert said.code == 2 and "changes files, not parameters" in said.stderr


def test_a_patch_applies_to_the_baseline(certified: Scene, tmp_path: Path, verb: Verb) -> None:
    patch = tmp_path / "better.diff"
    assert took(verb, certified, "--patch", str(patch)).code == 0
    git(certified.project, "apply", str(patch))
    git(certified.project, "add", "--all")
    assert git(certified.project, "write-tree") == certified.state().candidates["c-0003"].tree


def test_a_branch_has_one_commit_for_each_idea_and_nothing_else_moves(
    certified: Scene, verb: Verb, monkeypatch: pytest.MonkeyPatch
) -> None:
    project, repository = certified.project, certified.project / ".git"
    (project / "train.py").write_text("unfinished\n")
    (project / "new.txt").write_text("staged\n")
    git(project, "add", "new.txt")
    git(project, "config", "user.name", "Ada")
    git(project, "config", "user.email", "ada@example.org")
    git(project, "config", "core.splitIndex", "true")
    for name in ("reference-transaction", "post-commit", "pre-commit", "post-index-change", "commit-msg"):
        hook = repository / "hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\ntouch {project}/hook-ran\n")
        hook.chmod(0o755)
    for name in ("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL"):
        monkeypatch.delenv(name, raising=False)
    before = digest_of(project, without=("objects", ".overnight"))
    said = took(verb, certified, "--branch", "night/better")
    assert said.code == 0, said.stderr
    after = digest_of(project, without=("objects", ".overnight"))
    new = {path for path in after if before.get(path) != after[path] and not Path(path).is_dir()}
    assert before.keys() <= after.keys() and all(path.endswith("night/better") for path in new), new
    assert not (project / "hook-ran").exists() and not (repository / "FETCH_HEAD").exists()
    log = git(project, "log", "--format=%an <%ae>|%s", "main..night/better").splitlines()
    assert log == [
        "Ada <ada@example.org>|Its speed says where it will be.",
        "Ada <ada@example.org>|The pole's angle says where to push.",
    ]
    assert git(project, "rev-parse", "night/better~2") == git(project, "rev-parse", "main")
    state = certified.state()
    for revision, name in (("night/better", "c-0003"), ("night/better~1", "c-0001")):
        assert git(project, "rev-parse", f"{revision}^{{tree}}") == state.candidates[name].tree
    message = git(project, "log", "-1", "--format=%b", "night/better")
    assert "fresh seeds each" in message and "Candidate: c-0003" in message
    assert "Reproduce: overnight reproduce c-0003" in message
    git(project, "fsck", "--strict")


@pytest.mark.parametrize("name", ["main", "main/x", "-x", "a..b", "HEAD", "x.lock", "a b", "@{-1}", "../x"])
def test_a_branch_that_is_there_or_is_badly_named_is_refused(name: str, certified: Scene, verb: Verb) -> None:
    before = digest_of(certified.project / ".git")
    said = took(verb, certified, f"--branch={name}")
    assert said.code == 2 and "--branch" in said.stderr
    assert digest_of(certified.project / ".git") == before


def test_parameters_stand_on_the_head_of_any_repository(params: Scene, verb: Verb) -> None:
    assert took(verb, params, "--branch", "better").code == 2, "no repository yet"
    git(params.project, "init", "--quiet", "--initial-branch=main")
    assert took(verb, params, "--branch", "better").code == 2, "no commit yet"
    (params.project / "mine.txt").write_text("mine\n")
    git(params.project, "add", "mine.txt")
    git(params.project, "commit", "--quiet", "--message=Mine")
    assert took(verb, params, "--branch", "better").code == 0
    files = git(params.project, "ls-tree", "-r", "--name-only", "better").splitlines()
    assert files == ["mine.txt", "overnight/cartpole/params.json"]
    text = git(params.project, "show", "better:overnight/cartpole/params.json")
    assert json.loads(text)["learning_rate"] == 0.01
    assert git(params.project, "status", "--porcelain") == ""


def test_a_study_that_has_not_trained_has_nothing_to_take(cartpole: Scene, verb: Verb, tmp_path: Path) -> None:
    said = took(verb, cartpole, "--patch", str(tmp_path / "x.diff"))
    assert said.code == 2 and "has not trained anything yet" in said.stderr


def test_without_a_certified_winner_nothing_is_taken_unasked(params: Scene) -> None:
    """The same study as it was before its certification: c-0001 is kept, and the incumbent is the baseline."""
    source = read_source(RealMachine(), params.at)
    source.state.incumbent, source.state.stack = source.state.candidates["c-0002"].commit, ["c-0001"]
    source.entries = [entry for entry in source.entries if entry["kind"] != "decided"]
    with pytest.raises(Refused, match="the incumbent is still the baseline"):
        choose(source, None, uncertified=False)
    with pytest.raises(Refused, match="never certified"):
        choose(source, "c-0001", uncertified=False)
    assert choose(source, None, uncertified=True).candidate.id == "c-0001"


def test_a_commit_that_is_not_the_baseline_carries_no_branch(certified: Scene, verb: Verb) -> None:
    (certified.project / "config.json").write_text("[]")
    git(certified.project, "commit", "--quiet", "--all", "--message=Other")
    other = git(certified.project, "rev-parse", "HEAD")
    certified.rewrite(lambda terms: terms["baseline"].update(source_commit=other))
    said = took(verb, certified, "--branch", "better")
    assert said.code == 3 and "not the baseline that the ledger names" in said.stderr


def test_a_candidate_that_is_not_certified_by_itself_needs_the_word(
    certified: Scene, verb: Verb, tmp_path: Path
) -> None:
    patch = str(tmp_path / "x.diff")
    said = took(verb, certified, "c-0001", "--patch", patch)
    assert said.code == 3 and "certified as a part of c-0003" in said.stderr
    assert took(verb, certified, "c-0002", "--patch", patch).code == 3
    assert took(verb, certified, "c-0001", "--patch", patch, "--uncertified").code == 0
    assert took(verb, certified, "c-0002", "--patch", patch, "--uncertified", "--force").code == 2, "no change"


def test_taking_nothing_is_a_mistake(certified: Scene, verb: Verb) -> None:
    said = took(verb, certified)
    assert said.code == 2 and "--policy" in said.stderr
