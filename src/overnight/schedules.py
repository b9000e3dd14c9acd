"""The looks of an attempt: fixed from the race and the frozen plan before its first run, and derived anew by an audit.

Pure: the same entries always give the same schedule.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from overnight.claims import incumbent
from overnight.decide.plan import StudyPlan
from overnight.decide.race import Race
from overnight.decide.spending import LookPlan
from overnight.racing import Follower
from overnight.records.codec import decode
from overnight.records.contract import Contract
from overnight.records.schedule import LookSchedule
from overnight.study.fold import apply
from overnight.study.ledger import RawEntry
from overnight.study.state import StudyState


def schedule(state: StudyState, race: Race, plan: StudyPlan, runs_left: float | None) -> LookSchedule | None:
    """The schedule of an attempt that begins now; None where the tip cannot be certified.

    `runs_left` is for the attempt after which nothing else is wanted: its last look takes the runs that are left.
    """
    looks = plan.attempt_plan(race, runs_left=runs_left)
    if looks is None or not state.stack:
        return None
    return LookSchedule(
        attempt=state.attempts + 1,
        tip=state.stack[-1],
        incumbent=incumbent(state),
        looks=looks.looks,
        shares=looks.shares,
        paired=looks.paired,
        error=plan.alpha(tuple(state.attempts_certified)),
        runs_left=runs_left,
    )


def spare(contract: Contract, plan: StudyPlan, runs_left: float) -> float:
    """Of the runs that are left, those that a last attempt may take: never more fresh seeds than the contract has."""
    most = contract.evaluation.confirm_train_seeds
    return runs_left if most is None else min(runs_left, 2.0 * most + plan.audit_seeds)


def recorded(state: StudyState) -> LookSchedule | None:
    """The schedule of the attempt that is open; None where none is, or none was written down."""
    return None if state.schedule is None else decode(LookSchedule, state.schedule, where="ledger schedule")


def look_plan(one: LookSchedule) -> LookPlan:
    """The looks as the test takes them."""
    return LookPlan(looks=one.looks, shares=one.shares, paired=one.paired)


@dataclass(frozen=True, slots=True)
class Derived:
    """A schedule as the ledger has it, and as it follows from what the ledger had before it."""

    written: LookSchedule
    """What the ledger has."""
    follows: LookSchedule | None
    """What follows from the entries before it; None where they allow no attempt."""
    runs_then: int
    """The runs that the budget still held at that moment."""
    total_error: float
    """The chance of a false claim that the frozen plan gives to the whole study."""


def derive(entries: Sequence[RawEntry], contract: Contract, attempt: int) -> Derived | None:
    """Derive the schedule of an attempt anew; None where none was written down before its first run."""
    state = StudyState()
    for entry in entries:
        data = entry["data"]
        if entry["kind"] == "scheduled" and data["attempt"] == attempt:
            return _derived(state, contract, decode(LookSchedule, data, where="ledger schedule"))
        if entry["kind"] == "launched" and (data["phase"], data["round"]) == ("confirm", attempt):
            return None
        apply(state, entry)
    return None


def _derived(state: StudyState, contract: Contract, written: LookSchedule) -> Derived:
    follower = Follower()
    race = follower.race(state, contract.at(state.rung))
    if race is None or follower.plan is None or follower.calibration is None:
        return Derived(written, None, 0, 0.0)
    then = follower.calibration.max_runs - state.paid_runs
    plan, left = follower.plan, written.runs_left
    follows = schedule(state, race, plan, None if left is None else spare(contract, plan, left))
    return Derived(written, follows, then, plan.total_error)
