"""Cheaters who try what was tried before, and cheaters who carry a secret out."""

import json

import pytest

from overnight.intake import carry_over
from overnight.records.lifecycle import State
from scenes import Scene, refused_in_ledger, said


@pytest.mark.cheater("novelty")
@pytest.mark.parametrize(
    "again",
    [
        pytest.param({"learning_rate": 0.001}, id="the very same parameters"),
        pytest.param({"learning_rate": 0.0010004}, id="a fourth digit is different"),
    ],
)
def test_the_same_parameters_are_refused_the_second_time(cartpole: Scene, again: dict[str, float]) -> None:
    assert cartpole.propose({"learning_rate": 0.001}) == ()
    reasons = cartpole.propose(again, hypothesis="Something entirely new.")
    sentence = "It comes to the same thing as c-0001, which is not decided yet."
    assert said(reasons, "novelty") == sentence
    assert refused_in_ledger(cartpole, "c-0002", "novelty", sentence)
    assert cartpole.state_of("c-0002") is State.DRAFT


def test_a_parameter_that_differs_in_the_third_digit_is_new(cartpole: Scene) -> None:
    assert cartpole.propose({"learning_rate": 0.001}) == ()
    assert cartpole.propose({"learning_rate": 0.00102}) == ()


@pytest.mark.cheater("novelty")
@pytest.mark.parametrize(
    "text",
    [
        pytest.param("SEED = 1\nLEARNING_RATE = 0.01  # quite another idea\nprint('training')\n", id="a comment"),
        pytest.param("SEED=1\n\n\nLEARNING_RATE  =  0.01\nprint( 'training' )\n", id="white space"),
    ],
)
def test_the_same_code_in_another_layout_is_refused(repository: Scene, text: str) -> None:
    copy = repository.copy()
    (copy / "train.py").write_text("SEED = 1\nLEARNING_RATE = 0.01\nprint('training')\n")
    assert repository.propose(copy, kind="code") == ()
    again = repository.copy()
    (again / "train.py").write_text(text)
    assert "the same thing as c-0001" in said(repository.propose(again, kind="code"), "novelty")


@pytest.mark.cheater("novelty")
def test_a_change_of_nothing_but_layout_is_the_tip_itself(repository: Scene) -> None:
    copy = repository.copy()
    (copy / "train.py").write_text("SEED = 1\nLEARNING_RATE = 0.01\nprint('training')\n")
    assert repository.propose(copy, kind="code") == ()
    (copy / "train.py").write_text("# A new head.\nSEED = 1\nLEARNING_RATE = 0.01\nprint('training')\n")
    assert said(repository.propose(copy, kind="code"), "novelty")


def test_an_idea_that_the_gate_refused_was_never_tried(cartpole: Scene) -> None:
    assert cartpole.propose({"learning_rate": 0.01}, kind="reward")
    assert cartpole.propose({"learning_rate": 0.01}) == ()


def test_a_contract_may_switch_novelty_off(cartpole: Scene) -> None:
    cartpole.rewrite(lambda terms: terms["experiments"].update(novelty="off"))
    cartpole.approve()
    assert cartpole.propose({"learning_rate": 0.01}) == ()
    assert cartpole.propose({"learning_rate": 0.01}) == ()


SECRETS = {
    "an Anthropic key": "sk-ant-" + "api03-" + "x" * 24,
    "a GitHub token": "ghp_" + "a1" * 18,
    "a private key": "-----BEGIN OPENSSH " + "PRIVATE KEY-----",
    "an AWS key": "AKIA" + "ABCDEFGHIJKLMNOP",
    "a password or key": 'api_key = "' + "q7" * 12 + '"',
}


@pytest.mark.cheater("secrets")
@pytest.mark.parametrize("called", SECRETS)
def test_a_copy_that_carries_a_secret_is_refused_before_it_is_stored(repository: Scene, called: str) -> None:
    copy = repository.copy()
    (copy / "train.py").write_text(f"LEARNING_RATE = 0.01\n# {SECRETS[called]}\n")
    before = repository.git("count-objects", "-v")
    reasons = repository.propose(copy, kind="code")
    sentence = f"train.py holds what looks like {called} in line 2, and a candidate carries no secrets."
    assert said(reasons, "secrets") == sentence
    assert refused_in_ledger(repository, None, "secrets", sentence)
    kept = [path for path in repository.at.task.root.folder.rglob("*") if path.is_file()]
    assert not [path for path in kept if SECRETS[called].encode() in path.read_bytes()]
    assert repository.git("count-objects", "-v") == before


