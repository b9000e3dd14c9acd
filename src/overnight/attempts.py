"""Attempts to certify, from the ledger: which runs are there, and what the frozen looks say about them."""

from collections.abc import Sequence
from dataclasses import dataclass

from overnight.claims import arm
from overnight.decide.certify import Certification
from overnight.decide.looks import SeedsWanted, attempt
from overnight.decide.plan import StudyPlan
from overnight.decide.race import Race
from overnight.decide.spending import LookPlan
from overnight.racing import has_result
from overnight.schedules import look_plan, recorded, schedule
from overnight.study.state import RunState
from overnight.trials import Bench, Phase

CONTROL_ROUND, CONTROL_FIRST = 0, 1_000_000
"""The round of the placebo's tuning seeds, and the number of the first: no candidate ever gets so far."""
Results = dict[int, tuple[str, RunState]]
"""A candidate's runs of one round by the number of their seed, each with its id."""


@dataclass(frozen=True, slots=True)
class Tested:
    """What the looks came to, and the runs that they saw."""

    certification: Certification
    evidence: tuple[str, ...]
    """The candidate's runs, then the incumbent's."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt to certify, fixed before its first score: both arms, the looks, and what it may spend."""

    number: int
    """From 1 over the whole study; also the round of its fresh seeds."""
    tip: str
    incumbent: str
    looks: LookPlan
    alpha: float
    next_alpha: float
    """What the next attempt could spend, if this one does not certify."""

    def tested(self, bench: Bench) -> Tested | SeedsWanted:
        """The verdict of the looks, or how many fresh seeds of each arm the next look needs."""
        ours, theirs = (results(bench, name, "confirm", self.number) for name in (self.tip, self.incumbent))
        mine, other = in_order(ours), in_order(theirs)
        return _tested(bench, self.looks, (mine, other), (self.alpha, self.next_alpha))


def attempt_of(bench: Bench, race: Race, plan: StudyPlan) -> Attempt | None:
    """The attempt that is open, or the one that would begin now; None where the tip cannot be certified."""
    state = bench.study.state
    fixed = recorded(state) or schedule(state, race, plan, None)
    if fixed is None or not state.stack:
        return None
    return Attempt(
        number=fixed.attempt,
        tip=fixed.tip,
        incumbent=fixed.incumbent,
        looks=look_plan(fixed),
        alpha=fixed.error,
        next_alpha=plan.alpha((*state.attempts_certified, False)),
    )


def control_seeds(plan: StudyPlan) -> int:
    """On how many seeds the placebo meets the baseline: as many as a first look has, and the calibration ran."""
    return min(plan.looks.looks[0] if plan.looks is not None else 0, plan.rule.baseline_seeds)


def control_of(bench: Bench, plan: StudyPlan, placebo: str) -> Tested | None:
    """The placebo against the baseline's calibration by the test of a first look; None while runs are missing.

    The placebo has tuning seeds of its own. Nothing was ever selected on these or on the calibration's, so the
    test is as valid as on fresh seeds, and half as dear.
    """
    seeds = control_seeds(plan)
    if plan.looks is None or not seeds:
        return None
    ours = results(bench, placebo, "screen", CONTROL_ROUND)
    theirs = results(bench, bench.study.state.baseline, "screen", CONTROL_ROUND)
    moved = {number - CONTROL_FIRST: found for number, found in ours.items()}
    first = {number: found for number, found in theirs.items() if number < seeds}
    looks, alpha = LookPlan(looks=(seeds,), shares=(plan.looks.shares[0],)), plan.alpha(())
    found = _tested(bench, looks, (in_order(moved), in_order(first)), (alpha, alpha))
    return found if isinstance(found, Tested) else None


def results(bench: Bench, candidate: str, phase: Phase, round_: int) -> Results:
    """The last run of a candidate for each seed of a round, leaving out runs that were lost or made on other terms."""
    key = bench.contract.comparability()
    return {
        run.number: (name, run)
        for name, run in bench.study.state.runs.items()
        if (run.candidate, run.phase, run.round, run.comparability) == (candidate, phase, round_, key)
        and (run.outcome is None or not run.outcome.is_repeated())
    }


def in_order(found: Results) -> list[tuple[str, RunState]]:
    """The runs from the first seed on, as far as each has its result."""
    ordered = []
    for number in range(len(found)):
        if number not in found or not has_result(found[number][1]):
            break
        ordered.append(found[number])
    return ordered


def _tested(
    bench: Bench,
    looks: LookPlan,
    sides: tuple[Sequence[tuple[str, RunState]], Sequence[tuple[str, RunState]]],
    alphas: tuple[float, float],
) -> Tested | SeedsWanted:
    arms = [arm(bench.contract, [run for _, run in side]) for side in sides]
    found = attempt(bench.contract.metric, looks, arms[0], arms[1], alpha=alphas[0], next_alpha=alphas[1])
    if isinstance(found, SeedsWanted):
        return found
    seeds = len(found.candidate.scores)
    return Tested(found, tuple(name for side in sides for name, _ in side[:seeds]))
