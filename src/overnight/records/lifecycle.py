"""The states of a candidate, and who may set which.

A table, read by the fold of the ledger: an entry that asks for a step which is not
here, or comes from an actor who may not take it, is refused before it is written.

    draft ─► validated ─► launched ─► completed ─► accepted ─► reverted
      ▲          │  ▲         │            │├────► rejected
      └──────────┘  └─ lost ──┤            │├────► inconclusive
       refused later          └─► debug ─► rejected
                                           └─► reverted (kept, then undone)

"Ready" is not a state: a candidate is ready when it is `validated` and an approval,
standing or single, covers it.
"""

from enum import StrEnum


class State(StrEnum):
    """Where a candidate stands."""

    DRAFT = "draft"
    VALIDATED = "validated"
    LAUNCHED = "launched"
    COMPLETED = "completed"
    ACCEPTED = "accepted"
    REJECTED = "rejected"
    INCONCLUSIVE = "inconclusive"
    DEBUG = "debug"
    REVERTED = "reverted"


class Actor(StrEnum):
    """Who writes an entry."""

    PERSON = "person"
    PROPOSER = "proposer"
    ENGINE = "engine"
    GATE = "gate"
    RUNNER = "runner"
    REFEREE = "referee"
    JUDGE = "judge"


STEPS: dict[tuple[State | None, State], frozenset[Actor]] = {
    (None, State.DRAFT): frozenset({Actor.PERSON, Actor.PROPOSER, Actor.ENGINE}),
    (State.DRAFT, State.VALIDATED): frozenset({Actor.GATE}),
    (State.VALIDATED, State.DRAFT): frozenset({Actor.GATE}),
    (State.VALIDATED, State.LAUNCHED): frozenset({Actor.RUNNER}),
    (State.COMPLETED, State.LAUNCHED): frozenset({Actor.RUNNER}),
    (State.INCONCLUSIVE, State.LAUNCHED): frozenset({Actor.RUNNER}),
    (State.LAUNCHED, State.COMPLETED): frozenset({Actor.RUNNER}),
    (State.LAUNCHED, State.DEBUG): frozenset({Actor.RUNNER}),
    (State.LAUNCHED, State.VALIDATED): frozenset({Actor.RUNNER}),
    (State.DEBUG, State.REJECTED): frozenset({Actor.JUDGE}),
    (State.COMPLETED, State.REJECTED): frozenset({Actor.JUDGE}),
    (State.COMPLETED, State.INCONCLUSIVE): frozenset({Actor.JUDGE}),
    (State.COMPLETED, State.ACCEPTED): frozenset({Actor.JUDGE}),
    (State.COMPLETED, State.REVERTED): frozenset({Actor.JUDGE}),
    (State.ACCEPTED, State.REVERTED): frozenset({Actor.JUDGE}),
}


def why_not(now: State | None, then: State, actor: Actor) -> str | None:
    """Say why a candidate may not take this step, or return None when it may."""
    allowed = STEPS.get((now, then))
    if allowed is None:
        legal = sorted(str(to) for (start, to) in STEPS if start is now)
        onwards = " or ".join(legal) if legal else "no other state"
        return f"a candidate that is {now or 'not drafted'} cannot become {then}; it may become {onwards}"
    if actor not in allowed:
        may = " or ".join(sorted(str(one) for one in allowed))
        return f"only the {may} may make a candidate {then}, but the {actor} tried"
    return None
