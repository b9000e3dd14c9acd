"""What a run may take of the machine: memory, processes, disk and time, of everything that it starts."""

import os
import signal
import threading
from pathlib import Path

import pytest

from overnight.records.order import RunBudget
from overnight.records.run import Outcome
from overnight.records.tier import Tier
from overnight.sandbox.cgroup import group_for, remove_group
from overnight.sandbox.meter import Meter
from runs import POLICY, need, run

HELD: tuple[Tier, ...] = ("T2", "T3")
MEGABYTE = 1_000_000


@pytest.mark.parametrize("tier", HELD)
def test_a_run_beyond_its_memory_is_ended_with_a_sentence(tmp_path: Path, tier: Tier) -> None:
    need(tier)
    hog = "import time\nheld = bytearray(300_000_000)\nheld[::4096] = b'x' * len(held[::4096])\ntime.sleep(60)"
    ended = run(tmp_path, hog, tier=tier, memory=150 * MEGABYTE)
    assert ended.outcome is Outcome.CRASHED
    assert "MB of memory, and its cap was 150 MB." in ended.because


def test_memory_is_counted_over_all_children_and_shared_memory_once(tmp_path: Path) -> None:
    share = "import os, time\nheld = b'x' * 60_000_000\nfor _ in range(5):\n    if os.fork() == 0:\n"
    share += "        time.sleep(1); os._exit(0)\n"
    assert (
        run(tmp_path / "one", share + "time.sleep(1.5)\n" + POLICY, memory=150 * MEGABYTE).outcome is Outcome.COMPLETED
    )
    each = "import os, time\nfor _ in range(5):\n    if os.fork() == 0:\n        held = b'x' * 60_000_000\n"
    each += "        time.sleep(60)\ntime.sleep(60)"
    assert "its cap was 150 MB" in run(tmp_path / "two", each, memory=150 * MEGABYTE).because


@pytest.mark.parametrize("where", ["os.memfd_create('x')", "os.open('/dev/shm/x', os.O_RDWR | os.O_CREAT)"])
def test_memory_that_no_process_has_mapped_counts_too(tmp_path: Path, where: str) -> None:
    need("T3")
    hide = f"import os, time\nfd = {where}\nfor _ in range(300): os.write(fd, b'x' * 1_000_000)\ntime.sleep(60)"
    ended = run(tmp_path, hide, tier="T3", memory=200 * MEGABYTE, disk=10**9)
    assert "its cap was 200 MB" in ended.because


@pytest.mark.parametrize("tier", HELD)
def test_a_fork_bomb_is_ended_with_a_sentence(tmp_path: Path, tier: Tier) -> None:
    need(tier)
    bomb = "import os, time\nfor _ in range(12):\n    try: os.fork()\n    except OSError: break\ntime.sleep(60)"
    ended = run(tmp_path, bomb, tier=tier, processes=100)
    assert ended.outcome is Outcome.CRASHED and "It had more than 100 processes at once" in ended.because


def test_a_file_without_a_name_counts_as_written(tmp_path: Path) -> None:
    hide = """
import os, time
held = []
for n in range(6):
    held.append(open(f"{os.environ['OVERNIGHT_OUT']}/{n}", "wb")); os.unlink(held[-1].name)
    held[-1].write(b"x" * 5_000_000); held[-1].flush()
time.sleep(60)
"""
    ended = run(tmp_path, hide, disk=10 * MEGABYTE)
    assert (ended.outcome, ended.because) == (Outcome.CRASHED, "It wrote more than 10,000,000 bytes.")


BURN = "import time\nend = time.process_time() + {seconds}\nwhile time.process_time() < end: pass\n"
BURNERS = {
    "a child that is waited for": (
        "import os\npid = os.fork()\nif pid == 0:\n    exec(BURN); os._exit(0)\nos.waitpid(pid, 0)\n"
    ),
    "a child that nobody waits for": (
        "import os, signal, time\nsignal.signal(signal.SIGCHLD, signal.SIG_IGN)\n"
        "pid = os.fork()\nif pid == 0:\n    exec(BURN); os._exit(0)\n"
        "while os.path.exists(f'/proc/{pid}'): time.sleep(0.05)\n"
    ),
    "a daemon": (
        "import os, time\ndone = os.environ['OVERNIGHT_OUT'] + '/done'\n"
        "if os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n        exec(BURN)\n"
        "        open(done, 'w').close()\n    os._exit(0)\n"
        "os.wait()\nwhile not os.path.exists(done): time.sleep(0.05)\n"
    ),
}


@pytest.mark.parametrize("tier", HELD)
@pytest.mark.parametrize("burner", BURNERS)
def test_processor_time_is_counted_of_the_dead_too(tmp_path: Path, burner: str, tier: Tier) -> None:
    need(tier)
    ended = run(tmp_path, f"BURN = {BURN.format(seconds=1.5)!r}\n" + BURNERS[burner] + POLICY, tier=tier)
    assert ended.outcome is Outcome.COMPLETED and 1.2 < ended.cpu_seconds < 4, ended


def test_a_budget_of_processor_time_holds_for_the_whole_tree(tmp_path: Path) -> None:
    budget = RunBudget(unit="cpu_seconds", amount=0.1)
    worker = f"import os\nif os.fork() == 0:\n    exec({BURN.format(seconds=60)!r})\nos.wait()"
    ended = run(tmp_path, worker, wall=60, silence=60, budget=budget)
    assert ended.outcome is Outcome.OVER_BUDGET
    assert "s of processor time, and its budget was 0.1 s." in ended.because


def test_a_budget_of_wall_time_begins_when_the_trainer_is_ready(tmp_path: Path) -> None:
    budget = RunBudget(unit="wall_seconds", amount=0.5)
    slow = "import os, time\ntime.sleep(2)\nopen(os.environ['OVERNIGHT_OUT'] + '/ready', 'w').close()\ntime.sleep(60)"
    ended = run(tmp_path, slow, wall=60, silence=60, budget=budget)
    assert ended.outcome is Outcome.OVER_BUDGET and "and its budget was 0.5 s." in ended.because
    assert 7 < ended.wall_seconds < 20


# The two ways to count


def test_a_group_counts_and_ends_everybody_in_it_and_leaves_nothing(tmp_path: Path) -> None:
    group = group_for(tmp_path)
    if group is None:
        pytest.skip("this machine lets us make no control group")
    pid = os.fork()
    if pid == 0:
        group.enter()
        while True:
            pass
    try:
        while group.cpu_seconds() < 0.1:
            pass
        assert group.processes() == [pid]
        group.kill()
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -9
    finally:
        remove_group(tmp_path)
    assert not group.folder.exists()


def test_without_a_group_the_meter_still_sees_children_of_every_thread() -> None:
    found: list[int] = []
    meter, gone = Meter(), threading.Event()
    before = meter.look(memory_cap=10**12).processes

    def fork() -> None:
        pid = os.fork()
        if pid == 0:
            signal.pause()
        found.append(pid)
        gone.wait()

    thread = threading.Thread(target=fork)
    thread.start()
    while not found:
        pass
    try:
        assert meter.look(memory_cap=10**12).processes == before + 1
    finally:
        os.kill(found[0], 9)
        os.waitpid(found[0], 0)
        gone.set()
        thread.join()
