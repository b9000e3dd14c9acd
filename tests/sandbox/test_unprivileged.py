"""The same tiers for a user without any powers, where the tests themselves are run by root."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from overnight.sandbox.passage import is_open

SRC = Path(__file__).parents[2] / "src"
USER = 65534
SCRIPT = """
import json, os, sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from overnight.machine import RealMachine
from overnight.records.codec import encode
from overnight.records.env import EnvSpec
from overnight.records.job import Job
from overnight.records.order import RunBudget, RunOrder
from overnight.run import supervisor
from overnight.run.launch import exit_of, prepare
from overnight.sandbox.probe import canary, prove

TRAINER = '''
import json, os, pathlib
out = pathlib.Path(os.environ["OVERNIGHT_OUT"])
(out / "policy").mkdir()
(out / "policy" / "policy.json").write_text("{}")
def can(what):
    try: what()
    except OSError: return False
    return True
secret = str(out.parent.parent / "secret")
(out / "seen").write_text(json.dumps([os.getuid(), can(lambda: open(secret))]))
'''
BOMB = "import os\\nwhile True:\\n    try: os.fork()\\n    except OSError: pass"
HOG = "held = []\\nwhile True: held.append(b'x' * 20_000_000)"
RABBIT = "import os\\nwhile True:\\n    if os.fork(): os._exit(0)"
root, told = Path(sys.argv[2]), {}
(root / "secret").write_text("swordfish")

def run(folder, trainer, tier):
    def export(target):
        target.mkdir(parents=True)
        (target / "train.py").write_text(trainer)
    env = EnvSpec(backend="gymnasium", id="CartPole-v1")
    order = RunOrder(run="r-0001", env=env, train_seed=7, budget=RunBudget(unit="env_steps", amount=9), params={},
                     cores=1, device="cpu")
    job = Job(command=(sys.executable, "train.py"), env={"PATH": os.environ["PATH"]}, fresh_bytecode=True, cores=(),
              wall_seconds=8, silence_seconds=60, disk_bytes=10**7, tier=tier, memory_bytes=300_000_000, processes=60)
    prepare(RealMachine(), folder, order, job, export)
    if (pid := os.fork()) == 0:
        os._exit(supervisor.main(["", str(folder)]))
    os.waitpid(pid, 0)
    return exit_of(RealMachine(), folder)

for tier in ("T2", "T3"):
    if not prove(tier).holds():
        told[tier] = prove(tier).why
        continue
    folder = root / tier
    ended = run(folder, TRAINER, tier)
    seen = json.loads((folder / "out" / "seen").read_text()) if ended.outcome == "completed" else None
    bad = {name: run(root / f"{tier}-{name}", text, tier).because
           for name, text in (("bomb", BOMB), ("hog", HOG), ("rabbit", RABBIT))}
    told[tier] = [ended.outcome, ended.because, ended.tier, seen, canary(tier), bad]
print(json.dumps(told))
"""


def python() -> str:
    """An interpreter that everybody can reach; the run and the sandbox need no other package than ours."""
    for one in (sys.executable, "/usr/bin/python3"):
        real = Path(one).resolve()
        if Path(one).exists() and all(is_open(str(path)) for path in (real, *real.parents)):
            return one
    pytest.skip("no Python of this machine can be reached by every user")


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder of that user's own, where that user can pass."""
    made = Path(tempfile.mkdtemp(prefix="overnight-user-", dir="/var/tmp"))
    os.chown(made, USER, USER)
    try:
        yield made
    finally:
        shutil.rmtree(made)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else; else the other tests say it all")
def test_a_user_without_powers_gets_the_same_tiers_and_runs_under_them(folder: Path) -> None:
    if shutil.which("setpriv") is None or not all(is_open(str(path)) for path in (SRC, *SRC.parents)):
        pytest.skip("there is no way to become another user who can read the sources")
    who = ("setpriv", "--reuid", str(USER), "--regid", str(USER), "--clear-groups", "--no-new-privs")
    words = (python(), "-I", "-B", "-c", SCRIPT, str(SRC), str(folder))
    env = {"PATH": os.defpath, "XDG_STATE_HOME": str(folder / "state")}
    done = subprocess.run((*who, *words), capture_output=True, text=True, env=env, cwd="/", timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    for tier in ("T2", "T3"):
        if isinstance(told[tier], str):
            assert "not installed" in told[tier] or "namespace" in told[tier] or "no Landlock" in told[tier]
            continue
        outcome, because, held, seen, canary, bad = told[tier]
        assert (outcome, held, seen) == ("completed", tier, [USER, False]), because
        assert set(canary) - {"signal parent"} == {"own work"}
        assert bad["bomb"] == "It had more than 60 processes at once, which is its cap."
        assert "MB of memory, and its cap was 300 MB." in bad["hog"]
    lines = [entry / "cmdline" for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    assert not [path for path in lines if str(folder).encode() in _bytes(path)], "nothing of it is left"
    assert (folder / "state" / "overnight" / f"isolation-{USER}.json").exists()


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
