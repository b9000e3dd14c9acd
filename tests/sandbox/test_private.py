"""What a child has for itself: its variables, its home, its temporary folder, its shared memory, its descriptors."""

import importlib.util
import json
import os
import py_compile
import sys
import tempfile
from pathlib import Path

import pytest

from overnight.records.run import Outcome
from overnight.records.tier import Tier
from overnight.sandbox.bounds import bounds_for
from overnight.sandbox.start import start
from overnight.sandbox.tiers import Child
from runs import POLICY, begin, need, run, wait

TIERS: tuple[Tier, ...] = ("T1", "T2", "T3")
VARIABLES = {
    *("PATH", "HOME", "TMPDIR", "XDG_CACHE_HOME", "MPLCONFIGDIR", "OVERNIGHT_RUN", "OVERNIGHT_OUT"),
    *("PYTHONPATH", "PYTHONPYCACHEPREFIX", "PYTHONUNBUFFERED", "PYTHONNOUSERSITE"),
    *("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"),
}


@pytest.mark.parametrize("tier", TIERS)
def test_a_trainer_has_the_variables_on_the_list_and_no_other(
    tmp_path: Path, tier: Tier, monkeypatch: pytest.MonkeyPatch
) -> None:
    need(tier)
    for name in ("SECRET_TOKEN", "LD_PRELOAD", "PYTHONPATH", "PYTHONSTARTUP"):
        monkeypatch.setenv(name, "" if name == "LD_PRELOAD" else "swordfish")
    ended = run(tmp_path, POLICY + "(out / 'seen').write_text(json.dumps(dict(os.environ)))", tier=tier)
    assert ended.outcome is Outcome.COMPLETED, ended.because
    seen = json.loads((tmp_path / "out" / "seen").read_text())
    assert set(seen) - {"LC_CTYPE", "PWD"} == VARIABLES, "Python sets the first, bubblewrap the second"
    assert seen["HOME"] == str(tmp_path / "home") and seen["TMPDIR"] == str(tmp_path / "tmp")
    assert seen["PYTHONPATH"] == str(tmp_path / "library"), "ours, and not the one that was inherited"
    assert seen["PYTHONPYCACHEPREFIX"].startswith(str(tmp_path / "tmp"))


@pytest.mark.parametrize("tier", TIERS)
def test_nothing_is_inherited_but_the_three_streams(tier: Tier, tmp_path: Path) -> None:
    need(tier)
    listing = (
        "import os; names = [f'/proc/self/fd/{name}' for name in os.listdir('/proc/self/fd')]\n"
        "print(*sorted(os.readlink(name) for name in names if os.path.exists(name)), sep='\\n')"
    )
    with (tmp_path / "kept").open("w") as kept:
        os.set_inheritable(kept.fileno(), True)
        command = (sys.executable, "-I", "-S", "-c", listing)
        process = start(Child(command=command, cwd="/", env={}, stdout=-1), bounds_for(()), tier)
        said = process.communicate()[0].decode().split()
    assert len(said) == 3 and said.count("/dev/null") == 2 and said[-1].startswith("pipe:"), said


def test_at_t3_shared_memory_and_temporary_files_are_private_and_bounded(tmp_path: Path) -> None:
    need("T3")
    mark = f"overnight-{os.getpid()}"
    use = f"""
from multiprocessing import Lock, shared_memory
import os, tempfile
block = shared_memory.SharedMemory(create=True, size=1 << 20); block.buf[0] = 1; Lock()
for folder in ("/tmp", "/dev/shm"): open(folder + "/{mark}", "w").close()
sizes = [os.statvfs(folder).f_blocks * os.statvfs(folder).f_frsize for folder in ("/tmp", "/dev/shm")]
seen = [os.listdir("/tmp"), os.listdir("/dev/shm"), sizes, tempfile.gettempdir()]
(out / "seen").write_text(json.dumps(seen))
block.close(), block.unlink()
"""
    ended = run(tmp_path, POLICY + use, tier="T3")
    assert ended.outcome is Outcome.COMPLETED, ended.because
    there, shared, sizes, temporary = json.loads((tmp_path / "out" / "seen").read_text())
    assert mark in there and mark in shared and temporary == str(tmp_path / "tmp")
    assert sizes == [256 << 20, 1 << 30]
    assert not (Path("/tmp") / mark).exists() and not (Path("/dev/shm") / mark).exists()


@pytest.mark.parametrize("tier", TIERS)
def test_a_run_finds_nothing_that_an_earlier_one_left(tmp_path: Path, tier: Tier) -> None:
    need(tier)
    leave = "".join(f"open(os.environ['{name}'] + '/left', 'w').close()\n" for name in ("HOME", "TMPDIR"))
    look = "assert not [n for n in ('HOME', 'TMPDIR') if os.listdir(os.environ[n]) not in ([], ['pycache'])]\n"
    for name in ("one", "two"):
        assert run(tmp_path / name, POLICY + look + leave, tier=tier).outcome is Outcome.COMPLETED
        assert not (tmp_path / name / "home").exists() and not (tmp_path / name / "tmp").exists()


def test_poisoned_bytecode_beside_clean_source_is_not_run(tmp_path: Path) -> None:
    (tmp_path / "helper.py").write_text("print('poison')")
    compiled = py_compile.compile(
        str(tmp_path / "helper.py"), invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH
    )
    cached = Path(importlib.util.cache_from_source("helper.py"))
    files = {"helper.py": b"print('clean')", str(cached): Path(str(compiled)).read_bytes()}
    begin(tmp_path / "run", POLICY + "import helper", files=files)
    assert wait(tmp_path / "run").outcome is Outcome.COMPLETED
    assert (tmp_path / "run" / "log").read_text() == "clean\n"


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("mode", [0o755, 0o700], ids=["open", "closed to others"])
def test_a_trainer_imports_the_guest_library_wherever_the_project_lies(tier: Tier, mode: int) -> None:
    need(tier)
    use = "from guest.train import load\n"
    read = (
        "try: open(os.path.dirname(os.environ['OVERNIGHT_RUN']) + '/job.json').close()\nexcept OSError: print('no')\n"
    )
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:  # not /tmp, which is another folder at T3
        Path(folder).chmod(mode)
        ended = run(Path(folder) / "run", POLICY + use + "load()\n" + read, tier=tier)
        assert ended.outcome is Outcome.COMPLETED, ended.because
        assert (Path(folder) / "run" / "log").read_text() == ("" if tier == "T1" else "no\n")
