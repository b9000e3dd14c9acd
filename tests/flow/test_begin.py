"""Beginning: a draft that changes nothing of the user's, survives any interruption, and can be read by anyone."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from overnight import admission as loop
from overnight.begin import Place, begin_env, begin_repository
from overnight.candidate.build import params_of
from overnight.contract import trainers
from overnight.contract.draft import Stated
from overnight.errors import Refused, UserError
from overnight.machine import RealMachine
from overnight.records.contract import Clause
from overnight.records.lifecycle import Actor
from overnight.study.study import activate
from scenes import (
    MACHINE,
    Said,
    Scene,
    clean_env,
    digest_of,
    draft_cartpole,
    git,
    overnight,
    scene_in,
    write_repository,
)

Verb = Callable[..., Said]


# Beginning twice


@pytest.mark.feature("R94")
@pytest.mark.parametrize("target", ["CartPole-v1", "."])
def test_a_second_init_changes_nothing(tmp_path: Path, target: str) -> None:
    project = write_repository(tmp_path / "project")
    assert overnight("init", target, cwd=project).returncode == 0
    before = digest_of(project)
    done = overnight("init", target, cwd=project)
    assert (done.returncode, "is there already; its terms were not changed." in done.stderr) == (0, True)
    assert digest_of(project) == before


def test_a_second_init_does_not_undo_what_a_person_wrote(cartpole: Scene, verb: Verb) -> None:
    cartpole.edit("max_wall_hours: 8.0", "max_wall_hours: 3.0")
    cartpole.at.program.write_text("Try larger networks.\n")
    before = digest_of(cartpole.project)
    assert verb("init", "CartPole-v1", "--hours", "5", "--dir", str(cartpole.project)).code == 0
    assert digest_of(cartpole.project) == before


def test_init_makes_a_study_that_is_there_already_the_active_one(cartpole: Scene, verb: Verb) -> None:
    draft_cartpole(cartpole.project, task="walk")
    assert json.loads(verb("status", "--json", "--dir", str(cartpole.project)).stdout)["task"] == "walk"
    assert verb("init", "CartPole-v1", "--dir", str(cartpole.project)).code == 0
    assert json.loads(verb("status", "--json", "--dir", str(cartpole.project)).stdout)["task"] == "cartpole"


def test_a_repository_without_a_commit_is_told_to_commit(tmp_path: Path, verb: Verb) -> None:
    git(tmp_path, "init", "--quiet")
    done = verb("init", ".", "--dir", str(tmp_path))
    assert (done.code, "hint: commit your work first" in done.stderr) == (2, True)
    assert not (tmp_path / ".overnight").exists()


def test_a_folder_that_is_no_repository_is_told_what_to_do(tmp_path: Path, verb: Verb) -> None:
    done = verb("init", ".", "--dir", str(tmp_path))
    assert (done.code, "is not a git repository" in done.stderr) == (2, True)
    assert not (tmp_path / ".overnight").exists()


# Choosing a trainer


@pytest.mark.parametrize(
    ("env", "trainer"), [("Pendulum-v1", "sac"), ("CartPole-v1", "dqn"), ("Pendulum-v1", "ppo"), ("CartPole-v1", "ppo")]
)
def test_a_study_can_be_drafted_with_each_built_in_trainer(tmp_path: Path, verb: Verb, env: str, trainer: str) -> None:
    assert verb("init", env, "--trainer", trainer, "--dir", str(tmp_path)).code == 0
    text = scene_in(tmp_path).at.contract.read_text()
    assert f"overnight.rl.trainers.{trainer}" in text
    assert verb("contract", "check", "--dir", str(tmp_path)).code == 0


@pytest.mark.parametrize(
    ("target", "trainer", "says"),
    [
        pytest.param("CartPole-v1", "sac", "sac cannot learn actions that are one list", id="a list for sac"),
        pytest.param("Pendulum-v1", "dqn", "dqn cannot learn actions that are bounded numbers", id="numbers for dqn"),
        pytest.param("CartPole-v1", "sak", "is 'sak', which is not built in", id="misspelt"),
        pytest.param(".", "sac", "a repository trains by its own command", id="a repository"),
    ],
)
def test_a_trainer_that_does_not_fit_is_refused_before_anything_is_made(
    tmp_path: Path, verb: Verb, target: str, trainer: str, says: str
) -> None:
    done = verb("init", target, "--trainer", trainer, "--dir", str(tmp_path))
    assert (done.code, says in done.stderr) == (2, True)
    assert not (tmp_path / ".overnight").exists()


# What the user's repository sees


def test_git_status_of_the_users_repository_stays_clean(unsaid: Scene) -> None:
    assert git(unsaid.project, "status", "--porcelain", "--untracked-files=all") == ""


def test_the_baseline_is_the_commit_and_not_the_work_tree(tmp_path: Path) -> None:
    project = write_repository(tmp_path / "project")
    committed = git(project, "rev-parse", "HEAD^{tree}")
    (project / "train.py").write_text("an edit that is not committed\n")
    scene = Scene(begin_repository(MACHINE, Place(project), Stated()).at)
    assert scene.entries("created")[0]["tree"] == committed
    assert (scene.copy() / "train.py").read_text().startswith("SEED = 1\n")


def test_files_that_look_like_entry_points_are_evidence_and_not_values(unsaid: Scene) -> None:
    text = unsaid.at.contract.read_text()
    assert "# seen in the repository, not assumed: train.py" in text
    assert "command: [unknown]" in text


# Being interrupted

DYING = """
import os, signal, sys
from pathlib import Path
from overnight.begin import Place, begin_env, begin_repository
from overnight.contract.draft import Stated
from overnight.machine import RealMachine

