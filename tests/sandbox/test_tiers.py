"""What each tier holds, what each of its layers is good for, and that an honest run does not notice any of it."""

import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from overnight import isolation
from overnight.contract import trainers
from overnight.errors import Refused
from overnight.evaluate.measure import measure
from overnight.records.env import EnvSpec
from overnight.records.order import RunBudget
from overnight.records.run import Outcome
from overnight.records.tier import Tier
from overnight.run.launch import exit_of
from overnight.sandbox import probe, wrap
from overnight.sandbox.bounds import bounds_for
from overnight.sandbox.probe import FORBIDDEN, SIGNAL, Proof, canary, prove
from overnight.sandbox.start import start
from overnight.sandbox.tiers import Child, Layer, NotHeld
from runs import MACHINE, POLICY, begin, need, run, wait

CARTPOLE = EnvSpec(backend="gymnasium", id="CartPole-v1")
TIERS: tuple[Tier, ...] = ("T1", "T2", "T3")
HELD: tuple[Tier, ...] = ("T2", "T3")


@pytest.mark.parametrize("tier", HELD)
def test_a_canary_is_denied_everything_but_its_own_work(tier: Tier) -> None:
    need(tier)
    done = canary(tier)
    assert "own work" in done and not set(FORBIDDEN) & set(done)


def test_the_same_canary_can_do_nearly_all_of_it_without_the_layers() -> None:
    done = set(canary("T2", frozenset({"landlock", "seccomp", "capabilities", "user"})))
    assert {"own work", *FORBIDDEN, SIGNAL} - {"trace parent", "be root"} <= done
    if os.geteuid() == 0:
        assert {"trace parent", "be root"} <= done, "of another user it depends on the machine's settings"


@pytest.mark.parametrize(
    ("layer", "stops"),
    [
        ("landlock", {"read outside", "write outside"}),
        ("seccomp", {"network socket", "local socket"}),
    ],
)
def test_each_layer_of_t2_stops_what_no_other_layer_does(layer: Layer, stops: set[str]) -> None:
    need("T2")
    assert stops <= set(canary("T2", frozenset({layer}))), "switched off, it lets the canary through"
    assert not stops & set(canary("T2"))


@pytest.mark.parametrize(("layer", "stops"), [("landlock", SIGNAL), ("seccomp", "change modes outside")])
def test_another_user_stops_at_t2_what_a_layer_stops_where_the_user_is_the_same(layer: Layer, stops: str) -> None:
    need("T2")
    assert stops in canary("T2", frozenset({layer, "user"}))
    if stops not in prove("T2").gaps:
        assert stops not in canary("T2", frozenset({"user"})), "the layer alone"
    if os.geteuid() == 0:
        assert stops not in canary("T2", frozenset({layer})), "the user alone"


def test_namespaces_stop_at_t3_what_landlock_stops_at_t2() -> None:
    need("T3")
    done = canary("T3", frozenset({"landlock", "seccomp"}))
    assert not {"read outside", "write outside", "local socket", SIGNAL, "trace parent"} & set(done)


def test_without_perl_the_same_is_done_by_python(monkeypatch: pytest.MonkeyPatch) -> None:
    need("T3")
    with_perl = canary("T3")
    monkeypatch.setattr(wrap, "PERL", "/nowhere/perl")
    wrap._starter.cache_clear()
    try:
        assert wrap._starter()[0] == os.path.realpath(sys.executable)
        assert canary("T3") == with_perl
        child = Child(command=("/nowhere/train",), cwd="/", env={})
        with pytest.raises(FileNotFoundError):
            start(child, bounds_for(()), "T3")
    finally:
        wrap._starter.cache_clear()


def test_a_tier_whose_canary_gets_out_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "canary", lambda _: ["own work", "network socket"])
    found = probe.tried("T2")
    assert (found.holds(), found.why) == (False, "a canary at T2 was not stopped: network socket.")


# What a trainer can reach

