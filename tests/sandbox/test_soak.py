"""Many hostile runs in a row leave nothing behind: no process, file, mount, control group or lock, and no memory."""

import os
import resource
import time
from pathlib import Path

import pytest

from overnight.adapters.launchers.local import LocalLauncher
from overnight.records.run import Outcome
from overnight.records.tier import Tier
from overnight.run.launch import clear, give_up
from overnight.sandbox.cgroup import group_for, name_of
from runs import MACHINE, begin, need

RUNS = 200 if os.environ.get("OVERNIGHT_SOAK") else 8
HELD: tuple[Tier, ...] = ("T2", "T3")
DAEMON = """
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0: os.execve(sys.executable, [MARK, "-S", "-c", "import time; time.sleep(600)"], {})
    os._exit(0)
"""
HOSTILE = {
    "forks without end": "while True:\n    try: os.fork()\n    except OSError: pass",
    "forks and exits, always one step ahead": "while True:\n    if os.fork(): os._exit(0)",
    "leaves daemons": "for _ in range(5):" + DAEMON.replace("\n", "\n    ") + "\ntime.sleep(0.3)",
    "fills the disk": "for n in range(10**6):\n    open(f'{out}/{n}', 'wb').write(b'x' * 1_000_000)",
    "fills the disk with files that have no name": (
        "held = []\nfor n in range(10**6):\n    held.append(open(f'{out}/x', 'wb', 0)); os.unlink(f'{out}/x')\n"
        "    held[-1].write(b'x' * 1_000_000)"
    ),
    "takes all the memory": "held = []\nwhile True: held.append(b'x' * 20_000_000)",
    "takes the memory in many children": "for _ in range(9): os.fork()\nheld = b'x' * 20_000_000\ntime.sleep(60)",
    "goes on without a word": "import signal\nsignal.signal(15, signal.SIG_IGN)\nos.close(1)\ntime.sleep(60)",
}
ENDS = {*Outcome} - {Outcome.COMPLETED}  # on a busy machine, also that it stood still
LEFT = {"exit.json", "job.json", "log", "out", "run.json", "run.lock", "supervisor.log"}


def marked(mark: str) -> list[int]:
    """Processes whose command line holds a word."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and mark.encode() in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def hostile_run(folder: Path, name: str, tier: Tier, mark: str) -> Outcome:
    """One hostile run, from its beginning to what the engine does when it is over."""
    words = f"import os, sys, time\nMARK, out = {mark!r}, os.environ['OVERNIGHT_OUT']\n"
    begin(folder, words + HOSTILE[name], wall=3, disk=20_000_000, tier=tier, memory=300_000_000, processes=100)
    until = time.monotonic() + 60
    while LocalLauncher().is_alive(folder) and time.monotonic() < until:
        time.sleep(0.05)
    ended = give_up(MACHINE, folder)
    assert ended is not None, "the supervisor is still there"
    clear(folder)
    return ended.outcome


@pytest.mark.timeout(3600)
def test_hostile_runs_leave_nothing_behind(tmp_path: Path) -> None:
    for tier in HELD:
        need(tier)
    mounts, mark = Path("/proc/self/mountinfo").read_text(), f"hostile-{os.getpid()}-{tmp_path.name}"
    group = group_for(tmp_path)
    groups = group.folder.parent if group is not None else None
    if group is not None:
        group.remove()
    warm = 0
    for number in range(RUNS):
        name, folder = list(HOSTILE)[number % len(HOSTILE)], tmp_path / f"{mark}-{number}"
        outcome = hostile_run(folder, name, HELD[(number + number // len(HOSTILE)) % 2], mark)
        assert outcome in ENDS or name == "leaves daemons", (name, outcome)
        assert not marked(mark), f"{name} left a process"
        assert {path.name for path in folder.iterdir()} <= LEFT, f"{name} left a file"
        assert not LocalLauncher().is_alive(folder), f"{name} left a lock"
        assert Path("/proc/self/mountinfo").read_text() == mounts, f"{name} left a mount"
        assert groups is None or not (groups / name_of(folder)).exists(), f"{name} left a control group"
        warm = warm or (resident() if number == RUNS // 4 else 0)
    assert resident() - warm < 8_000_000, "the engine's memory grows"


def resident() -> int:
    """The memory of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
