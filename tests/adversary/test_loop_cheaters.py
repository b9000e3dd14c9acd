"""Cheaters who go on when the study may not: without the word, without a budget, elsewhere, or past its end."""

import pytest

from overnight import loop
from overnight.errors import Refused
from overnight.records.lifecycle import Actor, State
from scenes import TESTER, Scene, refused_in_ledger, said


def cannot_enter(scene: Scene, rule: str, sentence: str) -> None:
    """Neither entering the loop nor launching is allowed; the ledger says why, and nothing is entered or launched."""
    entered, runs = scene.state().entered, len(scene.entries("launched"))
    with scene.open() as study:
        assert sentence in said(loop.may_launch_now(study), rule)
        with pytest.raises(Refused) as refused:
            loop.enter(study, TESTER)
    assert sentence in refused.value.says
    assert refused_in_ledger(scene, None, rule, sentence)
    assert (scene.state().entered, len(scene.entries("launched"))) == (entered, runs)


def trained(scene: Scene, old: str, new: str, *, runs: int, wall_seconds: float = 1.0) -> None:
    """A study whose budget was edited and approved, with this many training runs behind it."""
    scene.edit(old, new)
    scene.approve()
    scene.enter()
    assert scene.propose({"gamma": 0.95}) == ()
    for number in range(1, runs + 1):
        scene.train("c-0001", number=number, wall_seconds=wall_seconds)


@pytest.mark.cheater("budget")
@pytest.mark.feature("R18")
def test_a_run_beyond_the_approved_number_is_refused(cartpole: Scene) -> None:
    trained(cartpole, "max_runs: 1000", "max_runs: 3", runs=3)
    cannot_enter(cartpole, "budget", "The budget of 3 training runs is spent.")


@pytest.mark.cheater("budget")
@pytest.mark.feature("R97")
def test_a_run_beyond_the_approved_hours_is_refused(cartpole: Scene) -> None:
    trained(cartpole, "max_wall_hours: 8.0", "max_wall_hours: 2.0", runs=2, wall_seconds=3600.0)
    cannot_enter(cartpole, "budget", "The budget of 2 hours is spent (2.00 used).")


@pytest.mark.cheater("budget")
def test_the_last_second_of_the_budget_may_still_be_used(cartpole: Scene) -> None:
    trained(cartpole, "max_wall_hours: 8.0", "max_wall_hours: 2.0", runs=2, wall_seconds=3599.5)
    with cartpole.open() as study:
        assert loop.may_launch_now(study) == ()


@pytest.mark.cheater("budget")
@pytest.mark.feature("A50")
def test_a_spent_budget_stops_the_loop_even_after_a_win(cartpole: Scene) -> None:
    trained(cartpole, "max_runs: 1000", "max_runs: 1", runs=0)
    cartpole.keep(cartpole.train("c-0001"))
    assert cartpole.entries("decided")[-1]["loop"] == "continue"
    cannot_enter(cartpole, "budget", "The budget of 1 training runs is spent.")


@pytest.mark.cheater("hardware")
@pytest.mark.feature("R19")
def test_a_machine_that_was_not_approved_is_refused(cartpole: Scene) -> None:
    cartpole.edit("host: any", "host: the-lab-workstation")
    cartpole.approve()
    with cartpole.open() as study:
        here = loop.opening(study.state, cartpole.terms()).host
    cannot_enter(
        cartpole, "hardware", f"Training is approved on the-lab-workstation alone, and this machine is {here}."
    )


@pytest.mark.cheater("baseline")
def test_a_weaker_baseline_than_the_study_began_with_is_refused(cartpole: Scene) -> None:
    began = cartpole.entries("created")[0]["tree"]
    blob = cartpole.store.write_blob(b'{"learning_rate": 1e-05}')
    weak = cartpole.git("mktree", stdin=f"100644 blob {blob}\tparams.json\n")
    cartpole.rewrite(lambda terms: terms["baseline"].update(tree=weak))
    cartpole.approve()
    sentence = f"The contract names the baseline {weak[:12]}, but this study began with {began[:12]}."
    cannot_enter(cartpole, "baseline", sentence)


