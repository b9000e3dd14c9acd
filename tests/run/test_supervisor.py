"""A supervisor and the trainers it was made for: slow, silent, greedy, forking and lying ones."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from overnight.adapters.launchers.local import LocalLauncher
from overnight.records.run import Outcome
from overnight.run.launch import exit_of, sweep
from runs import MACHINE, POLICY, begin, run, wait


def marked(word: str) -> list[int]:
    """Processes that carry a word in their environment."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and word.encode() in (entry / "environ").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def test_a_trainer_that_leaves_a_policy_has_completed(tmp_path: Path) -> None:
    ended = run(tmp_path, POLICY)
    assert (ended.outcome, ended.exit_status) == (Outcome.COMPLETED, 0)
    assert (tmp_path / "policy" / "policy.json").read_text() == "{}"
    assert not (tmp_path / "tmp").exists() and not (tmp_path / "home").exists()


def test_a_trainer_sees_its_order_and_little_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_TOKEN", "swordfish")
    tell = (
        POLICY
        + '(out / "seen").write_text(json.dumps([dict(os.environ), os.getcwd(), sorted(os.sched_getaffinity(0))]))'
    )
    run(tmp_path, tell)
    variables, folder, cores = json.loads((tmp_path / "out" / "seen").read_text())
    assert "swordfish" not in str(variables)
    assert variables["HOME"] == str(tmp_path / "home") and folder == str(tmp_path / "source")
    assert cores == [0]
    assert json.loads((tmp_path / "run.json").read_text())["train_seed"] == 7


@pytest.mark.parametrize(
    ("trainer", "says"),
    [
        pytest.param("raise ValueError('the loss is NaN')", "ValueError: the loss is NaN", id="raises"),
        pytest.param("import sys; sys.exit(3)", "status 3", id="fails without a word"),
        pytest.param("pass", "without a usable policy: there is no policy folder", id="no policy"),
        pytest.param(
            "import os, pathlib\n(pathlib.Path(os.environ['OVERNIGHT_OUT']) / 'policy').mkdir()",
            "has no policy.json",
            id="half a policy",
        ),
        pytest.param(
            POLICY + "os.symlink('/etc/passwd', out / 'policy' / 'weights')", "cannot be opened", id="links a secret"
        ),
        pytest.param(POLICY + "os.mkfifo(out / 'policy' / 'weights')", "not a plain file", id="leaves a pipe"),
        pytest.param(POLICY + "(out / 'policy' / 'weights').mkdir()", "not a plain file", id="leaves a folder"),
        pytest.param(
            POLICY + "(out / 'x').write_text('x'); os.link(out / 'x', out / 'policy' / 'w')",
            "one name",
            id="links twice",
        ),
    ],
)
def test_a_broken_trainer_is_told_apart_in_a_sentence(tmp_path: Path, trainer: str, says: str) -> None:
    ended = run(tmp_path, trainer)
    assert ended.outcome is Outcome.CRASHED
    assert says in ended.because


def test_a_trainer_that_overstays_is_ended(tmp_path: Path) -> None:
    ignore = (
        "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nwhile True: time.sleep(0.1); print('.')"
    )
    began = time.monotonic()
    ended = run(tmp_path, ignore, wall=1)
    assert ended.outcome is Outcome.OVER_BUDGET
    assert time.monotonic() - began < 12


def test_a_silent_trainer_is_ended(tmp_path: Path) -> None:
    ended = run(tmp_path, "import time; time.sleep(60)", silence=1)
    assert ended.outcome is Outcome.CRASHED and "no sign of life" in ended.because


def test_a_trainer_that_fills_its_folder_is_ended(tmp_path: Path) -> None:
    fill = """
import os
for n in range(10_000):
    open(f"{os.environ['OVERNIGHT_OUT']}/{n}", "wb").write(b"x" * 500_000)
"""
    ended = run(tmp_path, fill, disk=3_000_000)
    assert ended.outcome is Outcome.CRASHED and "3,000,000 bytes" in ended.because


def test_a_flood_of_output_is_drained_and_capped(tmp_path: Path) -> None:
    flood = POLICY + "import sys\nfor _ in range(3000): sys.stdout.buffer.write(b'y' * 100_000)\nprint('the end')"
    ended = run(tmp_path, flood)
    assert ended.outcome is Outcome.COMPLETED
    assert ended.log_bytes > 300_000_000
    log = (tmp_path / "log").read_bytes()
    assert len(log) < 2_000_000 and log.endswith(b"the end\n")


def test_no_descendant_outlives_the_run(tmp_path: Path) -> None:
    word = f"OVERNIGHT_RUN={tmp_path}/run.json"
    fork = (
        POLICY
        + """
import time
for _ in range(5):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(60)
        os._exit(0)
time.sleep(0.3)
"""
    )
    assert run(tmp_path, fork).outcome is Outcome.COMPLETED
    assert marked(word) == []


def test_a_killed_supervisor_leaves_nothing_once_the_run_is_swept(tmp_path: Path) -> None:
    begin(tmp_path, "import os, time\nif os.fork() == 0: os.setsid()\ntime.sleep(60)", wall=60, silence=60)
    word, until = f"OVERNIGHT_RUN={tmp_path}/run.json", time.monotonic() + 10
    while len(marked(word)) < 2 and time.monotonic() < until:
        time.sleep(0.05)
    os.kill(int((tmp_path / "run.lock").read_text()), signal.SIGKILL)
    until = time.monotonic() + 5
    while LocalLauncher().is_alive(tmp_path) and time.monotonic() < until:
        time.sleep(0.05)
    assert not LocalLauncher().is_alive(tmp_path) and exit_of(MACHINE, tmp_path) is None
    sweep(tmp_path)
    time.sleep(0.2)
    assert marked(word) == []


def test_an_engine_can_stop_a_run_and_nobody_is_blamed_for_it(tmp_path: Path) -> None:
    begin(tmp_path, "import time\nwhile True: time.sleep(0.1); print('.', flush=True)")
    time.sleep(0.7)
    LocalLauncher().stop(tmp_path)
    assert wait(tmp_path).outcome is Outcome.STOPPED


def test_two_supervisors_never_run_the_same_run(tmp_path: Path) -> None:
    begin(tmp_path, POLICY + "import time; time.sleep(1)")
    time.sleep(0.5)
    second = subprocess.run([sys.executable, "-m", "overnight.run.supervisor", str(tmp_path)], check=False)
    assert second.returncode == 3
    assert wait(tmp_path).outcome is Outcome.COMPLETED
