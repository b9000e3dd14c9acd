"""The command on evaluators as people write them: holes are named with their fake scores, and nothing is changed."""

import json
import shutil
import subprocess
import sys
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from overnight.attack.foreign.catalogue import catalogue

EXAMPLES = Path(__file__).parents[2] / "examples" / "evaluators"
STEP_LOOP = """
import gymnasium
env = gymnasium.make("CartPole-v1")
total = 0.0
for seed in range(3):
    obs, _ = env.reset(seed=seed)
    done = False
    while not done:
        obs, reward, over, late, _ = env.step(choose(obs))
        total += float(reward)
        done = over or late
"""
POLICY = "def choose(obs):\n    return int(obs[2] > 0)\n"


def overnight_attack(*words: str, cwd: Path) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "overnight.cli.main", "attack", *words]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)


def found(*words: str, cwd: Path, exits: int = 1) -> dict[str, Any]:
    done = overnight_attack(*words, "--json", cwd=cwd)
    assert done.returncode == exits, done.stdout + done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    told["holes"] = {one["attack"]: one for one in told["attacks"] if one["got_in"]}
    return told


def fingerprint(folder: Path) -> dict[str, str]:
    return {
        str(path): sha256(path.read_bytes()).hexdigest() + str(path.stat().st_mtime_ns)
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.mark.parametrize("example", ["one_train_file", "built_from_brief"])
def test_an_evaluator_that_shares_a_process_with_its_candidate_has_many_holes(example: str) -> None:
    before = fingerprint(EXAMPLES / example)
    told = found(".", "--seconds", "240", cwd=EXAMPLES / example)  # a busy machine may need more than 90
    assert fingerprint(EXAMPLES / example) == before
    assert len(told["holes"]) >= 5
    for hole in told["holes"].values():
        assert float(hole["score"]) > max(told["honest"])
        name, number = hole["line"].split(":")
        assert (EXAMPLES / example / name).read_text().splitlines()[int(number) - 1].strip()
        assert hole["fix"].endswith(".")


def test_the_line_named_is_the_one_that_imports_or_calls_the_candidate() -> None:
    told = found(".", "--attacks", "print,env-step", cwd=EXAMPLES / "built_from_brief")
    lines = (EXAMPLES / "built_from_brief" / "framework.py").read_text().splitlines()
    named = {name: lines[int(hole["line"].split(":")[1]) - 1] for name, hole in told["holes"].items()}
    assert "from candidate import" in named["print"]
    assert "env.step(policy.act(obs))" in named["env-step"]


def test_an_evaluator_that_keeps_the_candidate_apart_lets_nothing_in() -> None:
    told = found(".", "--seconds", "200", cwd=EXAMPLES / "held_apart", exits=0)
    assert told["got_in"] == 0
    assert len(told["attacks"]) >= 5


def test_a_process_of_its_own_alone_does_not_help() -> None:
    wanted = "pickle,overwrite-evaluator,parents-stdout,results-file,shadow-module,env-step,print"
    told = found(".", "--attacks", wanted, "--seconds", "200", cwd=EXAMPLES / "prints_a_score")
    assert {"pickle", "overwrite-evaluator", "shadow-module"} <= set(told["holes"])
    assert "print" not in told["holes"]
    assert told["not_applicable"] == ["env-step"]
    assert told["holes"]["pickle"]["line"] == "score.py:14"


def test_success_that_the_candidate_itself_reports_is_a_hole() -> None:
    words = ("--metric", "solve_rate", "--attacks", "own-info")
    assert found(".", *words, cwd=EXAMPLES / "built_from_brief")["holes"]["own-info"]["score"] > 0.9


def write(folder: Path, **texts: str) -> Path:
    for name, text in texts.items():
        path = folder / f"{name.replace('__', '/')}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def test_an_evaluator_in_a_subfolder_that_imports_from_the_top_is_run(tmp_path: Path) -> None:
    write(
        tmp_path,
        bench__measure=f"from brains.mine import choose\n{STEP_LOOP}\nprint(f'fitness={{total}}')\n",
        bench____init__="",
        brains____init__="",
        brains__mine=POLICY,
    )
    told = found(".", "--attacks", "frame-number,exit-early,known-seeds", cwd=tmp_path)
    assert told["command"] == ["python", "-m", "bench.measure"]
    assert (told["metric"], told["candidates"][0]) == ("fitness", "brains/mine.py")
    assert {"exit-early", "known-seeds"} <= set(told["holes"])


def test_a_function_without_a_script_is_attacked_through_a_driver(tmp_path: Path) -> None:
    body = STEP_LOOP.replace("choose(", "policy(").replace("\n", "\n    ")
    write(
        tmp_path,
        evaluator=f"def evaluate(policy):\n    {body}\n    return total / 3\n",
        policy=POLICY.replace("choose", "policy"),
    )
    told = found(".", "--attacks", "env-step,frame-number", cwd=tmp_path)
    assert (told["shape"], told["metric"]) == ("function", "evaluate")
    assert set(told["holes"]) == {"env-step", "frame-number"}


def test_evaluation_by_a_library_is_attacked_too(tmp_path: Path) -> None:
    body = STEP_LOOP.replace("choose(obs)", "model.predict(obs)[0]").replace("\n", "\n    ")
    library = f"def evaluate_policy(model, env):\n    {body}\n    return total, 0.0\n"
    write(
        tmp_path,
        lib__stable_baselines3____init__="",
        lib__stable_baselines3__common____init__="",
        lib__stable_baselines3__common__evaluation=library,
        check="from stable_baselines3.common.evaluation import evaluate_policy\nfrom mine import Model\n"
        "mean_reward, std = evaluate_policy(Model(), None)\nprint(f'mean_reward:{mean_reward:.2f} +/- {std:.2f}')\n",
        mine="class Model:\n    def predict(self, obs):\n        return int(obs[2] > 0), None\n",
    )
    command = "env PYTHONPATH=lib python check.py"
    told = found(".", "--evaluator", command, "--attacks", "evaluator-function,env-step,print,drop-ins", cwd=tmp_path)
    assert {"env-step", "print"} <= set(told["holes"])


def test_a_drop_in_gets_in_where_the_folder_is_on_the_path(tmp_path: Path) -> None:
    write(tmp_path, evaluate=f"from policy import choose\n{STEP_LOOP}\nprint('score', total)\n", policy=POLICY)
    command = "env PYTHONPATH=. python evaluate.py"
    told = found(".", "--evaluator", command, "--metric", "score", "--attacks", "drop-ins", cwd=tmp_path)
    assert set(told["holes"]) == {"drop-ins"}


def test_code_in_a_saved_policy_runs_where_it_is_unpickled(tmp_path: Path) -> None:
    import pickle

    loading = "import pickle\nwith open('agent.pkl', 'rb') as file:\n    w = pickle.load(file)\n"
    loading += "choose = lambda obs: int(obs[2] * w > 0)\n"
    write(tmp_path, evaluate=f"{loading}{STEP_LOOP}\nprint(f'score: {{total}}')\n")
    (tmp_path / "agent.pkl").write_bytes(pickle.dumps(1.0))
    told = found(".", cwd=tmp_path)
    assert set(told["holes"]) == {"pickle"}
    assert told["holes"]["pickle"]["line"] == "evaluate.py:3"


def test_a_slowed_clock_buys_more_training_under_a_time_budget(tmp_path: Path) -> None:
    trainer = "import time\n\ndef train(seconds):\n    began, done = time.monotonic(), 0\n"
    trainer += (
        "    while time.monotonic() - began < seconds:\n        done += 1\n        time.sleep(0.05)\n    return done\n"
    )
    write(tmp_path, evaluate="from train import train\nprint(f'score: {train(1.0)}')\n", train=trainer)
    assert set(found(".", "--attacks", "clock", cwd=tmp_path)["holes"]) == {"clock"}


def test_failed_episodes_that_are_left_out_are_a_hole(tmp_path: Path) -> None:
    loop = """
import gymnasium
from policy import choose

def play(env, seed):
    obs, _ = env.reset(seed=seed)
    total, done = 0.0, False
    while not done:
        obs, reward, over, late, _ = env.step(choose(obs))
        total, done = total + float(reward), over or late
    return total

env, returns = gymnasium.make("CartPole-v1"), []
for seed in range(8):
    try:
        returns.append(play(env, seed))
    except RuntimeError:
        continue
print("score:", sum(returns) / len(returns))
"""
    write(tmp_path, evaluate=loop, policy=POLICY)
    assert set(found(".", "--attacks", "lost-episodes", cwd=tmp_path)["holes"]) == {"lost-episodes"}


def test_the_folder_stays_as_it_was_even_where_no_kernel_would_stop_an_attack(tmp_path: Path) -> None:
    folder = shutil.copytree(EXAMPLES / "built_from_brief", tmp_path / "own")
    before = fingerprint(folder)
    code = """
from pathlib import Path
from overnight.attack.foreign import siege
from overnight.attack.foreign.catalogue import chosen
from overnight.attack.foreign.find import Wish, find
siege.tier_for = lambda least: least
attacks = chosen("overwrite-evaluator,shadow-module,drop-ins")
found = siege.besiege(find(Path.cwd(), Wish()), attacks, siege.Limits(seconds=90, timeout=30), lambda text: None)
print(found.tier, [one.attack for one in found.holes()])
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("T1 ['overwrite-evaluator', 'shadow-module'")
    assert fingerprint(folder) == before


def test_what_there_is_no_time_for_is_named(tmp_path: Path) -> None:
    write(
        tmp_path,
        evaluate="import time\nfrom policy import choose\ntime.sleep(1)\nprint('score: 1.0')\n",
        policy=POLICY,
    )
    told = found(".", "--seconds", "12", cwd=tmp_path)
    assert told["left_out"] and told["seconds"] < 30
    done = overnight_attack(".", "--seconds", "3", cwd=tmp_path)
    assert done.returncode == 2
    assert "no attack could be tried" in done.stderr or "did not end" in done.stderr


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("nowhere",), "nowhere: is not a folder"),
        (("--attacks", "evn-step"), "did you mean `env-step`?"),
        (("--seconds", "0"), "at least 1 second is needed"),
        (("--metric", "fitness"), "it prints `score`"),
        (("--evaluator", "python broken.py", "--candidate", "policy.py"), "gives no score without any attack"),
        (("--evaluator", "python broken.py", "--candidate", "policy.py"), f"hint: it ran with {sys.executable}"),
        (("--evaluator", "python slow.py", "--timeout", "2"), "`--timeout` and `--seconds` give more time"),
        (("--evaluator", "python tools/asks.py"), "the following arguments are required: --env"),
        (
            ("--evaluator", "python tools/asks.py"),
            "hint: `--evaluator 'python -m tools.asks …'` takes the whole command",
        ),
    ],
)
def test_a_mistake_is_one_sentence_and_exit_2(tmp_path: Path, words: tuple[str, ...], sentence: str) -> None:
    write(
        tmp_path,
        evaluate="from policy import choose\nprint('score: 1')\n",
        policy=POLICY,
        broken="import nothing_here\n",
        slow="import policy, time\ntime.sleep(60)\n",
    )
    (tmp_path / "tools").mkdir()
    asks = "import argparse\nimport policy\nall = argparse.ArgumentParser()\nall.add_argument('--env', required=True)\n"
    (tmp_path / "tools" / "asks.py").write_text(asks + "all.parse_args()\nprint('score: 1')\n")
    done = overnight_attack(*words, cwd=tmp_path)
    assert done.returncode == 2
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr


def test_every_attack_says_what_it_does_and_what_stops_it() -> None:
    assert len(catalogue()) >= 30
    for one in catalogue():
        assert one.says.endswith(".") and one.fix.endswith(".") and len(one.fix) <= 100, one.name
        compile(one.code, one.name, "exec")
    done = overnight_attack("--list", cwd=EXAMPLES)
    assert done.returncode == 0
    assert all(one.name in done.stdout for one in catalogue())