REACH = """
import json, os, pathlib, socket
out, tmp = pathlib.Path(os.environ["OVERNIGHT_OUT"]), pathlib.Path(os.environ["TMPDIR"])
def can(what):
    try: what()
    except OSError: return False
    return True
found = {
    "secret": can(lambda: open(SECRET).read()),
    "other run": can(lambda: open("../../other/policy").read()),
    "its job": can(lambda: open("../job.json").read()),
    "forge": can(lambda: open("../forged.json", "w")),
    "source": can(lambda: open("train.py", "a")),
    "socket": can(lambda: socket.create_connection(("127.0.0.1", 9), timeout=0.2)) or can(lambda: socket.socket()),
    "supervisor": can(lambda: os.kill(SUPERVISOR, 0)),
    "home": can(lambda: (pathlib.Path.home() / "x").write_text("x")),
    "tmp": can(lambda: (tmp / "x").touch()) and (tmp / "x").exists(),
    "order": can(lambda: json.load(open(os.environ["OVERNIGHT_RUN"]))),
    "cpu": can(lambda: open("/proc/cpuinfo").read()) and can(lambda: os.listdir("/sys/devices/system/cpu")),
    "libraries": can(lambda: __import__("numpy")),
}
(out / "found.json").write_text(json.dumps(found))
"""
ALLOWED = {"home", "tmp", "order", "cpu", "libraries"}


def reached(folder: Path, tier: Tier) -> set[str]:
    """What a trainer says it could do."""
    (folder / "other").mkdir()
    for name in ("secret", "other/policy"):
        (folder / name).write_text("swordfish")
    words = f"SECRET, SUPERVISOR = {str(folder / 'secret')!r}, {os.getpid()}\n"
    ended = run(folder / "run", words + POLICY + REACH, tier=tier)
    assert (ended.outcome, ended.tier) == (Outcome.COMPLETED, tier), ended.because
    found: dict[str, bool] = json.loads((folder / "run" / "out" / "found.json").read_text())
    found["forge"] = (folder / "run" / "forged.json").exists()  # a private view may take it, and lose it
    return {name for name, could in found.items() if could}


@pytest.mark.parametrize("tier", HELD)
def test_a_trainer_reaches_its_own_work_and_nothing_else(tmp_path: Path, tier: Tier) -> None:
    need(tier)
    assert reached(tmp_path, tier) - ({"supervisor"} if prove(tier).gaps == (SIGNAL,) else set()) == ALLOWED


def test_at_t1_it_reaches_all_of_it_so_the_test_can_fail(tmp_path: Path) -> None:
    everything = {"secret", "other run", "its job", "forge", "socket", "supervisor"}
    assert everything <= reached(tmp_path, "T1")


@pytest.mark.parametrize("tier", HELD)
def test_a_trainer_that_is_asked_to_finish_still_hears_it(tmp_path: Path, tier: Tier) -> None:
    need(tier)
    polite = (
        "import signal, sys, time\ndef finish(*_):\n    print('finished'); sys.exit(0)\nsignal.signal(15, finish)\n"
    )
    ended = run(tmp_path, polite + "time.sleep(600)", wall=4, tier=tier)
    assert ended.outcome is Outcome.OVER_BUDGET
    assert ended.exit_status == 0, "it ended by itself, and was not killed"
    assert "finished" in (tmp_path / "log").read_text()


@pytest.mark.parametrize("tier", TIERS)
def test_a_trainers_own_end_is_told_alike_at_every_tier(tmp_path: Path, tier: Tier) -> None:
    need(tier)
    ended = run(tmp_path / "one", "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", tier=tier)
    assert ended.because.startswith("It was ended by SIGSEGV")
    assert run(tmp_path / "two", "raise SystemExit(3)", tier=tier).exit_status == 3


DAEMON = """
import os, sys
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execve(sys.executable, ["MARK", "-S", "-c", "import time; time.sleep(600)"], {})
    os._exit(0)
"""


