"""From entries to the state of a study: the lifecycle, the incumbent rule, and where evidence comes from."""

import copy
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from overnight.contract.draft import EnvFacts, Ground, Stated, for_env
from overnight.contract.read import read
from overnight.errors import LedgerDamaged
from overnight.records.approval import Approval, LoopEntry, Permit, Strength
from overnight.records.candidate import Candidate
from overnight.records.codec import digest, encode
from overnight.records.contract import Clause, Contract
from overnight.records.decision import Decision, GuardrailFinding, LoopDecision, Verdict
from overnight.records.entry import KIND_OF, Created, Kind, Note, Payload, Validation
from overnight.records.evidence import Evidence, Verification
from overnight.records.lifecycle import Actor, State
from overnight.records.proposal import Proposal
from overnight.records.refusal import Reason, Refusal
from overnight.records.run import Outcome, Run, RunEnd
from overnight.study.fold import Fold, apply, decode_entry, raw
from overnight.study.ledger import START, Ledger, RawEntry, scan
from overnight.study.state import StudyState, Unlawful
from overnight.testing.simulated import SimulatedMachine

FOLDER = Path("/study")
BASELINE, TREE = "0" * 40, "e" * 40


@cache
def contract() -> Contract:
    text = for_env(
        Stated(env="CartPole-v1"),
        EnvFacts(),
        Ground("cartpole", TREE),
        keys=("learning_rate",),
        trainer={"command": ["python", "-m", "overnight.rl.trainers.ppo"], "source": "The defaults of CleanRL."},
    )
    found = read(text, where="contract.yaml").contract()
    assert found is not None
    return found


TERMS, KEY = digest(contract()), contract().comparability()
HELD = GuardrailFinding(name="worst_decile_return", worse_by=-1.0, margin=0.0)


class Story:
    """A real study, told entry by entry: folded, and written to a real ledger on a simulated disk."""

    def __init__(self) -> None:
        self.state = StudyState()
        self.machine = SimulatedMachine()
        self.machine.make_folder(str(FOLDER))
        self.ledger = Ledger.open(self.machine, FOLDER, holder="test")

    def tell(self, actor: Actor, payload: Payload) -> "Story":
        apply(self.state, {"kind": str(KIND_OF[type(payload)]), "actor": str(actor), "data": raw(payload)})
        self.ledger.append(actor, KIND_OF[type(payload)], raw(payload))
        return self

    def refusal(self, actor: Actor, payload: Payload) -> str:
        """The sentence with which the fold refuses an entry; it must leave the state as it was."""
        before = copy.deepcopy(self.state)
        with pytest.raises(Unlawful) as caught:
            self.tell(actor, payload)
        assert self.state == before
        return str(caught.value)

    def last(self) -> Payload:
        """The record that the ledger holds last."""
        entries: list[RawEntry] = []
        scan(self.written(), START, lambda one, _: entries.append(one))
        return decode_entry(entries[-1], where="ledger")

    def written(self) -> bytes:
        return self.machine.read(str(FOLDER / "ledger.jsonl")) or b""

    def read_again(self) -> StudyState:
        fold = Fold()
        return fold.state(scan(self.written(), START, fold), where="ledger")

    def of(self, candidate: str) -> State:
        return self.state.candidates[candidate].state


def approval(clause: Clause, terms: object = None, *, replaces: str | None = None) -> Approval:
    found = contract().clause(clause) if terms is None else terms
    return Approval(
        clause=clause,
        digest=digest(found),
        terms=encode(found),
        approver="ada",
        strength=Strength.TERMINAL,
        replaces=replaces,
    )


def created() -> Created:
    return Created(task="cartpole", study="first", commit=BASELINE, tree=TREE, version="0")


def entry() -> LoopEntry:
    return LoopEntry(contract=TERMS, approver="ada", strength=Strength.TERMINAL)


def candidate(number: int = 1, *, base: str = BASELINE) -> Candidate:
    return Candidate(
        id=f"c-{number:04d}",
        proposal=Proposal(
            proposer="search", kind="hyperparameter", hypothesis="It is slow.", predicted_effect="It is faster."
        ),
        base=base,
        commit=f"{number}" * 40,
        tree=f"{number}" * 64,
        changed_paths=1,
        changes="8" * 64,
        contract=TERMS,
    )


def validation(one: Candidate) -> Validation:
    return Validation(candidate=one.id, tree=one.tree, contract=TERMS, rules="f" * 64)


def run(one: Candidate, number: int = 1) -> Run:
    return Run(
        id=f"r-{number:04d}",
        candidate=one.id,
        tree=one.tree,
        command=contract().baseline.command,
        train_seed=7,
        phase="screen",
        round=0,
        number=number,
        contract=TERMS,
        comparability=KEY,
    )


