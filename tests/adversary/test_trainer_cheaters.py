"""Trainers that cheat, under the real supervisor: each ends in a clear sentence, and nothing of it is left.

What a trainer writes and leaves is tried at the strongest tier of this machine, and so is a hidden
daemon at T2. At T1 trainer, supervisor and engine run as one user, and a trainer can kill or stop its
supervisor; then the run is lost or ended late, and losing it again and again is taken for the
candidate's own doing. Not claimed at T1: that a daemon which cleared its environment is found when it
kills the keeper and the supervisor at the same moment.
"""

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from overnight import trials
from overnight.adapters.launchers.local import LocalLauncher
from overnight.admission import Who, enter
from overnight.evaluate.measure import measure
from overnight.evaluate.seeds import Seeds, load_key
from overnight.loop import Night, night
from overnight.records.approval import Strength
from overnight.records.env import EnvSpec
from overnight.records.lifecycle import State
from overnight.records.proposal import Exhausted, View
from overnight.records.run import Outcome
from overnight.run.launch import give_up
from overnight.sandbox.processes import descendants
from overnight.trials import Bench
from runs import MACHINE, POLICY, begin, run, wait
from scenes import Scene, complete, draft_repository, scene_in, write_repository

SOAK = bool(os.environ.get("OVERNIGHT_SOAK"))
CARTPOLE = EnvSpec(backend="gymnasium", id="CartPole-v1")
HIDDEN_DAEMON = """
import os, sys, time
out = os.environ["OVERNIGHT_OUT"]
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execve(sys.executable, [sys.executable, "-S", "-c",
            f"import os, time; open({out + '/daemon'!r}, 'w').write(str(os.getpid())); time.sleep(600)"], {})
    os._exit(0)
while not os.path.exists(out + "/daemon") or not open(out + "/daemon").read(): time.sleep(0.01)
"""


def until(true: Callable[[], object], seconds: float = 10.0) -> bool:
    """Wait for something; whether it came true."""
    end = time.monotonic() + seconds
    while not true() and time.monotonic() < end:
        time.sleep(0.02)
    return bool(true())


def is_gone(pid: int) -> bool:
    try:
        return "\nState:\tZ" in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return True


SENTENCES = {
    "reports more steps than it was given": (
        POLICY + "(out / 'metrics.jsonl').write_text(json.dumps({'env_steps': 5000}) + '\\n')",
        "It reported 5,000 steps, and its budget was 100.",
    ),
    "drives the terminal with its last words": (
        "import sys; sys.exit('\\x1b]0;owned\\x07\\x00\\u202eevil')",
        "It ended with status 1: �]0;owned��",
    ),
    "breaks off inside": ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "It was ended by SIGSEGV"),
    "writes one endless file": (
        "import os\nwith open(os.environ['OVERNIGHT_OUT'] + '/big', 'wb') as f:\n    f.truncate(10**9)",
        "File too large",
    ),
    "makes files without end that hold nothing": (
        "import os, itertools\nfor n in itertools.count(): open(f\"{os.environ['OVERNIGHT_OUT']}/{n}\", 'w').close()",
        "It wrote more than 10,000,000 bytes.",
    ),
    "nests folders deeper than can be walked": (
        POLICY + "os.chdir(out)\nfor _ in range(3000): os.mkdir('d'); os.chdir('d')\nraise SystemExit('deep enough')",
        "deep enough",
    ),
    "gives a file a name that is no text": (POLICY + "open(bytes(out) + b'/policy/\\xff', 'w').close()", ""),
    "leaves a thousand files": (
        POLICY + "for n in range(1000): (out / 'policy' / str(n)).touch()",
        "more than 100 entries",
    ),
    "leaves a policy that is a link": (
        "import os; os.symlink('/etc', os.environ['OVERNIGHT_OUT'] + '/policy')",
        "there is no policy folder",
    ),
    "replaces its output folder by a file": (
        "import os, shutil; o = os.environ['OVERNIGHT_OUT']; shutil.rmtree(o); open(o, 'w').close()",
        "Error: [Errno ",  # the folder is in use, or the one around it is closed
    ),
}


