"""A repository with one file to change: what is written, what the gate keeps out, and a whole night on it."""

import ast
import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from nights import Silent, sit
from overnight.contract.screen import screen
from overnight.decide.greedy import judge_greedily
from overnight.decide.simplicity import balance
from overnight.records.decision import Verdict
from overnight.records.metric import Direction
from overnight.report.exports import check_results_tsv
from scenes import Scene, at_terminal, git, overnight, scene_in

SCORES = ("avg_return", "std_return", "min_return", "max_return")
KEYS = (*SCORES, "total_timesteps", "training_seconds", "total_seconds", "num_updates")


@pytest.fixture
def keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "keys"))


def new(folder: Path, *words: str, env: str = "CartPole-v1", seconds: int = 8) -> Path:
    done = overnight("new", "single-file", str(folder), "--env", env, "--seconds", str(seconds), *words, cwd=Path("/"))
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def _pole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return new(tmp_path_factory.mktemp("single") / "pole", "--tag", "mar5", "--policy", "greedy", "--hours", "1")


@pytest.fixture
def pole(_pole: Path, tmp_path: Path) -> Scene:
    """A repository with one file to change, approved, under the greedy rule; a copy of its own."""
    subprocess.run(["cp", "-a", str(_pole), str(tmp_path / "pole")], check=True)
    scene = scene_in(tmp_path / "pole")
    scene.approve()
    return scene


# What is written


@pytest.mark.feature("Z12", "Z14")
def test_a_new_repository_stands_on_the_branch_of_its_tag_with_an_empty_table_that_git_ignores(
    pole: Scene,
) -> None:
    assert git(pole.project, "branch", "--show-current") == "overnight/mar5"
    assert git(pole.project, "rev-parse", "HEAD") == git(pole.project, "rev-parse", "main")
    assert git(pole.project, "status", "--porcelain") == ""
    assert (pole.project / "results.tsv").read_text() == "commit\tavg_return\tstatus\tdescription\n"
    assert pole.contract().scope.paths == ("train.py",) and pole.contract().budget.stop_amount == 8


@pytest.mark.feature("Z11")
def test_a_tag_whose_branch_is_there_is_refused_with_one_that_is_free(pole: Scene) -> None:
    words = ("new", "single-file", ".", "--env", "CartPole-v1", "--seconds", "8", "--tag")
    done = overnight(*words, "mar5", cwd=pole.project)
    assert done.returncode == 2 and "hint: `--tag mar5-2` is free" in done.stderr
    again = overnight(*words, "mar5-2", cwd=pole.project)
    assert again.returncode == 0, again.stderr
    assert git(pole.project, "branch", "--show-current") == "overnight/mar5-2"
    assert scene_in(pole.project).at.name == "mar5-2"


@pytest.mark.feature("Z38")
def test_another_environment_needs_another_folder_with_a_table_of_its_own(pole: Scene, tmp_path: Path) -> None:
    words = ("new", "single-file", "--env", "Acrobot-v1", "--seconds", "8", "--tag", "mar6")
    done = overnight(*words, str(pole.project), cwd=Path("/"))
    assert done.returncode == 2 and "is about CartPole-v1 for 8 s" in done.stderr
    assert overnight(*words, str(tmp_path / "acrobot"), cwd=Path("/")).returncode == 0
    assert (tmp_path / "acrobot" / "results.tsv").exists() and (pole.project / "results.tsv").exists()


def test_a_folder_with_anything_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    done = overnight("new", "single-file", str(tmp_path), "--env", "CartPole-v1", cwd=Path("/"))
    assert done.returncode == 2 and "is not empty" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_an_environment_that_nobody_knows_writes_nothing(tmp_path: Path) -> None:
    done = overnight("new", "single-file", str(tmp_path / "x"), "--env", "NoSuchEnv-v0", cwd=Path("/"))
    assert done.returncode == 2 and not (tmp_path / "x").exists()


@pytest.mark.feature("Z43")
def test_the_baselines_numbers_are_the_published_ones(pole: Scene) -> None:
    tree = ast.parse((pole.project / "train.py").read_text())
    numbers = {
        node.targets[0].id: ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    }
    assert numbers == {
        "LEARNING_RATE": 2.5e-4, "NUM_ENVS": 4, "NUM_STEPS": 128, "GAMMA": 0.99, "GAE_LAMBDA": 0.95,
        "NUM_MINIBATCHES": 4, "UPDATE_EPOCHS": 4, "NORM_ADV": True, "CLIP_COEF": 0.2, "CLIP_VLOSS": True,
        "ENT_COEF": 0.01, "VF_COEF": 0.5, "MAX_GRAD_NORM": 0.5, "TARGET_KL": None, "ADAM_EPS": 1e-5,
        "HIDDEN": 64, "LOG_STD_RANGE": (-5.0, 2.0),
    }  # fmt: skip
    assert (
        "self.budget, self.seed, self._training = float(TIME_BUDGET), 1, None"
        in (pole.project / "evaluate.py").read_text()
    ), "by hand, the seed is 1"


