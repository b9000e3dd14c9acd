"""Calibration in the night: the baseline on a few seeds, before anything is spent on search.

It asks for the runs that it needs, at most a quarter of what fits, and then says in a record how the baseline
scatters, what policies score that learned nothing, what the budget can prove, and how many experiments fit. The
plan of the race and of the looks is frozen in that record; the eighth approval names it by its digest.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from overnight.claims import incumbent
from overnight.decide.calibrate import Calibration as Found
from overnight.decide.calibrate import calibrate
from overnight.decide.plan import StudyPlan
from overnight.errors import OvernightError
from overnight.evaluate.measure import measure_reference
from overnight.forecast import planned, run_seconds, runs_that_fit
from overnight.racing import calibration_of, has_result
from overnight.records.calibration import Calibration
from overnight.records.contract import Contract
from overnight.study.state import RunState, StudyState
from overnight.trials import Bench, Wanted

REFERENCES = ("random", "no-op")
_REFERENCE_EPISODES = 20
_FIRST = 2
"""The seeds that are run before anybody knows how long a run takes."""


def is_due(state: StudyState, contract: Contract) -> bool:
    """Whether the study is to be calibrated: never under these terms, or its budget was changed since."""
    found, budget = calibration_of(state, contract), contract.budget
    if contract.evaluation.policy == "greedy":
        return False
    if found is None:
        return True
    changed = (found.max_runs, found.max_wall_hours) != (budget.max_runs, budget.max_wall_hours)
    return changed and not state.attempt_is_open()


def root(state: StudyState) -> str:
    """What the race begins with: the incumbent; on a higher rung of the ladder, the tip, which is run again there."""
    return state.stack[-1] if state.rung and state.stack else incumbent(state)


def wanted(bench: Bench) -> Iterator[Wanted]:
    """The runs of the baseline that are still needed; none where the study is calibrated, or can be at once."""
    state, contract = bench.study.state, bench.contract
    if calibration_of(state, contract) is not None:
        return
    have, reign = _runs(state, contract), len(state.incumbents)
    needed = planned(state, contract, bench.slots).rule.baseline_seeds
    if not any(has_result(run) for _, run in have.values()):
        needed = min(needed, max(bench.slots, _FIRST))
    yield from (Wanted(root(state), "screen", reign, number) for number in range(needed) if number not in have)


def calibrated(bench: Bench) -> Calibration | None:
    """The record of the calibration, once every run that it needs has its result; None while it is not due."""
    state, contract = bench.study.state, bench.contract
    if not is_due(state, contract):
        return None
    before = calibration_of(state, contract)
    if before is not None:  # the same runs, and another budget: nothing has to be run or measured again
        evidence = before.evidence
    else:
        have = _runs(state, contract)
        if not have or any(wanted(bench)) or not all(has_result(run) for _, run in have.values()):
            return None
        evidence = tuple(have[number][0] for number in sorted(have))
    runs = [state.runs[name] for name in evidence]
    references = dict(before.references) if before is not None else _references(bench)
    found = calibrate(
        contract.metric,
        [run.score for run in runs],
        runs=runs_that_fit(state, contract, bench.slots),
        seconds=[seconds] if (seconds := run_seconds(state, contract)) is not None else (),
        references=references,
        plan=_frozen(bench, len(runs)),
    )
    return _record(bench, found, references, evidence)


def _frozen(bench: Bench, seeds: int) -> StudyPlan:
    plan = planned(bench.study.state, bench.contract, bench.slots)
    return replace(plan, rule=replace(plan.rule, baseline_seeds=seeds))


def _runs(state: StudyState, contract: Contract) -> dict[int, tuple[str, RunState]]:
    """The runs of what the study starts from, by the number of their seed, without those that were lost."""
    arm, key, reign = root(state), contract.comparability(), len(state.incumbents)
    return {
        run.number: (name, run)
        for name, run in state.runs.items()
        if (run.candidate, run.phase, run.round, run.comparability) == (arm, "screen", reign, key)
        and (run.outcome is None or not run.outcome.is_repeated())
    }


def _references(bench: Bench) -> Mapping[str, float]:
    """What policies score that learned nothing, by the same referee; one that cannot be played is left out."""
    seeds, found = bench.seeds.episodes("dev", 0, _REFERENCE_EPISODES), {}
    for name in REFERENCES:
        try:
            played = measure_reference(bench.study.machine, bench.contract.task.env, name, seeds)
        except OvernightError:
            continue
        if not played.error:
            found[name] = played.score()
    return found


def _record(bench: Bench, found: Found, references: Mapping[str, float], evidence: tuple[str, ...]) -> Calibration:
    contract, floor = bench.contract, found.floor
    return Calibration(
        comparability=contract.comparability(),
        evidence=evidence,
        seeds=floor.seeds,
        lost=floor.lost,
        mean=floor.mean,
        noise=floor.noise,
        shape=floor.shape,
        run_seconds=floor.seconds,
        references=references,
        runs=found.runs,
        max_runs=contract.budget.max_runs,
        max_wall_hours=contract.budget.max_wall_hours,
        candidates=found.candidates,
        provable=found.provable,
        saturated=found.saturated,
        sentences=found.sentences,
        plan=found.plan.frozen(),
    )