def end(of: Run, outcome: Outcome = Outcome.COMPLETED) -> RunEnd:
    return RunEnd(run=of.id, outcome=outcome, because="It ended so.", wall_seconds=2.5, exit_status=0)


def evidence(of: Run) -> Evidence:
    return Evidence(
        run=of.id,
        candidate=of.candidate,
        tree=of.tree,
        phase="screen",
        score=200.0,
        episodes=20,
        guardrails={"worst_decile_return": 100.0},
        comparability=KEY,
        artefact="9" * 64,
    )


def decision(one: Candidate, verdict: Verdict, *runs: str) -> Decision:
    certified = verdict is Verdict.CERTIFIED
    return Decision(
        candidate=one.id,
        verdict=verdict,
        because="Gain lies in [1.0, 3.0] over 3 paired seeds; the bar is 0.",
        loop=LoopDecision.CONTINUE,
        rule="The whole interval lies above 0.",
        gain=2.0,
        gain_low=1.0,
        gain_high=3.0,
        guardrails=(HELD,) if certified else (),
        evidence=runs,
        audit="a-0001" if certified else None,
    )


def begun() -> Story:
    """A study whose eight clauses are approved, and whose loop was entered."""
    story = Story().tell(Actor.ENGINE, created())
    for clause in Clause:
        story.tell(Actor.PERSON, approval(clause))
    return story.tell(Actor.PERSON, entry())


def drafted() -> Story:
    return begun().tell(Actor.PROPOSER, candidate())


def validated() -> Story:
    return drafted().tell(Actor.GATE, validation(candidate()))


def launched() -> Story:
    return validated().tell(Actor.RUNNER, run(candidate()))


def completed() -> Story:
    return launched().tell(Actor.RUNNER, end(run(candidate())))


def measured() -> Story:
    return completed().tell(Actor.REFEREE, evidence(run(candidate())))


def kept() -> Story:
    return measured().tell(Actor.JUDGE, decision(candidate(), Verdict.KEEP, "r-0001"))


def accepted() -> Story:
    return kept().tell(Actor.JUDGE, decision(candidate(), Verdict.CERTIFIED, "r-0001"))


def keep_second(story: Story) -> Candidate:
    """Let a second candidate be drafted on the tip, run, measured and kept."""
    second = candidate(2, base=candidate().commit)
    again = run(second, 2)
    story.tell(Actor.PROPOSER, second).tell(Actor.GATE, validation(second)).tell(Actor.RUNNER, again)
    story.tell(Actor.RUNNER, end(again)).tell(Actor.REFEREE, evidence(again))
    story.tell(Actor.JUDGE, decision(second, Verdict.KEEP, "r-0002"))
    return second


# The lifecycle


@pytest.mark.feature("R72")
def test_a_candidate_that_was_written_is_a_draft() -> None:
    assert drafted().of("c-0001") is State.DRAFT


@pytest.mark.feature("R73")
def test_a_passed_validation_makes_a_candidate_validated_and_records_the_rules_digest() -> None:
    story = validated()
    assert story.of("c-0001") is State.VALIDATED
    assert story.last() == validation(candidate())


@pytest.mark.feature("R74")
@pytest.mark.parametrize("actor", sorted(set(Actor) - {Actor.RUNNER}))
def test_nobody_but_the_runner_launches(actor: Actor) -> None:
    assert f"but the {actor}" in validated().refusal(actor, run(candidate()))


@pytest.mark.feature("R75")
def test_a_run_that_ended_leaves_its_exit_status_and_its_measured_score_behind() -> None:
    story = completed()
    assert story.of("c-0001") is State.COMPLETED
    assert story.last() == end(run(candidate()))
    assert story.tell(Actor.REFEREE, evidence(run(candidate()))).last() == evidence(run(candidate()))


@pytest.mark.feature("R76")
def test_acceptance_and_the_incumbent_change_in_the_same_entry_that_names_the_audit() -> None:
    story = kept()
    assert (story.of("c-0001"), story.state.incumbent) == (State.COMPLETED, BASELINE)
    story.tell(Actor.JUDGE, decision(candidate(), Verdict.CERTIFIED, "r-0001"))
    assert (story.of("c-0001"), story.state.incumbent) == (State.ACCEPTED, candidate().commit)
    last = story.last()
    assert isinstance(last, Decision)
    assert last.audit == "a-0001"


def test_a_certification_accepts_everything_kept_since_the_incumbent() -> None:
    story = kept()
    second = keep_second(story)
    story.tell(Actor.JUDGE, decision(second, Verdict.CERTIFIED, "r-0001", "r-0002"))
    assert (story.of("c-0001"), story.of("c-0002")) == (State.ACCEPTED, State.ACCEPTED)
    assert story.state.incumbent == story.state.tip == second.commit


