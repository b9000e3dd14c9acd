"""A trainer as a command of its own: what a person types becomes an order, or one sentence."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from overnight.guest.train import Budget
from overnight.rl.command import from_words

PPO = Path(__file__).parents[2] / "src" / "overnight" / "rl" / "trainers" / "ppo.py"


def test_every_declared_parameter_is_an_option_with_its_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        from_words(PPO, ["--help"])
    told = " ".join(capsys.readouterr().out.split())
    for one in json.loads(PPO.with_suffix(".space.json").read_bytes())["parameters"]:
        assert f"--{one['name'].replace('_', '-')} VALUE" in told
        assert one["says"] in told


def test_words_become_an_order(tmp_path: Path) -> None:
    words = "--env CartPole-v1 --cpu-seconds 5 --seed 7 --gamma 0.9 --num_envs 8 --clip-value-loss false --cores 1"
    order = from_words(PPO, [*words.split(), "--out", str(tmp_path)]).order
    assert (order.env.id, order.train_seed, order.cores) == ("CartPole-v1", 7, 1)
    assert order.budget == Budget(unit="cpu_seconds", amount=5)
    assert order.params == {"gamma": 0.9, "num_envs": 8, "clip_value_loss": False}


def test_a_recipe_is_the_beginning_and_the_words_change_it(tmp_path: Path) -> None:
    words = ["--env", "BipedalWalker-v3", "--steps", "1e6", "--recipe", "--gamma", "0.9", "--out", str(tmp_path)]
    params = from_words(PPO, words).order.params
    assert params["gamma"] == 0.9
    assert params["normalize_observations"] is True


@pytest.mark.parametrize("name", ["auditions", "attempt_steps", "checkpoints"])
def test_a_parameter_that_search_leaves_alone_is_an_option_like_the_others(name: str, tmp_path: Path) -> None:
    words = ["--env", "CartPole-v1", "--steps", "5", f"--{name.replace('_', '-')}", "3", "--out", str(tmp_path)]
    assert from_words(PPO, words).order.params[name] == 3


@pytest.mark.parametrize(
    ("words", "says"),
    [
        pytest.param("--steps 5 --gamma 2", "is 2, but 0.8 to 0.9999 is declared", id="beyond its range"),
        pytest.param("--steps 5 --gamma lots", "is 'lots', but a number is needed", id="no number"),
        pytest.param("--steps 5 --clip-value-loss 2", "but true or false is needed", id="no switch"),
        pytest.param("--steps 5 --activation sine", "but one of tanh, relu", id="no choice"),
        pytest.param("--steps 5 --auditions -1", "--auditions: is -1, but 0 or more", id="below none"),
        pytest.param("--steps 0", "--steps is 0, but a training needs more than 0", id="no budget"),
        pytest.param(
            "--steps nan", "--steps is nan, but a training needs more than 0, and an end", id="no number of steps"
        ),
        pytest.param("--seconds inf", "needs more than 0, and an end", id="a budget without an end"),
        pytest.param("--steps 5 --seed -1", "--seed is -1, but 0 or more is needed", id="a seed below 0"),
        pytest.param("--steps 5 --cores 0", "--cores is 0, but 1 or more is needed", id="no core"),
        pytest.param("--steps 5 --attempt-steps 5e6", "is '5e6', but a whole number in digits is needed", id="5e6"),
        pytest.param("--steps 5 --seconds 5", "not allowed with", id="two budgets"),
        pytest.param("", "one of the arguments --steps --seconds --cpu-seconds is required", id="none"),
    ],
)
def test_a_word_that_does_not_fit_is_told_in_one_sentence(
    words: str, says: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    with pytest.raises(SystemExit) as ended:
        from_words(PPO, ["--env", "CartPole-v1", "--out", str(tmp_path), *words.split()])
    assert ended.value.code == 2
    assert says in capsys.readouterr().err


def test_a_file_where_results_should_go_is_told_in_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "taken").touch()
    with pytest.raises(SystemExit):
        from_words(PPO, ["--env", "CartPole-v1", "--steps", "5", "--out", str(tmp_path / "taken")])
    assert "taken: File exists" in capsys.readouterr().err


def test_an_environment_without_a_recipe_is_told_which_have_one(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="none of ppo for Taxi-v3, only for CartPole"):
        from_words(PPO, ["--env", "Taxi-v3", "--steps", "5", "--recipe", "--out", str(tmp_path)])


def test_a_trainer_without_recipes_says_who_has_some(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="--recipe: sac has none; ppo has"):
        from_words(PPO.with_name("sac.py"), ["--env", "Hopper-v5", "--steps", "5", "--recipe", "--out", str(tmp_path)])


@pytest.mark.parametrize("trainer", ["ppo", "sac", "dqn", "any"])
def test_the_example_in_the_help_of_a_trainer_is_one_that_it_takes(
    trainer: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(SystemExit):
        from_words(PPO.with_name(f"{trainer}.py"), ["--help"])
    example = capsys.readouterr().out.rpartition("Example: ")[2].split()
    monkeypatch.chdir(tmp_path)
    made = from_words(PPO.with_name(f"{trainer}.py"), example)
    assert made.order.env.id == example[1]


def test_a_person_trains_with_one_command(tmp_path: Path) -> None:
    pytest.importorskip("jax")
    words = ["--env", "CartPole-v1", "--steps", "2048", "--out", str(tmp_path / "out")]
    found = subprocess.run(
        [sys.executable, "-m", "overnight.rl.trainers.ppo", *words],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "2,048 steps" in found.stderr
    assert (tmp_path / "out" / "policy" / "policy.json").exists()