PROBE = """
import json, sys
import numpy as np
sys.path.insert(0, ".")
import evaluate, train
net = train.initial(np.random.default_rng(0), 24, 4, np.full(4, -1, np.float32), np.full(4, 1, np.float32))
gain = lambda w: float(np.linalg.svd(w, compute_uv=False).mean())
agent = train.Agent({k: v for k, v in net.items()})
class Still:
    def get_action(self, observations): return np.zeros(len(observations), int)
scores = [evaluate.evaluate_policy(Still(), "CartPole-v1", 20) for _ in range(2)]
try:
    evaluate.evaluate_policy(object(), "CartPole-v1", 1); broke = ""
except TypeError as error:
    broke = str(error)
thunks = [evaluate.make_env("CartPole-v1", idx, seed=1)() for idx in range(3)]
print(json.dumps({
    "shapes": {k: list(v.shape) for k, v in net.items()},
    "gains": {k: round(gain(v), 4) for k, v in net.items() if k.endswith(".w")},
    "clipped": float(np.abs(agent.get_action(1e6 * np.ones((1, 24)))).max()),
    "scores": scores, "broke": broke,
    "seeds": [int(env.action_space.np_random.integers(1 << 30)) for env in thunks],
}))
"""


@pytest.mark.feature("Z7", "Z8", "Z9", "Z44")
def test_harness_and_network_are_what_the_protocol_says(pole: Scene) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROBE], cwd=pole.project, capture_output=True, text=True, check=True, timeout=120
    )
    found = json.loads(done.stdout)
    assert found["shapes"]["actor1.w"] == found["shapes"]["critic1.w"] == [24, 64]
    assert found["shapes"]["actor3.w"] == [64, 4] and found["shapes"]["critic3.w"] == [64, 1]
    assert found["gains"] == {
        "actor1.w": 1.4142, "actor2.w": 1.4142, "actor3.w": 0.01,
        "critic1.w": 1.4142, "critic2.w": 1.4142, "critic3.w": 1.0,
    }  # fmt: skip
    assert found["clipped"] <= 1.0
    assert found["scores"][0] == found["scores"][1] and set(found["scores"][0]) == set(SCORES)
    assert "it has no method get_action" in found["broke"]
    assert len(set(found["seeds"])) == 3


ONE_RUN = """
import json, sys
import gymnasium as gym
import numpy as np
sys.path.insert(0, ".")
import evaluate, train

taken, resets, rates, lines = [], [], [], []

class Narrow(gym.Env):
    observation_space = gym.spaces.Box(-1, 1, (3,), np.float32)
    action_space = gym.spaces.Box(-0.5, 0.5, (2,), np.float32)
    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        resets.append(seed)
        return np.zeros(3, np.float32), {}
    def step(self, action):
        taken.append(action.copy())
        return np.zeros(3, np.float32), 0.0, len(taken) % 7 == 0, False, {}

class Rate(float):
    def __mul__(self, share):
        rates.append(share)
        return float(self) * share

class Clocked(evaluate.Experiment):
    def elapsed(self): return float(len(lines))
    def report(self, steps, **numbers): lines.append(steps)
    def finish(self, agent, steps, updates): self.agent, self.updates = agent, updates

gym.register("Narrow-v0", Narrow)
train.ENV_ID, train.LEARNING_RATE = "Narrow-v0", Rate(0.001)
run = Clocked()
run.budget = 3.5
train.main(run)
in_training = len(taken)
resets.clear()
evaluate.evaluate_policy(run.agent, "Narrow-v0")
import jax
print(json.dumps({
    "updates": run.updates, "shares": sorted(set(rates), reverse=True), "played": sorted(resets),
    "device": jax.default_backend(),
    "furthest": float(np.abs(taken[:in_training]).max()), "cut": float((np.abs(taken[:in_training]) == 0.5).mean()),
}))
"""


