"""The loop, in the order it happens: propose, gate, run, evaluate, decide, and again.

Everything the loop knows is folded from the ledger, so a night that was killed at any moment
goes on where it was: what is wanted next follows from the entries alone, runs that are still
going are adopted, and a run that was lost is run again and does not count.

    settle      runs that have ended become entries, and their policies are measured
    calibrate   when the baseline's first seeds are in, its noise and the frozen plan are written down
    judge       verdicts that the evidence allows are written down
    begin       the runs that the next verdict needs are started, as many as there are slots
    propose     when nothing is wanted, or a slot would stand idle, the proposer is asked, and the gate decides
    certify     when it is worth it, or the search is over, the tip meets the incumbent on fresh seeds
    total       a long study's last runs tell what it gained in all; what is left takes the certified stack apart
"""

from collections.abc import Callable
from dataclasses import dataclass
from statistics import fmean

from overnight import ablating, calibrating, ideas, judge, plants, progress, total, verifying
from overnight.admission import follow_ledger
from overnight.decide.race import Race
from overnight.errors import Refused
from overnight.forecast import run_seconds
from overnight.ladder import climb
from overnight.ports import Proposer
from overnight.records.decision import Decision, LoopDecision, Turn, Verdict
from overnight.records.handed import Heard
from overnight.records.lifecycle import Actor, State
from overnight.records.metric import Direction
from overnight.records.proposal import Exhausted, Wait
from overnight.records.text import sentence
from overnight.schedules import schedule, spare
from overnight.trials import Bench, Spent, Wanted, adopt, begin, note_isolation, settle

LOOK_SECONDS = 0.1
ASKED = "Somebody asked to finish."
CALIBRATED = "The baseline is calibrated."
MOST_REFUSED = 20
"""A proposer that is refused so often in a row has nothing to offer that may run."""
LONGEST_WAIT = 5.0
"""Seconds after which a proposer that is waited for is asked again, whatever it said."""
_UNTIMED = 2.2
"""Seconds that a run is taken to need before any has ended, so that the first ones begin."""


@dataclass(slots=True)
class Night:
    """One sitting at one study."""

    bench: Bench
    proposer: Proposer
    deadline: float
    """When the night is over, by the clock of the machine that does not count what stood still."""
    finishing: Callable[[], bool] = lambda: False
    """Whether somebody asked to finish what is running and report."""
    spent: str = ""
    """Why the budget holds no further run; empty while it does."""
    over: str = ""
    """Why the search is over; empty while it is not."""
    refused: int = 0
    """How many ideas in a row the gate refused."""
    quiet_until: float = 0.0
    """Until when the proposer is not asked for idle slots, because it had nothing."""
    heed: Callable[[], None] = lambda: None
    """Called again and again: takes note of what happens around the loop."""
    only_calibrates: bool = False
    """Whether the sitting ends when the baseline is calibrated, because the eighth clause is not approved yet."""


def night(one: Night) -> str:
    """Go on until the budget, a stop rule, the proposer or somebody ends the search; return why it ended."""
    bench = one.bench
    follow_ledger(bench.study, bench.store)
    note_isolation(bench)
    adopt(bench)
    ideas.draft_baseline(bench)
    if not one.only_calibrates:
        plants.draft(bench)
    ideas.hear_drafts(bench)
    why = _until_over(one)
    if not one.only_calibrates:
        turn(bench, LoopDecision.STOP, why)
    return why


def _until_over(one: Night) -> str:
    bench = one.bench
    while True:
        one.heed()
        settle(bench)
        if _calibrate(one) or _verify(bench) or _judge(bench):
            continue
        if one.only_calibrates and not calibrating.is_due(bench.study.state, bench.contract):
            return CALIBRATED
        wanted = _begin(one)
        if bench.going:
            if not _fill_a_slot(one):
                bench.passing(progress.standing(bench, one.deadline))
                bench.study.machine.sleep(LOOK_SECONDS)
        elif one.finishing() or one.spent:
            return one.spent or ASKED
        elif not wanted and not _propose(one) and not _is_time_to_certify(one) and not _ablate(one):
            return one.over


def _calibrate(one: Night) -> bool:
    """Write the calibration down as soon as the baseline's seeds allow it; False when it is not due."""
    found = calibrating.calibrated(one.bench)
    if found is None:
        return False
    one.bench.study.append(Actor.ENGINE, found)
    for says in found.sentences:
        one.bench.say(says)
    return True


def _verify(bench: Bench) -> bool:
    """Write down what the behaviour behind a certified gain looks like; False when nothing waits for it."""
    name = verifying.unverified(bench.study.state)
    if name is None:
        return False
    bench.study.append(Actor.JUDGE, verifying.verify(bench, name))
    return True


def _ablate(one: Night) -> bool:
    """Take the certified stack apart with the runs that are left over; False when that is done, or cannot be."""
    bench, left = one.bench, runs_left(one)
    return ablating.draft(bench, left) or ablating.conclude(bench, left) or bool(ablating.wanted(bench, left))