@pytest.mark.feature("R77")
def test_a_rejection_is_recorded_with_its_numbers_and_its_rule() -> None:
    verdict = decision(candidate(), Verdict.REJECT, "r-0001")
    story = measured().tell(Actor.JUDGE, verdict)
    assert story.of("c-0001") is State.REJECTED
    last = story.last()
    assert isinstance(last, Decision)
    assert (last.gain, last.gain_low, last.gain_high, last.rule) == (2.0, 1.0, 3.0, "The whole interval lies above 0.")


def test_a_candidate_on_which_the_evidence_does_not_decide_is_inconclusive() -> None:
    open_question = replace(decision(candidate(), Verdict.INCONCLUSIVE, "r-0001"), gain_low=-1.0)
    assert measured().tell(Actor.JUDGE, open_question).of("c-0001") is State.INCONCLUSIVE


def test_an_inconclusive_candidate_may_be_run_again() -> None:
    story = measured().tell(Actor.JUDGE, decision(candidate(), Verdict.INCONCLUSIVE, "r-0001"))
    assert story.tell(Actor.RUNNER, run(candidate(), 2)).of("c-0001") is State.LAUNCHED


@pytest.mark.feature("R79")
@pytest.mark.parametrize("outcome", [Outcome.CRASHED, Outcome.OVER_BUDGET])
def test_a_broken_run_makes_a_candidate_debug_and_records_the_failure_signature(outcome: Outcome) -> None:
    broken = replace(end(run(candidate()), outcome), because="ZeroDivisionError in train.py line 3.")
    story = launched().tell(Actor.RUNNER, broken)
    assert story.of("c-0001") is State.DEBUG
    assert story.state.candidates["c-0001"].failure == "ZeroDivisionError in train.py line 3."


def test_a_broken_candidate_is_rejected_without_a_number() -> None:
    story = launched().tell(Actor.RUNNER, end(run(candidate()), Outcome.CRASHED))
    assert story.tell(Actor.JUDGE, decision(candidate(), Verdict.REJECT, "r-0001")).of("c-0001") is State.REJECTED


def test_a_run_lost_by_the_machine_does_not_count_against_the_candidate() -> None:
    story = launched().tell(Actor.RUNNER, end(run(candidate()), Outcome.LOST))
    assert (story.of("c-0001"), story.state.candidates["c-0001"].failure) == (State.VALIDATED, "")


def test_a_candidate_is_completed_when_its_last_open_run_has_ended() -> None:
    story = launched().tell(Actor.RUNNER, run(candidate(), 2)).tell(Actor.RUNNER, end(run(candidate())))
    assert story.of("c-0001") is State.LAUNCHED
    assert story.tell(Actor.RUNNER, end(run(candidate(), 2))).of("c-0001") is State.COMPLETED


@pytest.mark.feature("R80")
def test_a_reverted_acceptance_returns_the_incumbent_to_the_previous_one() -> None:
    story = accepted().tell(Actor.JUDGE, decision(candidate(), Verdict.REFUTED, "r-0001"))
    assert story.of("c-0001") is State.REVERTED
    assert story.state.incumbent == story.state.tip == BASELINE


def test_reverting_the_second_incumbent_returns_to_the_first() -> None:
    story = accepted()
    second = keep_second(story)
    story.tell(Actor.JUDGE, decision(second, Verdict.CERTIFIED, "r-0002"))
    story.tell(Actor.JUDGE, decision(second, Verdict.REFUTED, "r-0002"))
    assert (story.of("c-0001"), story.of("c-0002")) == (State.ACCEPTED, State.REVERTED)
    assert story.state.incumbent == candidate().commit


def test_only_the_incumbent_itself_can_be_reverted() -> None:
    story = accepted()
    second = keep_second(story)
    story.tell(Actor.JUDGE, decision(second, Verdict.CERTIFIED, "r-0002"))
    says = story.refusal(Actor.JUDGE, decision(candidate(), Verdict.REFUTED, "r-0001"))
    assert says == "c-0001 is not the incumbent, so it cannot be reverted."


@pytest.mark.feature("R42")
def test_two_candidates_cannot_share_an_id() -> None:
    assert drafted().refusal(Actor.PROPOSER, candidate()) == "There is a candidate c-0001 already."


def test_candidates_are_numbered_without_a_gap() -> None:
    says = drafted().refusal(Actor.PROPOSER, candidate(3))
    assert says == "The next candidate is c-0002, not c-0003."


def test_a_candidate_is_drafted_on_the_tip() -> None:
    assert kept().refusal(Actor.PROPOSER, candidate(2)).endswith(", which is not the tip.")


@pytest.mark.parametrize("actor", [Actor.GATE, Actor.RUNNER, Actor.REFEREE, Actor.JUDGE])
def test_the_hands_that_judge_and_run_never_propose(actor: Actor) -> None:
    assert "may make a candidate draft" in begun().refusal(actor, candidate())


