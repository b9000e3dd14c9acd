"""What a night says while it goes on: what it is doing, how long that may take, and each verdict in one line."""

from overnight import calibrating, judge
from overnight.decide.telling import decimals, told
from overnight.forecast import run_seconds
from overnight.records.decision import Decision
from overnight.records.lifecycle import State
from overnight.trials import Bench


def standing(bench: Bench, deadline: float) -> str:
    """Where the night is, and how long it may still take."""
    left = max(deadline - bench.study.machine.running(), 0.0)
    if (seconds := run_seconds(bench.study.state, bench.contract)) is not None:
        runs_left = max(bench.contract.budget.max_runs - bench.study.state.paid_runs, 0)
        left = min(left, (runs_left + len(bench.going)) * seconds / bench.slots)
    return f"{len(bench.study.state.runs)} runs, {doing(bench)}; at most {_duration(left)} left"


def doing(bench: Bench) -> str:
    """What the night is about at the moment."""
    state = bench.study.state
    if calibrating.is_due(state, bench.contract):
        return "calibrating the baseline"
    if state.attempt_is_open():
        return "certifying the tip on fresh seeds"
    if (focus := judge.in_focus(bench)) is not None:
        beside = ", ".join(one.id for one in judge.in_line(bench) if one is not focus)
        return f"trying {focus.id}, then {beside}" if beside else f"trying {focus.id}"
    return "taking stock of what was certified" if state.certified else "waiting for an idea"


def verdict(bench: Bench, decision: Decision) -> str:
    """One verdict in one line; the whole sentence stands in the ledger and in the report."""
    one, unit = bench.study.state.candidates[decision.candidate], bench.contract.metric.unit
    gain = "no score"
    if decision.gain is not None:
        noise = (bench.study.state.calibration or {}).get("noise")
        gain = f"{told(decision.gain, decimals(noise or decision.gain, digits=2), sign=True)} {unit}"
    word = "leads" if decision.provisional else "undone" if one.state is State.REVERTED else str(decision.verdict)
    return f"{one.id}  {word:<12}  {gain:<16}  {one.hypothesis}"


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
