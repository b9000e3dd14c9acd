"""Climbing the ladder of budgets: after some candidates on a rung, and only with a tip that is clearly learning.

A rung has seeds of its own, so everything that is compared on it was run on it: the tip is run again there first. A
refused climb is written down once for each tip, and is looked at again when there is another.
"""

from overnight.claims import incumbent
from overnight.decide.ladder import learning
from overnight.errors import OvernightError
from overnight.evaluate.measure import measure_reference
from overnight.records.contract import Contract
from overnight.records.entry import Note
from overnight.records.ladder import Promoted
from overnight.records.lifecycle import Actor
from overnight.records.text import sentence
from overnight.study.state import StudyState
from overnight.trials import Bench


def climb(bench: Bench) -> bool:
    """Go up one rung where that is due and learning is shown; True when the study stands on another rung now."""
    state, contract = bench.study.state, bench.whole
    if not is_due(state, contract):
        return False
    tip = state.stack[-1] if state.stack else incumbent(state)
    runs = [
        (name, run)
        for name, run in state.runs.items()
        if run.candidate == tip and (run.phase, run.rung) == ("screen", state.rung)
        if run.outcome is not None and not run.outcome.is_repeated()
    ]
    if not runs or bench.held_back == tip:
        return False
    random = _random_score(bench)
    found = learning(contract.metric, [run.score for _, run in runs], random) if random is not None else None
    if found is None or not found.is_shown() or found.gain is None:
        says = found.says if found is not None else "Acting at random could not be measured, so no learning is shown."
        _hold_back(bench, tip, says)
        return False
    here, there = contract.budget.ladder[state.rung], contract.budget.ladder[state.rung + 1]
    unit = contract.budget.stop_unit.replace("_", " ")
    because = f"{found.says} The budget rises from {here.amount:,.0f} to {there.amount:,.0f} {unit} a run."
    names = tuple(name for name, _ in runs)
    promoted = Promoted(
        rung=state.rung + 1, candidate=tip, because=sentence(because), learning_gain=found.gain, evidence=names
    )
    bench.study.append(Actor.JUDGE, promoted)
    bench.stand()
    bench.say(because)
    return True


def is_due(state: StudyState, contract: Contract) -> bool:
    """Whether enough candidates were decided on this rung, and there is another one above it."""
    ladder = contract.budget.ladder
    if state.rung + 1 >= len(ladder):
        return False
    return state.decided_on_rung >= ladder[state.rung].candidates


def _random_score(bench: Bench) -> float | None:
    round_, many = len(bench.study.state.incumbents), bench.contract.evaluation.screen_episodes
    seeds = bench.seeds.episodes("screen", round_, many)
    try:
        found = measure_reference(bench.study.machine, bench.contract.task.env, "random", seeds)
    except OvernightError:
        return None
    return None if found.error else found.score()


def _hold_back(bench: Bench, tip: str, says: str) -> None:
    bench.held_back = tip
    told = sentence(f"The budget stays as it is. {says}")
    bench.study.append(Actor.ENGINE, Note(says=told))
    bench.say(told)
