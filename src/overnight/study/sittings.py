"""The fold of what happens to a sitting as a whole; see `fold`."""

from math import isfinite

from overnight.records.decision import LoopDecision
from overnight.records.lifecycle import Actor
from overnight.study.state import Data, StudyState, Unlawful, candidate_of, check_evidence, only, text


def fold_standstill(state: StudyState, data: Data, actor: str) -> None:
    """The engine stood still."""
    only(actor, Actor.ENGINE)
    seconds = float(data["seconds"])
    if not (isfinite(seconds) and seconds > 0):
        raise Unlawful(f"The engine cannot have stood still for {seconds} seconds.")
    text(data["until"])
    state.standstills += 1
    state.still_seconds += seconds


def fold_promotion(state: StudyState, data: Data, actor: str) -> None:
    """The study goes on with a greater budget."""
    only(actor, Actor.JUDGE)
    rung = int(data["rung"])
    if rung != state.rung + 1:
        raise Unlawful(f"The study stands on rung {state.rung}, so it may go to {state.rung + 1} and not to {rung}.")
    candidate_of(state, data)
    check_evidence(state, data["evidence"])
    check_one_rung(state, data["evidence"])
    if not float(data["learning_gain"]) > 0:
        raise Unlawful(f"The learning gain is {data['learning_gain']}, and only what is learning is promoted.")
    state.rung, state.decided_on_rung = rung, 0


def check_one_rung(state: StudyState, runs: list[str]) -> None:
    """Refuse a verdict on runs of different budgets, or of a budget that the study has left behind."""
    rungs = {state.runs[name].rung for name in runs}
    if rungs - {state.rung}:
        told = ", ".join(map(str, sorted(rungs)))
        raise Unlawful(f"The runs are of rung {told}, and only those of rung {state.rung} may be compared now.")


def fold_handoff(state: StudyState, data: Data, actor: str) -> None:
    """A sitting ended."""
    only(actor, Actor.ENGINE)
    because, command = text(data["because"]), text(data["next"])
    state.handed_off, state.leads_on = because, command


def fold_turn(state: StudyState, data: Data, actor: str) -> None:
    """The loop turned: what it does where no verdict says it."""
    only(actor, Actor.ENGINE)
    LoopDecision(data["loop"])
    text(data["because"])


def fold_note(state: StudyState, data: Data, actor: str) -> None:
    """Something worth remembering that changes no state."""
    Actor(actor)
    text(data["says"])


def go_on(state: StudyState) -> None:
    """Something was begun after the last handoff, which is then the past."""
    state.handed_off = state.leads_on = ""


def fold_verification(state: StudyState, data: Data, actor: str) -> None:
    """Somebody looked at the behaviour behind a verdict."""
    only(actor, Actor.JUDGE)
    check_evidence(state, data["evidence"])
    one = candidate_of(state, data)
    if data["verdict"] == "improved" and (not data["behaviour"] or one.id not in state.certified):
        raise Unlawful(
            f"{one.id} is not shown to be improved: that needs a certification, and behaviour that was seen."
        )
    state.verified.append(one.id)
