"""Small whole nights. Each is trained once, whoever of the workers comes first, and every test gets a copy."""

import fcntl
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from nights import params_night, repository_night
from overnight.evaluate.seeds import keys_folder
from scenes import Scene, scene_in


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
