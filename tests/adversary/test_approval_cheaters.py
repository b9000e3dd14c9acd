"""Cheaters who train on terms that nobody approved."""

import shutil

import pytest

from overnight import admission as loop
from overnight.errors import Refused
from overnight.records.contract import CALLED, Clause
from overnight.records.lifecycle import State
from scenes import TESTER, Scene, draft_cartpole, refused_in_ledger, said

GATES = [
    pytest.param(Clause.TASK, marks=pytest.mark.feature("R15")),
    pytest.param(Clause.METRIC, marks=pytest.mark.feature("R16")),
    pytest.param(Clause.SCOPE, marks=pytest.mark.feature("R17")),
    pytest.param(Clause.BUDGET, marks=pytest.mark.feature("R18")),
    pytest.param(Clause.HARDWARE, marks=pytest.mark.feature("R19")),
    pytest.param(Clause.BASELINE, marks=pytest.mark.feature("R20")),
    pytest.param(Clause.EVALUATION, marks=pytest.mark.feature("R21")),
    pytest.param(Clause.EXPERIMENTS),
]


@pytest.mark.cheater("approvals")
@pytest.mark.parametrize("clause", GATES)
def test_a_study_without_one_of_the_eight_approvals_is_refused_by_its_name(drafted: Scene, clause: Clause) -> None:
    drafted.approve(*(one for one in Clause if one is not clause))
    sentence = f"The {CALLED[clause]} (`{clause}`) is not approved."
    with pytest.raises(Refused) as refused:
        drafted.enter()
    assert refused.value.says == (sentence,)
    assert refused_in_ledger(drafted, None, "approvals", sentence)
    assert drafted.state().entered is None


@pytest.mark.cheater("approvals")
def test_a_candidate_of_an_unapproved_study_is_refused(drafted: Scene) -> None:
    reasons = drafted.propose({"gamma": 0.95})
    assert len([one for one in reasons if one.rule == "approvals"]) == len(Clause)
    assert refused_in_ledger(drafted, "c-0001", "approvals", "The budget (`budget`) is not approved.")
    assert drafted.state_of("c-0001") is State.DRAFT


@pytest.mark.cheater("approvals")
def test_approval_files_without_ledger_entries_approve_nothing(drafted: Scene, cartpole: Scene) -> None:
    shutil.copytree(cartpole.at.approvals, drafted.at.approvals, dirs_exist_ok=True)
    shutil.copy(cartpole.at.lock, drafted.at.lock)
    with pytest.raises(Refused, match=r"The task definition \(`task`\) is not approved\."):
        drafted.enter()
    assert refused_in_ledger(drafted, None, "approvals", "The task definition (`task`) is not approved.")
    assert set(drafted.standings().values()) == {"missing"}


@pytest.mark.cheater("approvals")
@pytest.mark.feature("R23")
def test_the_approvals_of_another_study_do_not_count(cartpole: Scene) -> None:
    other = draft_cartpole(cartpole.project, study="second")
    assert set(cartpole.standings().values()) == {"in force"}
    with pytest.raises(Refused, match=r"The budget \(`budget`\) is not approved\."):
        other.enter()
    assert refused_in_ledger(other, None, "approvals", "The budget (`budget`) is not approved.")
    assert other.state().entered is None


@pytest.mark.cheater("approvals")
def test_a_contract_edited_after_its_approval_stops_a_validated_candidate(cartpole: Scene) -> None:
    assert cartpole.propose({"gamma": 0.95}) == ()
    cartpole.edit("max_wall_hours: 8.0", "max_wall_hours: 80.0")
    sentence = "The approval of the budget (`budget`) is void. It was edited after it was approved."
    assert sentence in said(cartpole.check("c-0001"), "approvals")
    assert refused_in_ledger(cartpole, "c-0001", "approvals", sentence)
    assert cartpole.state_of("c-0001") is State.DRAFT


@pytest.mark.cheater("terms")
def test_a_candidate_drafted_under_earlier_terms_is_refused(cartpole: Scene) -> None:
    assert cartpole.propose({"gamma": 0.95}) == ()
    cartpole.edit("screen_train_seeds: null", "screen_train_seeds: 1")
    cartpole.approve()
    sentence = "c-0001 was drafted under other terms than the contract has now; propose it again."
    assert sentence in said(cartpole.check("c-0001"), "terms")
    assert refused_in_ledger(cartpole, "c-0001", "terms", sentence)
    assert cartpole.state_of("c-0001") is State.DRAFT


def asked_about(scene: Scene, covered: int) -> None:
    """Let the standing approval cover only so many candidates."""
    scene.edit(
        "automation:  # The standing approval.\n    max_candidates: 200", f"automation:\n    max_candidates: {covered}"
    )
    scene.approve()


@pytest.mark.cheater("standing-approval")
def test_a_candidate_beyond_the_standing_approval_is_refused(cartpole: Scene) -> None:
    asked_about(cartpole, 1)
    assert cartpole.propose({"gamma": 0.95}) == ()
    sentence = "The standing approval covers 1 admitted candidates, and there are 1 others; `overnight approve c-0002`"
    assert sentence in said(cartpole.propose({"gamma": 0.9}), "standing-approval")
    assert refused_in_ledger(cartpole, "c-0002", "standing-approval", sentence)
    assert cartpole.state_of("c-0002") is State.DRAFT


@pytest.mark.cheater("standing-approval")
def test_a_permit_covers_its_candidate_and_no_other(cartpole: Scene) -> None:
    asked_about(cartpole, 0)
    cartpole.propose({"gamma": 0.95})
    cartpole.propose({"gamma": 0.9})
    with cartpole.open() as study:
        loop.permit(study, "c-0001", TESTER)
    assert cartpole.check("c-0001") == ()
    assert "`overnight approve c-0002`" in said(cartpole.check("c-0002"), "standing-approval")
    assert (cartpole.state_of("c-0001"), cartpole.state_of("c-0002")) == (State.VALIDATED, State.DRAFT)


@pytest.mark.cheater("standing-approval")
def test_a_permit_ends_with_the_terms_under_which_it_was_given(cartpole: Scene) -> None:
    asked_about(cartpole, 0)
    cartpole.propose({"gamma": 0.95})
    with cartpole.open() as study:
        loop.permit(study, "c-0001", TESTER)
    cartpole.edit("screen_episodes: 20", "screen_episodes: 2")
    cartpole.approve()
    reasons = cartpole.check("c-0001")
    assert "The standing approval covers 0 admitted candidates" in said(reasons, "standing-approval")
    assert refused_in_ledger(cartpole, "c-0001", "standing-approval", "`overnight approve c-0001` approves it")
    assert cartpole.state_of("c-0001") is State.DRAFT
