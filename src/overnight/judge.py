"""What the evidence allows to be decided, and which runs the next verdict still needs.

Both questions are answered from the ledger alone, so a night that was killed asks for the
same runs again and comes to the same verdicts.

    control   a planted placebo against the baseline, by the test that a claim must pass
    screen    an idea against the tip, on seeds that both share; moves the tip, claims nothing
    certify   the tip against the incumbent, on fresh seeds; the only verdict that a claim rests on
"""

from collections.abc import Iterator
from dataclasses import replace

from overnight.audit import audit
from overnight.claims import CONTROL_ROUND, arm, incumbent
from overnight.decide.certify import Certification, certify, error_for_attempt
from overnight.decide.greedy import judge_greedily
from overnight.decide.screen import Pair, screen
from overnight.decide.simplicity import balance, prefer_simpler
from overnight.decide.telling import decimals, told
from overnight.records.decision import Decision, LoopDecision, Verdict
from overnight.records.lifecycle import State
from overnight.records.text import sentence
from overnight.study.state import CandidateState, RunState
from overnight.trials import Bench, Phase, Wanted

_OVER = (State.ACCEPTED, State.REJECTED, State.INCONCLUSIVE, State.REVERTED)

Results = dict[int, tuple[str, RunState]]
"""A candidate's runs of one round by the number of their seed, each with its id."""


def wanted(bench: Bench, *, certifying: bool) -> Iterator[Wanted]:
    """The runs that the next verdict needs, first things first; the arms of a comparison are interleaved."""
    state, how, focus = bench.study.state, bench.contract.evaluation, in_focus(bench)
    if focus is not None and focus.plant:
        seeds = how.confirm_train_seeds
        arms = {state.baseline: range(seeds), focus.id: range(seeds, 2 * seeds)}
        yield from _missing(bench, arms, "confirm", CONTROL_ROUND)
    elif focus is not None:
        seeds_left = range(len(_pairs(bench, focus.id)), how.screen_train_seeds)
        yield from _missing(bench, dict.fromkeys((tip(bench), focus.id), seeds_left), "screen", _reign(bench))
    elif certifying:
        arms = dict.fromkeys((tip(bench), incumbent(state)), range(how.confirm_train_seeds))
        yield from _missing(bench, arms, "confirm", state.attempts + 1)


def verdict(bench: Bench) -> Decision | None:
    """The verdict that the evidence allows now, or None when it allows none yet."""
    focus = in_focus(bench)
    if focus is None:
        found = _certified(bench)
    else:
        found = _controlled(bench, focus) if focus.plant else _screened(bench, focus)
    return None if found is None else _with_doubts(bench, found)


def _with_doubts(bench: Bench, found: Decision) -> Decision:
    """The verdict, which also says which of its runs had a first measurement that nobody believed."""
    twice = [says for run in found.evidence if (says := bench.study.state.runs[run].quarantined)]
    return replace(found, because=sentence(" ".join((found.because, *twice)))) if twice else found


def in_focus(bench: Bench) -> CandidateState | None:
    """The candidate that is being measured: the first that the gate has let in and nobody has judged."""
    state = bench.study.state
    for found in state.candidates.values():
        if found.id == state.baseline or found.kept or found.validated_under is None:
            continue
        if found.state is not State.DRAFT and found.state not in _OVER:
            return found
    return None


def tip(bench: Bench) -> str:
    """The candidate whose tree is the tip."""
    state = bench.study.state
    return state.stack[-1] if state.stack else incumbent(state)


# Runs and their results


def _reign(bench: Bench) -> int:
    return bench.study.state.reign()


def _results(bench: Bench, candidate: str, phase: Phase, round_: int) -> Results:
    """The last run of a candidate for each seed of a round, leaving out runs that were lost."""
    return {
        run.number: (name, run)
        for name, run in bench.study.state.runs.items()
        if (run.candidate, run.phase, run.round) == (candidate, phase, round_)
        and (run.outcome is None or not run.outcome.is_repeated())
    }


def _missing(bench: Bench, arms: dict[str, range], phase: Phase, round_: int) -> Iterator[Wanted]:
    have = {name: _results(bench, name, phase, round_) for name in arms}
    for numbers in zip(*arms.values(), strict=True):
        for name, number in zip(arms, numbers, strict=True):
            if number not in have[name]:
                yield Wanted(name, phase, round_, number)


def _has_result(run: RunState) -> bool:
    return run.outcome is not None and (run.outcome.is_candidates_fault() or run.evidence > 0)


def _complete(results: Results, seeds: int) -> bool:
    return len(results) >= seeds and all(_has_result(run) for _, run in results.values())


def _names(*arms: Results) -> tuple[str, ...]:
    return tuple(name for side in arms for name, _ in side.values())


# Screening