@pytest.mark.feature("Z4", "Z6", "Z45", "Z46", "Z47")
def test_a_run_ends_with_the_update_in_which_its_time_is_up_and_steps_shrink_with_the_time_that_is_left(
    pole: Scene, tmp_path: Path
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", ONE_RUN], cwd=pole.project, capture_output=True, text=True, check=True, timeout=120
    )
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["updates"] == 4, "after three of 3.5 seconds another one begins, and it is finished"
    assert found["shares"] == pytest.approx([1.0, 2.5 / 3.5, 1.5 / 3.5, 0.5 / 3.5])
    assert found["furthest"] == 0.5 and found["cut"] > 0.3, "the environment gets the action within its bounds"
    assert found["played"] == list(range(100))
    assert found["device"] == "cpu"
    usual = tmp_path / "usual"
    assert overnight("new", "single-file", str(usual), "--env", "CartPole-v1", cwd=tmp_path).returncode == 0
    terms = scene_in(usual).contract()
    assert (terms.budget.stop_unit, terms.budget.stop_amount, terms.evaluation.confirm_episodes) == (
        "wall_seconds",
        720,
        100,
    )


# What the gate keeps out


def edited(pole: Scene, change: Callable[[str], str], *, name: str = "train.py", **more: str) -> str:
    copy = pole.copy()
    path = copy / name
    path.chmod(0o644)
    path.write_text(change(path.read_text()))
    reasons = pole.propose(copy, kind="code", **more)
    return " ".join(f"{one.rule}: {one.says}" for one in reasons)


@pytest.mark.feature("Z1", "Z2", "Z33")
@pytest.mark.parametrize("name", ["evaluate.py", "program.md", "README.md"])
def test_only_the_one_file_may_change(pole: Scene, name: str) -> None:
    assert "surface: The candidate changes" in edited(pole, lambda text: text + "\n", name=name)


@pytest.mark.feature("Z18")
def test_an_empty_change_starts_no_run(pole: Scene) -> None:
    done = overnight("propose", "--from", str(pole.copy()), "--kind", "code", "--because", "x", cwd=pole.project)
    assert done.returncode == 2 and "changes nothing" in done.stderr and not pole.state().runs


# The two rules of keeping


def test_lines_of_code_are_counted_without_blanks_comments_and_heads() -> None:
    diff = "--- a/train.py\n+++ b/train.py\n@@ -1 +1 @@\n-x = 1\n-y = 2\n+x = 3\n+\n+# why\n context\n"
    assert balance(diff) == -1


def test_a_candidate_records_whether_it_is_the_simpler_one(pole: Scene) -> None:
    assert edited(pole, lambda text: text.replace("GAMMA = 0.99\n", "GAMMA = 0.99\nGAMMA = 0.98\n")) == ""
    assert edited(pole, lambda text: text.replace("HIDDEN = 64\n", "").replace("HIDDEN", "64")) == ""
    assert [one.lines for one in pole.state().candidates.values()] == [1, -1]


@pytest.mark.feature("Z24", "Z25")
@pytest.mark.parametrize(
    ("ours", "tips", "kept"),
    [(180.5, 135.6, True), (135.6, 135.6, False), (100.0, 135.6, False), (None, 135.6, False), (1.0, None, True)],
)
def test_the_greedy_rule_keeps_what_is_strictly_better_in_one_run(
    pole: Scene, ours: float | None, tips: float | None, kept: bool
) -> None:
    found = judge_greedily(pole.contract().metric, ours, tips, candidate="c-0002", runs=("r-0002", "r-0001"))
    assert (found.verdict is Verdict.KEEP) is kept
    assert found.rule.startswith("Greedy, for comparison only")
    assert pole.contract().metric.direction is Direction.HIGHER


# A whole night

PATCH = 'import evaluate\nsetattr(evaluate, "evaluate_policy", lambda *given: {"avg_return": 1e9})'


