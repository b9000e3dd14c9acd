"""What a night can do within its contract, said before it begins. Launches nothing and writes nothing."""

from dataclasses import dataclass, replace
from statistics import fmean, stdev
from typing import Literal

from overnight.admission import slots
from overnight.contract.trainers import what_search_knows
from overnight.decide.calibrate import experiments_that_fit, provable_gain
from overnight.decide.plan import LEAST_FOR_A_CLAIM, StudyPlan, cost_of_an_idea, plan_study
from overnight.decide.telling import decimals, told
from overnight.racing import plan_of
from overnight.records.contract import Contract
from overnight.room import size, tree_bytes
from overnight.study.layout import StudyFolder
from overnight.study.state import StudyState

Limit = Literal["runs", "hours", "candidates"]
_COLD = 2
"""The first runs compile what later ones find compiled, so they tell little about those."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """What is left of the budget, and what fits into it."""

    rung: int
    """Which rung of the ladder of budgets the study stands on; 0 without one."""
    runs_left: int
    """Training runs that the budget still holds."""
    hours_left: float
    """Hours that the budget still holds."""
    runs_in_time: int | None
    """Training runs for which these hours suffice; None while nobody knows how long one takes."""
    slots: int
    """How many runs go side by side on this machine."""
    candidates: int
    """About how many candidates fit: most are rejected after a run or two."""
    limit: Limit
    """Which limit comes first."""
    frozen: bool
    """Whether the plan is frozen by a calibration, or the one that would be made now."""
    baseline_seeds: int
    """Train seeds on which the baseline is calibrated."""
    looks: tuple[int, ...]
    """Fresh seeds a side at each look of a certification; empty where nothing can be claimed."""
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
    """How long a run takes, with its measurement; None while none has ended and the budget is in steps."""
    seconds: float | None
    """How long the night takes; None where that of a run is not known."""
    disk_bytes: float | None
    """Disk that the runs will take; None while none has ended."""
    nothing: str
    """Why tonight can claim nothing; empty when it can."""


def run_seconds(state: StudyState, contract: Contract) -> float | None:
    """How long a run takes by those that have ended, with room for its measurement, as the loop reckons.

    On a ladder, runs of the present rung are asked first; before there is one, those below must do. Before any run has
    ended, a budget in seconds tells it; one in steps tells nothing.
    """
    timed = [run for run in state.runs.values() if run.wall_seconds]
    spent = [run.wall_seconds for run in [run for run in timed if run.rung == state.rung] or timed]
    warm = spent[_COLD:] or spent or _budgeted(state, contract)
    return fmean(warm) * 1.2 + 1.0 if warm else None


def _budgeted(state: StudyState, contract: Contract) -> list[float]:
    amount, cores = contract.budget.amount(state.rung), contract.hardware.cores_per_run
    return {"wall_seconds": [amount], "cpu_seconds": [amount / cores]}.get(contract.budget.stop_unit, [])


def runs_that_fit(state: StudyState, contract: Contract, side_by_side: int) -> int:
    """The training runs that fit into the whole study, by its runs and by its hours where a run was timed."""
    seconds, budget = run_seconds(state, contract), contract.budget
    if seconds is None:
        return budget.max_runs
    return max(1, min(budget.max_runs, int(budget.max_wall_hours * 3600 * side_by_side / seconds)))


def runs_left(state: StudyState, contract: Contract, side_by_side: int) -> float:
    """The training runs that the budget still holds, by its runs and by its hours where a run was timed."""
    by_number = float(max(contract.budget.max_runs - state.paid_runs, 0))
    seconds = run_seconds(state, contract)
    if seconds is None:
        return by_number
    return min(by_number, int(_hours_left(state, contract, side_by_side) * 3600 * side_by_side / seconds))


def _hours_left(state: StudyState, contract: Contract, side_by_side: int) -> float:
    return max(contract.budget.max_wall_hours - state.wall_seconds / side_by_side / 3600, 0.0)


def planned(state: StudyState, contract: Contract, side_by_side: int) -> StudyPlan:
    """The plan for the runs that fit, as far as the contract leaves it open."""
    how, runs = contract.evaluation, runs_that_fit(state, contract, side_by_side)
    plan = plan_study(runs, total_error=how.max_false_claims)
    seeds = how.screen_train_seeds
    if seeds is None and runs < contract.budget.max_runs:
        seeds = _filling_the_slots(plan.rule.baseline_seeds, runs, side_by_side)
    plan = plan.within(seeds, how.confirm_train_seeds)
    ideas = contract.experiments.stop.max_candidates
    cost = cost_of_an_idea(plan, runs, ideas)
    return replace(plan, ideas=ideas, rule=replace(plan.rule, idea_cost=cost))


def _filling_the_slots(seeds: int, runs: int, side_by_side: int) -> int:
    """Baseline seeds where time is the limit: a slot beside the last one would stand idle, so it gets a seed as well.

    Calibration still takes no more than a quarter of the runs.
    """
    return max(seeds, min(-(-seeds // side_by_side) * side_by_side, runs // 4))


def forecast(state: StudyState, contract: Contract, *, run_bytes: float | None, side_by_side: int) -> Forecast:
    """Count what fits, as the loop will count it."""
    budget, frozen = contract.budget, plan_of(state, contract)
    plan = frozen or planned(state, contract, side_by_side)
    left = max(budget.max_runs - state.paid_runs, 0)
    hours_left = _hours_left(state, contract, side_by_side)
    seconds_a_run = run_seconds(state, contract)
    plan = replace(plan, ideas=None)  # the stop rule is a limit of its own here
    before = 0 if frozen is not None else plan.rule.baseline_seeds
    fits: dict[Limit, int] = {
        "runs": experiments_that_fit(plan, left - before),
        "candidates": max(contract.experiments.stop.max_candidates - _tried(state), 0),
    }
    runs_in_time = None if seconds_a_run is None else int(hours_left * 3600 * side_by_side / seconds_a_run)
    if runs_in_time is not None:
        fits["hours"] = experiments_that_fit(plan, runs_in_time - before)
    limit = min(fits, key=lambda name: fits[name])
    runs = min(left, runs_in_time) if runs_in_time is not None else left
    scores, past = _baseline_scores(state), tuple(state.attempts_certified)
    noise = stdev(scores) if len(scores) > 1 else None
    gain, _ = provable_gain(plan, 1.0 if noise is None else noise, past)
    return Forecast(
        rung=min(state.rung, max(len(budget.ladder) - 1, 0)),
        runs_left=left,
        hours_left=hours_left,
        runs_in_time=runs_in_time,
        slots=side_by_side,
        candidates=fits[limit],
        limit=limit,
        frozen=frozen is not None,
        baseline_seeds=plan.rule.baseline_seeds,
        looks=plan.looks.looks if plan.looks is not None else (),
        runs_of_a_certification=plan.looks.runs() if plan.looks is not None else 0,
        alpha=plan.alpha(past),
        noise_sd=noise,
        noise_seeds=len(scores),
        gain=None if gain is None else gain + (contract.metric.least_gain if noise is not None else 0.0),
        run_seconds=seconds_a_run,
        seconds=None if seconds_a_run is None else min(runs * seconds_a_run / side_by_side, hours_left * 3600),
        disk_bytes=None if run_bytes is None else runs * run_bytes,
        nothing=_why_nothing(contract, state, plan, fits),
    )


def run_bytes(at: StudyFolder, state: StudyState) -> float | None:
    """How much disk an ended run has taken, on average; None while there is none."""
    ended = [at.runs / name for name, run in state.runs.items() if run.outcome is not None]
    sizes = [size for folder in ended[-100:] if (size := tree_bytes(folder))]
    return fmean(sizes) if sizes else None


def _tried(state: StudyState) -> int:
    return sum(one.validated_under is not None for one in state.ideas())


def _baseline_scores(state: StudyState) -> list[float]:
    runs = [run for run in state.runs.values() if run.candidate == state.baseline and run.phase == "screen"]
    return [run.score for run in runs if run.score is not None]


def _why_nothing(contract: Contract, state: StudyState, plan: StudyPlan, fits: dict[Limit, int]) -> str:
    """The first reason why no verdict of tonight can become a claim, or nothing."""
    most, looks = contract.evaluation.confirm_train_seeds, plan.looks
    if looks is None and most is not None and most < 4:
        return f"{most} against {most} fresh train seeds are too few to certify any gain, however large."
    if looks is None:
        return (
            f"Fewer than {LEAST_FOR_A_CLAIM} runs fit into this study, and four fresh seeds a side beside a baseline "
            "and a search need that many; what is kept stays uncertified."
        )
    if not looks.can_certify(plan.alpha(tuple(state.attempts_certified))):
        each = looks.looks[-1]
        return f"{each} against {each} fresh train seeds are too few to certify after {state.attempts} attempts."
    if state.stack and contract.budget.max_runs - state.paid_runs >= 2 * looks.looks[0]:
        return ""  # something is kept already, and it can be certified
    if not fits["runs"]:
        return (
            f"{contract.budget.max_runs:,} runs with {state.paid_runs:,} of them used cannot hold a candidate and a "
            f"certification of {2 * looks.looks[0]} runs."
        )
    if not fits["candidates"]:
        return "The stop rule on candidates has fired already."
    if fits.get("hours") == 0:
        return "The hours that are left cannot hold a candidate and a certification."
    return ""


# The page


def page(contract: Contract, found: Forecast, *, now: str) -> tuple[tuple[str, str], ...]:
    """Heading and sentence, in the order in which they are read; `now` is the time of the finish, if known."""
    knows = what_search_knows(contract)
    return (
        ("Command", _command(contract)),
        *((("Search", knows),) if knows else ()),
        ("Budget", _budget(contract, found)),
        *((("Ladder", _ladder(contract, found)),) if contract.budget.ladder else ()),
        ("Seeds", _seeds(contract, found)),
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
    hold = f" The hours hold about {_count(found.runs_in_time, 'run')}." if found.runs_in_time is not None else ""
    return (
        f"{found.runs_left:,} of {budget.max_runs:,} runs and {found.hours_left:.3g} of {budget.max_wall_hours:g} "
        f"hours are left; {beside}, {budget.amount(found.rung):,.0f} {unit} each, "
        f"never over {budget.run_wall_seconds:,.0f} s.{hold}"
    )


def _ladder(contract: Contract, found: Forecast) -> str:
    ladder, here = contract.budget.ladder, found.rung + 1
    rungs = ", ".join(f"{rung.amount:,.0f}" for rung in ladder)
    above = (
        f"after {_count(ladder[found.rung].candidates, 'candidate')} here, and only where the tip is clearly learning, "
        "the next one begins with a new baseline, and everything below is for this rung alone"
        if here < len(ladder)
        else "it is the last one"
    )
    return f"Rung {here} of {len(ladder)} ({rungs}); {above}."


def _seeds(contract: Contract, found: Forecast) -> str:
    how = contract.evaluation
    seeds = _count(found.baseline_seeds, "train seed")
    base = f"The baseline is calibrated on {seeds}, {how.screen_episodes} episodes each"
    race = "a candidate races on the tip's seeds, one at a time"
    if not found.looks:
        return f"{base}; {race}; nothing is certified."
    looks = " and ".join(str(seeds) for seeds in found.looks)
    return (
        f"{base}; {race}; a certification looks at {looks} fresh ones for each side, {how.confirm_episodes} "
        f"episodes each. {'This is frozen.' if found.frozen else 'This is frozen with the eighth approval.'}"
    )


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _fits(found: Forecast) -> str:
    first = {"runs": "the runs", "hours": "the hours", "candidates": "the stop rule"}[found.limit]
    many = f"About {_count(found.candidates, 'candidate')}"
    unknown = "" if found.run_seconds is not None else "; whether the hours suffice is unknown until a run has ended"
    held = f", and a certification of up to {found.runs_of_a_certification} runs" if found.looks else ""
    return f"{many}{held}. What ends it first: {first}{unknown}."


def _gain(contract: Contract, found: Forecast) -> str:
    if found.gain is None:
        return f"None: at an error of {found.alpha:.2g}, no gain is large enough."
    chance = f"found with a chance of 80 % at an error of {found.alpha:.2g}"
    if found.noise_sd is None:
        least = f", beyond the least gain of {contract.metric.least_gain:g}" if contract.metric.least_gain else ""
        return f"{found.gain:.2f} times the noise between train seeds{least}, {chance}. The noise is not measured yet."
    if found.noise_sd == 0:
        return (
            f"Unknown: the baseline scored the same on {found.noise_seeds} seeds; how candidates scatter will decide."
        )
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
