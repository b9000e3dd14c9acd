"""What the evidence allows to be decided, and which runs the next verdict still needs.

Both questions are answered from the ledger alone, so a night that was killed asks for the
same runs again and comes to the same verdicts.

    calibrate the baseline on a few tuning seeds, before anything else
    control   a planted placebo against the baseline, by the test that a claim must pass
    race      an idea against the tip, on tuning seeds that both share; moves the tip, claims nothing
    certify   the tip against the incumbent, on fresh seeds; the only verdict that a claim rests on
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain

from overnight import calibrating
from overnight.attempts import (
    CONTROL_FIRST,
    CONTROL_ROUND,
    Attempt,
    Tested,
    attempt_of,
    control_of,
    control_seeds,
    results,
)
from overnight.audit import audit
from overnight.claims import incumbent
from overnight.decide.certify import Certification
from overnight.decide.events import Want
from overnight.decide.greedy import judge_greedily
from overnight.decide.plan import StudyPlan
from overnight.decide.race import Race
from overnight.decide.screened import Screened
from overnight.decide.telling import decimals, told
from overnight.racing import ABLATION_ROUND, has_result
from overnight.records.decision import Decision, LoopDecision, Verdict
from overnight.records.lifecycle import State
from overnight.records.text import sentence
from overnight.study.state import CandidateState, RunState
from overnight.trials import Bench, Phase, Wanted

_OVER = (State.ACCEPTED, State.REJECTED, State.INCONCLUSIVE, State.REVERTED)


def race_of(bench: Bench) -> Race | None:
    """The race of this study as it stands; None while nothing is calibrated."""
    return bench.follower.race(bench.study.state, bench.contract)


def wanted(bench: Bench, *, certifying: bool) -> Iterator[Wanted]:
    """The runs that the next verdict needs, first things first; the arms of a comparison are interleaved."""
    if bench.contract.evaluation.policy == "greedy":
        yield from _greedy_runs(bench)
        return
    state, race = bench.study.state, race_of(bench)
    plan = bench.follower.plan
    if race is None or plan is None:
        yield from _missing(bench, calibrating.wanted(bench))
        return
    focus = in_focus(bench)
    if state.attempt_is_open():
        yield from _attempt_runs(bench, race, plan)
    elif race.racing is not None:
        yield from _race_runs(bench, race)
    elif focus is not None and focus.plant:
        yield from _missing(bench, _control_runs(plan, focus))
    elif certifying:
        yield from _attempt_runs(bench, race, plan)
    elif focus is not None:
        first = (race.first_of(focus.id),)
        yield from _missing(bench, (_screen(bench, one) for one in chain(first, _line(bench, race, focus.id))))


def _race_runs(bench: Bench, race: Race) -> Iterator[Wanted]:
    """What the race needs, and what runs beside it."""
    if undecided(bench) is None:  # else a verdict is due, and waits only for runs that are being stopped
        behind = _line(bench, race, race.racing)
        yield from _missing(bench, (_screen(bench, one) for one in chain(race.wants(), behind)))


def _line(bench: Bench, race: Race, first: str | None) -> Iterator[Want]:
    """The first seeds of the candidates behind the first, where slots would stand idle and time is what is short.

    While somebody leads, the line waits: who joins the tip leaves those behind without one that they could join.
    """
    if has_idle_slots(bench) and race.leading is None:
        yield from (race.first_of(one.id) for one in in_line(bench) if one.id != first)


def likely(bench: Bench, count: int) -> Iterator[Wanted]:
    """The racing candidate's next seeds, for so many slots that would stand idle."""
    race = race_of(bench)
    if race is not None and has_idle_slots(bench) and undecided(bench) is None:
        yield from _missing(bench, (_screen(bench, one) for one in race.likely(count)))


def in_line(bench: Bench) -> list[CandidateState]:
    """The ideas on the present tip that may run and on which nothing is decided; all but the first of them wait."""
    return [one for one in _undecided_ones(bench) if one.base == bench.study.state.tip and not one.plant]


def has_idle_slots(bench: Bench) -> bool:
    """Whether slots stand idle while one run is waited for, and runs are not what is dear."""
    found = bench.follower.calibration
    return bench.slots > 1 and found is not None and found.runs < found.max_runs


def _screen(bench: Bench, want: Want) -> Wanted:
    return Wanted(want.candidate, "screen", len(bench.study.state.incumbents), want.number)