def turn(bench: Bench, loop: LoopDecision, because: str) -> None:
    """Write down what the loop does where no verdict says it."""
    bench.study.append(Actor.ENGINE, Turn(loop=loop, because=sentence(because)))


def _begin(one: Night) -> bool:
    """Start the runs that the next verdict needs, as far as there are slots; False when none is needed."""
    bench = one.bench
    _check_baseline(bench)
    if one.finishing() or one.spent:
        return False
    certifying = _is_time_to_certify(one)
    wanted = list(judge.wanted(bench, certifying=certifying))
    if one.over and not wanted and not certifying:
        left = runs_left(one) + len(bench.going)
        wanted = total.wanted(bench, left) or ablating.wanted(bench, left)
    if _is_in_the_way(one, len(wanted)) and (_leave(bench) or bench.going):
        return True
    free = max(bench.slots - len(bench.going), 0)
    if certifying and free and wanted and not bench.study.state.attempt_is_open() and wanted[0].phase == "confirm":
        _narrow(one, wanted[0].round)
        wanted = list(judge.wanted(bench, certifying=True))
    _start(one, wanted[:free])
    return bool(wanted)


def _start(one: Night, wanted: list[Wanted]) -> bool:
    """Start runs as far as the budget goes; False where there were none to start."""
    try:
        for want in wanted:
            begin(one.bench, want)
    except Spent as spent:
        one.spent = str(spent)
    return bool(wanted)


def _is_in_the_way(one: Night, wanted: int) -> bool:
    """Whether the racing candidate wants runs that are needed to certify the tip."""
    bench = one.bench
    race, plan = judge.race_of(bench), bench.follower.plan
    if race is None or plan is None or not wanted:
        return False
    runs = min(wanted, len(race.wants()))
    return plan.is_in_the_way(race, tuple(bench.study.state.attempts_certified), runs_left(one), runs)


def _leave(bench: Bench) -> bool:
    """Give up the racing candidate where it stands; False while a run of it is going."""
    return _decide(bench, judge.left_undecided(bench))


def _narrow(one: Night, attempt: int) -> None:
    """Fix the looks of an attempt before its first run, and say that the runs go into it now."""
    bench = one.bench
    race, plan = judge.race_of(bench), bench.follower.plan
    fixed = None if race is None or plan is None else schedule(bench.study.state, race, plan, _left_over(one))
    if fixed is None:
        return
    tip = judge.tip(bench)
    turn(bench, LoopDecision.NARROW, f"The next runs go into certifying {tip}, attempt {attempt} of this study.")
    bench.study.append(Actor.ENGINE, fixed)


def _left_over(one: Night) -> float | None:
    """The runs that a last attempt may take into its last look; None while the search may go on."""
    plan = one.bench.follower.plan
    return spare(one.bench.contract, plan, runs_left(one)) if one.over and plan is not None else None


def _check_baseline(bench: Bench) -> None:
    """Nothing can be compared with a baseline that does not train."""
    baseline = bench.study.state.candidates[bench.study.state.baseline]
    if baseline.state is State.DEBUG:
        turn(bench, LoopDecision.ESCALATE, f"The baseline itself does not train: {baseline.failure}")
        log = bench.study.at.runs / baseline.runs[-1] / "log"
        raise Refused(
            "baseline",
            (f"The baseline itself does not train: {baseline.failure}",),
            hint=f"its log is {log}; `overnight init … --study second` begins anew when it is corrected",
        )


# Ideas


def _propose(one: Night) -> bool:
    """Ask for the next idea and put it before the gate; False when there is none to be had."""
    one.over = one.over or _why_over(one)
    if one.over:
        return False
    bench = one.bench
    if ideas.hear_people(bench) or climb(bench):
        return True
    answer = ideas.ask(bench, one.proposer)
    if isinstance(answer, Exhausted):
        one.over = answer.because
        return False
    if isinstance(answer, Wait):
        bench.study.machine.sleep(min(answer.until_seconds, LONGEST_WAIT))
        return True
    one.refused = one.refused + 1 if answer.refused else 0
    if one.refused >= MOST_REFUSED:
        one.over = f"The gate refused {one.refused} ideas in a row; the last time: {answer.refused[0]}"
        turn(bench, LoopDecision.ESCALATE, one.over)
    return True


def _fill_a_slot(one: Night) -> bool:
    """Let a slot that would stand idle run what will probably be wanted; False where there is no such slot or run.

    That is the racing candidate's second seed, or the first seed of the candidate after it: whichever most of those
    before have needed. It comes too early to be looked at, but not in vain.
    """
    bench, free = one.bench, one.bench.slots - len(one.bench.going)
    race = judge.race_of(bench)
    if free < 1 or one.finishing() or one.spent or one.over or race is None or race.racing is None:
        return False
    if race.expects_a_second_seed() and _start(one, list(judge.likely(bench, 1))):
        return True
    return _ask_ahead(one, race) or _start(one, list(judge.likely(bench, free))[:free])


