"""An evaluator is found by what its files say, whatever they are called and wherever they lie."""

from pathlib import Path

import pytest

from overnight.attack.foreign.find import DRIVER, Wish, find
from overnight.errors import UserError
from overnight.sandbox.bounds import bounds_for, command_paths

EXAMPLES = Path(__file__).parents[2] / "examples" / "evaluators"
NOTHING = Wish()


def tree(root: Path, **texts: str) -> Path:
    """A folder of Python files; two underscores in a name stand for a slash."""
    for name, text in texts.items():
        path = root / f"{name.replace('__', '/')}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


STEP = "import gymnasium\nenv = gymnasium.make('CartPole-v1')\nenv.step(0)\n"


@pytest.mark.parametrize(
    ("example", "shape", "command", "candidate"),
    [
        ("one_train_file", "in-process", "python train.py", "train.py"),
        ("built_from_brief", "in-process", "python train.py", "candidate/env.py"),
        ("prints_a_score", "script", "python score.py", "learn.py"),
        ("held_apart", "script", "python evaluate.py", "candidate/policy.py"),
    ],
)
def test_the_evaluators_of_the_examples_are_found(example: str, shape: str, command: str, candidate: str) -> None:
    found = find(EXAMPLES / example, NOTHING)
    assert (found.shape, " ".join(found.command), found.candidates[0]) == (shape, command, candidate)


def test_the_fixed_files_around_a_built_environment_are_not_the_candidate() -> None:
    found = find(EXAMPLES / "built_from_brief", NOTHING)
    assert set(found.evaluators) == {"framework.py", "train.py"}
    assert set(found.candidates) == {"candidate/__init__.py", "candidate/env.py", "candidate/policy.py"}


def test_an_evaluator_with_other_names_in_a_folder_of_its_own_is_found(tmp_path: Path) -> None:
    tree(
        tmp_path,
        tools__benchmark_it=f"from brains.mine import choose\n{STEP}print(f'fitness={{choose(0)}}')\n",
        brains__mine="def choose(obs):\n    return 0\n",
        brains____init__="",
        setup="print('version: 1')\n",
    )
    found = find(tmp_path, NOTHING)
    assert found.command == ("python", "tools/benchmark_it.py")
    assert (found.evaluators, found.candidates[0]) == (("tools/benchmark_it.py",), "brains/mine.py")


def test_an_evaluator_that_imports_the_train_file_is_told_from_one_that_it_imports(tmp_path: Path) -> None:
    tree(
        tmp_path / "a",
        evaluate=f"import train\n{STEP}print('avg_return:', train.act(0))\n",
        train="def act(obs):\n    return 0\n",
    )
    tree(
        tmp_path / "b",
        prepare=f"{STEP}\ndef evaluate(agent):\n    return 1.0\n",
        train="from prepare import evaluate\nprint(f'val_loss: {evaluate(None)}')\n",
    )
    a, b = find(tmp_path / "a", NOTHING), find(tmp_path / "b", NOTHING)
    assert (a.command, a.candidates, a.evaluators) == (("python", "evaluate.py"), ("train.py",), ("evaluate.py",))
    assert (b.command, b.candidates, b.evaluators) == (("python", "train.py"), ("train.py",), ("prepare.py",))
    assert not a.lower and b.lower


def test_a_function_that_takes_a_policy_gets_a_driver(tmp_path: Path) -> None:
    tree(
        tmp_path,
        lib__scoring="def score_agent(agent, episodes=3):\n    return 1.0\n",
        mine="def act(obs):\n    return 0\n",
    )
    found = find(tmp_path, NOTHING)
    assert (found.shape, found.command, found.evaluators) == ("function", ("python", DRIVER), ("lib/scoring.py",))
    assert found.candidates == ("mine.py",)
    assert "score_agent(candidate.act)" in found.driver


def test_a_script_with_the_evaluation_of_stable_baselines_is_found(tmp_path: Path) -> None:
    tree(
        tmp_path,
        check="from stable_baselines3.common.evaluation import evaluate_policy\nfrom mine import model\n"
        "mean_reward, std = evaluate_policy(model, None)\nprint(f'mean_reward:{mean_reward:.2f} +/- {std:.2f}')\n",
        mine="model = None\n",
    )
    found = find(tmp_path, NOTHING)
    assert (found.shape, found.evaluators, found.candidates) == ("sb3", ("check.py",), ("mine.py",))


def test_a_saved_policy_is_the_candidate_where_the_evaluator_runs_no_other_file(tmp_path: Path) -> None:
    tree(tmp_path, evaluate=f"import pickle\n{STEP}p = pickle.load(open('agent.pkl', 'rb'))\nprint(f'score: {{p}}')\n")
    (tmp_path / "agent.pkl").write_bytes(b"N.")
    assert find(tmp_path, NOTHING).candidates == ("agent.pkl",)


def test_packages_tests_and_tools_of_others_are_not_looked_into(tmp_path: Path) -> None:
    tree(tmp_path, env__lib__evaluate=f"{STEP}print('score: 1')\n", tests__test_evaluate=f"{STEP}print('score: 1')\n")
    (tmp_path / "env" / "pyvenv.cfg").write_text("")
    with pytest.raises(UserError, match="no evaluator was found among 1 Python files"):
        find(tmp_path, NOTHING)


@pytest.mark.parametrize(
    ("wish", "sentence"),
    [
        (Wish(), "holds no Python file"),
        (Wish(shape="imports"), "'imports' is not a shape"),
        (Wish(evaluator="'"), "cannot be read as a command"),
        (Wish(evaluator=" "), "is empty"),
        (Wish(evaluator="make score"), "names no Python file"),
        (Wish(evaluator="python x.py", candidate="../x.py"), "is not a file of"),
    ],
)
def test_a_wish_that_cannot_be_met_is_one_sentence_with_a_hint(tmp_path: Path, wish: Wish, sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        find(tmp_path, wish)


def test_a_command_whose_program_lies_in_bin_does_not_open_the_whole_disk() -> None:
    assert "/" not in bounds_for(command_paths(("/bin/env", "python"), "/bin:/usr/bin")).readable