def _attempt_runs(bench: Bench, race: Race, plan: StudyPlan) -> Iterator[Wanted]:
    one = attempt_of(bench, race, plan)
    if one is None:
        return
    found = one.tested(bench)
    seeds = found.seeds if not isinstance(found, Tested) else 0
    arms = ((arm, number) for number in range(seeds) for arm in (one.tip, one.incumbent))
    yield from _missing(bench, (Wanted(arm, "confirm", one.number, number) for arm, number in arms))


def _control_runs(plan: StudyPlan, placebo: CandidateState) -> Iterator[Wanted]:
    if plan.looks is None:
        return
    for number in range(control_seeds(plan)):
        yield Wanted(placebo.id, "screen", CONTROL_ROUND, CONTROL_FIRST + number)


def _missing(bench: Bench, wants: Iterator[Wanted]) -> Iterator[Wanted]:
    """Those of the wanted runs that nobody has started, or that were lost."""
    there: dict[tuple[str, Phase, int], set[int]] = {}
    for want in wants:
        key = (want.candidate, want.phase, want.round)
        if key not in there:
            there[key] = set(results(bench, *key))
        if want.number not in there[key]:
            yield want


def verdict(bench: Bench) -> Decision | None:
    """The verdict that the evidence allows now, or None when it allows none yet."""
    if bench.contract.evaluation.policy == "greedy":
        return _greedy(bench)
    race = race_of(bench)
    plan = bench.follower.plan
    if race is None or plan is None:
        return None
    focus = in_focus(bench)
    found = _raced(bench, race, plan)
    if found is None and bench.study.state.attempt_is_open():
        found = _certified(bench, race, plan)
    if found is None and focus is not None and focus.plant:
        found = _controlled(bench, plan, focus)
    return None if found is None else _with_doubts(bench, found)


def _with_doubts(bench: Bench, found: Decision) -> Decision:
    """The verdict, which also says which of its runs had a first measurement that nobody believed."""
    twice = [says for run in found.evidence if (says := bench.study.state.runs[run].quarantined)]
    return replace(found, because=sentence(" ".join((found.because, *twice)))) if twice else found


def in_focus(bench: Bench) -> CandidateState | None:
    """The candidate that is being measured: the first that the gate has let in and nobody has judged."""
    return next(_undecided_ones(bench), None)


def _undecided_ones(bench: Bench) -> Iterator[CandidateState]:
    """The candidates that the gate has let in and nobody has judged."""
    state = bench.study.state
    for found in state.candidates.values():
        if found.id == state.baseline or (found.kept and not found.racing) or found.validated_under is None:
            continue
        if found.ablates:
            continue  # part of a whole that is judged as one
        if found.state is not State.DRAFT and found.state not in _OVER and not _is_idle_plant(bench, found):
            yield found


def _is_idle_plant(bench: Bench, one: CandidateState) -> bool:
    """Whether a placebo has no test to pass, because the study can claim nothing anyway."""
    plan = bench.follower.plan
    return bool(one.plant) and plan is not None and plan.looks is None


def tip(bench: Bench) -> str:
    """The candidate whose tree is the tip."""
    state = bench.study.state
    return state.stack[-1] if state.stack else incumbent(state)


# The greedy rule, for comparison: one run of the candidate against one run of the tip, on the same seed


def _greedy_runs(bench: Bench) -> Iterator[Wanted]:
    focus = in_focus(bench)
    arms = (tip(bench), focus.id) if focus is not None else ()
    yield from _missing(bench, (Wanted(one, "screen", 0, 0) for one in arms))


def _greedy(bench: Bench) -> Decision | None:
    focus = in_focus(bench)
    if focus is None or focus.state not in (State.COMPLETED, State.DEBUG):
        return None
    ours, tips = (results(bench, name, "screen", 0).get(0) for name in (focus.id, tip(bench)))
    if ours is None or tips is None or not has_result(ours[1]) or not has_result(tips[1]):
        return None
    runs = (ours[0], tips[0])
    return judge_greedily(bench.contract.metric, ours[1].score, tips[1].score, candidate=focus.id, runs=runs)


# The race


def undecided(bench: Bench) -> Screened | None:
    """What the race has found about a racing candidate, and the ledger does not say yet."""
    race, found = race_of(bench), None
    for one in bench.study.state.candidates.values():
        if race is None or found is not None:
            break
        if one.racing and race.racing == one.id:
            found = race.leading if not one.kept else None
        elif one.racing:
            found = next((verdict for verdict in reversed(race.verdicts) if verdict.candidate == one.id), None)
    return found


