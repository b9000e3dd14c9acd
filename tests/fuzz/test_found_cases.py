"""Cases that broke the parsers, the fold or the derived state once, kept at full strength."""

import copy
import json
from contextlib import suppress
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fuzz.test_parsers import WHOLE, anchored, chained, fold_and_decode
from long_ledger import lawful
from overnight.cli.propose import _proposal
from overnight.errors import LedgerDamaged, UserError
from overnight.machine import RealMachine
from overnight.records.decision import Verdict
from overnight.records.lifecycle import STEPS, Actor, State
from overnight.records.proposal import Proposal
from overnight.records.run import Outcome
from overnight.records.space import Space
from overnight.study import anchor, yaml
from overnight.study.anchor import GENESIS, Anchor
from overnight.study.fold import Fold, apply, raw
from overnight.study.layout import Root
from overnight.study.ledger import START, check_anchor, scan
from overnight.study.state import Unlawful
from overnight.study.study import Study, lay_out, read_state
from records.test_records import PROPOSAL, SPACE, refusal_of
from study.test_fold import (
    BASELINE,
    STAGES,
    Story,
    accepted,
    begun,
    candidate,
    created,
    decision,
    end,
    entries,
    evidence,
    keep_second,
    kept,
    launched,
    rightly,
    run,
    stage,
    validation,
)
from study.test_yaml import NASTY

# 1, 2: tests/study/test_yaml.py


@pytest.mark.parametrize("text", ["1_", "1__0", "1_.5", "1._5", "1.0__1", "1_e5", "-1_", "+1__2"])
def test_a_number_with_a_stray_underscore_stays_text(text: str) -> None:
    assert yaml.load(f"key: {text}", where="file") == {"key": text}


@pytest.mark.parametrize("text", ["\ud800", "a: \udcff", "# \udcff"])
def test_text_that_is_not_unicode_is_refused(text: str) -> None:
    with pytest.raises(UserError):
        yaml.load(text, where="file")


def test_a_byte_that_is_not_text_on_the_command_line_is_refused() -> None:
    with pytest.raises(UserError):
        _proposal(["learning_rate=\udcff"], None, "Why not?", "It rises.", "hyperparameter", bundle=False)


# 3: tests/study/test_yaml.py; replaces test_what_was_dumped_is_loaded_the_same


@pytest.mark.parametrize("text", ["...", "... a", "<<", "a \u2028b", "a\u2029 b", "\u2028"])
def test_more_nasty_text_survives(text: str) -> None:
    for data in (text, [text], {"key": text}, {text: 1}, [{text: [text], "x": {text: text}}]):
        assert yaml.load(yaml.dump(data), where="file") == data


@pytest.mark.parametrize("number", [10**300, -(10**300), 10**305])
def test_a_number_of_more_than_300_digits_is_refused_and_not_rounded(number: int) -> None:
    with pytest.raises(UserError, match="too large"):
        yaml.load(yaml.dump(number), where="file")


FINITE = st.floats(allow_nan=False, allow_infinity=False)
TEXT = st.text(max_size=30) | st.sampled_from([*NASTY, "...", "... a", "<<", "a \u2028b", "\u2029"])
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(1 - 10**299, 10**299 - 1) | FINITE | TEXT,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(TEXT, inner, max_size=5),
    max_leaves=25,
)


@settings(max_examples=500, deadline=None)
@given(PLAIN)
def test_what_was_dumped_is_loaded_the_same(data: object) -> None:
    assert repr(yaml.load(yaml.dump(data), where="file")) == repr(data)


@settings(max_examples=500, deadline=None)
@given(st.text(st.characters(), max_size=20) | st.text("0123456789_.-+eE:", max_size=12))
def test_any_text_at_all_is_loaded_or_refused(text: str) -> None:
    try:
        yaml.load(text, where="file")
    except UserError:
        return


# 4: tests/records/test_codec.py


@pytest.mark.parametrize("key", ["hypothesis", "predicted_effect"])
def test_half_a_surrogate_pair_is_no_text_in_a_record(key: str) -> None:
    assert f"`{key}`" in refusal_of(Proposal, {**PROPOSAL, key: "bad \udcff"})


