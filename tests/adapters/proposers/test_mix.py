"""Several proposers under one budget: shares, plateaus, operators, and nobody who is waited for."""

from collections import Counter
from dataclasses import replace

import pytest

from overnight.adapters.proposers.mix import MixProposer, shares
from overnight.adapters.proposers.operators import agents_operator, on_plateau, operated, operator_for, to_mend
from overnight.records.agent import Ask, AskOutcome, Operator
from overnight.records.limits import Scalar
from overnight.records.proposal import Ending, Exhausted, Proposal, Tried, View, Wait
from overnight.records.space import Parameter, Space

SPACE = Space(
    trainer="toy",
    source="Made up for this test.",
    parameters=(
        Parameter(name="learning_rate", type="float", default=0.001, says="A rate.", low=1e-5, high=0.1, log=True),
        Parameter(name="gamma", type="float", default=0.99, says="A discount.", low=0.8, high=0.9999),
        Parameter(name="envs", type="int", default=8, says="A count.", low=1, high=4096, log=True),
    ),
)
BASE: dict[str, Scalar] = {"learning_rate": 0.001, "gamma": 0.99, "envs": 8}
VIEW = View(
    task="toy",
    study="first",
    program="",
    surface=("params.json",),
    keys=(),
    space=SPACE,
    params=BASE,
    tried=(),
    runs_left=1000,
    candidates_left=1000,
    seed=1,
)


def tried(
    number: int, params: dict[str, Scalar], outcome: Ending, gain: float | None = 0.0, who: str = "search"
) -> Tried:
    parts = tuple(f"{key} changes." for key in params) if len(params) > 1 else ()
    idea = Proposal(
        proposer=who,
        kind="hyperparameter",
        hypothesis="It helps.",
        predicted_effect="It rises.",
        params=params,
        bundle=parts,
    )
    return Tried(candidate=f"c-{number:04d}", proposal=idea, params={**BASE, **params}, outcome=outcome, gain=gain)


def ask(number: int, outcome: AskOutcome | None) -> Ask:
    return Ask(
        id=f"a-{number:04d}",
        outcome=outcome,
        because="So it was.",
        operator="tune",
        base="a" * 40,
        reserved_dollars=1.0,
    )


class Idea:
    """Always has one more idea."""

    def __init__(self, name: str) -> None:
        self.name, self.wanted = name, list[Operator | None]()

    def ask(self, view: View) -> Proposal:
        self.wanted.append(view.operator)
        rate = 0.001 + 0.0001 * (1 + len(view.tried))
        return replace(tried(1, {"learning_rate": rate}, "pending").proposal, proposer=self.name)


class Busy:
    """Has to wait."""

    def ask(self, view: View) -> Wait:
        return Wait(until_seconds=60.0, because="It is at work.")


class Empty:
    """Has nothing left."""

    def ask(self, view: View) -> Exhausted:
        return Exhausted(because="Nothing is left.")


def played(mix: MixProposer, ideas: int, outcome: Ending = "kept") -> Counter[str]:
    """Who proposed, over a night in which every idea ends the same way."""
    view, who = VIEW, Counter[str]()
    for number in range(1, ideas + 1):
        answer = mix.ask(view)
        assert isinstance(answer, Proposal)
        who[answer.proposer] += 1
        gain = 1.0 if outcome == "kept" else -1.0
        one = replace(tried(number, dict(answer.params), outcome, gain), proposal=answer)
        view = replace(view, tried=(*view.tried, one))
    return who


def test_an_agent_has_a_minority_share_by_default() -> None:
    assert played(MixProposer({"agent": Idea("agent"), "search": Idea("search")}), 40) == {"search": 30, "agent": 10}


def test_a_plateau_doubles_the_agents_share() -> None:
    mix = MixProposer({"agent": Idea("agent"), "search": Idea("search")})
    barren = played(mix, 46, "rejected")
    assert barren["agent"] >= 20, barren


def test_while_an_agent_is_at_work_search_goes_on() -> None:
    mix = MixProposer({"agent": Busy(), "search": Idea("search")}, agent_share=0.9)
    answer = mix.ask(VIEW)
    assert isinstance(answer, Proposal) and answer.proposer == "search" and answer.operator == "tune"


def test_a_question_that_is_open_is_looked_after_first() -> None:
    mix = MixProposer({"agent": Idea("agent"), "search": Idea("search")}, agent_share=0.01)
    view = replace(VIEW, tried=(tried(1, {"gamma": 0.9}, "kept"),))
    assert mix.ask(view).proposer == "search"  # type: ignore[union-attr]
    assert mix.ask(replace(view, asks=(ask(1, None),))).proposer == "agent"  # type: ignore[union-attr]


def test_when_everybody_waits_the_shortest_wait_is_told_and_when_nobody_has_more_why() -> None:
    assert isinstance(MixProposer({"agent": Busy(), "search": Empty()}).ask(VIEW), Wait)
    over = MixProposer({"agent": Empty(), "search": Empty()}).ask(VIEW)
    assert isinstance(over, Exhausted) and "agent: Nothing is left." in over.because


def test_shares_follow_what_ideas_brought_only_where_two_have_certified_gains() -> None:
    names = ("agent", "search")
    one_good = tuple(tried(n, {"gamma": 0.9}, "certified", 5.0, "agent") for n in range(1, 4))
    assert shares(replace(VIEW, tried=one_good), names, 0.25)["agent"] == 0.25
    lost = tuple(tried(n, {"gamma": 0.9}, "rejected", -1.0) for n in range(4, 24))
    both = (*one_good, *lost, tried(24, {"gamma": 0.9}, "certified", 5.0))
    found = shares(replace(VIEW, tried=both), names, 0.25)
    assert found["agent"] > 0.8 and found["search"] >= 0.09


