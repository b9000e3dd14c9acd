"""Asking coding agents, as the ledger tells it: one open question at a time, and every answer with its price."""

from math import isfinite

from overnight.records.lifecycle import Actor
from overnight.study.state import AskState, Data, StudyState, Unlawful, only, text


def fold_asked(state: StudyState, data: Data, actor: str) -> None:
    """An agent is about to be asked."""
    only(actor, Actor.ENGINE)
    if data["id"] != state.next_ask():
        raise Unlawful(f"The next asking is {state.next_ask()}, not {data['id']}.")
    open_one = next((name for name, one in state.asks.items() if not one.outcome), None)
    if open_one is not None:
        raise Unlawful(f"{open_one} has not ended, so no agent may be asked again.")
    reserved = float(data["reserved_dollars"])
    state.asks[data["id"]] = AskState(
        operator=text(data["operator"]), base=text(data["base"]), reserved_dollars=reserved
    )


def fold_answered(state: StudyState, data: Data, actor: str) -> None:
    """What became of asking it, and what counts of its price."""
    only(actor, Actor.ENGINE)
    found = state.asks.get(data["ask"])
    if found is None or found.outcome:
        raise Unlawful(f"{data['ask']} was never asked, or has ended already.")
    outcome, because, dollars, tokens = (
        text(data["outcome"]),
        text(data["because"]),
        data["counted_dollars"],
        data["tokens"],
    )
    if not (isfinite(dollars) and dollars >= 0 and isinstance(tokens, int) and tokens >= 0):
        raise Unlawful(f"{data['ask']} cannot have cost {dollars} dollars and {tokens} tokens.")
    found.outcome, found.because, found.until, found.at = (
        outcome,
        because,
        data.get("until"),
        float(data.get("at", 0.0)),
    )
    state.dollars += dollars
    state.tokens += tokens
