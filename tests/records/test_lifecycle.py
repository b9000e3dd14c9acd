"""The table of states: which step exists, and whose it is."""

import pytest

from overnight.records.lifecycle import STEPS, Actor, State, why_not


def test_there_are_the_nine_states_of_the_feature_list() -> None:
    assert [str(state) for state in State] == [
        "draft",
        "validated",
        "launched",
        "completed",
        "accepted",
        "rejected",
        "inconclusive",
        "debug",
        "reverted",
    ]


@pytest.mark.feature("R74")
@pytest.mark.parametrize("actor", sorted(set(Actor) - {Actor.RUNNER}))
@pytest.mark.parametrize("now", [State.VALIDATED, State.COMPLETED, State.INCONCLUSIVE])
def test_nobody_but_the_runner_may_launch(now: State, actor: Actor) -> None:
    says = why_not(now, State.LAUNCHED, actor)
    assert says == f"only the runner may make a candidate launched, but the {actor} tried"


def test_the_runner_may_launch_what_is_validated() -> None:
    assert why_not(State.VALIDATED, State.LAUNCHED, Actor.RUNNER) is None


@pytest.mark.parametrize("now", [None, State.DRAFT, State.REJECTED, State.DEBUG, State.ACCEPTED, State.REVERTED])
def test_not_even_the_runner_may_launch_what_is_not_validated(now: State | None) -> None:
    says = why_not(now, State.LAUNCHED, Actor.RUNNER)
    assert says is not None
    assert says.startswith(f"a candidate that is {now or 'not drafted'} cannot become launched; it may become ")


@pytest.mark.parametrize(
    ("then", "owner"),
    [
        (State.VALIDATED, {Actor.GATE, Actor.RUNNER}),
        (State.LAUNCHED, {Actor.RUNNER}),
        (State.COMPLETED, {Actor.RUNNER}),
        (State.DEBUG, {Actor.RUNNER}),
        (State.ACCEPTED, {Actor.JUDGE}),
        (State.REJECTED, {Actor.JUDGE}),
        (State.INCONCLUSIVE, {Actor.JUDGE}),
        (State.REVERTED, {Actor.JUDGE}),
    ],
)
def test_each_state_is_set_by_its_own_hand(then: State, owner: set[Actor]) -> None:
    assert set().union(*(who for (_, to), who in STEPS.items() if to is then)) == owner


def test_a_lost_run_makes_a_candidate_validated_again_but_no_runner_validates_a_draft() -> None:
    assert why_not(State.LAUNCHED, State.VALIDATED, Actor.RUNNER) is None
    assert why_not(State.DRAFT, State.VALIDATED, Actor.RUNNER) is not None


@pytest.mark.parametrize("now", [None, *sorted(set(State) - {State.COMPLETED})])
def test_only_a_completed_candidate_can_be_accepted(now: State | None) -> None:
    assert why_not(now, State.ACCEPTED, Actor.JUDGE) is not None


@pytest.mark.parametrize("now", [State.REJECTED, State.REVERTED])
def test_nothing_comes_after_rejected_and_reverted(now: State) -> None:
    says = why_not(now, State.DRAFT, Actor.PERSON)
    assert says == f"a candidate that is {now} cannot become draft; it may become no other state"


def test_a_refused_step_is_told_with_the_steps_that_exist() -> None:
    says = why_not(State.LAUNCHED, State.ACCEPTED, Actor.JUDGE)
    assert says == (
        "a candidate that is launched cannot become accepted; it may become completed or debug or validated"
    )


def test_every_state_can_be_reached_from_a_draft() -> None:
    reached: set[State | None] = {None}
    for _ in State:
        reached |= {to for (start, to) in STEPS if start in reached}
    assert reached == {None, *State}


def test_no_candidate_is_accepted_without_having_been_drafted_validated_launched_and_completed() -> None:
    paths: list[tuple[State | None, ...]] = [(None,)]
    ends = []
    while paths:
        path = paths.pop()
        onwards = [to for (start, to) in STEPS if start is path[-1] and to not in path]
        paths += [(*path, to) for to in onwards]
        ends += [path] if path[-1] is State.ACCEPTED else []
    assert ends
    assert all({State.DRAFT, State.VALIDATED, State.LAUNCHED, State.COMPLETED} <= set(path) for path in ends)
