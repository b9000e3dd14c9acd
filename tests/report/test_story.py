"""The sentences say what happened and no more."""

from dataclasses import replace

import pytest

from overnight.records.lifecycle import State
from overnight.records.metric import Direction
from overnight.report import story
from overnight.report.facts import Shortfall
from overnight.report.story import Standing, standing
from report.sample import night

SHORT = Shortfall(because="The gain lies within the noise.", would_decide="About 42 more seeds would decide.")
LINES = {line.id: line for line in night().candidates}


def test_the_headline_of_a_certified_night_has_gain_unit_and_interval() -> None:
    assert story.headline(night()) == "A gain of 213 return on CartPole-v1 was certified, 95 % interval 171 to 255."


@pytest.mark.parametrize(
    ("ruled_out", "ending"),
    [(31.0, "; a gain of 31 return or more is ruled out at 95 %."), (None, ", and the question is open.")],
)
def test_the_headline_of_a_night_without_a_claim_says_so(ruled_out: float | None, ending: str) -> None:
    facts = replace(night(), claims=(), shortfall=replace(SHORT, ruled_out=ruled_out))
    assert story.headline(facts) == "No improvement was certified on CartPole-v1" + ending
    assert story.beneath(facts) == (SHORT.because, SHORT.would_decide)


def test_without_a_claim_no_arm_is_called_a_winner() -> None:
    assert story.arm_name("winner", night()) == "winner"
    assert story.arm_name("winner", replace(night(), claims=())) == "tip"


@pytest.mark.parametrize(
    ("state", "kept", "crashed", "refusals", "word"),
    [
        (State.ACCEPTED, True, False, (), Standing.CERTIFIED),
        (State.COMPLETED, True, False, (), Standing.KEPT),
        (State.COMPLETED, False, False, (), Standing.UNDECIDED),
        (State.REJECTED, False, False, (), Standing.REJECTED),
        (State.REJECTED, False, True, (), Standing.CRASHED),
        (State.DEBUG, False, False, (), Standing.CRASHED),
        (State.INCONCLUSIVE, False, False, (), Standing.INCONCLUSIVE),
        (State.REVERTED, False, False, (), Standing.REVERTED),
        (State.DRAFT, False, False, ("No.",), Standing.REFUSED),
        (State.DRAFT, False, False, (), Standing.NOT_RUN),
        (State.VALIDATED, False, False, (), Standing.NOT_RUN),
        (State.LAUNCHED, False, False, (), Standing.NOT_RUN),
    ],
)
def test_every_state_has_one_word(
    state: State, kept: bool, crashed: bool, refusals: tuple[str, ...], word: Standing
) -> None:
    line = replace(LINES["c-0001"], state=state, kept=kept, crashed=crashed, refusals=refusals)
    assert standing(line) is word


def test_a_placebo_is_called_one_with_the_score_that_would_have_fooled_a_greedy_loop() -> None:
    said = story.outcome(LINES["c-0002"], night())
    assert said.startswith(
        "Planted placebo: the baseline under another name. Its luckiest single score was 312, "
        "which a greedy loop would have kept; it was rejected because its gain of 4 return"
    )


def test_a_placebo_without_luck_is_not_said_to_have_fooled_anyone() -> None:
    said = story.outcome(replace(LINES["c-0002"], luckiest=250.0), night())
    assert "Its luckiest single score was 250, no better than the tip's mean of 265.1; it was rejected" in said
    assert "greedy" not in said


def test_luck_points_the_other_way_where_lower_is_better() -> None:
    lower = replace(night(), metric=replace(night().metric, direction=Direction.LOWER))
    assert not story.tempting(LINES["c-0002"], lower)
    assert story.tempting(replace(LINES["c-0002"], luckiest=250.0), lower)


def test_a_cheat_is_called_one() -> None:
    said = story.outcome(LINES["c-0006"], night())
    assert said.startswith("Planted cheat: ")
    assert "It was rejected because the referee counts every episode to its end" in said


@pytest.mark.parametrize("state", [State.COMPLETED, State.ACCEPTED])
def test_a_plant_that_got_through_is_an_alarm(state: State) -> None:
    through = replace(LINES["c-0002"], state=state, kept=True)
    facts = replace(night(), candidates=(through,))
    assert story.alarms(night()) == ()
    assert f"the planted placebo c-0002 was {standing(through)}" in story.alarms(facts)[0]
    assert "which is a false alarm of the judge" in story.outcome(through, facts)


def test_a_refused_candidate_is_told_with_every_reason() -> None:
    assert story.outcome(LINES["c-0010"], night()) == " ".join(LINES["c-0010"].refusals)


def test_the_tally_counts_everything_once() -> None:
    assert story.tally(night()) == (
        "14 candidates: 3 in the certified stack, 8 rejected, 1 inconclusive, 1 crashed, 1 refused. "
        "2 of them were planted by the engine to test the judge."
    )
    assert story.tally(replace(night(), candidates=())) == "No candidate was tried."
