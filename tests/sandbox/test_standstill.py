"""A process that was stopped knows it, and one that was only busy does not think so."""

import os
import signal
import subprocess
import sys
import time

import pytest

LOOKING = """
import sys, time
from overnight.machine import RealMachine
machine = RealMachine()
began, zero = machine.running(), time.monotonic()
machine.stood_still()
print("ready", flush=True)
sys.stdin.readline()
print(machine.stood_still(), machine.running() - began, time.monotonic() - zero, flush=True)
"""


def test_a_stop_of_the_whole_process_is_seen_and_is_no_running_time() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", LOOKING], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as one:
        assert one.stdin is not None and one.stdout is not None
        assert one.stdout.readline() == "ready\n"
        time.sleep(0.6)
        os.kill(one.pid, signal.SIGSTOP)
        time.sleep(6.5)
        os.kill(one.pid, signal.SIGCONT)
        one.stdin.write("\n")
        one.stdin.flush()
        still, running, passed = map(float, one.stdout.readline().split())
    assert 6 < still < 8
    assert running == pytest.approx(passed - still, abs=0.2)


BUSY = """
import os, sys, time
from overnight.sandbox.standstill import Standstill
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
os.nice(19)
watch, until, most = Standstill(0.3), time.monotonic() + 3, 0.0
while time.monotonic() < until:
    began = time.monotonic()
    time.sleep(0.02)
    most = max(most, time.monotonic() - began)
    watch.look()
print(watch.total, most)
"""
HOGS = 4


def test_a_process_that_waits_for_a_processor_does_not_stand_still() -> None:
    core = min(os.sched_getaffinity(0))
    hog = f"import os, time; os.sched_setaffinity(0, {{{core}}}); u = time.time() + 5\nwhile time.time() < u: pass"
    hogs = [subprocess.Popen([sys.executable, "-c", hog]) for _ in range(HOGS)]
    try:
        done = subprocess.run([sys.executable, "-c", BUSY], capture_output=True, text=True, check=True)
    finally:
        for one in hogs:
            one.kill()
            one.wait()
    still, _ = map(float, done.stdout.split())
    assert still == 0
