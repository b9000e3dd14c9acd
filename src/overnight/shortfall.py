"""What can be said when nothing was certified: why, what would decide, and what is ruled out all the same."""

from collections.abc import Sequence
from math import ceil, sqrt
from statistics import NormalDist

from overnight.admission import slots
from overnight.decide.looks import seeds_to_decide
from overnight.decide.plan import LEAST_FOR_A_CLAIM, StudyPlan
from overnight.decide.race import Race
from overnight.decide.screened import Screened
from overnight.forecast import run_seconds, runs_left
from overnight.racing import Follower
from overnight.records.contract import Contract
from overnight.records.decision import Verdict
from overnight.report.facts import Shortfall
from overnight.schedules import spare
from overnight.study.state import Data, StudyState

_LEVEL = 0.95
_GO_ON = "`overnight extend`, then `overnight start`"


def shortfall(state: StudyState, contract: Contract, decided: Sequence[Data]) -> Shortfall:
    """Why nothing is claimed, from the verdicts of the ledger in their order."""
    if contract.evaluation.policy == "greedy":
        return _greedy(state)
    follower = Follower()
    race = follower.race(state, contract)
    attempts = [data for data in decided if _is_attempt(state, data)]
    if state.stack and not _is_latest(state, attempts):
        return _kept_only(state, contract, race, follower.plan)
    if attempts:
        return _undecided(state, contract, attempts[-1])
    tried = sum(bool(one.runs) for one in state.ideas())
    ideas = f"{tried} candidate{'' if tried == 1 else 's'}"
    return Shortfall(
        because=f"No improvement was found: of {ideas}, none was better than the baseline on the tuning seeds.",
        would_decide="More candidates, or a longer night, may find one.",
        ruled_out=_ruled_out(race) if race is not None and tried else None,
    )


def _greedy(state: StudyState) -> Shortfall:
    kept = f"{len(state.stack)} of {len(state.ideas())} candidates were kept"
    return Shortfall(
        because=f"This study ran under the greedy rule, for comparison: {kept}, each on one run against one run.",
        would_decide="The rule certifies nothing; `overnight new` with `--policy certify` makes a study that can.",
    )


def _is_attempt(state: StudyState, data: Data) -> bool:
    meant = not state.candidates[data["candidate"]].plant and bool(data["evidence"])
    return meant and state.runs[data["evidence"][0]].phase == "confirm" and data["verdict"] != Verdict.CERTIFIED


def _is_latest(state: StudyState, attempts: Sequence[Data]) -> bool:
    """Whether the last attempt was about the tip as it stands."""
    return bool(attempts) and attempts[-1]["candidate"] == state.stack[-1] and not state.attempt_is_open()


def _undecided(state: StudyState, contract: Contract, last: Data) -> Shortfall:
    seeds = last.get("seeds_wanted")
    would = "More candidates, or a longer night, may find another one."
    if last["verdict"] == Verdict.INCONCLUSIVE:
        would = "More seeds than anybody can pay for would be needed at this gain; a greater gain may be found."
        if seeds is not None:
            would = f"{_price(state, contract, 2 * seeds)} would decide at this gain: {_GO_ON}."
    return Shortfall(
        because=last["because"],
        would_decide=would,
        gain=last["gain"],
        low=last["gain_low"],
        high=last["gain_high"],
    )


def _kept_only(state: StudyState, contract: Contract, race: Race | None, plan: StudyPlan | None) -> Shortfall:
    """What can be said of a tip that was kept while screening and never came to a verdict on fresh seeds."""
    kept = ", ".join(state.stack)
    runs = _runs_to_decide(state, race, plan)
    if runs is None:
        would = "At the gain that screening saw, more seeds than anybody can pay for would be needed."
    else:
        would = f"{_price(state, contract, runs)} would decide: {_GO_ON}."
    if race is not None and plan is not None and _is_too_little(state, contract, race, plan):
        return Shortfall(
            because=(
                f"No improvement was found: {kept} did better on the tuning seeds, which selected it, by too little to "
                "be worth fresh ones."
            ),
            would_decide=would,
            ruled_out=_ruled_out(race),
        )
    because = f"Kept, not certified: {kept} did better on the tuning seeds only, which selected it"
    return Shortfall(because=f"{because}{_no_room(state, contract, plan)}.", would_decide=would)


def _no_room(state: StudyState, contract: Contract, plan: StudyPlan | None) -> str:
    """That the budget ended before an attempt on fresh seeds, where it did."""
    if plan is None or plan.looks is None or state.attempt_is_open():
        return ""
    left, needed = int(runs_left(state, contract, slots(contract))), 2 * plan.looks.looks[0]
    if left >= needed:
        return ""
    return f", and the {left} runs that were left are fewer than the {needed} that fresh seeds take"


def _is_too_little(state: StudyState, contract: Contract, race: Race, plan: StudyPlan) -> bool:
    """Whether the runs that are left hold an attempt, and the tip's lead is so small that none was made."""
    left = runs_left(state, contract, slots(contract))
    if plan.looks is None or left < 2 * plan.looks.looks[0] or state.attempt_is_open():
        return False
    past = tuple(state.attempts_certified)
    return not plan.should_certify(race, past, ending=True, runs_left=spare(contract, plan, left))


def _runs_to_decide(state: StudyState, race: Race | None, plan: StudyPlan | None) -> int | None:
    """About how many more runs on fresh seeds would certify the tip, if it is as good as the race believes."""
    if race is None or plan is None:
        return LEAST_FOR_A_CLAIM
    looks, alpha = plan.looks, plan.alpha(tuple(state.attempts_certified))
    if looks is None:
        looks_alpha, least = alpha, 4
    else:
        looks_alpha, least = alpha * looks.shares[-1], looks.looks[0]
    seeds = seeds_to_decide(race.lead(), 1.0, looks_alpha)
    if seeds is None:
        return None
    wanted = state.attempts + 1
    done = sum(run.phase == "confirm" and run.round == wanted for run in state.runs.values())
    return max(2 * max(seeds, least) - done, 2)


def _price(state: StudyState, contract: Contract, runs: int) -> str:
    """So many runs, and what they take on this machine."""
    seconds = run_seconds(state, contract)
    if seconds is None:
        return f"{runs:,} more runs on fresh seeds"
    hours = runs * seconds / slots(contract) / 3600
    took = f"{ceil(hours * 60)} minutes" if hours < 1.5 else f"{hours:.1f} hours"
    return f"{runs:,} more runs on fresh seeds, about {took},"


def _ruled_out(race: Race) -> float | None:
    """A gain that none of the candidates has, all of them together at 95 %; None where the noise is not known."""
    known = [one for one in race.verdicts if one.seeds and one.noise and one.lost <= one.tip_lost]
    if not known:
        return None
    reach = NormalDist().inv_cdf(1 - (1 - _LEVEL) / len(known))
    return max(max(0.0, _mean_gain(one) + reach * _error(one, race)) for one in known)


def _mean_gain(one: Screened) -> float:
    """The gain over all seeds that were looked at, those of the check on fresh seeds too."""
    fresh = len(one.numbers) - one.seeds
    if one.fresh_mean is None or not fresh:
        return one.gain
    return (one.seeds * one.gain + fresh * (one.fresh_mean - one.tip_mean)) / len(one.numbers)


def _error(one: Screened, race: Race) -> float:
    return one.noise * sqrt(1 / max(len(one.numbers), 1) + 1 / max(race.rule.baseline_seeds, 1))