@pytest.mark.parametrize("params", [{"a": "\udcff"}, {"\udcff": 1}])
def test_half_a_surrogate_pair_is_no_text_in_a_mapping(params: dict[str, Any]) -> None:
    assert "params" in refusal_of(Proposal, {**PROPOSAL, "params": params})


# 5: tests/records/test_records.py


@pytest.mark.parametrize("bounds", [{"low": None, "high": 0.0001}, {"low": 1.0, "high": None}])
def test_a_parameter_with_one_bound_refuses_what_is_beyond_it(bounds: dict[str, Any]) -> None:
    says = refusal_of(Space, {**SPACE, "parameters": [{**SPACE["parameters"][0], **bounds}]})
    assert says.startswith("`parameters.0.default` is 0.001, but ")


# 6: tests/fuzz/test_parsers.py; widens test_a_forged_anchor_vouches_for_the_ledger_or_is_refused


@pytest.mark.parametrize("entries", [-1, -2, -100])
@pytest.mark.parametrize("kept_lines", [0, 1, 16])
def test_an_anchor_that_counts_below_zero_is_refused(entries: int, kept_lines: int) -> None:
    start = b"".join(WHOLE.splitlines(keepends=True)[:kept_lines])
    with pytest.raises(LedgerDamaged):
        check_anchor("ledger", scan(start), anchored(anchor._slot(Anchor(1, entries, GENESIS, 0)) * 2))


# 7: tests/fuzz/test_parsers.py


def hostile(kind: str, **changes: object) -> bytes:
    told = copy.deepcopy(lawful(16))
    next(data for _, one, data in told if one == kind).update(changes)
    return chained(told)


@pytest.mark.parametrize("seconds", [10**400, -(10**400), float("nan"), float("inf"), -5.0])
def test_a_run_that_took_no_possible_time_is_refused(seconds: float) -> None:
    fold = Fold()
    found = scan(hostile("ended", wall_seconds=seconds), START, fold)
    with pytest.raises(LedgerDamaged):
        fold.state(found, where="ledger")


# 8: tests/fuzz/test_parsers.py


@pytest.mark.parametrize("depth", [40, 480, 700, 900])
def test_a_deeply_nested_entry_is_never_a_recursion_error(depth: int) -> None:
    nested: list[Any] = []
    for _ in range(depth):
        nested = [nested]
    with suppress(LedgerDamaged):
        fold_and_decode(hostile("approved", terms={"x": nested}))


# 9: tests/study/test_fold.py


def test_a_refuted_certification_reverts_the_whole_stack_that_it_accepted() -> None:
    story = kept()
    second = keep_second(story)
    story.tell(Actor.JUDGE, decision(second, Verdict.CERTIFIED, "r-0001", "r-0002"))
    story.tell(Actor.JUDGE, decision(second, Verdict.REFUTED, "r-0002"))
    assert story.state.incumbent == BASELINE
    assert (story.of("c-0001"), story.of("c-0002")) == (State.REVERTED, State.REVERTED)


# 10: tests/study/test_fold.py


@pytest.mark.parametrize("verdict", [Verdict.REJECT, Verdict.REFUTED])
def test_a_candidate_with_an_open_run_is_not_reverted(verdict: Verdict) -> None:
    story = kept().tell(Actor.RUNNER, run(candidate(), 2))
    says = story.refusal(Actor.JUDGE, decision(candidate(), verdict, "r-0001"))
    assert says.startswith("A candidate that is launched cannot become reverted")


@settings(max_examples=500, deadline=None)
@given(st.integers(0, len(STAGES) - 1), st.lists(entries(hostile=False), max_size=12))
def test_every_lawful_entry_moves_candidates_only_along_the_table(at: int, story: list[dict[str, Any]]) -> None:
    state = copy.deepcopy(stage(at))
    for one in map(rightly, story):
        before = {name: each.state for name, each in state.candidates.items()}
        try:
            apply(state, one)
        except Unlawful:
            continue
        for name, each in state.candidates.items():
            step = (before.get(name), each.state)
            assert step[0] is step[1] or (step in STEPS and Actor(one["actor"]) in STEPS[step]), (name, step)


# 11: tests/study/test_fold.py


