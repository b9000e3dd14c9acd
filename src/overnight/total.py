"""What a long study gained in all: its last incumbent on a few more seeds, against the baseline of the calibration.

A study that certifies one gain on another could only add its claims up, each a little too high because it was the one
that succeeded. So the last runs of a study of 150 and more are kept back for seeds that selected nothing. They move no
tip and make no claim: the report tells the whole gain from them, anew each time, from the runs of the ledger.
"""

from statistics import fmean

from overnight.claims import incumbent
from overnight.decide.guards import mean_gain_interval
from overnight.decide.intervals import Interval
from overnight.decide.telling import decimals, told
from overnight.racing import LAST_ROUND, better_is_higher, plan_of
from overnight.records.contract import Contract
from overnight.records.metric import Direction
from overnight.study.state import StudyState
from overnight.trials import Bench, Wanted


def missing(bench: Bench) -> list[Wanted]:
    """The runs of the last check that nobody has started; none where nothing is certified, or no check is planned."""
    state, contract = bench.study.state, bench.contract
    plan = plan_of(state, contract)
    if plan is None or not state.incumbents:
        return []
    tip = incumbent(state)
    there = _scores(state, contract, tip, LAST_ROUND)
    return [Wanted(tip, "screen", LAST_ROUND, number) for number in range(plan.audit_seeds) if number not in there]


def wanted(bench: Bench, runs_left: float) -> list[Wanted]:
    """The same once the search is over; none where the budget does not hold them all, or a tip may still be claimed."""
    found = missing(bench)
    return [] if len(found) > runs_left or bench.study.state.attempt_is_open() else found


def gain_in_all(state: StudyState, contract: Contract) -> Interval | None:
    """How much better the last incumbent is than the baseline; None where nobody measured it."""
    arms = _arms(state, contract)
    return None if arms is None else mean_gain_interval(*arms)


def says(state: StudyState, contract: Contract) -> str:
    """The same in one sentence; empty where nobody measured it."""
    arms = _arms(state, contract)
    if arms is None:
        return ""
    gain, metric = mean_gain_interval(*arms), contract.metric
    sign = 1.0 if metric.direction is Direction.HIGHER else -1.0
    places = decimals(gain.high - gain.low, digits=2)
    after, before = (told(sign * fmean(arm), places) for arm in arms)
    size = told(gain.estimate, places, sign=True) + ("" if sign > 0 else " better")
    span = f"95 % interval {told(gain.low, places)} to {told(gain.high, places)}"
    seeds = f"{len(arms[0])} seeds that selected nothing against the {len(arms[1])} of the calibration"
    return f"In all since the baseline: {metric.unit} {before} → {after} ({size}, {span}), {seeds}."


def _arms(state: StudyState, contract: Contract) -> tuple[list[float], list[float]] | None:
    """The scores of the last check and of the calibrated baseline, better being higher; None while one is missing."""
    plan = plan_of(state, contract)
    if plan is None or not plan.audit_seeds or not state.incumbents:
        return None
    ours = _scores(state, contract, incumbent(state), LAST_ROUND)
    first = _scores(state, contract, state.baseline, 0)
    numbers = range(plan.audit_seeds), range(plan.rule.baseline_seeds)
    arms = [[found.get(number) for number in seeds] for found, seeds in zip((ours, first), numbers, strict=True)]
    known = [[score for score in arm if score is not None] for arm in arms]
    return (known[0], known[1]) if known == arms else None


def _scores(state: StudyState, contract: Contract, candidate: str, round_: int) -> dict[int, float | None]:
    """What a candidate scored on the tuning seeds of a round, by their number; None while a run is going."""
    key, found = contract.comparability(), {}
    for run in state.runs.values():
        same = (run.candidate, run.phase, run.round, run.comparability) == (candidate, "screen", round_, key)
        if same and (run.outcome is None or not run.outcome.is_repeated()):
            found[run.number] = better_is_higher(contract, run)
    return found