@pytest.mark.cheater("secrets")
def test_a_secret_that_was_put_into_the_store_by_hand_is_refused_by_the_gate(repository: Scene) -> None:
    blob = repository.store.write_blob(f"TOKEN = '{SECRETS['a GitHub token']}'\n".encode())
    reasons = repository.smuggle({"train.py": ("100644", blob)}, kind="code")
    assert "a GitHub token" in said(reasons, "secrets")


def test_an_honest_change_of_a_number_is_nobodys_leak(repository: Scene) -> None:
    copy = repository.copy()
    (copy / "config.json").write_text(json.dumps({"gamma": 0.995}) + "\n")
    assert repository.propose(copy) == ()


def test_an_edited_copy_of_an_earlier_tip_is_carried_over_and_undoes_nothing(repository: Scene) -> None:
    old = repository.copy()
    first = repository.copy()
    (first / "policy" / "net.py").write_text("WIDTH = 128\n")
    assert repository.propose(first, kind="code") == ()
    repository.enter()
    base = repository.state().tip
    repository.keep(repository.train("c-0001"))
    (old / "config.json").write_text('{"gamma": 0.98}\n')
    assert repository.propose(old, base=base) == ()
    tip = repository.store.file(repository.state().candidates["c-0002"].tree, "policy/net.py")
    assert tip == b"WIDTH = 128\n"


def test_a_copy_whose_file_the_tip_has_changed_meanwhile_is_refused(repository: Scene) -> None:
    old = repository.copy()
    first = repository.copy()
    (first / "policy" / "net.py").write_text("WIDTH = 128\n")
    assert repository.propose(first, kind="code") == ()
    repository.enter()
    base = repository.state().tip
    repository.keep(repository.train("c-0001"))
    (old / "policy" / "net.py").write_text("WIDTH = 32\n")
    reasons = repository.propose(old, base=base, kind="code")
    assert "The tip has changed policy/net.py since the copy was made" in said(reasons, "provenance")


def test_a_persons_idea_that_waited_while_the_tip_moved_is_drafted_anew_on_the_new_tip(cartpole: Scene) -> None:
    assert cartpole.propose({"gamma": 0.95}) == ()
    assert cartpole.propose({"learning_rate": 0.01}, hypothesis="Larger steps.") == ()
    cartpole.enter()
    cartpole.keep(cartpole.train("c-0001"))
    with cartpole.open() as study:
        carried = list(carry_over(study, cartpole.store))
        assert [heard.candidate for _, heard in carried] == ["c-0003"] and carried[0][1].refused == ()
        assert list(carry_over(study, cartpole.store)) == [], "once is enough"
    again = cartpole.entries("drafted")[-1]
    assert again["proposal"]["parents"] == ["c-0002"] and again["proposal"]["hypothesis"] == "Larger steps."
    params = json.loads(cartpole.store.file(again["tree"], "params.json") or b"{}")
    assert (params["gamma"], params["learning_rate"]) == (0.95, 0.01)


def test_parameters_in_a_copy_of_an_earlier_tip_are_carried_over(cartpole: Scene) -> None:
    old = cartpole.copy()
    assert cartpole.propose({"gamma": 0.95}) == ()
    cartpole.enter()
    base = cartpole.state().tip
    cartpole.keep(cartpole.train("c-0001"))
    params = json.loads((old / "params.json").read_text())
    (old / "params.json").write_text(json.dumps({**params, "learning_rate": 0.01}))
    assert cartpole.propose(old, base=base) == ()
    drafted = cartpole.entries("drafted")[-1]
    assert drafted["proposal"]["params"] == {"learning_rate": 0.01}
    tree = cartpole.store.file(drafted["tree"], "params.json") or b"{}"
    assert json.loads(tree)["gamma"] == 0.95
