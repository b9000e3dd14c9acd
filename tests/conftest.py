"""Prepared studies. Each is made once, and every test gets a copy of its own."""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

from nights import params_night, repository_night
from overnight.cli.main import main
from overnight.contract.approve import AGENT_HOSTS
from overnight.evaluate.seeds import keys_folder
from scenes import Said, Scene, complete, draft_cartpole, draft_repository, scene_in, write_repository

settings.register_profile("overnight", deadline=None)  # a busy machine may be slow; speed is claimed elsewhere
settings.load_profile("overnight")
os.environ["XDG_STATE_HOME"] = tempfile.mkdtemp(prefix="overnight-keys-")  # seed keys of tests stay out of the home
os.environ["XDG_CONFIG_HOME"] = tempfile.mkdtemp(prefix="overnight-config-")  # and so does the configuration


@pytest.fixture(autouse=True)
def _no_agent_host(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests behave the same in a person's terminal and inside a coding agent."""
    for name in AGENT_HOSTS:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="session")
def _prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("prepared")


@pytest.fixture(scope="session")
def _drafted(_prepared: Path) -> Path:
    return draft_cartpole(_prepared / "drafted").project


@pytest.fixture(scope="session")
def _approved(_prepared: Path, _drafted: Path) -> Path:
    project = shutil.copytree(_drafted, _prepared / "approved")
    scene_in(project).approve()
    return project


@pytest.fixture(scope="session")
def _repository(_prepared: Path) -> Path:
    return draft_repository(write_repository(_prepared / "repository")).project


@pytest.fixture(scope="session")
def _approved_repository(_prepared: Path, _repository: Path) -> Path:
    project = shutil.copytree(_repository, _prepared / "approved-repository", symlinks=True)
    complete(scene_in(project))
    scene_in(project).approve()
    return project


def _copied(prepared: Path, tmp_path: Path) -> Scene:
    return scene_in(shutil.copytree(prepared, tmp_path / prepared.name, symlinks=True))


@pytest.fixture
def drafted(_drafted: Path, tmp_path: Path) -> Scene:
    """A CartPole study that nobody has approved."""
    return _copied(_drafted, tmp_path)


@pytest.fixture
def cartpole(_approved: Path, tmp_path: Path) -> Scene:
    """A CartPole study with all eight approvals."""
    return _copied(_approved, tmp_path)


@pytest.fixture
def unsaid(_repository: Path, tmp_path: Path) -> Scene:
    """A repository's study as it is drafted, with its unknowns."""
    return _copied(_repository, tmp_path)


@pytest.fixture
def repository(_approved_repository: Path, tmp_path: Path) -> Scene:
    """A repository's study with all eight approvals; `train.py`, `config.json` and `policy/` are open."""
    return _copied(_approved_repository, tmp_path)


@pytest.fixture
def verb(capsys: pytest.CaptureFixture[str]) -> Callable[..., Said]:
    """Call a verb in this process, where its own process would prove nothing more."""

    def call(*words: str) -> Said:
        capsys.readouterr()
        code = main([*words])
        return Said(code, *capsys.readouterr())

    return call


# Small whole nights: each is trained once, whoever of the workers comes first


def _shared(factory: pytest.TempPathFactory, name: str, sit: Callable[[Path], Scene]) -> Path:
    """The project of one night; its seed keys are copied to where this worker looks for them."""
    alone = factory.getbasetemp().name.startswith("popen") is False
    folder = (factory.getbasetemp() if alone else factory.getbasetemp().parent) / f"night-{name}"
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "keys").exists():
            sit(folder / "walker")
            shutil.copytree(keys_folder(), folder / "keys")
    shutil.copytree(folder / "keys", keys_folder(), dirs_exist_ok=True)
    return folder / "walker"


@pytest.fixture(scope="session")
def _params_night(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _shared(tmp_path_factory, "params", params_night)


@pytest.fixture(scope="session")
def _repository_night(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _shared(tmp_path_factory, "repository", repository_night)


@pytest.fixture
def params(_params_night: Path, tmp_path: Path) -> Scene:
    """A study of parameters in which c-0001 is certified; c-0002 is the baseline."""
    return scene_in(shutil.copytree(_params_night, tmp_path / "walker", symlinks=True))


@pytest.fixture
def certified(_repository_night: Path, tmp_path: Path) -> Scene:
    """A repository's study in which c-0003, built on c-0001, is certified; c-0002 is the baseline."""
    return scene_in(shutil.copytree(_repository_night, tmp_path / "walker", symlinks=True))
