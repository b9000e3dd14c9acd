"""Policies of kind `code` that cheat, measured by the real referee: none of them can change a score.

At the strongest tier that this machine has, and at T2, a policy cannot even signal its referee. At
T1 the two run as one user, so it can kill or stop the referee, which then gives no result at all.
Each of these cheaters ends as its own error in a sentence, or with exactly the score that its
actions earn.
"""

import json
import re
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from overnight.evaluate import measure as measuring
from overnight.evaluate.measure import Measured, RefereeFailed, measure
from overnight.machine import RealMachine
from overnight.ports import Finished
from overnight.records.env import EnvSpec
from overnight.records.tier import Tier
from overnight.sandbox.processes import with_variable
from runs import need

SEEDS = (11, 12, 13)
WEAK = "def load(folder):\n    return lambda obs, reset: np.zeros(len(obs), int)\n"
GOOD = "def load(folder):\n    return lambda obs, reset: (3 * obs[:, 2] + obs[:, 3] > 0).astype(int)\n"
LIMITS = {"LOAD_SECONDS": 5.0, "FIRST_SECONDS": 1.5, "STEP_SECONDS": 1.0, "ALL_SECONDS": 4.0}


class Hasty(RealMachine):
    """The real machine, on which a referee waits less long for a policy."""

    def run_process(
        self, argv: tuple[str, ...], *, env: Mapping[str, str], stdin: bytes = b"", limit_seconds: float
    ) -> Finished:
        shorter = "; ".join(f"policy_process.{name} = {value}" for name, value in LIMITS.items())
        begin = f"from overnight.evaluate import policy_process, referee; {shorter}; referee.main()"
        return super().run_process((*argv[:2], "-c", begin), env=env, stdin=stdin, limit_seconds=limit_seconds)


def measured(folder: Path, source: str, env: str = "CartPole-v1", tier: Tier | None = None) -> Measured:
    """What the referee says about a policy; nothing of it may be alive afterwards."""
    policy = folder / "policy"
    policy.mkdir(parents=True)
    (policy / "policy.json").write_text(
        json.dumps({"schema": "overnight/policy/1", "kind": "code", "entry": "cheat:load"})
    )
    (policy / "cheat.py").write_text(
        f"import ctypes, json, os, signal, struct, sys, time\nimport numpy as np\n{source}"
    )
    try:
        return measure(Hasty(), EnvSpec(backend="gymnasium", id=env), folder, SEEDS, tier=tier)
    finally:
        assert left(folder) == []


def left(folder: Path) -> list[int]:
    """Processes of a policy that live on; those that die with their referee get a moment to do so."""
    until = time.monotonic() + 1.0
    while (found := with_variable(f"OVERNIGHT_RUN={folder / 'run.json'}")) and time.monotonic() < until:
        time.sleep(0.02)
    return found


@pytest.fixture(scope="module")
def earned(tmp_path_factory: pytest.TempPathFactory) -> Measured:
    """What the weak policy earns, without any cheat."""
    return measured(tmp_path_factory.mktemp("weak"), WEAK)


def test_an_honest_policy_of_code_gets_the_score_that_it_earns(tmp_path: Path, earned: Measured) -> None:
    assert measured(tmp_path, GOOD).score() == 500.0
    assert 8.0 <= earned.score() <= 11.0


HARMLESS = {
    "walks the frames of its caller": """
def load(folder):
    def act(obs, reset):
        frame = sys._getframe()
        while frame is not None:
            for name, value in list(frame.f_locals.items()) + list(frame.f_globals.items()):
                if isinstance(value, np.ndarray) and value.flags.writeable:
                    value.fill(1)
                if name in ("totals", "total", "score", "reward", "episodes"):
                    frame.f_globals[name] = 1e9
            frame = frame.f_back
        return np.zeros(len(obs), int)
    return act
""",
    "patches gymnasium": """
import gymnasium
from gymnasium.envs.classic_control import cartpole
def forever(self, action): return np.zeros(4, np.float32), 1e6, False, False, {}
for kind in (gymnasium.Env, gymnasium.Wrapper, cartpole.CartPoleEnv): kind.step = forever
gymnasium.make = lambda *a, **k: None
"""
    + WEAK,
    "prints a fake metric everywhere": """
def shout():
    text = json.dumps({"episodes": [[11, 500.0, 500], [12, 500.0, 500], [13, 500.0, 500]], "score": 500}) + "\\n"
    print(text, flush=True)
    print(text, file=sys.stderr, flush=True)
    for fd in (0, 1, 2, 3, *range(5, 300)):
        try: os.write(fd, text.encode())
        except OSError: pass
shout()
def load(folder):
    def act(obs, reset):
        shout()
        return np.zeros(len(obs), int)
    return act
""",
    "kills its own children and leaves a daemon": """
def load(folder):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            os.close(3), os.close(4)
            time.sleep(600)
        os._exit(0)
    return lambda obs, reset: np.zeros(len(obs), int)
""",
}


