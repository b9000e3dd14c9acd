"""The fold of what happens to a sitting as a whole; see `fold`."""

from math import isfinite

from overnight.records.lifecycle import Actor
from overnight.study.state import Data, StudyState, Unlawful, only, text


def fold_standstill(state: StudyState, data: Data, actor: str) -> None:
    """The engine stood still."""
    only(actor, Actor.ENGINE)
    seconds = float(data["seconds"])
    if not (isfinite(seconds) and seconds > 0):
        raise Unlawful(f"The engine cannot have stood still for {seconds} seconds.")
    text(data["until"])
    state.standstills += 1
    state.still_seconds += seconds


def fold_handoff(state: StudyState, data: Data, actor: str) -> None:
    """A sitting ended."""
    only(actor, Actor.ENGINE)
    because, command = text(data["because"]), text(data["next"])
    state.handed_off, state.leads_on = because, command


def go_on(state: StudyState) -> None:
    """Something was begun after the last handoff, which is then the past."""
    state.handed_off = state.leads_on = ""
