"""The doctor says what is there, names what is missing with the command that installs it, and changes nothing."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import overnight as package
from overnight.evaluate.seeds import keys_folder
from overnight.machine import RealMachine
from overnight.records.lifecycle import Actor
from overnight.room import disk_shortfall
from overnight.sandbox.probe import strongest
from scenes import Said, Scene, clean_env, digest_of, overnight

Verb = Callable[..., Said]
_EXTRAS = ("gymnasium", "jax", "optuna", "envpool", "pygame", "box2d", "mujoco")


def findings(done: Said | subprocess.CompletedProcess[str]) -> dict[str, dict[str, Any]]:
    return {one["name"]: one for one in json.loads(done.stdout)["findings"]}


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """The installed packages without the optional ones, as after a plain `pip install overnight`."""
    site = tmp_path / "site"
    site.mkdir()
    for folder in (Path(path) for path in sys.path if path.endswith("-packages")):
        for entry in folder.iterdir():
            if not entry.name.lower().startswith(_EXTRAS) and not (site / entry.name).exists():
                (site / entry.name).symlink_to(entry)
    return site


def in_bare(site: Path, *words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    paths = [str(site), str(Path(package.__file__).parents[1])]
    code = f"import sys; sys.path[:0] = {paths!r}; from overnight.cli.main import main; sys.exit(main())"
    return subprocess.run(
        [sys.executable, "-I", "-S", "-c", code, *words],
        cwd=cwd,
        env=clean_env(),
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.feature("Z48")
def test_a_missing_dependency_is_named_with_the_command_that_installs_it(bare: Path, tmp_path: Path) -> None:
    done = in_bare(bare, "doctor", "--json", cwd=tmp_path)
    found = findings(done)
    assert {name: (found[name]["standing"], found[name]["command"]) for name in ("Gymnasium", "JAX", "EnvPool")} == {
        "Gymnasium": ("problem", 'pip install "overnight[gym]"'),
        "JAX": ("problem", 'pip install "overnight[rl]"'),
        "EnvPool": ("note", 'pip install "overnight[rl]"'),
    }
    assert found["MuJoCo"]["command"] == 'pip install "overnight[rl]"'
    assert "swig" in found["Box2D"]["command"]
    assert done.returncode == 1
    shown = in_bare(bare, "doctor", cwd=tmp_path).stdout
    assert "problem  JAX            missing: the built-in trainers cannot train\n" in shown
    assert '→ pip install "overnight[rl]"' in shown


def test_outside_of_any_study_it_looks_at_the_machine_alone(tmp_path: Path, verb: Verb) -> None:
    before = digest_of(tmp_path)
    done = verb("doctor", "--json", "--dir", str(tmp_path))
    found = findings(done)
    assert done.code == 0
    assert {"Overnight", "git", "Gymnasium", "JAX", "JAX devices", "cores", "disk here", "isolation"} <= found.keys()
    assert found["JAX devices"]["says"] == "cpu:0"
    assert f"tier {strongest()}: " in found["isolation"]["says"]
    assert not {"seed key", "environment", "study"} & found.keys()
    assert digest_of(tmp_path) == before


def test_it_says_which_backend_the_task_gets_and_why(cartpole: Scene, verb: Verb) -> None:
    before = digest_of(cartpole.project)
    done = verb("doctor", "--json", "--dir", str(cartpole.project))
    says = findings(done)["environment"]["says"]
    assert (done.code, says) == (0, "CartPole-v1 is measured on Gymnasium; training on EnvPool")
    cartpole.edit("kwargs: {}", "kwargs: {sutton_barto_reward: true}")
    says = findings(verb("doctor", "--json", "--dir", str(cartpole.project)))["environment"]["says"]
    assert says.endswith("with arguments; training on Gymnasium")
    assert {path: told for path, told in digest_of(cartpole.project).items() if "contract.yaml" not in path} == {
        path: told for path, told in before.items() if "contract.yaml" not in path
    }


def test_an_environment_that_cannot_be_made_is_a_problem_with_a_command(cartpole: Scene, verb: Verb) -> None:
    cartpole.edit("id: CartPole-v1", "id: phys2d/CartPole-v1")
    done = verb("doctor", "--json", "--dir", str(cartpole.project))
    found = findings(done)["environment"]
    assert (done.code, found["standing"], found["command"]) == (1, "problem", 'pip install "gymnasium[jax]"')


@pytest.mark.parametrize(
    ("env", "says"),
    [
        ("Hopper-v5", "training on EnvPool"),
        ("Taxi-v4", "EnvPool was not compared with Gymnasium in Taxi-v4; training on"),
    ],
)
def test_it_says_without_a_study_what_would_step_an_environment(
    tmp_path: Path, verb: Verb, env: str, says: str
) -> None:
    done = verb("doctor", "--json", "--env", env, "--dir", str(tmp_path))
    assert done.code == 0
    assert findings(done)["environment"]["says"].startswith(f"{env} is measured on Gymnasium; {says}")


def test_a_lost_seed_key_is_a_problem(cartpole: Scene, verb: Verb, monkeypatch: pytest.MonkeyPatch) -> None:
    assert keys_folder().is_dir()
    monkeypatch.setenv("XDG_STATE_HOME", str(cartpole.project.parent))
    done = verb("doctor", "--json", "--dir", str(cartpole.project))
    assert (done.code, findings(done)["seed key"]["standing"]) == (1, "problem")


def test_a_disk_smaller_than_the_budget_is_a_problem(cartpole: Scene, verb: Verb) -> None:
    assert disk_shortfall(cartpole.contract(), cartpole.at) == ""
    cartpole.edit("disk_gigabytes: 10", "disk_gigabytes: 1000000000")
    assert disk_shortfall(cartpole.contract(), cartpole.at).endswith("more.")
    done = verb("doctor", "--json", "--dir", str(cartpole.project))
    assert (done.code, findings(done)["disk budget"]["standing"]) == (1, "problem")


def test_git_that_is_missing_is_a_problem(tmp_path: Path) -> None:
    done = overnight("doctor", "--json", cwd=tmp_path, env={**clean_env(), "PATH": str(tmp_path)})
    assert (done.returncode, findings(done)["git"]["standing"]) == (1, "problem")


def test_an_engine_that_holds_the_study_is_named(cartpole: Scene, verb: Verb) -> None:
    with cartpole.open():
        done = verb("doctor", "--json", "--dir", str(cartpole.project))
    assert f"held by pid {os.getpid()}" in findings(done)["engine"]["says"]
    assert findings(verb("doctor", "--json", "--dir", str(cartpole.project)))["engine"]["standing"] == "ok"


def test_a_run_without_a_supervisor_is_named(cartpole: Scene, verb: Verb) -> None:
    cartpole.enter()
    cartpole.propose({"gamma": 0.95})
    with cartpole.open() as study:
        study.append(Actor.RUNNER, cartpole.run_of("c-0001"))
    found = findings(verb("doctor", "--json", "--dir", str(cartpole.project)))["runs"]
    assert (found["standing"], "r-0001 without a supervisor" in found["says"]) == ("note", True)


def test_a_damaged_study_does_not_hide_the_machine(cartpole: Scene, verb: Verb) -> None:
    cartpole.at.ledger.write_bytes(cartpole.at.ledger.read_bytes()[:-200])
    done = verb("doctor", "--json", "--dir", str(cartpole.project))
    assert (done.code, findings(done)["study"]["standing"]) == (1, "problem")
    assert findings(done)["git"]["standing"] == "ok"


def test_a_probe_that_hangs_is_given_up(cartpole: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    from overnight import checkup

    monkeypatch.setattr(checkup, "_LIMIT_SECONDS", 0.01)
    began = time.monotonic()
    found = {one.name: one for one in checkup.checkup(RealMachine(), cartpole.project, lambda _: False)}
    assert found["JAX devices"].says == "JAX cannot be used: no answer within 0.01 s"
    assert time.monotonic() - began < 5.0


def test_a_contract_that_wants_stronger_isolation_than_there_is_is_a_problem(cartpole: Scene, verb: Verb) -> None:
    cartpole.rewrite(lambda terms: terms["evaluation"].update(min_tier="T4"))
    done = verb("doctor", "--json", "--dir", str(cartpole.project))
    assert (done.code, findings(done)["isolation"]["standing"]) == (1, "problem")
    assert "wants isolation T4 or stronger" in findings(done)["isolation"]["says"]
