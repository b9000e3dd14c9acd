"""The protocol of a repository with one file to change, step by step, with a trainer that takes a second."""

import os
import re
import subprocess
import sys
import time
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import pytest

from asking import Turn, with_agent
from overnight.background import left
from overnight.report.exports import check_results_tsv
from overnight.sandbox.processes import with_variable
from scenes import Scene, Seen, at_terminal, clean_env, git, overnight, scene_in

QUICK = '''"""A trainer that knows the answer already."""
import subprocess
import time

import numpy as np

from evaluate import Experiment

LOOK = 0.0


class Agent:
    def __init__(self, arrays):
        self.look = arrays["look"]

    def arrays(self):
        return {"look": self.look}

    def get_action(self, observations):
        return ((observations[:, 2] + observations[:, 3]) * self.look > 0).astype(int)


if __name__ == "__main__":
    run = Experiment()
    run.ready()
    run.finish(Agent({"look": np.float32(LOOK)}), 1, 1)
'''
SLEEP = """    subprocess.Popen(["sleep", "600"])
    subprocess.Popen(["sleep", "600"], start_new_session=True)
    time.sleep(600)
    run.finish("""
FLOOD = """    print("\\n".join(f"{number} {'flood ' * 3}" for number in range(2000)))
    run.finish("""
CRASH = """    raise RuntimeError("of " + "shape " + "{number}")
    run.finish("""
SECONDS = 10


def new(folder: Path, tag: str, *, env: str = "CartPole-v1") -> None:
    """Make the repository, or another study of it."""
    words = ("new", "single-file", ".", "--env", env, "--seconds", str(SECONDS), "--hours", "1", "--policy", "greedy")
    done = overnight(*words, "--tag", tag, cwd=folder)
    assert done.returncode == 0, done.stderr
    scene_in(folder).edit("screen_episodes: 100", "screen_episodes: 10")


@pytest.fixture(scope="module")
def _pole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("protocol") / "pole"
    folder.mkdir()
    new(folder, "slow")
    git(folder, "checkout", "--quiet", "main")
    (folder / "train.py").write_text(QUICK)
    git(folder, "commit", "--quiet", "--all", "--message=Train quickly")
    new(folder, "mar5")
    return folder


@pytest.fixture
def pole(_pole: Path, tmp_path: Path) -> Scene:
    """A repository with a quick `train.py` and a study of it that nobody has approved; a copy of its own."""
    subprocess.run(["cp", "-a", str(_pole), str(tmp_path / "pole")], check=True)
    return scene_in(tmp_path / "pole")


def propose(pole: Scene, old: str, new: str) -> None:
    """Hand in an edited `train.py`, which the gate lets in."""
    copy = pole.copy()
    text = (copy / "train.py").read_text()
    assert old in text
    (copy / "train.py").chmod(0o644)
    (copy / "train.py").write_text(text.replace(old, new))
    assert pole.propose(copy, kind="code") == ()


def rows(pole: Scene, name: str = "results.tsv") -> list[list[str]]:
    """A table of results in the repository, without its header."""
    text = (pole.project / name).read_text()
    check_results_tsv(text)
    return [line.split("\t") for line in text.splitlines()[1:]]


class Sat(NamedTuple):
    """A night that somebody confirmed and started at a terminal, with an idea of theirs in it."""

    scene: Scene
    asked: list[str]
    """The words that were asked for at the terminal, in both commands."""
    confirmed: Seen
    started: Seen


@pytest.fixture(scope="module")
def night(_pole: Path, tmp_path_factory: pytest.TempPathFactory) -> Sat:
    """One such night, for the tests that only look at it."""
    folder, asked = tmp_path_factory.mktemp("night") / "pole", list[str]()
    subprocess.run(["cp", "-a", str(_pole), str(folder)], check=True)
    scene = scene_in(folder)

    def types(word: str) -> str:
        asked.append(word)
        return f"{word}\n"

    confirmed = at_terminal("approve", cwd=folder, types=types)
    propose(scene, "LOOK = 0.0", "LOOK = 1.0")
    return Sat(scene, asked, confirmed, at_terminal("start", ".", cwd=folder, types=types))


@pytest.mark.feature("Z15")
def test_after_the_one_confirmation_a_whole_night_asks_nothing(night: Sat) -> None:
    assert night.confirmed.code == 0 and len(night.asked) == 1, "setup is confirmed once"
    assert night.started.code == 0, night.started.stderr
    assert night.started.terminal == "", "no question was shown"
    assert [row[2] for row in rows(night.scene)] == ["keep", "keep"], "and the experiments went on to their end"


