"""Cheaters who train on approvals that the holder of the key never gave."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from overnight import admission, signatures
from overnight.approvals import Who
from overnight.errors import Refused, UserError
from overnight.records.approval import Approval, Strength
from overnight.records.codec import decode
from overnight.records.contract import Clause
from overnight.records.lifecycle import Actor
from overnight.study.fold import apply
from overnight.study.state import StudyState, Unlawful
from overnight.study.study import read_state
from scenes import MACHINE, TESTER, Scene, draft_cartpole, refused_in_ledger, said
from signing import Desk, desk_in

Forge = Callable[[dict[str, Any]], object]


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    """A user who asks for signatures, with one allowed signer."""
    return desk_in(tmp_path / "desk", monkeypatch)


def refused_for(scene: Scene, sentence: str) -> bool:
    """Whether the loop cannot be entered, for this reason, and the ledger says so."""
    with pytest.raises(Refused) as refused:
        scene.enter()
    assert scene.state().entered is None
    assert refused_in_ledger(scene, None, "approvals", sentence)
    return all(sentence in one for one in refused.value.says)


def forged(scene: Scene, forge: Forge) -> StudyState:
    """The state after somebody rewrote every approval in the ledger, chain and anchor included."""
    state = scene.state()
    for data in state.approvals.values():
        forge(data)
    return state


def flaws(state: StudyState) -> set[str]:
    return set(signatures.flaws(state).values())


def test_a_signed_study_may_train(drafted: Scene, desk: Desk) -> None:
    drafted.approve(who=desk.who())
    assert set(drafted.standings().values()) == {"in force"}
    drafted.enter()
    assert drafted.state().entered is not None


@pytest.mark.cheater("approvals")
def test_approvals_that_nobody_signed_do_not_count_where_signatures_are_asked_for(cartpole: Scene, desk: Desk) -> None:
    assert refused_for(cartpole, "It is not signed (terminal), and your configuration asks for that.")
    assert set(cartpole.standings().values()) == {"unproven"}


@pytest.mark.cheater("approvals")
def test_the_key_of_a_stranger_signs_nothing(drafted: Scene, desk: Desk) -> None:
    with pytest.raises(Refused, match="which is not among the allowed signers"):
        drafted.approve(who=desk.who("mallory"))
    assert drafted.entries("approved") == []


@pytest.mark.cheater("approvals")
def test_a_key_that_is_allowed_no_more_ends_what_it_signed(drafted: Scene, desk: Desk) -> None:
    drafted.approve(who=desk.who())
    desk.allow("bob")
    assert refused_for(drafted, "which is not among the allowed signers")


@pytest.mark.cheater("approvals")
def test_a_revoked_key_ends_what_it_signed_even_for_a_validated_candidate(drafted: Scene, desk: Desk) -> None:
    drafted.approve(who=desk.who())
    assert drafted.propose({"gamma": 0.95}) == ()
    revoked = desk.folder / "revoked"
    revoked.write_text(desk.key("ada").with_suffix(".pub").read_text())
    desk.set(f"require_signature: true\nrevoked_keys: {revoked}\n")
    assert f"which {revoked} revokes." in said(drafted.check("c-0001"), "approvals")
    assert refused_for(drafted, f"which {revoked} revokes.")


@pytest.mark.cheater("approvals")
def test_a_signer_whose_time_is_over_does_not_count(drafted: Scene, desk: Desk) -> None:
    drafted.approve(who=desk.who())
    desk.allow("ada", options='valid-before="20200101"')
    assert refused_for(drafted, "which is not among the allowed signers")


@pytest.mark.cheater("approvals")
def test_a_key_that_is_allowed_for_something_else_signs_no_approval(drafted: Scene, desk: Desk) -> None:
    desk.allow("ada", options='namespaces="git"')
    with pytest.raises(Refused, match="did not sign this text as an approval"):
        drafted.approve(who=desk.who())


@pytest.mark.cheater("approvals")
def test_the_signatures_of_another_study_of_the_same_name_do_not_count(
    drafted: Scene, tmp_path: Path, desk: Desk
) -> None:
    other = draft_cartpole(tmp_path / "elsewhere")
    other.approve(who=desk.who())
    with drafted.open() as study:
        for data in other.entries("approved"):
            study.append(Actor.PERSON, decode(Approval, data, where="a test"))
    assert drafted.at.name == other.at.name
    assert refused_for(drafted, "Its signature was given for another study.")


@pytest.mark.cheater("approvals")
@pytest.mark.parametrize(
    ("forge", "says"),
    [
        pytest.param(lambda a: a.update(signature=None), "there is no signature", id="no signature"),
        pytest.param(lambda a: a.update(signature="none"), "What stands there as its signature is none.", id="no such"),
        pytest.param(lambda a: a.update(signature=flipped(a["signature"])), "does not fit", id="a flipped letter"),
        pytest.param(lambda a: a.update(digest="0" * 64), "given for another text", id="another text"),
        pytest.param(
            lambda a: a.update(signed=a["signed"].replace("approves", "approves "), digest=a["digest"]),
            "given for another text",
            id="another sentence",
        ),
        pytest.param(
            lambda a: a.update(signed=a["signed"] + f"approves {a['clause']} {'0' * 64}\n", digest="0" * 64),
            "does not fit",
            id="a line added to the signed text",
        ),
        pytest.param(
            lambda a: a.update(signed=a["signed"].replace("contract ", "contract 0")), "does not fit", id="the contract"
        ),
        pytest.param(lambda a: a.update(strength="terminal"), "It is not signed (terminal)", id="called terminal"),
    ],
)
def test_a_tampered_signature_is_told_for_what_it_is(drafted: Scene, desk: Desk, forge: Forge, says: str) -> None:
    drafted.approve(who=desk.who())
    assert not flaws(drafted.state())
    found = flaws(forged(drafted, forge))
    assert found and all(says in one for one in found), found


def flipped(signature: str) -> str:
    lines = signature.splitlines()
    last = lines[-2]
    lines[-2] = ("A" if last[0] != "A" else "B") + last[1:]
    return "\n".join(lines) + "\n"


@pytest.mark.cheater("approvals")
def test_a_weaker_word_never_replaces_a_signed_one(drafted: Scene, desk: Desk) -> None:
    drafted.approve(who=desk.who())
    desk.set("require_signature: false\n")
    drafted.approve(Clause.BUDGET, who=TESTER)
    assert [one["strength"] for one in drafted.entries("approved")] == ["signed"] * 8
    drafted.edit("max_wall_hours: 8.0", "max_wall_hours: 80.0")
    for who in (TESTER, Who("tester", Strength.UNATTENDED)):
        with pytest.raises(Refused, match="budget was signed, and an unsigned word cannot replace that"):
            drafted.approve(Clause.BUDGET, who=who)
    weaker = dict(drafted.state().approvals[Clause.BUDGET])
    weaker |= {"strength": "terminal", "replaces": weaker["digest"]}
    with pytest.raises(Unlawful, match="only a signed one may replace it"):
        apply(drafted.state(), {"kind": "approved", "actor": "person", "data": weaker})
    drafted.approve(Clause.BUDGET, who=desk.who())
    assert set(drafted.standings().values()) == {"in force"}


@pytest.mark.cheater("approvals")
def test_a_signed_approval_is_checked_even_where_none_is_asked_for(drafted: Scene, desk: Desk) -> None:
    drafted.approve(who=desk.who())
    desk.set("require_signature: false\n")
    assert not flaws(drafted.state())
    assert all("does not fit" in one for one in flaws(forged(drafted, lambda a: a.update(signature=other(desk)))))


def other(desk: Desk) -> str:
    return signatures.sign("something else\n", desk.key("ada"))


@pytest.mark.cheater("standing-approval")
def test_a_permit_that_nobody_signed_covers_no_candidate(drafted: Scene, desk: Desk) -> None:
    drafted.edit("automation:  # The standing approval.\n    max_candidates: 200", "automation:\n    max_candidates: 0")
    drafted.approve(who=desk.who())
    drafted.propose({"gamma": 0.95})
    with drafted.open() as study, pytest.raises(Refused, match="asks for signed approvals, and this one is terminal"):
        admission.permit(study, "c-0001", TESTER)
    desk.set("require_signature: false\n")
    with drafted.open() as study:
        admission.permit(study, "c-0001", TESTER)
    assert drafted.check("c-0001") == ()
    desk.set("require_signature: true\n")
    assert "The standing approval covers 0 admitted candidates" in said(drafted.check("c-0001"), "standing-approval")
    with drafted.open() as study:
        admission.permit(study, "c-0001", desk.who())
    assert drafted.check("c-0001") == ()
    derived = read_state(MACHINE, drafted.at)  # what `status` reads goes on from the derived file
    assert derived.candidates["c-0001"].permit == drafted.entries("permitted")[-1]


@pytest.mark.cheater("approvals")
def test_a_repository_cannot_bring_a_configuration_of_its_own(cartpole: Scene, desk: Desk, tmp_path: Path) -> None:
    for folder in (cartpole.project, cartpole.at.folder, cartpole.project / ".config" / "overnight"):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "config.yaml").write_text("require_signature: false\n")
        (folder / "allowed_signers").write_text(f"m {desk.key('mallory').with_suffix('.pub').read_text()}")
    assert refused_for(cartpole, "It is not signed (terminal)")
    desk.set("require_signature: true\nallowed_signers: allowed_signers\n")
    with pytest.raises(UserError, match="a path from the root or from `~` is needed"):
        cartpole.approve(who=desk.who("mallory"))


def test_a_broken_configuration_stops_everything_and_asks_for_nothing_less(cartpole: Scene, desk: Desk) -> None:
    desk.set("require_signatures: true\n")
    with pytest.raises(UserError, match="require_signatures"):
        cartpole.enter()


def test_without_ssh_keygen_there_is_a_sentence(
    drafted: Scene, desk: Desk, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    drafted.approve(who=desk.who())
    monkeypatch.setenv("PATH", str(tmp_path))
    signatures._asked.cache_clear()
    with pytest.raises(UserError, match="ssh-keygen: is not installed, so nothing can be signed or checked"):
        signatures.flaws(drafted.state())


def test_one_question_serves_eight_clauses_and_every_later_gate(
    drafted: Scene, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    drafted.approve(who=desk.who())
    signatures._asked.cache_clear()
    for _ in range(5):
        assert not signatures.flaws(drafted.state())
    assert signatures._asked.cache_info().misses == 1
    assert json.dumps(drafted.entries("approved")).count("BEGIN SSH SIGNATURE") == 8