calls, last = 0, int(sys.argv[3])

def dying(name):
    def call(self, *arguments, **named):
        global calls
        calls += 1
        if calls == last:
            os.kill(os.getpid(), signal.SIGKILL)
        return getattr(RealMachine, name)(self, *arguments, **named)
    return call

names = [name for name in vars(RealMachine) if not name.startswith("_") and name not in ("now", "monotonic")]
Dying = type("Dying", (RealMachine,), {name: dying(name) for name in names})
if sys.argv[2] == ".":
    begin_repository(Dying(), Place(Path(sys.argv[1])), Stated())
else:
    begin_env(Dying(), Place(Path(sys.argv[1])), Stated(env=sys.argv[2]))
print(calls)
"""


def begin_and_die(project: Path, target: str, *, at_call: int) -> subprocess.CompletedProcess[str]:
    """Begin a study on a machine that is killed before one of its calls; 0 kills it never."""
    command = [sys.executable, "-c", DYING, str(project), target, str(at_call)]
    return subprocess.run(command, env=clean_env(), capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def calls_of_init(tmp_path_factory: pytest.TempPathFactory) -> int:
    """How many calls a whole beginning makes."""
    project = write_repository(tmp_path_factory.mktemp("whole") / "project")
    return int(begin_and_die(project, ".", at_call=0).stdout)


def sound(project: Path, target: str, verb: Verb) -> None:
    """Init again, and find a study that is sound and complete."""
    assert verb("init", target, "--dir", str(project)).code == 0
    verified = verb("ledger", "verify", "--json", "--dir", str(project))
    assert (verified.code, json.loads(verified.stdout)["entries"]) == (0, 1)
    scene = scene_in(project)
    for name in ("tip", "incumbent"):
        assert scene.store.ref(scene.at.ref(name)) == scene.state().tip
    assert scene.store.tree_of(scene.state().tip) == scene.entries("created")[0]["tree"]
    assert scene.copy().is_dir()


@pytest.mark.parametrize("moment", random.Random(7).sample(range(1, 100), 25))
def test_init_killed_at_any_moment_is_finished_by_the_next_init(
    tmp_path: Path, verb: Verb, calls_of_init: int, moment: int
) -> None:
    project = write_repository(tmp_path / "project")
    killed = begin_and_die(project, ".", at_call=1 + moment * calls_of_init // 100)
    assert killed.returncode == -signal.SIGKILL
    sound(project, ".", verb)


def let_helpers_end(group: int) -> None:
    """Wait for what a killed program had started; it takes milliseconds, and a dead one may stay listed."""
    deadline = time.monotonic() + 1.0
    while time.monotonic() < deadline:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return
        time.sleep(0.01)


@pytest.mark.parametrize("seconds", [0.25, 0.4, 0.5, 0.6, 0.7])
def test_init_killed_by_the_clock_is_finished_by_the_next_init(tmp_path: Path, verb: Verb, seconds: float) -> None:
    command = [sys.executable, "-m", "overnight.cli.main", "init", "CartPole-v1"]
    with subprocess.Popen(
        command, cwd=tmp_path, env=clean_env(), stdout=subprocess.DEVNULL, start_new_session=True
    ) as process:
        time.sleep(seconds)
        process.kill()
    let_helpers_end(process.pid)
    sound(tmp_path, "CartPole-v1", verb)


# Two studies


def hashes(scene: Scene) -> dict[str, str]:
    """Everything that belongs to one task: its folder, and its refs in the store."""
    task = scene.at.task
    return digest_of(task.folder) | scene.store.refs(f"refs/overnight/{task.name}")


@pytest.mark.feature("R45")
def test_two_tasks_driven_alternately_never_change_each_other(tmp_path: Path) -> None:
    walk, jump = (draft_cartpole(tmp_path / "project", task=name) for name in ("walk", "jump"))
    steps: list[Callable[[Scene], object]] = [
        lambda scene: scene.edit("max_runs: 1000", "max_runs: 100"),
        lambda scene: scene.approve(),
        lambda scene: scene.propose({"gamma": 0.9}),
        lambda scene: scene.propose({"gamma": 2.0}),
        lambda scene: scene.enter(),
        lambda scene: scene.keep(scene.train("c-0001")),
    ]
    for step in steps:
        for one, other in ((walk, jump), (jump, walk)):
            activate(MACHINE, one.at)
            mine, theirs = hashes(one), hashes(other)
            step(one)
            assert (hashes(one) != mine, hashes(other) == theirs) == (True, True)


def test_two_studies_of_one_task_have_their_own_candidates(cartpole: Scene) -> None:
    second = draft_cartpole(cartpole.project, study="second")
    second.approve()
    assert cartpole.propose({"gamma": 0.9}) == second.propose({"learning_rate": 0.001}) == ()
    trees = {scene.entries("drafted")[0]["tree"] for scene in (cartpole, second)}
    assert (len(trees), cartpole.check("c-0001"), second.check("c-0001")) == (2, (), ())


# Knowing where one is


@pytest.mark.feature("R38")
def test_a_deleted_state_file_is_rebuilt(cartpole: Scene, verb: Verb) -> None:
    cartpole.propose({"gamma": 0.9})
    told, kept = verb("status", "--json", "--dir", str(cartpole.project)), json.loads(cartpole.at.state.read_text())
    cartpole.at.state.unlink()
    assert verb("status", "--json", "--dir", str(cartpole.project)) == told
    with cartpole.open():
        pass
    assert json.loads(cartpole.at.state.read_text()) == kept


def test_an_older_state_file_is_brought_up_to_date(cartpole: Scene, verb: Verb) -> None:
    older = cartpole.at.state.read_bytes()
    cartpole.propose({"gamma": 0.9})
    told = verb("status", "--json", "--dir", str(cartpole.project))
    cartpole.at.state.write_bytes(older)
    assert verb("status", "--json", "--dir", str(cartpole.project)) == told


def test_the_state_file_of_another_study_is_not_believed(cartpole: Scene, verb: Verb) -> None:
    told = verb("status", "--json", "--dir", str(cartpole.project))
    other = draft_cartpole(cartpole.project.parent / "elsewhere")
    other.approve()
    other.propose({"gamma": 0.9})
    cartpole.at.state.write_bytes(other.at.state.read_bytes())
    assert verb("status", "--json", "--dir", str(cartpole.project)) == told


def test_a_forged_state_file_does_not_sway_the_gate(cartpole: Scene, verb: Verb) -> None:
    cartpole.enter()
    cartpole.propose({"gamma": 0.9}, kind="reward")
    honest = cartpole.at.state.read_text()
    assert '"draft"' in honest
    cartpole.at.state.write_text(honest.replace('"draft"', '"validated"'))
    with cartpole.open() as study, pytest.raises(Refused, match="A candidate that is draft cannot become launched"):
        study.append(Actor.RUNNER, cartpole.run_of("c-0001"))
    assert cartpole.at.state.read_text() == honest
    assert verb("check", "candidate", "c-0001", "--dir", str(cartpole.project)).code == 3


def drafted_one(scene: Scene) -> None:
    """Nothing approved."""


def approved_some(scene: Scene) -> None:
    scene.approve(Clause.TASK, Clause.METRIC)


def approved_all(scene: Scene) -> None:
    scene.approve()


def edited(scene: Scene) -> None:
    scene.approve()
    scene.edit("max_wall_hours: 8.0", "max_wall_hours: 9.0")


def entered(scene: Scene) -> None:
    scene.approve()
    scene.enter()
    assert scene.propose({"gamma": 0.9}) == ()


def broken(scene: Scene) -> None:
    scene.edit("direction: higher  # Which", "direction: unknown  # Which")


LIFE = [
    pytest.param(broken, "The contract is not complete: `metric`.", "overnight contract check", id="unknown"),
    pytest.param(drafted_one, "none of the eight clauses is approved", "overnight approve", id="drafted"),
    pytest.param(approved_some, "`scope` is missing, `budget` is missing", "overnight approve", id="partly approved"),
    pytest.param(edited, "Approval is needed: `budget` is void.", "overnight approve", id="edited"),
    pytest.param(approved_all, "nobody has entered the loop yet", "overnight start", id="approved"),
    pytest.param(entered, "c-0001 is next: it passed the gate", "overnight start", id="entered"),
]


@pytest.mark.feature("R99")
@pytest.mark.parametrize(("live", "sentence", "command"), LIFE)
def test_the_next_step_is_named_and_nothing_is_changed(
    drafted: Scene, verb: Verb, live: Callable[[Scene], None], sentence: str, command: str
) -> None:
    live(drafted)
    before = digest_of(drafted.project)
    told = json.loads(verb("status", "--json", "--dir", str(drafted.project)).stdout)
    assert (sentence in told["sentence"], told["next"]) == (True, command)
    assert digest_of(drafted.project) == before


KILLED = """
import os, signal, sys
from pathlib import Path
from scenes import scene_in
scene = scene_in(Path(sys.argv[1]))
scene.approve()
scene.enter()
scene.propose({"gamma": 0.9})
study = scene.open()
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.feature("R47")
def test_a_fresh_process_names_the_same_next_step_after_a_kill(drafted: Scene) -> None:
    env = clean_env(PYTHONPATH=str(Path(__file__).parent.parent))
    command = [sys.executable, "-c", KILLED, str(drafted.project)]
    killed = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    told = json.loads(overnight("status", "--json", cwd=drafted.project).stdout)
    sentence = "c-0001 is next: it passed the gate and nobody has decided on it."
    assert (told["sentence"], told["next"]) == (sentence, "overnight start")