def _pairs(bench: Bench, candidate: str) -> tuple[Pair, ...]:
    """The train seeds on which both the candidate and the tip have a result, in order and without a gap."""
    ours = _results(bench, candidate, "screen", _reign(bench))
    tips = _results(bench, tip(bench), "screen", _reign(bench))
    found = []
    for number in range(bench.contract.evaluation.screen_train_seeds):
        if number not in ours or number not in tips:
            break
        (run, mine), (tip_run, other) = ours[number], tips[number]
        if not _has_result(mine) or not _has_result(other):
            break
        found.append(
            Pair(
                train_seed=mine.train_seed, run=run, candidate_score=mine.score, tip_run=tip_run, tip_score=other.score
            )
        )
    return tuple(found)


def _screened(bench: Bench, focus: CandidateState) -> Decision | None:
    pairs = _pairs(bench, focus.id)
    if not pairs or focus.state not in (State.COMPLETED, State.DEBUG):
        return None
    metric, wanted = bench.contract.metric, bench.contract.evaluation.screen_train_seeds
    if bench.contract.evaluation.policy == "greedy":
        one = pairs[0]
        runs = (one.run, one.tip_run)
        return judge_greedily(metric, one.candidate_score, one.tip_score, candidate=focus.id, runs=runs)
    lines = _line_balance(bench, focus)
    patience = wanted if lines < 0 else 1  # a tie shows only once the noise is known
    found = screen(metric, pairs, candidate=focus.id, wanted=wanted, patience=patience)
    return prefer_simpler(found, lines) if found is not None else None


def _line_balance(bench: Bench, one: CandidateState) -> int:
    """How many lines of code a candidate adds; only a single file has a simplicity that lines measure."""
    if bench.contract.scope.preset != "single-file":
        return 0
    return balance(bench.store.diff(bench.store.tree_of(one.base), one.tree).decode(errors="replace"))


# Certification, and the control that must fail it


def _certified(bench: Bench) -> Decision | None:
    """The verdict on the tip, once every run of the attempt has its result."""
    state, how = bench.study.state, bench.contract.evaluation
    attempt = state.attempts + 1
    arms = [_results(bench, name, "confirm", attempt) for name in (tip(bench), incumbent(state))]
    if not state.stack or not all(_complete(side, how.confirm_train_seeds) for side in arms):
        return None
    found = _tested(bench, arms[0], arms[1], attempt)
    evidence = _names(*arms)
    if found.verdict is not Verdict.CERTIFIED:
        return found.decision(candidate=tip(bench), evidence=evidence)
    checked = audit(bench.study, bench.contract, tip(bench), found, evidence)
    if checked.verdict == "passed":
        return found.decision(candidate=tip(bench), evidence=evidence, audit=f"attempt-{attempt}")
    because = f"The audit of the gain failed, so nothing is claimed: {checked.because}"
    unproven = replace(found, verdict=Verdict.INCONCLUSIVE, because=because)
    return replace(unproven.decision(candidate=tip(bench), evidence=evidence), loop=LoopDecision.ESCALATE)


def _tested(bench: Bench, ours: Results, theirs: Results, attempt: int) -> Certification:
    alpha = error_for_attempt(attempt, bench.contract.evaluation.max_false_claims)
    mine, other = (arm(bench.contract, [side[number][1] for number in sorted(side)]) for side in (ours, theirs))
    return certify(bench.contract.metric, mine, other, alpha=alpha)


def _controlled(bench: Bench, placebo: CandidateState) -> Decision | None:
    """The verdict on the placebo: rejected where the test finds no gain, and never anything that moves the tip.

    Where the test does find one, the judge has failed its own test; the placebo is then inconclusive, and
    the report opens with a warning.
    """
    state, seeds = bench.study.state, bench.contract.evaluation.confirm_train_seeds
    ours, theirs = (_results(bench, name, "confirm", CONTROL_ROUND) for name in (placebo.id, state.baseline))
    if not _complete(ours, seeds) or not _complete(theirs, seeds):
        return None
    found = _tested(bench, ours, theirs, attempt=1)
    fooled = found.verdict is Verdict.CERTIFIED
    alpha = error_for_attempt(1, bench.contract.evaluation.max_false_claims)
    size = told(found.gain.estimate, decimals(found.gain.high - found.gain.low, digits=2), sign=True)
    because = (
        f"The test that a claim must pass found {'a' if fooled else 'no'} gain: {size} {bench.contract.metric.unit} "
        f"in the median pair, p = {found.p_value:.2g} where {alpha:.2g} is allowed, {seeds} fresh seeds each."
    )
    judged = replace(found, verdict=Verdict.INCONCLUSIVE, because=because).decision(
        candidate=placebo.id, evidence=_names(ours, theirs)
    )
    return judged if fooled else replace(judged, verdict=Verdict.REJECT)
