"""What the process of a policy of code may take of the machine while the referee waits for it."""

from pathlib import Path

import pytest

from overnight.evaluate.measure import RefereeFailed, measure
from overnight.evaluate.policy_process import MOST_MEMORY, MOST_PROCESSES
from overnight.machine import RealMachine
from overnight.ports import Finished
from overnight.records.env import EnvSpec
from overnight.records.tier import Tier
from runs import MACHINE, need

CARTPOLE = EnvSpec(backend="gymnasium", id="CartPole-v1")
BOMB = "import os, time\nfor _ in range(100):\n    if os.fork() == 0:\n        time.sleep(60)"


def leave(folder: Path, body: str) -> Path:
    """A policy of code whose first answer does something more."""
    policy = folder / "policy"
    policy.mkdir(parents=True)
    (policy / "policy.json").write_text('{"schema": "overnight/policy/1", "kind": "code", "entry": "act:load"}')
    inner = "\n        ".join(body.splitlines())
    (policy / "act.py").write_text(
        "import numpy as np\ndef load(folder):\n    def act(obs, reset):\n"
        f"        {inner}\n        return np.zeros(len(obs), int)\n    return act\n"
    )
    return folder


class Small(RealMachine):
    """A referee for which half of a gigabyte is the whole machine."""

    def run_process(self, argv, **more) -> Finished:  # type: ignore[no-untyped-def]
        begin = "from overnight.evaluate import policy_process, referee; policy_process.MOST_MEMORY = 500_000_000\n"
        return super().run_process((*argv[:2], "-c", begin + "referee.main()"), **more)


@pytest.mark.parametrize("tier", ["T2", "T3"])
def test_a_policy_beyond_its_memory_has_an_error_and_no_score(tmp_path: Path, tier: Tier) -> None:
    need(tier)
    hog = "import time\nheld = bytearray(700_000_000)\nheld[::4096] = b'x' * len(held[::4096])\ntime.sleep(9)"
    found = measure(Small(), CARTPOLE, leave(tmp_path, hog), range(2), tier=tier)
    assert found.error == "The policy used more than 500 MB of memory."
    assert MOST_MEMORY > 500_000_000


@pytest.mark.parametrize("tier", ["T2", "T3"])
def test_a_policy_with_too_many_processes_has_an_error_and_no_score(tmp_path: Path, tier: Tier) -> None:
    need(tier)
    found = measure(MACHINE, CARTPOLE, leave(tmp_path, BOMB + "\ntime.sleep(9)"), range(2), tier=tier)
    assert found.error == f"The policy had more than {MOST_PROCESSES} processes."


def test_a_policy_that_cannot_be_held_is_the_machines_fault(tmp_path: Path) -> None:
    with pytest.raises(RefereeFailed, match="could not be started at T4") as failed:
        measure(MACHINE, CARTPOLE, leave(tmp_path, "pass"), range(2), tier="T4")
    assert failed.value.is_machines_fault