def test_a_validated_candidate_that_an_approval_covers_is_told_as_ready(cartpole: Scene) -> None:
    cartpole.enter()
    assert "0 candidates are ready" in loop.next_action(cartpole.state(), cartpole.terms())[0]
    cartpole.propose({"gamma": 0.9})
    assert "1 candidates are ready" in loop.next_action(cartpole.state(), cartpole.terms())[0]


def test_a_recipe_becomes_the_baseline_and_names_how_it_was_found(tmp_path: Path) -> None:
    begun = begin_env(RealMachine(), Place(tmp_path), Stated(env="CartPole-v1", recipe=True))
    scene = scene_in(tmp_path)
    recipe = trainers.need_recipe("ppo", "CartPole-v1")
    assert begun.new
    assert scene.contract().baseline.source.startswith("Overnight's recipe for classic control.")
    params = params_of(scene.store, scene.state().tree)
    assert recipe.params.items() <= params.items()


def test_a_recipe_that_does_not_exist_is_said_before_anything_is_made(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="there is none of dqn for CartPole-v1"):
        begin_env(RealMachine(), Place(tmp_path), Stated(env="CartPole-v1", trainer="dqn", recipe=True))
    assert not (tmp_path / ".overnight").exists()


@pytest.mark.parametrize("trainer", trainers.BUILT_IN)
def test_every_recipe_fits_the_space_of_its_trainer(trainer: str) -> None:
    space = trainers.space(trainer)
    for env in ("CartPole-v1", "BipedalWalker-v3", "LunarLander-v3", "Pendulum-v1"):
        recipe = trainers.recipe(trainer, env)
        assert recipe is None or recipe.params.keys() <= {one.name for one in space.parameters}