BARREN = tuple(tried(n, {"learning_rate": 0.001 * n}, "rejected", -1.0) for n in range(2, 8))


def test_a_plateau_switches_operators_and_each_has_something_to_work_on() -> None:
    assert operator_for(replace(VIEW, tried=BARREN[:-1])) == "tune"
    view = replace(VIEW, tried=BARREN)
    assert on_plateau(view) and operator_for(view) == "draft", "nothing was kept, crashed or nearly helped"
    crashed = replace(view, tried=(*BARREN, tried(8, {"gamma": 0.9}, "crashed", None)))
    assert {operator_for(replace(crashed, tried=crashed.tried + BARREN[:n])) for n in range(4)} == {"debug", "draft"}


@pytest.mark.feature("H69")
def test_when_stuck_the_next_proposal_names_another_operator_than_tuning() -> None:
    near = (tried(8, {"gamma": 0.95}, "rejected", 0.2), tried(9, {"envs": 32}, "rejected", 0.1))
    answer = MixProposer({"search": Idea("search")}).ask(replace(VIEW, tried=(*BARREN, *near)))
    assert isinstance(answer, Proposal) and answer.operator == "combine" and answer.parents == ("c-0008", "c-0009")


def test_an_agent_is_asked_for_a_draft_first_and_for_something_else_now_and_then() -> None:
    kept = tried(1, {"gamma": 0.9, "envs": 16}, "kept", 3.0)
    wanted = [
        agents_operator(replace(VIEW, tried=(kept,), asks=tuple(ask(n, "proposal") for n in range(1, asked + 1))))
        for asked in range(7)
    ]
    assert wanted[0] == "draft" and wanted[1:3] == ["tune", "tune"]
    assert {"simplify", "ablate", "draft"} & set(wanted[3:])


@pytest.mark.feature("Z30")
def test_when_search_has_no_idea_left_near_misses_are_joined() -> None:
    near = (tried(1, {"gamma": 0.95}, "inconclusive", 0.5), tried(2, {"envs": 32}, "rejected", 0.2))
    answer = MixProposer({"search": Empty()}).ask(replace(VIEW, tried=near))
    assert isinstance(answer, Proposal)
    assert answer.operator == "combine" and answer.parents == ("c-0001", "c-0002")
    assert dict(answer.params) == {"gamma": 0.95, "envs": 32} and len(answer.bundle) == 2


def test_simplifying_puts_one_parameter_of_the_tip_back() -> None:
    kept = tried(1, {"gamma": 0.95, "envs": 32}, "kept", 2.0)
    view = replace(VIEW, tried=(kept,), params=kept.params, operator="simplify")
    answer = operated(view)
    assert answer is not None and dict(answer.params) in ({"gamma": 0.99}, {"envs": 8})
    assert answer.parents == ("c-0001",)


def test_ablating_takes_one_part_of_a_kept_bundle_away() -> None:
    kept = tried(1, {"gamma": 0.95, "envs": 32}, "kept", 2.0)
    answer = operated(replace(VIEW, tried=(kept,), params=kept.params, operator="ablate"))
    assert answer is not None and dict(answer.params) == {"gamma": 0.99} and "c-0001" in answer.hypothesis


def test_debugging_keeps_the_idea_of_a_crash_with_a_smaller_step() -> None:
    crash = tried(1, {"learning_rate": 0.09, "envs": 64}, "crashed", None)
    answer = operated(replace(VIEW, tried=(crash,), operator="debug"))
    assert answer is not None and dict(answer.params) == {"learning_rate": 0.03, "envs": 64}


def test_after_three_fixes_that_crash_too_the_idea_is_dropped() -> None:
    crash = tried(1, {"learning_rate": 0.09, "envs": 64}, "crashed", None)
    view = replace(VIEW, tried=(crash,), operator="debug")
    rates = []
    while (answer := operated(view)) is not None:
        rates.append(answer.params["learning_rate"])
        fix = tried(len(view.tried) + 1, dict(answer.params), "crashed", None)
        view = replace(view, tried=(*view.tried, replace(fix, proposal=answer)))
    assert rates == [0.03, 0.01, pytest.approx(0.0033, abs=0.0001)]
    assert to_mend(view) == set() and to_mend(replace(view, tried=view.tried[:-1])) == {"c-0001"}


def test_an_agent_mends_its_own_crash_before_anything_else_and_never_one_that_was_mended() -> None:
    crash = tried(1, {"envs": 64}, "crashed", None, who="agent")
    fix = tried(2, {"envs": 65}, "rejected", 0.0, who="agent")
    fix = replace(fix, proposal=replace(fix.proposal, operator="debug"))
    asked = replace(VIEW, asks=(ask(1, "proposal"), ask(2, "proposal")))
    assert agents_operator(replace(asked, tried=(crash,))) == "debug"
    assert agents_operator(replace(asked, tried=(crash, fix))) == "tune"
    theirs = replace(crash, proposal=replace(crash.proposal, proposer="search"))
    assert agents_operator(replace(asked, tried=(theirs,))) == "tune", "search mends what it broke itself"


def test_an_operator_never_repeats_what_was_tried() -> None:
    near = (tried(1, {"gamma": 0.95}, "rejected", 0.5), tried(2, {"envs": 32}, "rejected", 0.2))
    done = tried(3, {"gamma": 0.95, "envs": 32}, "rejected", -1.0)
    assert operated(replace(VIEW, tried=(*near, done), operator="combine")) is None