@pytest.mark.parametrize("actor", sorted(set(Actor) - {Actor.GATE}))
def test_nobody_but_the_gate_validates(actor: Actor) -> None:
    assert "only the gate may" in drafted().refusal(actor, validation(candidate())).lower()


def test_a_refused_candidate_goes_back_to_draft_with_the_reasons() -> None:
    no = Refusal(candidate="c-0001", reasons=(Reason(rule="budget", says="The budget is spent."),))
    story = validated().tell(Actor.GATE, no)
    assert story.of("c-0001") is State.DRAFT
    assert story.state.candidates["c-0001"].refused == ["The budget is spent."]


def test_the_gate_has_nothing_to_say_about_a_candidate_that_ran() -> None:
    no = Refusal(candidate="c-0001", reasons=(Reason(rule="budget", says="The budget is spent."),))
    assert completed().refusal(Actor.GATE, no).startswith("c-0001 is completed")


def test_a_refusal_to_open_the_study_is_about_no_candidate() -> None:
    no = Refusal(candidate=None, reasons=(Reason(rule="approvals", says="The budget is not approved."),))
    story = validated().tell(Actor.GATE, no)
    assert story.state.refused == ["The budget is not approved."]
    assert story.of("c-0001") is State.VALIDATED


def test_another_tree_than_the_drafted_one_is_neither_validated_nor_permitted() -> None:
    other = replace(validation(candidate()), tree="b" * 40)
    assert "was drafted with the tree" in drafted().refusal(Actor.GATE, other)
    permit = Permit(candidate="c-0001", tree="b" * 40, contract=TERMS, approver="ada", strength=Strength.TERMINAL)
    assert "was drafted with the tree" in drafted().refusal(Actor.PERSON, permit)


# Approvals and the word to enter


@pytest.mark.parametrize("actor", sorted(set(Actor) - {Actor.PERSON}))
def test_only_a_person_approves_enters_and_permits(actor: Actor) -> None:
    permit = Permit(candidate="c-0001", tree=TREE, contract=TERMS, approver="ada", strength=Strength.TERMINAL)
    payloads: tuple[Payload, ...] = (approval(Clause.TASK), entry(), permit)
    for payload in payloads:
        assert drafted().refusal(actor, payload).startswith("Only the person may write this entry")


def test_the_loop_is_not_entered_before_all_eight_clauses_are_approved() -> None:
    story = Story().tell(Actor.ENGINE, created())
    for clause in list(Clause)[:-1]:
        story.tell(Actor.PERSON, approval(clause))
    assert story.refusal(Actor.PERSON, entry()) == "The loop may not be entered: experiments was never approved."


def test_an_amendment_names_the_approval_that_it_replaces() -> None:
    wider = replace(contract().budget, max_runs=5)
    assert "does not name the one that it replaces" in begun().refusal(Actor.PERSON, approval(Clause.BUDGET, wider))
    amended = begun().tell(Actor.PERSON, approval(Clause.BUDGET, wider, replaces=digest(contract().budget)))
    assert amended.state.approvals[Clause.BUDGET]["digest"] == digest(wider)
    assert [one["clause"] for one in amended.state.amendments] == ["budget"]


def test_approving_the_same_terms_again_is_no_amendment() -> None:
    again = approval(Clause.BUDGET, replaces=digest(contract().budget))
    assert begun().tell(Actor.PERSON, again).state.amendments == []


def test_a_ledger_begins_with_exactly_one_created_entry() -> None:
    says = "A ledger begins with exactly one `created` entry."
    assert Story().refusal(Actor.PERSON, Note(says="Hello.")) == says
    assert begun().refusal(Actor.ENGINE, created()) == says


# Launching


def test_nothing_is_launched_before_the_loop_is_entered() -> None:
    story = Story().tell(Actor.ENGINE, created())
    for clause in Clause:
        story.tell(Actor.PERSON, approval(clause))
    story.tell(Actor.PROPOSER, candidate()).tell(Actor.GATE, validation(candidate()))
    assert story.refusal(Actor.RUNNER, run(candidate())).endswith("nobody asked to enter the loop under this contract.")


def test_nothing_is_launched_under_another_contract_than_the_entered_one() -> None:
    says = validated().refusal(Actor.RUNNER, replace(run(candidate()), contract="b" * 64))
    assert says.endswith("nobody asked to enter the loop under this contract.")


def test_a_draft_is_not_launched() -> None:
    says = drafted().refusal(Actor.RUNNER, run(candidate()))
    assert says == "A candidate that is draft cannot become launched; it may become validated."


def test_a_validation_under_an_older_contract_does_not_launch() -> None:
    old = replace(validation(candidate()), contract="b" * 64)
    says = drafted().tell(Actor.GATE, old).refusal(Actor.RUNNER, run(candidate()))
    assert says == "r-0001 may not start: c-0001 was not validated under this contract."