def _raced(bench: Bench, race: Race, plan: StudyPlan) -> Decision | None:
    found = undecided(bench)
    if found is None:
        return None
    one = bench.study.state.candidates[found.candidate]
    if one.state not in (State.COMPLETED, State.DEBUG):
        return None  # some of its runs are still going; they are being stopped
    evidence = _evidence(bench, found)
    decision = found.decision(bench.contract.metric, plan.rule, evidence=evidence)
    if race.racing == one.id:
        because = found.leads(bench.contract.metric, plan.rule.fresh_seeds)
        decision = replace(decision, because=because, provisional=True)
    return decision


def left_undecided(bench: Bench) -> Decision | None:
    """The verdict on the racing candidate if it is left where it stands; None while a run of it is going."""
    race, plan = race_of(bench), bench.follower.plan
    found = None if race is None else race.standing()
    if found is None or plan is None or bench.study.state.candidates[found.candidate].state is not State.COMPLETED:
        return None
    return found.decision(bench.contract.metric, plan.rule, evidence=_evidence(bench, found))


def _evidence(bench: Bench, found: Screened) -> tuple[str, ...]:
    """The candidate's runs that were looked at, and the tip's on the same seeds."""
    state, one = bench.study.state, bench.study.state.candidates[found.candidate]
    base = next((other.id for other in state.candidates.values() if other.commit == one.base), state.baseline)
    key = bench.contract.comparability()
    names = {
        (run.candidate, run.number): name
        for name, run in state.runs.items()
        if run.candidate in (one.id, base) and run.comparability == key and _counts(run)
    }
    pairs = chain(((one.id, number) for number in found.numbers), ((base, number) for number in found.numbers))
    return tuple(names[pair] for pair in pairs if pair in names)


def _counts(run: RunState) -> bool:
    ended = run.outcome is not None and (run.evidence > 0 or run.outcome.is_candidates_fault())
    return ended and run.phase == "screen" and run.round < ABLATION_ROUND


# Certification, and the control that must fail it


def _certified(bench: Bench, race: Race, plan: StudyPlan) -> Decision | None:
    """The verdict on the tip, once every run of the look has its result."""
    one = attempt_of(bench, race, plan)
    found = one.tested(bench) if one is not None else None
    if one is None or not isinstance(found, Tested):
        return None
    if found.certification.verdict is not Verdict.CERTIFIED:
        return found.certification.decision(candidate=one.tip, evidence=found.evidence)
    return _audited(bench, one, found)


def _audited(bench: Bench, one: Attempt, found: Tested) -> Decision:
    claimed, evidence = found.certification, found.evidence
    checked = audit(bench.study, bench.contract, one, claimed, evidence)
    if checked.verdict == "passed":
        return claimed.decision(candidate=one.tip, evidence=evidence, audit=f"attempt-{one.number}")
    because = f"The audit of the gain failed, so nothing is claimed: {checked.because}"
    unproven = replace(claimed, verdict=Verdict.INCONCLUSIVE, because=because)
    return replace(unproven.decision(candidate=one.tip, evidence=evidence), loop=LoopDecision.ESCALATE)


def _controlled(bench: Bench, plan: StudyPlan, placebo: CandidateState) -> Decision | None:
    """The verdict on the placebo: rejected where the test finds no gain, and never anything that moves the tip.

    Where the test does find one, the judge has failed its own test; the placebo is then inconclusive, and
    the report opens with a warning.
    """
    found = control_of(bench, plan, placebo.id)
    if found is None:
        return None
    fooled = found.certification.verdict is Verdict.CERTIFIED
    judged = replace(
        found.certification,
        verdict=Verdict.INCONCLUSIVE,
        because=_control_says(bench, found.certification, fooled=fooled),
    ).decision(candidate=placebo.id, evidence=found.evidence)
    return replace(judged, loop=LoopDecision.ESCALATE) if fooled else replace(judged, verdict=Verdict.REJECT)


def _control_says(bench: Bench, found: Certification, *, fooled: bool) -> str:
    size = told(found.gain.estimate, decimals(found.gain.high - found.gain.low, digits=2), sign=True)
    return (
        f"The test that a claim must pass found {'a' if fooled else 'no'} gain: {size} {bench.contract.metric.unit} "
        f"on average over {len(found.candidate.scores)} fresh seeds each."
    )
