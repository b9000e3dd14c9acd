"""What a night may begin from: warm, everything that is known of its environment; cold, nothing of its family."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from overnight.adapters.proposers.mix import MixProposer
from overnight.adapters.proposers.search import SearchProposer
from overnight.begin import Place, begin_env, begin_repository
from overnight.candidate.build import params_of
from overnight.contract import trainers
from overnight.contract.draft import Stated
from overnight.contract.screen import screen
from overnight.errors import UserError
from overnight.machine import RealMachine
from overnight.records.contract import Contract
from overnight.records.proposal import Proposal, Tried, View
from overnight.records.space import StartingPoint
from scenes import scene_in

PPO = trainers.space("ppo")


def contract_for(folder: Path, env: str, *, cold: bool) -> Contract:
    begin_env(RealMachine(), Place(folder), Stated(env=env, cold=cold))
    return scene_in(folder).contract()


def called(contract: Contract) -> list[str]:
    return [point.called for point in trainers.starting_points("ppo", contract)]


@pytest.mark.parametrize("point", trainers._published()["ppo"], ids=lambda point: point.called)
def test_every_starting_point_has_a_source_a_family_and_fits_its_trainers_space(point: StartingPoint) -> None:
    assert point.source.endswith(".")
    assert point.family in trainers.FAMILIES
    for key, value in point.params.items():
        one = PPO.find(key)
        assert one is not None, key
        assert one.why_not(value) is None, key


def test_every_recipe_belongs_to_a_family_that_a_cold_night_can_withhold() -> None:
    for recipe in trainers._recipes()["ppo"]:
        assert {trainers.family(f"{env}-v1") for env in recipe.envs} == {recipe.family.partition(",")[0]}


def test_a_warm_night_begins_with_its_own_recipe_and_then_with_what_is_published_for_its_family(tmp_path: Path) -> None:
    contract = contract_for(tmp_path, "Acrobot-v1", cold=False)
    assert called(contract) == ["classic control", "Acrobot", "CartPole", "MountainCar", "Pendulum"]


def test_the_baseline_of_a_plain_environment_is_the_published_default_warm_or_cold(tmp_path: Path) -> None:
    for cold in (False, True):
        folder = tmp_path / str(cold)
        folder.mkdir()
        contract = contract_for(folder, "BipedalWalker-v3", cold=cold)
        scene = scene_in(folder)
        assert params_of(scene.store, scene.state().tree) == PPO.defaults()
        assert contract.baseline.source.startswith("Default settings of CleanRL's ppo.py")


def test_cold_stands_in_the_contract_and_on_the_screen_and_withholds_the_whole_family(tmp_path: Path) -> None:
    contract = contract_for(tmp_path, "BipedalWalker-v3", cold=True)
    assert contract.experiments.start == "cold"
    points = trainers.starting_points("ppo", contract)
    assert points
    assert "Box2D" not in {point.family for point in points}
    assert "Cold: what is known of Box2D is withheld; search begins from known settings for CartPole" in " ".join(
        says for _, says in screen(contract)
    )


@pytest.mark.parametrize(
    ("env", "published"),
    [
        pytest.param("Pusher-v5", ["Swimmer", "MuJoCo"], id="of a known family"),
        pytest.param("Maze-v0", [point.called for point in trainers._published()["ppo"]], id="of no known family"),
    ],
)
def test_an_environment_without_a_recipe_begins_from_the_broadest_one_and_then_from_what_is_published(
    env: str, published: list[str], tmp_path: Path
) -> None:
    contract = contract_for(tmp_path, "CartPole-v1", cold=False)
    stranger = replace(contract, task=replace(contract.task, env=replace(contract.task.env, id=env)))
    assert called(stranger) == ["classic control", *published]
    assert not any(point.near for point in trainers.starting_points("ppo", stranger)), "diagnostics are asked first"


def test_cold_and_recipe_contradict_each_other(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="withholds the recipes of this family"):
        begin_env(RealMachine(), Place(tmp_path), Stated(env="CartPole-v1", cold=True, recipe=True))
    with pytest.raises(UserError, match="--cold: is about the settings of a built-in trainer"):
        begin_repository(RealMachine(), Place(tmp_path), Stated(cold=True))
    assert not (tmp_path / ".overnight").exists()


def test_the_baseline_takes_stated_parameters_and_says_so(tmp_path: Path) -> None:
    stated = Stated(env="CartPole-v1", params={"learning_rate": 3e-05, "num_envs": 8}, runs=40)
    begin_env(RealMachine(), Place(tmp_path), stated)
    scene = scene_in(tmp_path)
    assert params_of(scene.store, scene.state().tree) == {**PPO.defaults(), "learning_rate": 3e-05, "num_envs": 8}
    assert scene.contract().baseline.source.endswith("Stated for this study: learning_rate is 3e-05, num_envs is 8.")
    assert scene.contract().budget.max_runs == 40


@pytest.mark.parametrize(
    ("params", "says"),
    [
        ({"learning_rat": 0.1}, "`learning_rat` is not a parameter of ppo"),
        ({"gamma": 2.0}, "`gamma` is 2.0, but 0.8 to 0.9999 is allowed"),
        ({"num_envs": 2.5}, "`num_envs` is 2.5, but a whole number is needed"),
    ],
)
def test_a_baseline_that_the_trainer_does_not_allow_is_refused(
    params: dict[str, object], says: str, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match=says):
        begin_env(RealMachine(), Place(tmp_path), Stated(env="CartPole-v1", params=params))
    assert not (tmp_path / ".overnight").exists()


# A cold night cannot know what is withheld: poison it, and nothing changes


def ideas(contract: Contract, count: int) -> Iterator[Proposal]:
    """The ideas of a night in which the better half of them is kept."""
    view = View(
        task="any",
        study="first",
        program="",
        surface=("params.json",),
        keys=contract.scope.keys,
        space=PPO,
        params=PPO.defaults(),
        tried=(),
        runs_left=1000,
        candidates_left=1000,
        seed=7,
        starting=trainers.starting_points("ppo", contract),
    )
    proposer = MixProposer({"search": SearchProposer()})
    for number in range(count):
        found = proposer.ask(view)
        assert isinstance(found, Proposal)
        yield found
        kept = number % 7 == 3
        tried = Tried(
            candidate=f"c-{number + 2:04d}",
            proposal=found,
            params={**view.params, **found.params},
            outcome="kept" if kept else "rejected",
            gain=1.0 if kept else -float(number % 5),
        )
        view = replace(view, tried=(*view.tried, tried), params=tried.params if kept else view.params)


@pytest.mark.parametrize("env", ["BipedalWalker-v3", "LunarLander-v3", "CartPole-v1", "HalfCheetah-v5", "Ant-v5"])
def test_the_first_idea_of_a_warm_night_is_the_recipe_to_the_last_parameter(env: str, tmp_path: Path) -> None:
    contract = contract_for(tmp_path, env, cold=False)
    whole = {**PPO.defaults(), **next(ideas(contract, 1)).params}
    assert whole == {**PPO.defaults(), **trainers.need_recipe("ppo", env).params}


@pytest.mark.parametrize("env", ["BipedalWalker-v3", "CartPole-v1", "HalfCheetah-v5"])
def test_no_withheld_value_reaches_a_proposal_of_a_cold_night(
    env: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cold = contract_for(tmp_path, env, cold=True)
    warm = replace(cold, experiments=replace(cold.experiments, start="warm"))
    before, known = list(ideas(cold, 40)), list(ideas(warm, 1))
    poison = {"learning_rate": 0.0123, "gamma": 0.8642}
    recipes = {"ppo": tuple(replace(one, params={**one.params, **poison}) for one in trainers._recipes()["ppo"])}
    own = trainers.family(env)
    points = {
        "ppo": tuple(
            replace(one, params={**one.params, **poison}) if one.family == own else one
            for one in trainers._published()["ppo"]
        )
    }
    monkeypatch.setattr(trainers, "_recipes", lambda: recipes)
    monkeypatch.setattr(trainers, "_published", lambda: points)
    assert list(ideas(cold, 40)) == before, "a cold night read what is withheld"
    assert list(ideas(warm, 1)) != known, "the poison is in the first idea of a warm night, so this test can fail"


def test_the_trainer_any_begins_from_what_is_known_of_ppo_and_from_each_other_algorithms_defaults(
    tmp_path: Path,
) -> None:
    contract = contract_for(tmp_path, "Acrobot-v1", cold=False)
    points = trainers.starting_points("any", contract)
    assert [point.called for point in points][-2:] == ["sac", "dqn"]
    assert {point.params["algorithm"] for point in points[:-2]} == {"ppo"}
    space = trainers.space("any")
    for point in points:
        for key, value in point.params.items():
            one = space.find(key)
            assert one is not None, key
            assert one.why_not(value) is None, key


def test_another_algorithm_passes_the_gate_where_the_study_leaves_it_open(tmp_path: Path) -> None:
    begin_env(RealMachine(), Place(tmp_path), Stated(env="Pendulum-v1", trainer="any"))
    scene = scene_in(tmp_path)
    scene.approve()
    scene.enter()
    sac = next(point for point in trainers.starting_points("any", scene.contract()) if point.called == "sac")
    changed = {key: value for key, value in sac.params.items() if trainers.space("any").defaults()[key] != value}
    assert "algorithm" in changed
    assert scene.propose(changed, kind="algorithm", bundle=tuple(f"{key} changes." for key in changed)) == ()
    refused = scene.propose({"algorithm": "td3"}, kind="algorithm")
    assert "one of 'ppo', 'sac', 'dqn' is needed" in refused[0].says.replace('"', "'")
