"""What a night can do within its contract, said before it begins. Launches nothing and writes nothing."""

from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Literal

from overnight.admission import slots
from overnight.decide.certify import attempts_possible, error_for_attempt
from overnight.decide.power import smallest_gain
from overnight.decide.telling import decimals, told
from overnight.records.contract import Contract
from overnight.room import size, tree_bytes
from overnight.study.layout import StudyFolder
from overnight.study.state import StudyState

Limit = Literal["runs", "hours", "candidates"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """What is left of the budget, and what fits into it."""

    runs_left: int
    """Training runs that the budget still holds."""
    hours_left: float
    """Hours that the budget still holds."""
    slots: int
    """How many runs go side by side on this machine."""
    candidates: int
    """How many candidates fit when each is screened on all its seeds; more do when some are dropped early."""
    limit: Limit
    """Which limit comes first."""
    runs_of_a_certification: int
    """Runs that are held back for certifying the tip."""
    alpha: float
    """The chance of a false claim that the next certification may spend."""
    noise_sd: float | None
    """The spread of the baseline's scores between train seeds; None while fewer than two are measured."""
    noise_seeds: int
    """How many scores that is from."""
    gain: float | None
    """The smallest gain found four times in five; in spreads while the noise is unknown, None when none is."""
    run_seconds: float | None
    """How long a run takes, with its measurement; None while none has ended."""
    seconds: float | None
    """How long the night takes; None while no run has ended."""
    disk_bytes: float | None
    """Disk that the runs will take; None while none has ended."""
    nothing: str
    """Why tonight can claim nothing; empty when it can."""


def forecast(state: StudyState, contract: Contract, *, run_bytes: float | None, side_by_side: int) -> Forecast:
    """Count what fits, as the loop will count it."""
    how, budget = contract.evaluation, contract.budget
    runs_left = max(budget.max_runs - len(state.runs), 0)
    hours_left = max(budget.max_wall_hours - state.wall_seconds / side_by_side / 3600, 0.0)
    seconds_a_run = run_seconds(state)
    confirm = 2 * how.confirm_train_seeds
    before = confirm + _tip_seeds_missing(state, contract)
    fits: dict[Limit, int] = {
        "runs": max((runs_left - before) // how.screen_train_seeds, 0),
        "candidates": max(contract.experiments.stop.max_candidates - _tried(state), 0),
    }
    if seconds_a_run is not None:
        runs_in_time = int(hours_left * 3600 * side_by_side / seconds_a_run)
        fits["hours"] = max((runs_in_time - before) // how.screen_train_seeds, 0)
    limit = min(fits, key=lambda name: fits[name])
    runs = before + fits[limit] * how.screen_train_seeds
    alpha = error_for_attempt(state.attempts + 1, how.max_false_claims)
    scores = _baseline_scores(state)
    noise = stdev(scores) if len(scores) > 1 else None
    gain = smallest_gain(
        how.confirm_train_seeds,
        alpha,
        noise_sd=1.0 if noise is None else noise,
        least_gain=0.0 if noise is None else contract.metric.least_gain,
    )
    return Forecast(
        runs_left=runs_left,
        hours_left=hours_left,
        slots=side_by_side,
        candidates=fits[limit],
        limit=limit,
        runs_of_a_certification=confirm,
        alpha=alpha,
        noise_sd=noise,
        noise_seeds=len(scores),
        gain=gain,
        run_seconds=seconds_a_run,
        seconds=None if seconds_a_run is None else min(runs * seconds_a_run / side_by_side, hours_left * 3600),
        disk_bytes=None if run_bytes is None else runs * run_bytes,
        nothing=_why_nothing(contract, state, fits, gain),
    )


def run_seconds(state: StudyState) -> float | None:
    """How long a run takes by those that have ended, with room for its measurement, as the loop reckons."""
    spent = [run.wall_seconds for run in state.runs.values() if run.wall_seconds]
    return fmean(spent) * 1.2 + 1.0 if spent else None


def run_bytes(at: StudyFolder, state: StudyState) -> float | None:
    """How much disk an ended run has taken, on average; None while there is none."""
    ended = [at.runs / name for name, run in state.runs.items() if run.outcome is not None]
    sizes = [size for folder in ended[-100:] if (size := tree_bytes(folder))]
    return fmean(sizes) if sizes else None


def _tip_seeds_missing(state: StudyState, contract: Contract) -> int:
    """Runs of the tip that the first screen still needs; later screens share them."""
    tip = state.stack[-1] if state.stack else _candidate_of(state, state.incumbent) or state.baseline
    reign = len(state.incumbents)
    have = {
        run.number for run in state.runs.values() if (run.candidate, run.phase, run.round) == (tip, "screen", reign)
    }
    return max(contract.evaluation.screen_train_seeds - len(have), 0)


def _candidate_of(state: StudyState, commit: str) -> str:
    return next((one.id for one in state.candidates.values() if one.commit == commit), "")


def _tried(state: StudyState) -> int:
    return sum(one.validated_under is not None and one.id != state.baseline for one in state.candidates.values())


def _baseline_scores(state: StudyState) -> list[float]:
    runs = [run for run in state.runs.values() if run.candidate == state.baseline]
    return [run.score for run in runs if run.score is not None]


def _why_nothing(contract: Contract, state: StudyState, fits: dict[Limit, int], gain: float | None) -> str:
    """The first reason why no verdict of tonight can become a claim, or nothing."""
    how = contract.evaluation
    each = how.confirm_train_seeds
    if gain is None:
        possible = attempts_possible(each, each, how.max_false_claims) if each >= 4 else 0
        spent = f" after {state.attempts} attempts" if possible and state.attempts else ""
        return f"{each} against {each} fresh train seeds are too few to certify any gain{spent}, however large."
    if state.stack and contract.budget.max_runs - len(state.runs) >= 2 * each:
        return ""  # something is kept already, and it can be certified
    if not fits["runs"]:
        needed = 2 * how.screen_train_seeds + 2 * each
        return (
            f"{contract.budget.max_runs:,} runs with {len(state.runs):,} of them used cannot hold one screen and one "
            f"certification; that takes {needed}."
        )
    if not fits["candidates"]:
        return "The stop rule on candidates has fired already."
    if fits.get("hours") == 0:
        return "The hours that are left cannot hold one screen and one certification."
    return ""


# The page


def page(contract: Contract, found: Forecast, *, now: str) -> tuple[tuple[str, str], ...]:
    """Heading and sentence, in the order in which they are read; `now` is the time of the finish, if known."""
    return (
        ("Command", _command(contract)),
        ("Budget", _budget(contract, found)),
        ("Seeds", _seeds(contract)),
        ("Fits", _fits(found)),
        ("Smallest gain", _gain(contract, found)),
        ("Finish", _finish(contract, found, now)),
        ("Disk", _disk(contract, found)),
        ("Leaves", _LEAVES),
    )


_LEAVES = (
    "runs/<id>/ with run.json, log, out/metrics.jsonl, policy/ and exit.json for each run; objects/ with every "
    "measured episode; audits/ with one file a claim; report/; every fact in ledger.jsonl."
)


def _command(contract: Contract) -> str:
    env = contract.task.env.id
    return f"{' '.join(contract.baseline.command)} on {env}, from tree {contract.baseline.tree[:12]}."


def _budget(contract: Contract, found: Forecast) -> str:
    budget, beside = contract.budget, "1 run at a time" if found.slots == 1 else f"{found.slots} runs side by side"
    unit = budget.stop_unit.replace("_", " ")
    return (
        f"{found.runs_left:,} of {budget.max_runs:,} runs and {found.hours_left:.3g} of {budget.max_wall_hours:g} "
        f"hours are left; {beside}, {budget.stop_amount:,.0f} {unit} each, never over {budget.run_wall_seconds:,.0f} s."
    )


def _seeds(contract: Contract) -> str:
    how = contract.evaluation
    return (
        f"A screen has up to {how.screen_train_seeds} train seeds shared with the tip, {how.screen_episodes} episodes "
        f"each; a certification has {how.confirm_train_seeds} fresh ones for each side, {how.confirm_episodes} "
        "episodes each."
    )


def _fits(found: Forecast) -> str:
    first = {"runs": "the runs", "hours": "the hours", "candidates": "the stop rule"}[found.limit]
    many = "1 candidate" if found.candidates == 1 else f"{found.candidates:,} candidates"
    more = "" if found.limit == "candidates" else "; more, where some are dropped after fewer seeds"
    unknown = "" if found.run_seconds is not None else "; whether the hours suffice is unknown until a run has ended"
    return (
        f"{many} on all their seeds, and a certification of {found.runs_of_a_certification} runs. "
        f"What ends it first: {first}{more}{unknown}."
    )


def _gain(contract: Contract, found: Forecast) -> str:
    if found.gain is None:
        return f"None: at an error of {found.alpha:.2g}, no gain is large enough."
    chance = f"found with a chance of 80 % at an error of {found.alpha:.2g}"
    if found.noise_sd is None:
        least = f", beyond the least gain of {contract.metric.least_gain:g}" if contract.metric.least_gain else ""
        return f"{found.gain:.2f} times the noise between train seeds{least}, {chance}. The noise is not measured yet."
    places = decimals(found.gain, digits=2)
    return (
        f"{told(found.gain, places)} {contract.metric.unit}, {chance}. The baseline's noise between train seeds is "
        f"{told(found.noise_sd, places)}, from {found.noise_seeds} scores."
    )


def _finish(contract: Contract, found: Forecast, now: str) -> str:
    if found.seconds is None:
        return (
            f"Unknown until the first run has ended; at the latest after {found.hours_left:.3g} hours, "
            f"and {contract.budget.run_wall_seconds:,.0f} s for the last run."
        )
    return f"About {now}, in {found.seconds / 3600:.2g} hours; a run takes {found.run_seconds:.3g} s."


def _disk(contract: Contract, found: Forecast) -> str:
    most = f"the budget is {contract.budget.disk_gigabytes:g} GB"
    if found.disk_bytes is None:
        return f"Unknown until the first run has ended; {most}."
    return f"About {size(found.disk_bytes)} for the runs; {most}."


def of_study(state: StudyState, contract: Contract, at: StudyFolder) -> Forecast:
    """The forecast of a study on this machine."""
    return forecast(state, contract, run_bytes=run_bytes(at, state), side_by_side=slots(contract))
