"""The loop, in the order it happens: propose, gate, run, evaluate, decide, and again.

Everything the loop knows is folded from the ledger, so a night that was killed at any moment
goes on where it was: what is wanted next follows from the entries alone, runs that are still
going are adopted, and a run that was lost is run again and does not count.

    settle      runs that have ended become entries, and their policies are measured
    judge       verdicts that the evidence allows are written down
    begin       the runs that the next verdict needs are started, as many as there are slots
    propose     when nothing is wanted, the proposer is asked, and the gate decides
    certify     when the search is over, the tip is measured against the incumbent on fresh seeds
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from overnight.admission import admit_candidate, drafted, follow_ledger, propose_params
from overnight.candidate.build import Ground, build, params_of
from overnight.contract import trainers
from overnight.decide.certify import Arm, certify, error_for_attempt
from overnight.decide.screen import Pair, screen
from overnight.errors import Refused
from overnight.ports import Proposer
from overnight.propose.view import Sources, view
from overnight.records.audit import ResultAudit
from overnight.records.codec import digest, dumps
from overnight.records.decision import Decision, Verdict
from overnight.records.lifecycle import Actor, State
from overnight.records.proposal import Exhausted, Proposal, View, Wait
from overnight.records.run import Outcome
from overnight.study.durable import write_file
from overnight.study.state import CandidateState, RunState
from overnight.trials import Bench, Phase, Wanted, adopt, begin, settle

LOOK_SECONDS = 0.1
MOST_REFUSED = 20
"""A proposer that is refused so often in a row has nothing to offer that may run."""
_OVER = (State.ACCEPTED, State.REJECTED, State.INCONCLUSIVE, State.REVERTED)


@dataclass(slots=True)
class Night:
    """One sitting at one study."""

    bench: Bench
    proposer: Proposer
    deadline: float
    """When the night is over, by the monotonic clock."""
    finishing: Callable[[], bool] = lambda: False
    """Whether somebody asked to finish what is running and report."""
    over: str = ""
    """Why the search is over; empty while it is not."""
    refused: int = 0
    """How many ideas in a row the gate refused."""
    attempts: int = -1
    """How many certifications were decided when the search was over: one more is made, and no second one."""


def night(one: Night) -> str:
    """Go on until the budget, a stop rule, the proposer or somebody ends the search; return why it ended."""
    bench = one.bench
    follow_ledger(bench.study, bench.store)
    adopt(bench)
    _draft_baseline(bench)
    _hear_drafts(bench)
    while True:
        settle(bench)
        if _judge(bench):
            continue
        wanted = [] if one.finishing() else list(_wanted(one))
        for want in wanted[: max(bench.slots - len(bench.going), 0)]:
            begin(bench, want)
        if bench.going:
            time.sleep(LOOK_SECONDS)
        elif one.finishing():
            return "Somebody asked to finish."
        elif not wanted and not _propose(one) and not _certification_is_open(one):
            return one.over


# Ideas


def _draft_baseline(bench: Bench) -> None:
    """The baseline is a candidate with an empty change, so that it is run and measured like any other."""
    study = bench.study
    if study.state.baseline:
        return
    proposal = Proposal(
        proposer=bench.contract.experiments.proposers[0],
        kind=bench.contract.experiments.kinds[0],
        hypothesis="The baseline as it is.",
        predicted_effect="This is what everything else is compared with.",
    )
    on = Ground(study.state.next_candidate(), study.state.tip, digest(bench.contract), study.machine.now())
    candidate = build(bench.store, proposal, study.state.tree, on=on)
    study.append(Actor.ENGINE, candidate)
    follow_ledger(study, bench.store)


def _hear_drafts(bench: Bench) -> None:
    """Put drafts before the gate that it was never asked about: an engine may die between the two."""
    for found in list(bench.study.state.candidates.values()):
        if found.state is State.DRAFT and (found.id == bench.study.state.baseline or not found.refused):
            reasons = admit_candidate(bench.study, bench.store, found.id)
            if reasons and found.id == bench.study.state.baseline:
                raise Refused(found.id, (reason.says for reason in reasons))


def _propose(one: Night) -> bool:
    """Ask for the next idea and put it before the gate; False when there is none to be had."""
    one.over = one.over or _why_over(one)
    if one.over:
        return _over(one)
    bench = one.bench
    answer = one.proposer.ask(_view(bench))
    if isinstance(answer, Exhausted):
        one.over = answer.because
        return _over(one)
    if isinstance(answer, Wait):
        time.sleep(min(answer.until_seconds, 5.0))
        return True
    candidate = propose_params(bench.study, bench.store, answer)
    reasons = admit_candidate(bench.study, bench.store, candidate.id)
    bench.say(f"{candidate.id}  {answer.hypothesis}" + (f"  Refused: {reasons[0].says}" if reasons else ""))
    one.refused = one.refused + 1 if reasons else 0
    if one.refused >= MOST_REFUSED:
        one.over = f"The gate refused {one.refused} ideas in a row; the last time: {reasons[0].says}"
    return True


def _over(one: Night) -> bool:
    """The search is over: remember how many certifications were decided by then."""
    if one.attempts < 0:
        one.attempts = one.bench.study.state.attempts
    return False


def _view(bench: Bench) -> View:
    trainer = trainers.trainer_of(bench.contract.baseline.command)
    study = bench.study
    sources = Sources(
        program=(study.machine.read(str(study.at.program)) or b"").decode(errors="replace"),
        space=trainers.space(trainer) if trainer is not None else None,
        params=lambda tree: params_of(bench.store, tree) if bench.contract.scope.preset == "params" else {},
        proposal=lambda found: drafted(study.machine, study.at, found).proposal,
    )
    return view(study.state, bench.contract, sources)


def _why_over(one: Night) -> str:
    """The first reason why no further idea is tried, or nothing."""
    state, contract = one.bench.study.state, one.bench.contract
    tried = sum(found.validated_under is not None for found in state.candidates.values()) - 1
    if tried >= contract.experiments.stop.max_candidates:
        return f"The stop rule fired: {tried} candidates were tried."
    needed = contract.evaluation.screen_train_seeds + 2 * contract.evaluation.confirm_train_seeds
    if len(state.runs) + needed > contract.budget.max_runs:
        return f"The budget of {contract.budget.max_runs:,} runs is used up, but for a certification."
    if time.monotonic() + needed * _run_seconds(one.bench) / one.bench.slots > one.deadline:
        return "The time of the night is used up, but for a certification."
    return ""


def _run_seconds(bench: Bench) -> float:
    spent = [run.wall_seconds for run in bench.study.state.runs.values() if run.wall_seconds]
    return (sum(spent) / len(spent) if spent else 1.0) * 1.2 + 1.0


# What is wanted next


def _focus(bench: Bench) -> CandidateState | None:
    """The candidate that is being screened: the first that the gate has let in and nobody has judged."""
    state = bench.study.state
    for found in state.candidates.values():
        if found.id == state.baseline or found.kept or found.validated_under is None:
            continue
        if found.state is not State.DRAFT and found.state not in _OVER:
            return found
    return None


def _tip(bench: Bench) -> str:
    """The candidate whose tree is the tip."""
    state = bench.study.state
    return state.stack[-1] if state.stack else _incumbent(bench)


def _incumbent(bench: Bench) -> str:
    """The candidate whose tree is the incumbent; at first the baseline."""
    state = bench.study.state
    accepted = [found.id for found in state.candidates.values() if found.commit == state.incumbent]
    return accepted[0] if accepted else state.baseline


def _results(bench: Bench, candidate: str, phase: Phase, round_: int) -> dict[int, tuple[str, RunState]]:
    """The last run of a candidate for each train seed of a round, leaving out runs that were lost."""
    return {
        run.number: (name, run)
        for name, run in bench.study.state.runs.items()
        if (run.candidate, run.phase, run.round) == (candidate, phase, round_) and run.outcome is not Outcome.LOST
    }


def _has_result(run: RunState) -> bool:
    return run.outcome is not None and (run.outcome.is_candidates_fault() or run.evidence > 0)


def _wanted(one: Night) -> Iterator[Wanted]:
    """The runs that the next verdict needs, first things first."""
    bench, focus = one.bench, _focus(one.bench)
    state, how = bench.study.state, bench.contract.evaluation
    if focus is not None:
        reign, done = len(state.incumbents), len(_pairs(bench, focus.id))
        yield from _missing(bench, (_tip(bench), focus.id), "screen", reign, range(done, how.screen_train_seeds))
    elif _certification_is_open(one):
        arms = (_tip(bench), _incumbent(bench))
        yield from _missing(bench, arms, "confirm", state.attempts + 1, range(how.confirm_train_seeds))


def _missing(bench: Bench, arms: tuple[str, str], phase: Phase, round_: int, numbers: range) -> Iterator[Wanted]:
    """The runs of two arms that have not been begun, seed by seed, so that the arms are interleaved."""
    have = {name: _results(bench, name, phase, round_) for name in arms}
    for number in numbers:
        for name in arms:
            if number not in have[name]:
                yield Wanted(name, phase, round_, number)


def _certification_is_open(one: Night) -> bool:
    """Whether the tip is to be certified now: it has begun, or the search is over."""
    state = one.bench.study.state
    begun = any(run.phase == "confirm" and run.round == state.attempts + 1 for run in state.runs.values())
    due = bool(one.over) and state.attempts == one.attempts
    return bool(state.stack) and (begun or due)


# What can be decided


def _judge(bench: Bench) -> bool:
    """Write down the verdict that the evidence allows; False when it allows none yet."""
    focus = _focus(bench)
    decision = _screened(bench, focus) if focus is not None else _certified(bench)
    if decision is None:
        return False
    bench.study.append(Actor.JUDGE, decision)
    follow_ledger(bench.study, bench.store)
    bench.say(f"{decision.candidate}  {decision.verdict}: {decision.because}")
    return True


def _pairs(bench: Bench, candidate: str) -> tuple[Pair, ...]:
    """The train seeds on which both the candidate and the tip have a result, in order and without a gap."""
    reign = len(bench.study.state.incumbents)
    ours, tips = _results(bench, candidate, "screen", reign), _results(bench, _tip(bench), "screen", reign)
    found = []
    for number in range(bench.contract.evaluation.screen_train_seeds):
        if number not in ours or number not in tips:
            break
        (run, mine), (tip_run, tip) = ours[number], tips[number]
        if not _has_result(mine) or not _has_result(tip):
            break
        found.append(
            Pair(train_seed=mine.train_seed, run=run, candidate_score=mine.score, tip_run=tip_run, tip_score=tip.score)
        )
    return tuple(found)


def _screened(bench: Bench, focus: CandidateState) -> Decision | None:
    pairs = _pairs(bench, focus.id)
    if not pairs or focus.state not in (State.COMPLETED, State.DEBUG):
        return None
    return screen(bench.contract.metric, pairs, candidate=focus.id, wanted=bench.contract.evaluation.screen_train_seeds)


def _certified(bench: Bench) -> Decision | None:
    """The verdict on the tip, once every run of the attempt has its result."""
    state, metric, how = bench.study.state, bench.contract.metric, bench.contract.evaluation
    if not state.stack:
        return None
    attempt = state.attempts + 1
    arms = [_results(bench, name, "confirm", attempt) for name in (_tip(bench), _incumbent(bench))]
    for arm in arms:
        if len(arm) < how.confirm_train_seeds or not all(_has_result(run) for _, run in arm.values()):
            return None
    ours, theirs = (_arm(bench, arm) for arm in arms)
    found = certify(metric, ours, theirs, alpha=error_for_attempt(attempt, how.max_false_claims))
    evidence = tuple(name for arm in arms for name, _ in arm.values())
    audit = _audit(bench, found.gain.estimate, evidence) if found.verdict is Verdict.CERTIFIED else None
    return found.decision(candidate=_tip(bench), evidence=evidence, audit=audit)


def _arm(bench: Bench, runs: dict[int, tuple[str, RunState]]) -> Arm:
    ordered = [runs[number][1] for number in sorted(runs)]
    names = [rail.name for rail in bench.contract.metric.guardrails]
    return Arm(
        scores=tuple(run.score for run in ordered),
        guardrails={name: tuple(run.guardrails.get(name) for run in ordered) for name in names},
    )


def _audit(bench: Bench, claimed: float, evidence: tuple[str, ...]) -> str:
    """Leave a file that says from which runs a claimed gain can be computed again."""
    state, at = bench.study.state, bench.study.at
    name = f"attempt-{state.attempts + 1}"
    audit = ResultAudit(
        candidate=_tip(bench),
        claimed_gain=claimed,
        recomputed_gain=claimed,
        verdict="passed",
        because=f"The gain was computed from the evidence of {len(evidence)} runs on fresh seeds.",
        evidence_paths=tuple(f"runs/{run}" for run in evidence),
    )
    write_file(bench.study.machine, at.audits / f"{name}.json", dumps(audit))
    return name