def test_a_second_refutation_of_the_same_commit_is_unlawful_and_changes_nothing() -> None:
    story = begun()
    for number in (1, 2):
        one = replace(candidate(number), commit=BASELINE)
        each = run(one, number)
        story.tell(Actor.PROPOSER, one).tell(Actor.GATE, validation(one)).tell(Actor.RUNNER, each)
        story.tell(Actor.RUNNER, end(each)).tell(Actor.REFEREE, evidence(each))
        story.tell(Actor.JUDGE, decision(one, Verdict.KEEP, each.id))
    story.tell(Actor.JUDGE, decision(candidate(2), Verdict.CERTIFIED, "r-0002"))
    story.tell(Actor.JUDGE, decision(candidate(2), Verdict.REFUTED, "r-0002"))
    story.refusal(Actor.JUDGE, decision(candidate(1), Verdict.REFUTED, "r-0001"))


# 12: tests/study/test_fold.py


def ran_second(story: Story) -> None:
    second = candidate(2, base=candidate().commit)
    story.tell(Actor.PROPOSER, second).tell(Actor.GATE, validation(second))
    story.tell(Actor.RUNNER, run(second, 2)).tell(Actor.RUNNER, end(run(second, 2)))


def test_nothing_is_kept_on_the_evidence_of_another_candidate_alone() -> None:
    story = kept()
    ran_second(story)
    second = candidate(2, base=candidate().commit)
    assert "without evidence" in story.refusal(Actor.JUDGE, decision(second, Verdict.KEEP, "r-0001"))


def test_nothing_is_kept_on_a_crash_alone() -> None:
    story = launched().tell(Actor.RUNNER, run(candidate(), 2)).tell(Actor.RUNNER, end(run(candidate())))
    story.tell(Actor.RUNNER, end(run(candidate(), 2), Outcome.CRASHED))
    assert "without evidence" in story.refusal(Actor.JUDGE, decision(candidate(), Verdict.KEEP, "r-0002"))


# 13: tests/study/test_fold.py; more rows of test_a_certification_needs_gain_evidence_audit_and_every_guardrail


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(
            {"guardrails": [{"name": "worst_decile_return", "worse_by": float("nan"), "margin": 0.0}]},
            id="a guardrail that is not a number",
        ),
        pytest.param({"audit": ""}, id="an audit without a name"),
        pytest.param({"audit": False}, id="an audit that is no text"),
    ],
)
def test_a_certification_needs_a_guardrail_that_holds_and_a_named_audit(change: dict[str, Any]) -> None:
    data = {**raw(decision(candidate(), Verdict.CERTIFIED, "r-0001")), **change}
    story = kept()
    with pytest.raises(Unlawful):
        apply(story.state, {"kind": "decided", "actor": "judge", "data": data})
    assert story.state.incumbent == BASELINE


# 14: tests/study/test_fold.py


def test_rejecting_what_was_accepted_is_told_in_words() -> None:
    says = accepted().refusal(Actor.JUDGE, decision(candidate(), Verdict.REJECT, "r-0001"))
    assert "ValueError" not in says


# 15: tests/study/test_fold.py


def test_a_note_from_nobody_we_know_is_unlawful() -> None:
    with pytest.raises(Unlawful):
        apply(begun().state, {"kind": "noted", "actor": "mallory", "data": {"says": "Hello."}})


# 16: tests/study/test_study.py


@pytest.mark.parametrize("change", [{"entries": -3}, {"head": "zz"}, {"entries": 0}, {"ledger_bytes": 0}])
def test_a_derived_state_that_is_wrong_never_condemns_a_sound_ledger(tmp_path: Path, change: dict[str, Any]) -> None:
    machine, at = RealMachine(), Root(tmp_path / ".overnight").task("t").study("s")
    lay_out(machine, at)
    with Study.open(machine, at, doing="test") as study:
        study.append(Actor.ENGINE, created())
    saved = json.loads(at.state.read_text()) | change
    saved["ledger_sha256"] = sha256(at.ledger.read_bytes()[: saved["ledger_bytes"]]).hexdigest()
    at.state.write_text(json.dumps(saved))
    assert read_state(machine, at).entries == 1