@pytest.mark.feature("Z13")
def test_when_the_loop_starts_the_ledger_names_the_three_files_that_were_read(night: Sat) -> None:
    said = [one["says"] for one in night.scene.entries("noted")]
    notes = [one for one in said if one.startswith("Read before the first run")]
    assert len(notes) == 1
    for name in ("README.md", "evaluate.py", "train.py"):
        held = sha256((night.scene.project / name).read_bytes()).hexdigest()
        assert f"{name} ({held[:12]})" in notes[0], "what was read is what the repository has"


def test_a_nights_own_table_can_be_told_and_leaves_the_tree_clean(night: Sat) -> None:
    done = overnight("report", "--results", "results.tsv", cwd=night.scene.project)
    assert done.returncode == 0 and "2 experiments: 2 keep, 0 discard, 0 crash" in done.stdout, done.stderr
    assert (night.scene.project / "progress.png").exists()
    assert git(night.scene.project, "status", "--porcelain") == ""


PROMPT = "Have a look at program.md and let's kick off a new experiment!"


@pytest.mark.feature("Z50")
def test_an_agent_that_follows_the_page_which_the_prompt_names_starts_the_setup(pole: Scene) -> None:
    with (pole.project / PROMPT.split()[4]).open("a") as direction:
        direction.write("Try a larger step first.\n")  # as a person does before they ask
    page = (pole.project / PROMPT.split()[4]).read_text()
    commands = re.findall(r"```\n(.*?)```", page[page.index("kick off a new experiment") :], re.DOTALL)[0]
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    inside = clean_env(PATH=path, CLAUDECODE="1")
    done = subprocess.run(
        ["bash", "-ec", commands], cwd=pole.project, env=inside, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    begun = scene_in(pole.project)
    assert begun.at.name not in ("slow", "mar5"), "a run tag of its own"
    assert "Try a larger step first." in begun.at.program.read_text()
    assert git(pole.project, "branch", "--show-current") == f"overnight/{begun.at.name}"
    assert set(begun.standings().values()) == {"missing"} and "next: overnight approve" in done.stdout
    refused = overnight("approve", cwd=pole.project, env=inside)
    assert refused.returncode == 3 and "an agent cannot approve" in refused.stderr, "a person confirms what was set up"


@pytest.mark.feature("Z17")
def test_a_start_stops_and_reports_when_the_tree_is_dirty(pole: Scene) -> None:
    pole.approve()
    (pole.project / "train.py").write_text(QUICK.replace("LOOK = 0.0", "LOOK = 1.0"))
    for words in (("start", "."), ("start", ".", "--detach")):
        done = overnight(*words, cwd=pole.project)
        assert done.returncode == 3 and "train.py differs from the last commit" in done.stderr, done.stderr
    assert not pole.state().runs and pole.state().entered is None, "the loop never began"
    assert [one["rule"] for one in pole.entries("refused")[-1]["reasons"]] == ["repository"]
    git(pole.project, "checkout", "--quiet", "train.py")
    (pole.project / "program.md").write_text("Look at the angle.\n")
    (pole.project / "notes.txt").write_text("Mine.\n")
    done = overnight("start", ".", cwd=pole.project)
    assert done.returncode == 0, "the direction may be edited at any time, and what git does not know is nobody's edit"
    assert pole.state().entered is not None


@pytest.mark.feature("Z5")
def test_another_environment_in_the_harness_runs_the_baseline_anew_and_has_a_table_of_its_own(
    night: Sat, tmp_path: Path
) -> None:
    subprocess.run(["cp", "-a", str(night.scene.project), str(tmp_path / "pole")], check=True)
    pole = scene_in(tmp_path / "pole")
    before = (pole.project / "results.tsv").read_bytes()
    assert len(rows(pole)) == 2
    git(pole.project, "checkout", "--quiet", "main")
    harness = pole.project / "evaluate.py"
    harness.chmod(0o644)
    harness.write_text(harness.read_text().replace('ENV_ID = "CartPole-v1"', 'ENV_ID = "Acrobot-v1"'))
    git(pole.project, "commit", "--quiet", "--all", "--message=Swing up")
    new(pole.project, "swing", env="Acrobot-v1")
    other = scene_in(pole.project)
    other.approve()
    propose(other, "LOOK = 0.0", "LOOK = 1.0")
    assert overnight("start", ".", cwd=pole.project).returncode == 0
    first = other.state().runs["r-0001"]
    assert first.candidate == other.state().baseline and first.score is not None and first.score < 0, "on Acrobot"
    assert (pole.project / "results.tsv").read_bytes() == before, "the first environment's rows are as they were"
    table = rows(other, "results_Acrobot-v1.tsv")
    assert table[0][0] == other.state().candidates[first.candidate].commit[:7] and "baseline" in table[0][3]
    assert len(table) == 2 and git(pole.project, "status", "--porcelain") == ""


@pytest.mark.feature("Z27")
def test_a_run_that_sleeps_past_its_hard_limit_is_gone_with_its_group_and_has_a_row(
    pole: Scene, tmp_path: Path
) -> None:
    assert overnight("new", "single-file", "usual", cwd=tmp_path).returncode == 0
    assert scene_in(tmp_path / "usual").contract().budget.run_wall_seconds == 20 * 60, "the limit of the protocol"
    pole.edit("run_wall_seconds: 130", f"run_wall_seconds: {SECONDS}")
    pole.approve()
    propose(pole, "    run.finish(", SLEEP)
    engine = subprocess.Popen(
        [sys.executable, "-m", "overnight.cli.main", "start", "."],
        cwd=pole.project,
        env=clean_env(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    mark = f"OVERNIGHT_RUN={pole.at.runs / 'r-0002' / 'run.json'}"
    until = time.monotonic() + 30
    while len(asleep := with_variable(mark)) < 3:
        assert time.monotonic() < until, "the sleeper did not begin"
        time.sleep(0.1)
    groups = {os.getpgid(pid) for pid in asleep}
    assert engine.wait(timeout=40) == 0
    run = pole.state().runs["r-0002"]
    assert run.outcome is not None and f"hard limit of {SECONDS} s" in pole.state().candidates[run.candidate].failure
    for group in groups:
        with pytest.raises(ProcessLookupError):
            os.killpg(group, 0)
    assert with_variable(mark) == [] and left(pole.at) == []
    assert [row[1:3] for row in rows(pole)][1:] == [["0.000000", "crash"]]
    assert pole.state().stack == [], "the tip is where it was"


# With a coding agent


class Asked(NamedTuple):
    """A night in which a coding agent proposes: one idea that prints much, one that crashes, and three fixes of it."""

    scene: Scene
    said: str
    """Everything that the command printed."""

    def brief(self, number: int) -> str:
        """What the agent was told, the first time being 1."""
        return (self.scene.at.ask(f"a-{number:04d}") / "brief.md").read_text()

    def transcripts(self) -> str:
        """Everything that any of the asked agents was told or said."""
        found = [*self.scene.at.asks.rglob("brief.md"), *self.scene.at.asks.rglob("events.jsonl")]
        assert len(found) == 12
        return "".join(path.read_text() for path in found)


@pytest.fixture(scope="module")
def asked(_pole: Path, tmp_path_factory: pytest.TempPathFactory) -> Asked:
    """One such night, for the tests that only look at it."""
    folder = tmp_path_factory.mktemp("asked") / "pole"
    subprocess.run(["cp", "-a", str(_pole), str(folder)], check=True)
    scene, crash = scene_in(folder), "A wider network sees more."
    written = [(FLOOD, "It prints.")]
    written += [(CRASH.format(number=number), crash if not number else f"Fix {number}.") for number in range(4)]
    turns: list[Turn] = [
        {
            "write": {"train.py": QUICK.replace("    run.finish(", text)},
            "answer": {"kind": "code", "hypothesis": says},
        }
        for text, says in written
    ]
    with_agent(scene, [*turns, {"write": {}}], max_asks=6)
    done = overnight("start", ".", cwd=folder)
    assert done.returncode == 0, done.stderr
    return Asked(scene, done.stdout + done.stderr)


@pytest.mark.feature("Z20")
def test_all_that_a_run_prints_is_in_its_log_and_none_of_it_reaches_the_agent(asked: Asked) -> None:
    run = asked.scene.state().candidates["c-0002"].runs[0]
    log = (asked.scene.at.runs / run / "log").read_text().splitlines()
    assert [line for line in log if "flood" in line] == [f"{number} flood flood flood " for number in range(2000)]
    assert "flood" not in asked.transcripts() and "flood" not in asked.said


@pytest.mark.feature("Z22")
def test_an_idea_that_still_crashes_after_three_fixes_is_dropped_with_the_status_crash(asked: Asked) -> None:
    wanted = [one.operator for one in asked.scene.state().asks.values()]
    assert wanted[2:5] == ["debug"] * 3 and wanted.count("debug") == 3, "three fixes, and no fourth"
    for number in range(3):
        assert f"RuntimeError: of shape {number}" in asked.brief(number + 3), "each fix is asked for with the log's end"
    assert [row[1:] for row in rows(asked.scene)][2:] == [
        ["0.000000", "crash", says] for says in ("A wider network sees more.", "Fix 1.", "Fix 2.", "Fix 3.")
    ]
    assert "Debug:" not in asked.brief(6)