@pytest.mark.parametrize("tier", HELD)
def test_a_hidden_daemon_does_not_outlive_its_run(tmp_path: Path, tier: Tier) -> None:
    need(tier)
    mark = f"daemon-of-{os.getpid()}-{tier}"
    daemon = DAEMON.replace("MARK", mark)
    assert run(tmp_path, daemon + "import time; time.sleep(0.5)\n" + POLICY, tier=tier).outcome is Outcome.COMPLETED
    lines = [(entry / "cmdline") for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    assert not [path for path in lines if path.exists() and mark.encode() in _bytes(path)]


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


# Honest runs

CODE = "def load(folder):\n    return lambda obs, reset: (3 * obs[:, 2] + obs[:, 3] > 0.1).astype(int)\n"


def test_honest_policies_of_code_earn_the_same_at_every_tier(tmp_path: Path) -> None:
    policy = tmp_path / "policy"
    policy.mkdir()
    (policy / "policy.json").write_text('{"schema": "overnight/policy/1", "kind": "code", "entry": "act:load"}')
    (policy / "act.py").write_text(CODE)
    found = {tier: measure(MACHINE, CARTPOLE, tmp_path, range(20), tier=tier) for tier in TIERS if prove(tier).holds()}
    assert {one.error for one in found.values()} == {""}
    assert len({one.episodes for one in found.values()}) == 1
    assert [one.tier for one in found.values()] == list(found)


MORE_STEPS = RunBudget(unit="env_steps", amount=4096)
PARAMS = trainers.space("ppo").defaults()
TRAIN = """
import runpy, sys
sys.argv = ["train"]
runpy.run_module("overnight.rl.trainers.ppo", run_name="__main__")
"""


def test_honest_training_with_jax_and_envpool_is_identical_at_every_tier(tmp_path: Path) -> None:
    pytest.importorskip("envpool")
    returns: dict[Tier, Any] = {}
    for tier in TIERS:
        if prove(tier).holds():
            folder = tmp_path / tier
            begin(folder, TRAIN, wall=120, silence=120, disk=10**9, params=PARAMS, tier=tier, budget=MORE_STEPS)
            ended = wait(folder, 120)
            assert ended.outcome is Outcome.COMPLETED, (folder / "log").read_text()[-2000:]
            assert json.loads((folder / "out" / "ready").read_text())["backend"] == "envpool"
            returns[tier] = measure(MACHINE, CARTPOLE, folder, range(10), tier=tier).episodes
    assert len(set(returns.values())) == 1 and "T1" in returns


# Choosing


def test_a_contract_that_wants_more_than_there_is_is_refused_with_a_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    proofs = {"T1": Proof("T1", ""), "T2": Proof("T2", ""), "T3": Proof("T3", "bubblewrap is not installed.")}
    monkeypatch.setattr(isolation, "prove", proofs.__getitem__)
    monkeypatch.setattr(isolation, "strongest", lambda: "T2")
    assert isolation.tier_for("T1") == isolation.tier_for("T2") == "T2"
    with pytest.raises(Refused, match=r"wants isolation T3 or stronger, and this machine proved T2\.") as refused:
        isolation.tier_for("T3")
    assert refused.value.hint == "sudo apt-get install bubblewrap"


def test_what_keeps_another_user_out_comes_with_the_command_that_lets_it_in(monkeypatch: pytest.MonkeyPatch) -> None:
    why = "T2 cannot be applied: /opt/python is closed to everybody but root, and a candidate never runs as root."
    monkeypatch.setattr(isolation, "prove", lambda tier: Proof(tier, why))
    assert isolation.raising() == "chmod -R o+rX /opt/python"


def test_a_draft_asks_for_t2_where_it_holds_and_says_why_where_it_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isolation, "prove", lambda tier: Proof(tier, ""))
    assert isolation.drafted() == ("T2", ())
    monkeypatch.setattr(isolation, "prove", lambda tier: Proof(tier, "this kernel has no Landlock."))
    assert isolation.drafted() == (
        "T1",
        ("The draft asks for isolation T1 and not T2: this kernel has no Landlock.",),
    )