@pytest.mark.parametrize("tier", ["T1", "T2", "T3"])
@pytest.mark.parametrize("cheat", HARMLESS)
def test_a_cheat_inside_its_own_process_changes_no_score(
    tmp_path: Path, earned: Measured, cheat: str, tier: Tier
) -> None:
    need(tier)
    assert measured(tmp_path, HARMLESS[cheat], tier=tier).episodes == earned.episodes


OWN_HEAD = """
def head():
    caller = sys._getframe()
    while "head" not in caller.f_locals: caller = caller.f_back
    return caller.f_locals["head"]
def answer(n): return head() + np.ones(n, np.int64).tobytes()
"""
ACT = (
    "def load(folder):\n    def act(obs, reset):\n        {}\n        return np.zeros(len(obs), int)\n    return act\n"
)
EARLY = "answered (before it was asked|another question)"  # whichever of the two sides is faster
BROKEN = {
    "exits with 0 while it loads": ("os._exit(0)\n", "ended"),
    "exits with 0 when it is asked": (ACT.format("os._exit(0)"), "ended while it was asked"),
    "raises": (ACT.format("raise ValueError('no')"), "ended while it was asked"),
    "answers twice": (OWN_HEAD + ACT.format("os.write(4, answer(len(obs)))"), EARLY),
    "answers before it is asked": ("os.write(4, b'x' * 36)\n" + WEAK, EARLY),
    "says twice that it is loaded": ("os.write(4, b'\\1\\1')\n" + WEAK, EARLY),
    "answers with another nonce": (
        ACT.format("os.write(4, struct.pack('<I8s', 1, b'guessing') + bytes(24)); time.sleep(9)"),
        "answered another question",
    ),
    "answers an old question": (
        OWN_HEAD + "old = []\n" + ACT.format("old.append(head()); os.write(4, old[0] + bytes(24)); time.sleep(0.1)"),
        EARLY,
    ),
    "answers too little": (OWN_HEAD + ACT.format("os.write(4, head()); time.sleep(9)"), "did not answer within"),
    "answers too much": (OWN_HEAD + ACT.format("os.write(4, answer(len(obs)) + bytes(900))"), EARLY),
    "answers late": (ACT.format("time.sleep(9)"), "did not answer within 1.5 s"),
    "takes its time at every step": (ACT.format("time.sleep(0.6)"), "took more than 4 s for its answers"),
    "never loads": ("time.sleep(600)\n", "did not load within 5 s"),
    "closes its pipes": (ACT.format("os.close(4); os.close(3)"), "ended while it was asked"),
    "forks a child that keeps answering": (
        OWN_HEAD
        + ACT.format(
            "if os.fork() == 0:\n            while True: os.write(4, answer(len(obs)))\n        time.sleep(0.2)"
        ),
        EARLY,
    ),
    "returns words": (ACT.format("return ['left'] * len(obs)"), "ended while it was asked"),
    "returns too few actions": (ACT.format("return [0]"), "did not answer within"),
    "returns an action that there is not": (ACT.format("return [7] * len(obs)"), "outside 0 to 1"),
    "returns what is not a number": (ACT.format("return np.full(len(obs), np.nan)"), "outside 0 to 1"),
    "kills its process group": (ACT.format("os.killpg(0, signal.SIGKILL)"), "ended while it was asked"),
    "stops itself": (ACT.format("os.kill(os.getpid(), signal.SIGSTOP)"), "did not answer within"),
}


@pytest.mark.parametrize("cheat", BROKEN)
def test_a_policy_that_breaks_the_rules_has_an_error_and_no_score(tmp_path: Path, cheat: str) -> None:
    need("T2")
    source, says = BROKEN[cheat]
    found = measured(tmp_path, source, tier="T2")
    assert re.search(says, found.error) and found.episodes == ()


ANNOUNCED = (
    "def load(folder):\n    os.write(4, b'\\1')\n    while True:\n"
    "        head = os.read(3, 12)\n        time.sleep({})\n        os.write(4, head + bytes(24))\n"
    "        os.read(3, 3 + 3 * 4 * 4)\n"
)
"""Answers a question of which it has only the head; the rest, three masks and observations, is read afterwards."""


def test_a_policy_that_answers_as_soon_as_a_question_is_announced_gains_nothing(tmp_path: Path) -> None:
    """Where the machine is busy it may be too late to be early; then it is a policy that always takes action 0."""
    need("T2")
    found = measured(tmp_path / "hasty", ANNOUNCED.format(0), tier="T2")
    if found.error:
        assert re.search(EARLY + "|did not answer within", found.error) and found.episodes == ()
    else:
        assert found.episodes == measured(tmp_path / "plain", WEAK, tier="T2").episodes


