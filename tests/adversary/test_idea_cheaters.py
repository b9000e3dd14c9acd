"""Cheaters whose files are in order and whose idea is not."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from overnight.errors import Refused
from overnight.records.candidate import Candidate
from overnight.records.codec import decode
from overnight.records.lifecycle import Actor, State
from overnight.records.refusal import Reason
from scenes import Scene, refused_in_ledger, said


def lost(scene: Scene, reasons: tuple[Reason, ...], rule: str, sentence: str) -> None:
    """The rule said this sentence, the ledger holds it, and the candidate stays a draft."""
    assert sentence in said(reasons, rule)
    assert refused_in_ledger(scene, "c-0001", rule, sentence)
    assert scene.state_of("c-0001") is State.DRAFT


@pytest.mark.cheater("parameters")
@pytest.mark.feature("A28", "R17")
def test_a_parameter_that_the_contract_does_not_open_is_refused(cartpole: Scene) -> None:
    reasons = cartpole.propose({"reward_scale": 100.0})
    sentence = "params.json changes `reward_scale`, which is not among the keys that the contract opens."
    lost(cartpole, reasons, "parameters", sentence)


@pytest.mark.cheater("parameters")
@pytest.mark.parametrize(
    ("key", "value", "wrong"),
    [
        pytest.param("learning_rate", 0.5, "is 0.5, but 1e-05 to 0.03 is allowed", id="out of range"),
        pytest.param("num_envs", 4.5, "is 4.5, but a whole number is needed", id="a broken number"),
        pytest.param("num_envs", True, "is true, but a whole number is needed", id="true for a number"),
        pytest.param("gamma", "0.9; import os", "but a number is needed", id="text for a number"),
        pytest.param("activation", "gelu", "but one of", id="an unknown choice"),
        pytest.param("gamma", None, "is null, but a number is needed", id="nothing at all"),
    ],
)
def test_a_value_that_does_not_fit_the_trainers_space_is_refused(
    cartpole: Scene, key: str, value: object, wrong: str
) -> None:
    reasons = cartpole.propose({key: value})
    lost(cartpole, reasons, "parameters", wrong)


@pytest.mark.cheater("parameters")
def test_a_parameter_that_disappears_is_refused(cartpole: Scene) -> None:
    copy = cartpole.copy()
    params = json.loads((copy / "params.json").read_text())
    del params["clip_range"]
    (copy / "params.json").write_text(json.dumps(params))
    sentence = "params.json drops `clip_range`, and a parameter may change but not disappear."
    lost(cartpole, cartpole.propose(copy), "parameters", sentence)


@pytest.mark.cheater("parameters")
@pytest.mark.parametrize(
    "text",
    [
        pytest.param('{"gamma": 0.9, "gamma": 0.95}', id="a key twice, of which a trainer may take either"),
        pytest.param('{"gamma": NaN}', id="not a number"),
        pytest.param("[]", id="no mapping"),
        pytest.param("", id="nothing"),
    ],
)
def test_a_parameter_file_that_means_two_things_is_refused(cartpole: Scene, text: str) -> None:
    copy = cartpole.copy()
    (copy / "params.json").write_text(text)
    lost(cartpole, cartpole.propose(copy), "parameters", "params.json cannot be read")


def in_code(copy: Path) -> None:
    (copy / "train.py").write_text((copy / "train.py").read_text().replace("SEED = 1", "SEED = 7"))


def in_a_call(copy: Path) -> None:
    (copy / "policy" / "net.py").write_text("WIDTH = 64\nenv.reset(seed=7)\n")


def in_a_library_call(copy: Path) -> None:
    (copy / "policy" / "net.py").write_text("WIDTH = 64\ntorch.manual_seed(7)\n")


def in_yaml(copy: Path) -> None:
    (copy / "policy" / "net.yaml").write_text("width: 64\nrandom_seed: 7\n")


@pytest.mark.cheater("seeds")
@pytest.mark.parametrize(
    ("cheat", "path"),
    [
        pytest.param(in_code, "train.py", id="changes SEED"),
        pytest.param(in_a_call, "policy/net.py", id="passes a seed"),
        pytest.param(in_a_library_call, "policy/net.py", id="seeds a library"),
        pytest.param(in_yaml, "policy/net.yaml", id="names a seed in a new file"),
    ],
)
def test_a_lucky_seed_is_refused(repository: Scene, cheat: Callable[[Path], None], path: str) -> None:
    copy = repository.copy()
    cheat(copy)
    sentence = f"{path} sets a seed, and seeds are given by the engine."
    lost(repository, repository.propose(copy, kind="code"), "seeds", sentence)


@pytest.mark.cheater("seeds")
@pytest.mark.parametrize("key", ["seed", "SEED", "train_seed", "env_seeds"])
def test_a_seed_among_the_parameters_is_refused(repository: Scene, key: str) -> None:
    copy = repository.copy()
    (copy / "config.json").write_text(json.dumps({"gamma": 0.99, key: 7}))
    sentence = f"config.json sets `{key}`, and seeds are given by the engine."
    lost(repository, repository.propose(copy), "seeds", sentence)


@pytest.mark.cheater("seeds")
def test_a_line_that_keeps_its_seed_is_no_cheat(repository: Scene) -> None:
    copy = repository.copy()
    (copy / "train.py").write_text("# A comment that moves the lines.\n" + (copy / "train.py").read_text())
    assert repository.propose(copy, kind="code") == ()
    assert repository.state_of("c-0001") is State.VALIDATED


@pytest.mark.cheater("one-hypothesis")
@pytest.mark.feature("A43")
def test_two_changes_that_are_not_declared_as_a_bundle_are_refused(cartpole: Scene) -> None:
    reasons = cartpole.propose({"learning_rate": 0.001, "gamma": 0.95})
    sentence = "The candidate changes gamma, learning_rate at once without declaring a bundle."
    lost(cartpole, reasons, "one-hypothesis", sentence)


@pytest.mark.cheater("one-hypothesis")
def test_a_second_change_hidden_in_a_copy_is_refused(cartpole: Scene) -> None:
    copy = cartpole.copy()
    params = json.loads((copy / "params.json").read_text()) | {"gamma": 0.95, "clip_range": 0.3}
    (copy / "params.json").write_text(json.dumps(params))
    reasons = cartpole.propose(copy, hypothesis="Only gamma changes.")
    lost(cartpole, reasons, "one-hypothesis", "The candidate changes clip_range, gamma at once")


@pytest.mark.cheater("experiment-class")
def test_a_kind_of_experiment_that_was_not_approved_is_refused(cartpole: Scene) -> None:
    reasons = cartpole.propose({"gamma": 0.95}, kind="reward")
    sentence = "The kind `reward` is not in the approved class (hyperparameter, algorithm, network)."
    lost(cartpole, reasons, "experiment-class", sentence)


@pytest.mark.cheater("experiment-class")
def test_a_proposer_that_was_not_approved_is_refused(cartpole: Scene) -> None:
    reasons = cartpole.propose({"gamma": 0.95}, proposer="agent")
    sentence = "`agent` may not propose; the contract names search, human."
    lost(cartpole, reasons, "experiment-class", sentence)


@pytest.mark.cheater("lifecycle")
def test_a_candidate_built_on_yesterdays_tip_is_refused(cartpole: Scene) -> None:
    cartpole.enter()
    assert cartpole.propose({"learning_rate": 0.001}) == cartpole.propose({"gamma": 0.95}) == ()
    old = cartpole.state().tip
    cartpole.keep(cartpole.train("c-0001"))
    sentence = f"c-0002 was built on {old[:12]}, but the tip is {cartpole.state().tip[:12]} now."
    assert sentence in said(cartpole.check("c-0002"), "lifecycle")
    assert refused_in_ledger(cartpole, "c-0002", "lifecycle", sentence)
    assert cartpole.state_of("c-0002") is State.DRAFT


@pytest.mark.cheater("lifecycle")
def test_a_candidate_that_has_run_is_not_admitted_again(cartpole: Scene) -> None:
    cartpole.enter()
    cartpole.propose({"learning_rate": 0.001})
    cartpole.train("c-0001")
    sentence = "c-0001 is completed, so it cannot be admitted again."
    assert sentence in said(cartpole.check("c-0001"), "lifecycle")
    assert cartpole.state_of("c-0001") is State.COMPLETED


@pytest.mark.cheater("lifecycle")
@pytest.mark.feature("R42")
def test_a_second_candidate_under_the_same_id_is_refused(cartpole: Scene) -> None:
    cartpole.propose({"learning_rate": 0.001})
    first = cartpole.entries("drafted")[0]
    twin = decode(Candidate, first, where="ledger")
    with cartpole.open() as study, pytest.raises(Refused, match="There is a candidate c-0001 already"):
        study.append(Actor.PROPOSER, twin)
    assert cartpole.entries("drafted") == [first]