def _ask_ahead(one: Night, race: Race) -> bool:
    """Ask for the idea after the one that is racing; False where there is none now, or it must wait for that one."""
    bench, plan = one.bench, one.bench.follower.plan
    now, waiting = bench.study.machine.running(), len(judge.in_line(bench))
    if plan is None or not judge.has_idle_slots(bench) or race.leading is not None or bench.whole.budget.ladder:
        return False
    if now < one.quiet_until or waiting >= bench.slots or one.refused >= MOST_REFUSED or _why_over(one):
        return False
    if not plan.has_room(race, tuple(bench.study.state.attempts_certified), runs_left(one), waiting):
        return False
    if ideas.hear_people(bench):
        return True
    answer = ideas.ask(bench, one.proposer)
    if isinstance(answer, Heard):
        one.refused = one.refused + 1 if answer.refused else 0
        return True
    one.quiet_until = now + (min(answer.until_seconds, LONGEST_WAIT) if isinstance(answer, Wait) else LONGEST_WAIT)
    return False


def _why_over(one: Night) -> str:
    """The first reason why no further idea is tried, or nothing."""
    state, contract = one.bench.study.state, one.bench.contract
    ideas = state.ideas()
    tried = sum(found.validated_under is not None for found in ideas)
    stop = contract.experiments.stop
    if tried >= stop.max_candidates:
        return f"The stop rule fired: {tried} candidates were tried."
    kept = [place for place, found in enumerate(ideas, 1) if found.kept]
    barren = len(ideas) - max(kept, default=0)
    if stop.plateau_candidates is not None and barren >= stop.plateau_candidates:
        return f"The stop rule fired: {barren} candidates in a row were not kept."
    if stop.target_score is not None and _reached(one.bench, stop.target_score):
        return f"The stop rule fired: the tip scores {stop.target_score:g} or better on the screening seeds."
    if state.paid_runs >= contract.budget.max_runs:
        return f"The budget of {contract.budget.max_runs:,} runs is used up."
    if runs_left(one) < 1:
        return "The time of the night is used up."
    kept_back = len(total.missing(one.bench))
    if runs_left(one) < 1 + kept_back:
        return f"The last {kept_back} runs are kept for seeds that tell what the study gained in all."
    return ""


def runs_left(one: Night) -> float:
    """How many runs the study's budget and the night's time still hold."""
    bench = one.bench
    in_time = max(one.deadline - one.bench.study.machine.running(), 0.0) * bench.slots / _run_seconds(bench)
    return min(float(bench.contract.budget.max_runs - bench.study.state.paid_runs), in_time)


def _reached(bench: Bench, target: float) -> bool:
    tip = judge.tip(bench)
    scores = [run.score for run in bench.study.state.runs.values() if run.candidate == tip and run.score is not None]
    if not scores or not bench.study.state.stack:
        return False
    mean = fmean(scores)
    return mean >= target if bench.contract.metric.direction is Direction.HIGHER else mean <= target


def _run_seconds(bench: Bench) -> float:
    return run_seconds(bench.study.state, bench.contract) or _UNTIMED


# Verdicts


def _judge(bench: Bench) -> bool:
    """Write down the verdict that the evidence allows; False when it allows none yet."""
    _stop_what_is_settled(bench)
    return _decide(bench, judge.verdict(bench))


def _decide(bench: Bench, decision: Decision | None) -> bool:
    """Write a verdict down and say it; False where there is none."""
    if decision is None:
        return False
    bench.study.append(Actor.JUDGE, decision)
    follow_ledger(bench.study, bench.store)
    bench.say(progress.verdict(bench, decision))
    return True


def _stop_what_is_settled(bench: Bench) -> None:
    """Stop what is still going for a candidate that the race has rejected: it would only cost."""
    found = judge.undecided(bench)
    if found is not None and found.verdict is Verdict.REJECT:
        _stop_runs(bench, found.candidate)


def _stop_runs(bench: Bench, candidate: str) -> None:
    for name, folder in bench.going.items():
        if bench.study.state.runs[name].candidate == candidate:
            bench.launcher.stop(folder)


def _is_time_to_certify(one: Night) -> bool:
    """Whether the tip is to be certified now: it has begun, it would probably succeed, or the runs are running out."""
    bench, state = one.bench, one.bench.study.state
    if state.attempt_is_open():
        return True
    race = judge.race_of(bench)
    plan = bench.follower.plan
    if race is None or plan is None or plan.looks is None or not state.stack or race.racing is not None:
        return False
    left, past = runs_left(one), tuple(state.attempts_certified)
    ending = bool(one.over) or plan.is_ending(race, past, left)
    if judge.in_focus(bench) is not None and not ending:
        return False  # an idea that waits is cheaper than an attempt, and is then certified with the rest
    if left < 2 * plan.looks.looks[0]:
        return False
    if ending:
        return plan.should_certify(race, past, ending=True, runs_left=_left_over(one))
    return plan.is_time(race, past, left)