def extended(clause: Clause, **amounts: Any) -> Story:
    """A measured candidate, then a clause that was changed and approved anew, then the word to enter again."""
    before = contract().clause(clause)
    after: object = replace(before, **amounts)
    story = measured().tell(Actor.PERSON, approval(clause, after, replaces=digest(before)))
    return story.tell(Actor.PERSON, replace(entry(), contract="b" * 64))


def again() -> Run:
    return replace(run(candidate()), id="r-0002", contract="b" * 64)


@pytest.mark.parametrize("amount", [{"max_runs": 9999}, {"max_wall_hours": 99.0}, {"max_runs": 1}], ids=str)
def test_a_candidate_stays_valid_when_only_amounts_change(amount: dict[str, float]) -> None:
    story = extended(Clause.BUDGET, **amount).tell(Actor.RUNNER, again())
    assert story.state.candidates["c-0001"].runs == ["r-0001", "r-0002"]


def test_the_number_of_candidates_is_an_amount_too() -> None:
    stop = replace(contract().experiments.stop, max_candidates=999)
    assert extended(Clause.EXPERIMENTS, stop=stop).tell(Actor.RUNNER, again()).state.runs.keys() == {"r-0001", "r-0002"}


@pytest.mark.parametrize(
    ("clause", "change"),
    [(Clause.BUDGET, {"stop_amount": 7.0}), (Clause.BUDGET, {"disk_gigabytes": 99.0})],
    ids=["a longer training", "more disk a run"],
)
def test_a_candidate_is_not_valid_any_more_when_anything_else_changes(clause: Clause, change: dict[str, float]) -> None:
    says = extended(clause, **change).refusal(Actor.RUNNER, again())
    assert says == "r-0002 may not start: c-0001 was not validated under this contract."


def test_another_command_than_the_approved_one_is_not_launched() -> None:
    says = validated().refusal(Actor.RUNNER, replace(run(candidate()), command=("python", "cheat.py")))
    assert says == "r-0001 may not start: its command is not the approved one."


def test_another_tree_than_the_validated_one_is_not_launched() -> None:
    says = validated().refusal(Actor.RUNNER, replace(run(candidate()), tree="b" * 40))
    assert says.startswith("c-0001 was drafted with the tree")


def test_runs_are_numbered_without_a_gap() -> None:
    assert validated().refusal(Actor.RUNNER, run(candidate(), 2)) == "The next run is r-0001, not r-0002."


def test_a_run_ends_once() -> None:
    assert completed().refusal(Actor.RUNNER, end(run(candidate()))) == "r-0001 has ended already."


def test_the_wall_time_of_all_runs_is_added_up() -> None:
    story = launched().tell(Actor.RUNNER, run(candidate(), 2))
    story.tell(Actor.RUNNER, end(run(candidate()))).tell(Actor.RUNNER, end(run(candidate(), 2)))
    assert story.state.wall_seconds == 5.0


# Provenance


def test_evidence_on_a_run_that_was_never_launched_is_unlawful() -> None:
    says = validated().refusal(Actor.REFEREE, evidence(run(candidate())))
    assert says == "There is no run r-0001: a result without a launched run does not exist."


def test_evidence_on_a_run_that_has_not_ended_is_unlawful() -> None:
    assert "did not complete" in launched().refusal(Actor.REFEREE, evidence(run(candidate())))


@pytest.mark.parametrize("outcome", sorted(set(Outcome) - {Outcome.COMPLETED}))
def test_evidence_on_a_run_that_did_not_complete_is_unlawful(outcome: Outcome) -> None:
    story = launched().tell(Actor.RUNNER, end(run(candidate()), outcome))
    assert "did not complete" in story.refusal(Actor.REFEREE, evidence(run(candidate())))


@pytest.mark.parametrize(("key", "other"), [("tree", "b" * 40), ("comparability", "b" * 64), ("candidate", "c-0002")])
def test_evidence_that_names_another_tree_candidate_or_key_is_unlawful(key: str, other: str) -> None:
    changes: dict[str, Any] = {key: other}
    says = completed().refusal(Actor.REFEREE, replace(evidence(run(candidate())), **changes))
    assert says == f"The evidence on r-0001 names another {key} than the run itself."


@pytest.mark.parametrize("actor", sorted(set(Actor) - {Actor.REFEREE}))
def test_only_the_referee_measures(actor: Actor) -> None:
    assert completed().refusal(actor, evidence(run(candidate()))).startswith("Only the referee may")


@pytest.mark.parametrize("actor", sorted(set(Actor) - {Actor.JUDGE}))
def test_only_the_judge_decides(actor: Actor) -> None:
    verdict = decision(candidate(), Verdict.KEEP, "r-0001")
    assert measured().refusal(actor, verdict).startswith("Only the judge may")