@pytest.mark.parametrize("cheat", SENTENCES)
def test_a_trainer_that_cheats_ends_in_a_sentence(tmp_path: Path, cheat: str) -> None:
    trainer, says = SENTENCES[cheat]
    ended = run(tmp_path, trainer)
    subprocess.run(["rm", "-rf", tmp_path / "out"], check=True)  # deeper than pytest itself could remove it later
    assert ended.outcome is not Outcome.LOST
    assert (says in ended.because) if says else ended.outcome is Outcome.COMPLETED


def test_a_trainer_that_goes_on_without_a_word_is_ended_after_its_time_to_finish(tmp_path: Path) -> None:
    deaf = "import os, signal, time\nsignal.signal(15, signal.SIG_IGN)\nos.close(1), os.close(2)\ntime.sleep(600)"
    began = time.monotonic()
    ended = run(tmp_path, deaf, wall=1)
    assert (ended.outcome, ended.because) == (
        Outcome.OVER_BUDGET,
        "It was still running after its hard limit of 1 s.",
    )
    assert 5 < time.monotonic() - began < 14, "five seconds to finish, although nothing is to be read any more"


def test_a_daemon_that_hides_its_origin_ends_with_the_run(tmp_path: Path) -> None:
    assert run(tmp_path, HIDDEN_DAEMON + POLICY, tier="T2").outcome is Outcome.COMPLETED
    assert is_gone(int((tmp_path / "out" / "daemon").read_text()))


@pytest.mark.parametrize("victim", ["supervisor", "keeper"])
def test_a_daemon_that_hides_its_origin_ends_with_whoever_held_its_run(tmp_path: Path, victim: str) -> None:
    begin(tmp_path, HIDDEN_DAEMON + "time.sleep(600)", tier="T2")
    daemon = tmp_path / "out" / "daemon"
    assert until(lambda: daemon.exists() and daemon.read_text())
    supervisor = (tmp_path / "run.lock").read_text().strip()
    keeper = Path(f"/proc/{supervisor}/stat").read_text().rpartition(")")[2].split()[1]
    os.kill(int(supervisor if victim == "supervisor" else keeper), signal.SIGKILL)
    assert until(lambda: not LocalLauncher().is_alive(tmp_path))
    assert is_gone(int(daemon.read_text()))
    lost = give_up(MACHINE, tmp_path)
    assert lost is not None and lost.outcome is Outcome.LOST


def test_at_t1_a_trainer_that_kills_its_supervisor_loses_its_run_and_leaves_nothing(tmp_path: Path) -> None:
    begin(tmp_path, HIDDEN_DAEMON + POLICY + "os.kill(os.getppid(), 9); time.sleep(600)", tier="T1")
    assert until(lambda: (tmp_path / "out" / "policy").exists() and not LocalLauncher().is_alive(tmp_path))
    assert is_gone(int((tmp_path / "out" / "daemon").read_text()))
    lost = give_up(MACHINE, tmp_path)
    assert lost is not None and lost.outcome is Outcome.LOST


def test_at_t1_an_end_that_the_trainer_wrote_itself_is_replaced_by_the_supervisors(tmp_path: Path) -> None:
    forged = {"schema": "overnight/exit/1", "outcome": "completed", "because": "I won.", "exit_status": 0}
    forged |= {"wall_seconds": 0.0, "cpu_seconds": 0.0, "policy": "0" * 64, "log_bytes": 0}
    begin(
        tmp_path,
        f"import time\nopen('../exit.json', 'w').write({json.dumps(forged)!r})\ntime.sleep(1)\nraise SystemExit('no')",
        tier="T1",
    )
    assert until((tmp_path / "exit.json").exists)
    assert LocalLauncher().is_alive(tmp_path), "what lies there is not believed while the supervisor has the lock"
    assert "status 1: no" in wait(tmp_path).because