@pytest.mark.cheater("stop-rules")
def test_a_candidate_beyond_the_stop_rule_is_refused(cartpole: Scene) -> None:
    cartpole.edit("stop:  # The rules that end the loop.\n    max_candidates: 200", "stop:\n    max_candidates: 2")
    cartpole.approve()
    assert cartpole.propose({"gamma": 0.9}) == cartpole.propose({"gamma": 0.95}) == ()
    sentence = "The stop rule has fired: 2 of 2 candidates were admitted."
    assert said(cartpole.propose({"gamma": 0.96}), "stop-rules") == sentence
    assert refused_in_ledger(cartpole, "c-0003", "stop-rules", sentence)
    assert cartpole.state_of("c-0003") is State.DRAFT


@pytest.mark.cheater("loop-entry")
@pytest.mark.feature("A44")
def test_a_complete_plan_without_the_word_to_enter_launches_nothing(cartpole: Scene) -> None:
    assert cartpole.propose({"gamma": 0.95}) == ()
    with cartpole.open() as study:
        reasons = loop.may_launch_now(study)
        with pytest.raises(Refused, match="nobody asked to enter the loop under this contract"):
            study.append(Actor.RUNNER, cartpole.run_of("c-0001"))
    assert said(reasons, "loop-entry") == "Nobody has asked to enter the loop; `overnight start` does."
    assert cartpole.entries("launched") == []


@pytest.mark.cheater("loop-entry")
def test_the_word_to_enter_does_not_hold_for_later_terms(cartpole: Scene) -> None:
    cartpole.enter()
    cartpole.edit("max_runs: 1000", "max_runs: 2000")
    cartpole.approve()
    assert cartpole.propose({"gamma": 0.95}) == ()
    with cartpole.open() as study:
        reasons = loop.may_launch_now(study)
        with pytest.raises(Refused, match="nobody asked to enter the loop under this contract"):
            study.append(Actor.RUNNER, cartpole.run_of("c-0001"))
    assert said(reasons, "loop-entry") == "The contract changed since the loop was entered; `overnight start` does."
    assert cartpole.state_of("c-0001") is State.VALIDATED


@pytest.mark.cheater("lifecycle")
def test_a_draft_cannot_be_launched(cartpole: Scene) -> None:
    cartpole.enter()
    cartpole.propose({"gamma": 0.95}, kind="reward")
    with cartpole.open() as study, pytest.raises(Refused, match="A candidate that is draft cannot become launched"):
        study.append(Actor.RUNNER, cartpole.run_of("c-0001"))
    assert cartpole.entries("launched") == []


@pytest.mark.cheater("terms")
@pytest.mark.feature("A29")
def test_a_command_that_is_not_the_approved_one_is_not_launched(cartpole: Scene) -> None:
    cartpole.enter()
    cartpole.propose({"gamma": 0.95})
    other = cartpole.run_of("c-0001", command=("python", "-m", "overnight.rl.trainers.ppo", "--easy"))
    with cartpole.open() as study, pytest.raises(Refused, match="its command is not the approved one"):
        study.append(Actor.RUNNER, other)
    assert cartpole.entries("launched") == []


@pytest.mark.cheater("provenance")
def test_a_run_of_another_tree_is_not_launched(cartpole: Scene) -> None:
    cartpole.enter()
    cartpole.propose({"gamma": 0.95})
    other = cartpole.run_of("c-0001", tree=cartpole.store.tree_of(cartpole.state().tip))
    with cartpole.open() as study, pytest.raises(Refused, match="c-0001 was drafted with the tree"):
        study.append(Actor.RUNNER, other)
    assert cartpole.entries("launched") == []