@pytest.mark.parametrize("verdict", [Verdict.KEEP, Verdict.REJECT, Verdict.INCONCLUSIVE])
def test_nothing_is_decided_on_a_run_without_evidence(verdict: Verdict) -> None:
    says = completed().refusal(Actor.JUDGE, decision(candidate(), verdict, "r-0001"))
    assert says == "r-0001 has no evidence, so nothing can be decided on it."


def test_nothing_is_verified_on_a_run_that_was_never_launched() -> None:
    claim = Verification(
        candidate="c-0001", verdict="improved", because="It is.", behaviour=("It walks.",), evidence=("r-0009",)
    )
    assert measured().refusal(Actor.JUDGE, claim).startswith("There is no run r-0009")


def test_nothing_is_kept_without_evidence() -> None:
    says = measured().refusal(Actor.JUDGE, decision(candidate(), Verdict.KEEP))
    assert says == "c-0001 cannot be kept without evidence."


# The tip and the incumbent


def test_a_kept_candidate_moves_the_tip_and_not_the_incumbent() -> None:
    story = kept()
    assert (story.state.tip, story.state.incumbent) == (candidate().commit, BASELINE)
    assert (story.of("c-0001"), story.state.candidates["c-0001"].kept) == (State.COMPLETED, True)


def test_a_candidate_is_kept_once() -> None:
    says = kept().refusal(Actor.JUDGE, decision(candidate(), Verdict.KEEP, "r-0001"))
    assert says == "c-0001 is completed and kept, so it cannot be kept."


def test_a_candidate_that_was_not_built_on_the_tip_cannot_join_it() -> None:
    story, second = measured(), candidate(2)
    story.tell(Actor.PROPOSER, second).tell(Actor.GATE, validation(second)).tell(Actor.RUNNER, run(second, 2))
    story.tell(Actor.RUNNER, end(run(second, 2))).tell(Actor.REFEREE, evidence(run(second, 2)))
    story.tell(Actor.JUDGE, decision(candidate(), Verdict.KEEP, "r-0001"))
    says = story.refusal(Actor.JUDGE, decision(second, Verdict.KEEP, "r-0002"))
    assert says == "c-0002 was not built on the tip, so it cannot join it."


def test_what_was_not_kept_is_not_refuted() -> None:
    says = measured().refusal(Actor.JUDGE, decision(candidate(), Verdict.REFUTED, "r-0001"))
    assert says == "c-0001 is not part of the tip, so there is nothing to refute."


def test_rejecting_a_kept_candidate_undoes_it_and_everything_built_on_it() -> None:
    story = kept()
    keep_second(story)
    story.tell(Actor.JUDGE, decision(candidate(), Verdict.REJECT, "r-0001"))
    assert (story.of("c-0001"), story.of("c-0002")) == (State.REVERTED, State.REVERTED)
    assert story.state.tip == story.state.incumbent == BASELINE


def test_rejecting_the_top_of_the_stack_leaves_what_is_below() -> None:
    story = kept()
    second = keep_second(story)
    story.tell(Actor.JUDGE, decision(second, Verdict.REJECT, "r-0002"))
    assert (story.of("c-0001"), story.of("c-0002")) == (State.COMPLETED, State.REVERTED)
    assert story.state.tip == candidate().commit


def test_a_refuted_stack_is_reverted_as_a_whole() -> None:
    story = kept()
    second = keep_second(story)
    story.tell(Actor.JUDGE, decision(second, Verdict.REFUTED, "r-0002"))
    assert (story.of("c-0001"), story.of("c-0002")) == (State.REVERTED, State.REVERTED)
    assert story.state.tip == BASELINE


def test_a_certification_that_does_not_decide_leaves_tip_and_incumbent() -> None:
    story = kept().tell(Actor.JUDGE, decision(candidate(), Verdict.INCONCLUSIVE, "r-0001"))
    assert (story.state.tip, story.state.incumbent) == (candidate().commit, BASELINE)
    assert (story.of("c-0001"), story.state.candidates["c-0001"].kept) == (State.COMPLETED, True)


