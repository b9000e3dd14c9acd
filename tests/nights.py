"""Small whole nights for tests: real trainers, real supervisors, a real referee."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from overnight.adapters.launchers.local import LocalLauncher
from overnight.admission import Who, enter
from overnight.begin import Place, begin_env, begin_repository
from overnight.contract.draft import Stated
from overnight.evaluate.seeds import Seeds, load_key
from overnight.loop import Night, night
from overnight.machine import RealMachine
from overnight.ports import Proposer
from overnight.records.approval import Strength
from overnight.records.contract import Contract
from overnight.records.proposal import Exhausted, Proposal, View
from overnight.study.study import Study
from overnight.trials import Bench
from scenes import Scene, complete, scene_in, write_repository

GOOD = {"learning_rate": 0.003, "num_envs": 8, "rollout_steps": 32, "update_epochs": 8}


class Scripted:
    """Has one idea, and then no more."""

    def ask(self, view: View) -> Proposal | Exhausted:
        if view.tried:
            return Exhausted(because="The script is at its end.")
        return Proposal(
            proposer="search",
            kind="hyperparameter",
            hypothesis="Larger steps on smaller rollouts learn faster.",
            predicted_effect="The score rises.",
            params=GOOD,
            bundle=tuple(f"{key} becomes {value}" for key, value in GOOD.items()),
        )


def small_study(project: Path) -> Scene:
    """A study whose runs take a second or two each; too few of them to take a certified bundle apart."""
    begin_env(RealMachine(), Place(project), Stated(env="CartPole-v1", env_steps=2048, hours=1))
    scene = scene_in(project)
    for old, new in (
        ("max_runs: 1000", "max_runs: 40"),
        ("screen_train_seeds: null", "screen_train_seeds: 2"),
        ("confirm_train_seeds: null", "confirm_train_seeds: 4"),
        ("screen_episodes: 20", "screen_episodes: 10"),
        ("confirm_episodes: 100", "confirm_episodes: 10"),
    ):
        scene.edit(old, new)
    scene.approve()
    return scene


def sit(scene: Scene, proposer: Proposer | None = None, finishing: Callable[[], bool] = lambda: False) -> str:
    """One sitting, to its end."""
    with scene.open() as study:
        contract = enter(study, Who("tester", Strength.TERMINAL))
        bench = bench_of(scene, study, contract)
        return night(Night(bench, proposer or Scripted(), time.monotonic() + 3600, finishing))


def bench_of(scene: Scene, study: Study, contract: Contract) -> Bench:
    """Where the trials of a study happen."""
    seeds = Seeds(load_key(study.state.seed_commitment or ""), f"{scene.at.task.name}/{scene.at.name}")
    return Bench(study, scene.store, contract, LocalLauncher(), seeds, 2, lambda _: None)


# Nights of seconds, with a trainer that knows the answer already


class Silent:
    """Has no idea at all; people do."""

    def ask(self, view: View) -> Exhausted:
        return Exhausted(because="The script is at its end.")


TRAINER = Path(__file__).with_name("knowing_trainer.txt").read_text()
SMALL = {"screen_train_seeds": 2, "confirm_train_seeds": 4, "screen_episodes": 5, "confirm_episodes": 5}
FEW = {"max_runs": 60}
IDEAS = (
    ({"angle": 1.0}, "The pole's angle says where to push."),
    ({"angle": 1.0, "speed": 1.0, "code": True}, "Its speed says where it will be."),
)


def small(terms: dict[str, Any]) -> None:
    """Few seeds, few episodes and few runs."""
    terms["evaluation"] |= SMALL
    terms["budget"] |= FEW


def params_night(project: Path) -> Scene:
    """A night that certifies one change of a parameter."""
    scene = knowing_study(project, proposers=["human"])
    assert scene.propose({"learning_rate": 0.01}, hypothesis="A pole that is watched falls later.") == ()
    sit(scene, Silent())
    return scene


def params_study(project: Path) -> Scene:
    """A study of parameters, not approved yet, whose trainer knows the answer once its learning rate is above 0.001."""
    project.mkdir(parents=True)
    trainer = project.parent / "trainer.py"
    trainer.write_text(TRAINER)
    begin_env(RealMachine(), Place(project), Stated(env="CartPole-v1", env_steps=1000, hours=1))
    scene = scene_in(project)

    def say(terms: dict[str, Any]) -> None:
        terms["baseline"] |= {"trainer": "repository", "command": ["python", str(trainer)]}
        small(terms)

    scene.rewrite(say)
    return scene


def knowing_study(project: Path, *, proposers: list[str]) -> Scene:
    """The same, approved, with these proposers."""
    scene = params_study(project)
    scene.rewrite(lambda terms: terms["experiments"].update(proposers=proposers))
    scene.approve()
    return scene


def repository_night(project: Path) -> Scene:
    """Two sittings in which two changes of a person's are kept, one on the other, and certified together."""
    write_repository(project, {"train.py": TRAINER, "config.json": "{}\n", "docs/notes.md": "Notes.\n"})
    begin_repository(RealMachine(), Place(project), Stated())
    scene = scene_in(project)
    complete(scene)
    scene.rewrite(small)
    scene.approve()
    for number, (looks, idea) in enumerate(IDEAS):
        copy = scene.copy()
        (copy / "config.json").write_text(json.dumps(looks) + "\n")
        assert scene.propose(copy, kind="code", hypothesis=idea) == ()
        last = number == len(IDEAS) - 1
        sit(scene, Silent(), (lambda: False) if last else lambda: bool(scene.state().stack))
    return scene