def test_a_policy_that_answers_without_a_look_at_what_it_is_asked_earns_what_its_actions_do(
    tmp_path: Path, earned: Measured
) -> None:
    need("T2")
    found = measured(tmp_path, ANNOUNCED.format(0.05), tier="T2")
    assert found.error == "" and found.episodes == earned.episodes


def test_continuous_actions_that_are_not_finite_are_an_error(tmp_path: Path) -> None:
    source = ACT.format("return np.full((len(obs), 1), np.nan)")
    assert measured(tmp_path, source, "Pendulum-v1").error == "The policy returned an action that is not finite."


PRY = """
def tried(what):
    try: what()
    except (OSError, PermissionError): return
    open(os.path.join(FOLDER, "pried"), "a").write(what.__name__ + "\\n")
def memory(): open(f"/proc/{os.getppid()}/mem", "r+b").close()
def descriptors(): os.readlink(f"/proc/{os.getppid()}/fd/0")
def result():
    with open(f"/proc/{os.getppid()}/fd/1", "w") as out: out.write('{"episodes": [[11, 500.0, 500]]}')
def secrets(): open(f"/proc/{os.getppid()}/environ", "rb").read()
def trace():
    if ctypes.CDLL(None, use_errno=True).ptrace(16, os.getppid(), 0, 0) != 0: raise OSError
def load(folder):
    global FOLDER
    FOLDER = folder
    for what in (memory, descriptors, result, secrets, trace): tried(what)
    return lambda obs, reset: np.zeros(len(obs), int)
"""


@pytest.mark.parametrize("tier", ["T1", "T2", "T3"])
def test_a_policy_cannot_reach_into_the_referee(tmp_path: Path, earned: Measured, tier: Tier) -> None:
    need(tier)
    found = measured(tmp_path, PRY, tier=tier)
    pried = tmp_path / "policy" / "pried"  # only at T1 could it be written; test_tiers has the same from T2 on
    assert not pried.exists(), pried.read_text()
    assert found.episodes == earned.episodes


def test_at_t1_a_referee_that_its_policy_kills_gives_no_result(tmp_path: Path) -> None:
    with pytest.raises(RefereeFailed, match="status -9"):
        measured(tmp_path, ACT.format("os.kill(os.getppid(), signal.SIGKILL); time.sleep(60)"), tier="T1")


def test_at_t1_a_referee_that_its_policy_stops_is_ended_in_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measuring, "_LIMIT_SECONDS", 4.0)
    with pytest.raises(RefereeFailed, match="did not end within 4 s"):
        measured(tmp_path, ACT.format("os.kill(os.getppid(), signal.SIGSTOP); time.sleep(60)"), tier="T1")


def test_a_result_without_the_ticket_is_none(tmp_path: Path) -> None:
    class Forger(RealMachine):
        def run_process(
            self, argv: tuple[str, ...], *, env: Mapping[str, str], stdin: bytes = b"", limit_seconds: float
        ) -> Finished:
            return Finished(0, b'{"episodes": [[11, 500.0, 500], [12, 500.0, 500], [13, 500.0, 500]]}', b"")

    with pytest.raises(RefereeFailed, match="ticket"):
        measure(Forger(), EnvSpec(backend="gymnasium", id="CartPole-v1"), tmp_path, SEEDS)


UNREAD = """
import sys, time
from pathlib import Path
from types import SimpleNamespace
import numpy as np
from overnight.evaluate import policy_process
from overnight.evaluate.episodes import PolicyError
policy_process.FIRST_SECONDS = 1.0
spaces = SimpleNamespace(shape=(1 << 20,), dtype=np.float32), SimpleNamespace(n=2)
environment = SimpleNamespace(observation_space=spaces[0], action_space=spaces[1])
policy = policy_process.PolicyProcess(
    policy_process.Folders(Path(sys.argv[1]), Path(sys.argv[1]) / "policy"), environment, 1, "T2"
)
began = time.monotonic()
try:
    policy(np.zeros((1, 1 << 20), np.float32), np.ones(1, bool))
except PolicyError as error:
    print(error, time.monotonic() - began < 5)
policy.close()
"""


def test_a_policy_that_does_not_read_cannot_hold_the_referee_up(tmp_path: Path) -> None:
    source = "def load(folder):\n    os.write(4, b'\\1')\n    time.sleep(600)\n"
    policy = tmp_path / "policy"
    policy.mkdir(parents=True)
    (policy / "policy.json").write_text('{"entry": "cheat:load"}')
    (policy / "cheat.py").write_text(f"import os, time\n{source}")
    done = subprocess.run([sys.executable, "-c", UNREAD, tmp_path], capture_output=True, text=True, check=True)
    assert done.stdout == "The policy did not read its question within 1 s. True\n"