@pytest.mark.timeout(600)
@pytest.mark.usefixtures("keys")
@pytest.mark.feature("Z16", "Z19", "Z23", "Z26", "Z28", "Z36", "Z39", "Z51")
def test_a_night_on_one_file_trains_for_real_and_leaves_the_table_of_its_protocol(tmp_path: Path) -> None:
    project = new(tmp_path / "pole", "--tag", "mar5", "--policy", "greedy", "--hours", "1", seconds=15)
    assert at_terminal("approve", cwd=project).code == 0
    scene = scene_in(project)
    page = " ".join(sentence for _, sentence in screen(scene.contract()))
    assert "for comparison only" in page
    assert edited(scene, lambda text: text.replace("LEARNING_RATE = 2.5e-4", f"{PATCH}\nLEARNING_RATE = 2.5e-3")) == ""
    sit(scene, Silent())
    assert edited(scene, lambda text: f"import json.no_such_part\n{text}") == ""
    sit(scene, Silent())
    assert overnight("report", cwd=project).returncode == 0
    rows = [line.split("\t") for line in (project / "results.tsv").read_text().splitlines()[1:]]
    assert check_results_tsv((project / "results.tsv").read_text()) == 3
    baseline = scene.state().candidates[scene.state().baseline]
    assert rows[0][0] == baseline.commit[:7] and rows[0][2] == "keep" and "baseline" in rows[0][3]
    assert rows[1][2] in ("keep", "discard") and 8 < float(rows[1][1]) <= 500, "not what the patched harness says"
    assert rows[2][1:3] == ["0.000000", "crash"]
    assert git(project, "status", "--porcelain") == "", "the table is left untracked"
    best = max((row for row in rows if row[2] == "keep"), key=lambda row: float(row[1]))
    code = next(one.tree for one in scene.state().candidates.values() if one.commit.startswith(best[0]))
    assert scene.store.tree_of(scene.state().tip) == code, "the tip is the best row's code"
    for run in scene.state().runs.values():
        commit = scene.state().candidates[run.candidate].commit
        assert scene.store.tree_of(commit) == run.tree, "what was run is what was committed"
    log = (scene.at.runs / "r-0001" / "log").read_text()
    line = re.search(r"^update \d+ steps \d+ pg_loss \S+ v_loss \S+ entropy \S+ remaining \d+s$", log, re.MULTILINE)
    assert line is not None and "\n---\n" in log
    assert {data["verdict"] for data in scene.entries("decided")} <= {"keep", "reject"}
    assert "greedy rule, for comparison" in scene.at.report_text.read_text() and not scene.state().incumbents


@pytest.mark.timeout(300)
@pytest.mark.feature("Z21", "Z35")
def test_by_hand_the_file_trains_and_prints_eight_keys_that_grep_finds(pole: Scene) -> None:
    with (pole.project / "run.log").open("w") as log:
        done = subprocess.run(
            [sys.executable, "train.py"], cwd=pole.project, stdout=log, stderr=log, timeout=200, check=False
        )
    text = (pole.project / "run.log").read_text()
    assert done.returncode == 0, text[-500:]
    block = dict(line.split(":") for line in text.partition("\n---\n")[2].splitlines())
    assert tuple(block) == KEYS
    assert all(re.fullmatch(r"\s*-?\d+\.\d{6}", block[key]) for key in SCORES)
    assert float(block["training_seconds"]) >= 8 and int(block["num_updates"]) > 0
    assert git(pole.project, "status", "--porcelain") == ""


ALONE = """
import json, os, runpy, sys
seen = {"files": set(), "processes": [], "network": []}
here = os.getcwd()
def hear(event, given):
    if event == "open" and isinstance(given[0], str) and os.path.abspath(given[0]).startswith(here + "/"):
        seen["files"] |= {os.path.relpath(given[0], here)} if not given[0].endswith(".pyc") else set()
    elif event in ("subprocess.Popen", "os.fork", "os.forkpty", "os.exec", "os.posix_spawn", "os.system"):
        seen["processes"].append(event)
    elif event in ("socket.connect", "socket.bind", "socket.getaddrinfo"):
        seen["network"].append(event)
sys.addaudithook(hear)
sys.path.insert(0, here)
runpy.run_path("train.py", run_name="__main__")
print(json.dumps({**seen, "files": sorted(seen["files"])}))
"""


@pytest.mark.timeout(300)
@pytest.mark.feature("Z53")
def test_the_one_file_and_its_harness_train_in_one_process_without_config_files_network_or_trackers(
    pole: Scene, tmp_path: Path
) -> None:
    alone = tmp_path / "alone"
    (alone / "home").mkdir(parents=True)
    (alone / "train.py").write_bytes((pole.project / "train.py").read_bytes())
    harness = (pole.project / "evaluate.py").read_text()
    (alone / "evaluate.py").write_text(harness.replace("TIME_BUDGET = 8", "TIME_BUDGET = 1"))
    done = subprocess.run(
        [sys.executable, "-B", "-I", "-c", ALONE],
        cwd=alone,
        env={"PATH": "/usr/bin:/bin", "HOME": str(alone / "home")},
        capture_output=True,
        text=True,
        check=True,
        timeout=200,
    )
    *log, last = done.stdout.splitlines()
    assert json.loads(last) == {"files": ["evaluate.py", "train.py"], "processes": [], "network": []}
    assert sum(line.startswith("avg_return:") for line in log) == 1, "one number"
    assert sorted(path.name for path in alone.rglob("*")) == ["evaluate.py", "home", "train.py"], "nothing was left"
    terms = pole.contract()
    assert terms.scope.paths == ("train.py",) and terms.baseline.command == ("python", "train.py")
    assert terms.experiments.permissions.trackers == () and not terms.experiments.permissions.network
    assert (terms.hardware.cores_per_run, terms.metric.source) == (1, "episode_return")