@pytest.mark.feature("R81")
def test_a_guardrail_that_fails_refuses_the_certification_although_the_gain_rose() -> None:
    data = raw(decision(candidate(), Verdict.CERTIFIED, "r-0001"))
    data["guardrails"] = [{"name": "worst_decile_return", "worse_by": 0.5, "margin": 0.0}]
    story = kept()
    with pytest.raises(Unlawful, match="cannot be certified: worst_decile_return got worse than its margin"):
        apply(story.state, {"kind": "decided", "actor": "judge", "data": data})
    assert (story.of("c-0001"), story.state.incumbent) == (State.COMPLETED, BASELINE)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        pytest.param({"guardrails": []}, "nothing is said about the guardrail worst_decile_return", id="silence"),
        pytest.param({"audit": None}, "without an audit and evidence", id="no audit"),
        pytest.param({"evidence": []}, "without an audit and evidence", id="no evidence"),
        pytest.param({"gain_low": 0.0}, "interval does not lie above 0", id="touches zero"),
        pytest.param({"gain_low": -1.0}, "interval does not lie above 0", id="straddles zero"),
        pytest.param({"gain_low": None}, "interval does not lie above 0", id="no interval"),
        pytest.param({"gain_low": float("nan")}, "interval does not lie above 0", id="not a number"),
        pytest.param({"gain_low": "1.0"}, "interval does not lie above 0", id="text"),
    ],
)
def test_a_certification_needs_gain_evidence_audit_and_every_guardrail(change: dict[str, Any], says: str) -> None:
    data = {**raw(decision(candidate(), Verdict.CERTIFIED, "r-0001")), **change}
    story = kept()
    with pytest.raises(Unlawful, match=says):
        apply(story.state, {"kind": "decided", "actor": "judge", "data": data})
    assert story.state.incumbent == BASELINE


def test_only_the_tip_is_certified() -> None:
    story = kept()
    keep_second(story)
    says = story.refusal(Actor.JUDGE, decision(candidate(), Verdict.CERTIFIED, "r-0001"))
    assert says == "c-0001 is not the tip, and only the tip can be certified."


def test_what_was_not_kept_is_not_certified() -> None:
    says = measured().refusal(Actor.JUDGE, decision(candidate(), Verdict.CERTIFIED, "r-0001"))
    assert says == "c-0001 is not the tip, and only the tip can be certified."


def test_a_stack_with_an_open_run_is_not_certified() -> None:
    story = kept().tell(Actor.RUNNER, run(candidate(), 2))
    says = story.refusal(Actor.JUDGE, decision(candidate(), Verdict.CERTIFIED, "r-0001"))
    assert says.startswith("A candidate that is launched cannot become accepted")


# The fold as a whole


def test_the_state_is_the_fold_of_what_was_written() -> None:
    story = accepted()
    again = story.read_again()
    assert replace(again, head="", ledger_bytes=0, candidates={}) == replace(
        story.state, head="", ledger_bytes=0, candidates={}
    )
    assert {name: one.state for name, one in again.candidates.items()} == {"c-0001": State.ACCEPTED}
    assert again.head == story.ledger.head


def test_a_ledger_with_an_unlawful_entry_is_damaged() -> None:
    story = validated()
    story.ledger.append(Actor.JUDGE, Kind.LAUNCHED, raw(run(candidate())))
    with pytest.raises(LedgerDamaged, match="holds an unlawful entry 12: Only the runner may write"):
        story.read_again()


def test_of_several_unlawful_entries_the_first_is_named() -> None:
    story = validated()
    for actor in (Actor.JUDGE, Actor.PERSON):
        story.ledger.append(actor, Kind.LAUNCHED, raw(run(candidate())))
    with pytest.raises(LedgerDamaged, match=r"holds an unlawful entry 12: .* but the judge did"):
        story.read_again()


def test_an_entry_of_an_unknown_kind_is_unlawful() -> None:
    with pytest.raises(Unlawful, match="kind 'knighted' are unknown to this version"):
        apply(begun().state, {"kind": "knighted", "actor": "engine", "data": {}})


def test_an_entry_of_an_unknown_kind_has_no_record() -> None:
    with pytest.raises(LedgerDamaged, match="entry 7 is of the unknown kind 'knighted'"):
        decode_entry({"seq": 7, "kind": "knighted", "data": {}}, where="ledger")


@pytest.mark.parametrize(
    ("actor", "kind", "data"),
    [
        pytest.param("gate", "refused", {"candidate": None, "reasons": []}, id="a refusal without a reason"),
        pytest.param("gate", "refused", {"candidate": None, "reasons": [{"says": 5}]}, id="a reason that is no text"),
        pytest.param("gate", "validated", {"candidate": "c-0009", "tree": TREE, "contract": TERMS}, id="of nobody"),
        pytest.param("person", "entered", {"contract": None}, id="the word to enter nothing"),
        pytest.param("engine", "noted", {"says": ["Hello."]}, id="a note that is no text"),
        pytest.param("engine", "noted", {}, id="a note without a word"),
        pytest.param("runner", "ended", {"run": []}, id="the end of no run"),
    ],
)
def test_an_entry_without_what_it_needs_is_unlawful(actor: str, kind: str, data: dict[str, Any]) -> None:
    state = begun().state
    before = copy.deepcopy(state)
    with pytest.raises(Unlawful):
        apply(state, {"kind": kind, "actor": actor, "data": data})
    assert state == before