def test_a_supervisor_that_comes_late_finds_that_its_run_is_over(tmp_path: Path) -> None:
    """The last engine was killed right after it started a supervisor, and the next one did not see it."""
    begin(tmp_path, POLICY + "(out / 'trained').touch()")
    lost = give_up(MACHINE, tmp_path)
    if lost is not None:  # else the supervisor was faster, which is the other good end
        assert lost.outcome is Outcome.LOST
        assert until(lambda: not LocalLauncher().is_alive(tmp_path))
        assert not (tmp_path / "out").exists(), "a run that counts as lost never begins"


def test_output_without_end_is_drained_in_flat_memory(tmp_path: Path) -> None:
    count = 10_000 if SOAK else 300  # megabytes
    print_it = f"for _ in range({count}): sys.stdout.buffer.write(b'y' * 1_000_000)"
    flood = f"import sys, time\n{print_it}\nsys.stdout.flush()\ntime.sleep(0.5)"
    begin(tmp_path, flood, wall=600, silence=600)
    assert until(lambda: (tmp_path / "log").exists() and (tmp_path / "log").stat().st_size > 0)
    supervisor, peak = int((tmp_path / "run.lock").read_text()), 0
    while LocalLauncher().is_alive(tmp_path):
        try:
            status = Path(f"/proc/{supervisor}/status").read_text()
        except OSError:
            break
        peak = max(peak, *(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")), 0)
        time.sleep(0.05)
    assert wait(tmp_path, 300).log_bytes == count * 1_000_000
    assert 0 < peak < 64_000, f"{peak} kB at most"
    assert (tmp_path / "log").stat().st_size < 1_400_000


# Half policies: the supervisor takes them, and the referee says what is wrong with them.

WEIGHTS = """
import json, os, pathlib, struct
policy = pathlib.Path(os.environ["OVERNIGHT_OUT"]) / "policy"
policy.mkdir()
spec = {"schema": "overnight/policy/1", "kind": "weights", "architecture": "mlp", "head": "categorical",
        "activation": "tanh", "hidden": [], "observation_size": 4, "action_size": 2}
head = json.dumps({"layer0.weight": {"dtype": "F32", "shape": [4, 2], "data_offsets": [0, 32]},
                   "layer0.bias": {"dtype": "F32", "shape": [2], "data_offsets": [32, 40]}}).encode()
model = struct.pack("<Q", len(head)) + head + bytes(40)
def leave(model=model, **other):
    (policy / "policy.json").write_text(json.dumps({**spec, **other}))
    if model is not None: (policy / "model.safetensors").write_bytes(model)
"""
HALF = {
    "whole": ("leave()", ""),
    "truncated weights": ("leave(model[:-7])", "lies at [32,40], which is not inside the file"),
    "no weights": ("leave(None)", "cannot be read: No such file"),
    "huge header": ("leave(struct.pack('<Q', 2**62) + head)", "has a header of 4,611,686,018,427,387,904 bytes"),
    "not a number": ("leave(model[:-8] + struct.pack('<ff', float('nan'), 0))", "not finite"),
    "torn description": ("leave(); (policy / 'policy.json').write_text('{\"kind\": \"wei')", "cannot be used"),
}


@pytest.mark.parametrize("half", HALF)
def test_half_a_policy_is_an_error_in_a_sentence(tmp_path: Path, half: str) -> None:
    what, says = HALF[half]
    assert run(tmp_path, WEIGHTS + what).outcome is Outcome.COMPLETED
    found = measure(MACHINE, CARTPOLE, tmp_path, (1, 2))
    assert says in found.error and bool(found.error) is bool(says)
    assert "Traceback" not in found.error and bool(found.episodes) is not bool(says)


# A night of candidates that reach for their supervisor and for the referee, and an honest one after them.

TRAIN = """
import json, os, pathlib
policy = pathlib.Path(os.environ["OVERNIGHT_OUT"]) / "policy"
policy.mkdir()
(policy / "policy.json").write_text(json.dumps({"schema": "overnight/policy/1", "kind": "code", "entry": "act:load"}))
(policy / "act.py").write_text(pathlib.Path("policy/act.py").read_text())
"""
WEAK = "import numpy as np\ndef load(folder):\n    return lambda obs, reset: np.zeros(len(obs), int)\n"
GOOD = "def load(folder):\n    return lambda obs, reset: (3 * obs[:, 2] + obs[:, 3] > 0).astype(int)\n"
KILLER = "import os\ndef load(folder):\n    os.kill(os.getppid(), 9)\n"


class Silent:
    """Has no ideas of its own."""

    def ask(self, view: View) -> Exhausted:
        return Exhausted(because="There are no more ideas.")


def repository_night(project: Path) -> Scene:
    write_repository(project, {"train.py": TRAIN, "policy/act.py": WEAK})
    draft_repository(project)
    scene = scene_in(project)
    complete(scene)
    scene.rewrite(lambda terms: terms["scope"].pop("protected"))
    scene.rewrite(lambda terms: terms["evaluation"].update(screen_train_seeds=2, screen_episodes=5))
    scene.rewrite(lambda terms: terms["evaluation"].update(confirm_train_seeds=4, confirm_episodes=5))
    scene.approve()
    return scene


def offer(scene: Scene, path: str, text: str) -> None:
    copy = scene.copy()
    (copy / path).chmod(0o644)
    (copy / path).write_text(text)
    assert scene.propose(copy, kind="code", hypothesis=f"Another {path} helps.") == ()


def sit(scene: Scene) -> str:
    """One sitting, until an idea is kept or there are no more."""
    with scene.open() as study:
        contract = enter(study, Who("tester", Strength.TERMINAL))
        key = load_key(study.state.seed_commitment or "")
        seeds = Seeds(key, f"{scene.at.task.name}/{scene.at.name}")
        bench = Bench(study, scene.store, contract, LocalLauncher(), seeds, 2, lambda _: None)
        return night(Night(bench, Silent(), MACHINE.monotonic() + 3600, lambda: bool(study.state.stack)))


def test_a_night_goes_on_after_candidates_that_kill_whoever_watches_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "keys"))
    monkeypatch.setattr(trials, "MOST_LOSSES", 3)
    monkeypatch.setattr(trials, "tier_for", lambda _: "T1")
    scene = repository_night(tmp_path / "project")
    offer(scene, "train.py", "import os, time\nos.kill(os.getppid(), 9)\ntime.sleep(600)\n")
    offer(scene, "policy/act.py", KILLER)
    offer(scene, "policy/act.py", GOOD)
    assert sit(scene) == "Somebody asked to finish."
    state = scene.state()
    suicide, killer, honest = (state.candidates[name] for name in ("c-0001", "c-0002", "c-0003"))
    assert suicide.state is State.REJECTED and f"lost {trials.MOST_LOSSES} times" in suicide.failure
    assert killer.state is State.REJECTED
    errors = {data["error"] for data in scene.entries("measured") if data["candidate"] == "c-0002"}
    assert errors == {
        "The referee failed 3 times in a row with this policy, whose code runs beside it.",
    }
    assert honest.kept, "the candidate after them is measured and kept"
    assert not [pid for pid in descendants(os.getpid()) if not is_gone(pid)]


def test_a_supervisor_that_its_trainer_stops_is_ended_by_the_engine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "keys"))
    monkeypatch.setattr(trials, "OVERDUE_SECONDS", 0.0)
    monkeypatch.setattr(trials, "MOST_LOSSES", 1)
    monkeypatch.setattr(trials, "tier_for", lambda _: "T1")
    scene = repository_night(tmp_path / "project")
    scene.rewrite(lambda terms: terms["budget"].update(run_wall_seconds=3))
    scene.approve()
    offer(scene, "train.py", "import os, time\nos.kill(os.getppid(), 19)\ntime.sleep(600)\n")
    assert sit(scene) == "There are no more ideas."
    found = scene.state().candidates["c-0001"]
    assert found.state is State.REJECTED and "Its supervisor is gone" in found.failure
