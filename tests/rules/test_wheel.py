"""The artefact that ships: it holds what it needs, and nothing else."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    subprocess.run(build, check=True, capture_output=True)
    with zipfile.ZipFile(next(folder.glob("*.whl"))) as wheel:
        wheel.extractall(folder / "site")
    return folder / "site"


def test_the_wheel_holds_the_package_and_its_data(unpacked: Path) -> None:
    assert (unpacked / "overnight" / "py.typed").exists()
    assert (unpacked / "overnight" / "rl" / "trainers" / "ppo.space.json").exists()
    assert {path.name.split("-")[0] for path in unpacked.iterdir()} == {"overnight"}


def test_a_study_begins_from_the_unpacked_wheel(unpacked: Path, tmp_path: Path) -> None:
    lines = (
        "import sys",
        f"sys.path.insert(0, {str(unpacked)!r})",
        "from overnight.cli.main import main",
        "sys.exit(main())",
    )
    code = "; ".join(lines)
    for words in (("init", "CartPole-v1"), ("approve", "--yes"), ("ledger", "verify")):
        done = subprocess.run([sys.executable, "-I", "-c", code, *words], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