def test_a_study_has_a_task() -> None:
    state = StudyState()
    with pytest.raises(Unlawful, match="A study has a task"):
        apply(state, {"kind": "created", "actor": "engine", "data": {**raw(created()), "task": ""}})
    assert state == StudyState()


def test_a_note_changes_nothing_but_the_number_of_entries() -> None:
    story = kept()
    before = replace(story.state, entries=story.state.entries + 1)
    assert story.tell(Actor.ENGINE, Note(says="The night began.")).state == before


# Any sequence at all

STAGES = (Story, begun, drafted, validated, launched, completed, measured, kept, accepted)


def about(one: Candidate) -> tuple[Payload, ...]:
    """Everything that anyone might write about one candidate, in and out of order."""
    runs = [run(one, number) for number in (1, 2, 3)]
    return (
        one,
        validation(one),
        replace(validation(one), contract="b" * 64),
        Permit(candidate=one.id, tree=one.tree, contract=TERMS, approver="ada", strength=Strength.SIGNED),
        Refusal(candidate=one.id, reasons=(Reason(rule="surface", says="It is closed."),)),
        *runs,
        *(evidence(each) for each in runs),
        *(end(each, outcome) for each in runs for outcome in Outcome),
        *(decision(one, verdict, "r-0001") for verdict in Verdict),
        *(decision(one, verdict, "r-0001", "r-0002") for verdict in Verdict),
    )


PAYLOADS_AT_HAND: tuple[Payload, ...] = (
    created(),
    entry(),
    *(approval(clause) for clause in Clause),
    approval(Clause.BASELINE, replaces=digest(contract().baseline)),
    Note(says="Hello."),
    Refusal(candidate=None, reasons=(Reason(rule="budget", says="The budget is spent."),)),
    *(payload for number in (1, 2, 3) for payload in about(candidate(number))),
    *(payload for number in (2, 3) for payload in about(candidate(number, base=candidate().commit))),
)
GARBAGE = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from(["c-0001", "r-0001", "completed", "certified", BASELINE, TREE, TERMS]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@cache
def stage(number: int) -> StudyState:
    return STAGES[number]().state


@st.composite
def entries(draw: st.DrawFn, *, hostile: bool) -> dict[str, Any]:
    payload = draw(st.sampled_from(PAYLOADS_AT_HAND))
    kind, data = str(KIND_OF[type(payload)]), copy.deepcopy(raw(payload))
    if hostile and draw(st.booleans()):
        for key in draw(st.lists(st.sampled_from([*data, "surprise"]), max_size=2)):
            if draw(st.booleans()):
                data.pop(key, None)
            else:
                data[key] = draw(GARBAGE)
    return {"kind": kind, "actor": draw(st.sampled_from([*Actor, Actor.JUDGE, Actor.RUNNER])), "data": data}


def rightly(entry: dict[str, Any]) -> dict[str, Any]:
    """The same entry from the hand that may write it."""
    hands = {
        "created": Actor.ENGINE,
        "approved": Actor.PERSON,
        "entered": Actor.PERSON,
        "permitted": Actor.PERSON,
        "drafted": Actor.PROPOSER,
        "refused": Actor.GATE,
        "validated": Actor.GATE,
        "launched": Actor.RUNNER,
        "ended": Actor.RUNNER,
        "measured": Actor.REFEREE,
    }
    return {**entry, "actor": str(hands.get(entry["kind"], Actor.JUDGE))}


def apply_all(state: StudyState, story: list[dict[str, Any]]) -> None:
    """Apply what is lawful; what is not must say so, and must leave the state as it was."""
    for one in story:
        before = copy.deepcopy(state)
        try:
            apply(state, one)
        except Unlawful as unlawful:
            assert state == before, f"{unlawful} changed the state"
            assert str(unlawful).endswith("."), "a full sentence"


@settings(max_examples=200, deadline=None)
@given(st.integers(0, len(STAGES) - 1), st.lists(entries(hostile=False), max_size=12), st.booleans())
def test_a_record_that_comes_out_of_order_is_unlawful_and_changes_nothing(
    at: int, story: list[dict[str, Any]], rightful: bool
) -> None:
    state = copy.deepcopy(stage(at))
    apply_all(state, [rightly(one) for one in story] if rightful else story)


@settings(max_examples=300, deadline=None)
@given(st.integers(0, len(STAGES) - 1), st.lists(entries(hostile=True), max_size=12), st.booleans())
@example(
    0,
    [{"kind": "created", "data": dict.fromkeys(("task", "study", "tree", "commit"), "x") | {"seed_commitment": []}}],
    True,
)
def test_garbage_is_unlawful_and_changes_nothing(at: int, story: list[dict[str, Any]], rightful: bool) -> None:
    state = copy.deepcopy(stage(at))
    apply_all(state, [rightly(one) for one in story] if rightful else story)