def test_a_layer_that_cannot_be_applied_starts_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    child = Child(command=(sys.executable, "-c", f"open({str(tmp_path / 'began')!r}, 'w')"), cwd="/", env={})
    with pytest.raises(OSError, match="bubblewrap is not installed"):
        start(child, bounds_for((), writable=(str(tmp_path),)), "T3")
    assert not (tmp_path / "began").exists()


def test_a_run_at_a_tier_that_is_not_there_never_begins(tmp_path: Path) -> None:
    ended = run(tmp_path, POLICY, tier="T4")
    assert (ended.outcome, ended.tier) == (Outcome.INFRASTRUCTURE, None)
    assert "there is no tier T4 yet" in ended.because
    assert exit_of(MACHINE, tmp_path) == ended


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
@pytest.mark.parametrize("tier", HELD)
def test_where_the_engine_is_root_a_candidate_is_not(tmp_path: Path, tier: Tier) -> None:
    need(tier)
    tell = POLICY + "(out / 'who').write_text(str(sorted({*os.getresuid(), *os.getresgid(), *os.getgroups()})))"
    assert run(tmp_path, tell, tier=tier).outcome is Outcome.COMPLETED
    assert (tmp_path / "out" / "who").read_text() == "[65534]"
    assert (tmp_path / "out" / "who").stat().st_uid == 65534


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
@pytest.mark.parametrize("tier", HELD)
def test_what_only_root_may_read_is_named_and_nothing_is_started(tmp_path: Path, tier: Tier) -> None:
    (tmp_path / "closed").mkdir(mode=0o700)
    child = Child(command=("/bin/true",), cwd="/", env={})
    with pytest.raises(NotHeld, match=r"closed is closed to everybody but root, and a candidate never runs as root"):
        start(child, bounds_for((str(tmp_path / "closed"),)), tier)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_a_closed_folder_on_the_way_shows_only_what_is_needed(tmp_path: Path) -> None:
    need("T2")
    for name in ("closed/wanted", "closed/secret"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "closed/link").symlink_to("wanted")
    (tmp_path / "closed").chmod(0o700)
    child = Child(command=("/bin/ls", f"{tmp_path}/closed"), cwd="/", env={}, stdout=subprocess.PIPE)
    bounds = bounds_for((f"{tmp_path}/closed/link",))
    process = start(child, bounds, "T2", frozenset({"landlock", "seccomp"}))
    assert process.communicate()[0].split() == [b"link", b"wanted"]
    assert "closed" not in Path("/proc/self/mountinfo").read_text(), "nobody else sees the view"


# What may be reached


def test_what_is_hidden_is_left_out_of_the_folder_around_it(tmp_path: Path) -> None:
    for name in ("project/package", "project/.overnight/runs", "project/data"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "project/loop").symlink_to(tmp_path / "project")
    found = bounds_for((str(tmp_path / "project"),), hidden=(str(tmp_path / "project/.overnight"),))
    mine = [path for path in found.readable if path.startswith(str(tmp_path))]
    assert mine == [str(tmp_path / "project/data"), str(tmp_path / "project/package")]
    assert found.listable == (str(tmp_path / "project"),)


# Overhead

SLACK = 3.0 * max(os.getloadavg()[0] / (os.cpu_count() or 1), 1.0)
"""Other work on the machine while this is measured."""


def seconds(tier: Tier) -> float:
    child = Child(command=("/bin/true",), cwd="/", env={"PATH": os.defpath}, stderr=subprocess.PIPE)
    bounds = bounds_for(())
    began = time.perf_counter()
    process = start(child, bounds, tier)
    assert process.wait() == 0, process.stderr and process.stderr.read()
    if process.stderr is not None:
        process.stderr.close()
    return time.perf_counter() - began


@pytest.mark.parametrize("tier", HELD)
def test_a_sandbox_starts_in_under_30_ms(tier: Tier) -> None:
    need(tier)
    pairs = [(seconds("T1"), seconds(tier)) for _ in range(15)]
    over = statistics.median(held - free for free, held in pairs)
    assert over < 0.030 * SLACK, f"{over * 1000:.1f} ms"
