"""Ablation on win, in the night: when the search is over and runs are left, a certified stack is taken apart.

Each part is knocked out by itself on tuning seeds that selected nothing; what seems to carry nothing is then left out
together, and leaves the tip only where that is shown to lose less than the margin. Everything follows from the ledger:
a night that was killed drafts, runs and concludes the same. The claim stays one about the whole certified stack.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from math import isfinite

from overnight.admission import Drafting, admit_candidate, draft_candidate, drafted, follow_ledger
from overnight.attempts import in_order, results
from overnight.candidate.build import params_of, with_params
from overnight.candidate.without import lay_on
from overnight.claims import arm, incumbent
from overnight.decide.ablate import WHOLE, Ablated, AblationRule, ArmWanted, Evidence, Key, ablate, margin_for
from overnight.decide.intervals import Interval
from overnight.racing import ABLATION_ROUND
from overnight.records.ablation import Ablation, PartFinding
from overnight.records.lifecycle import Actor
from overnight.records.limits import Scalar
from overnight.records.proposal import Proposal
from overnight.records.text import sentence
from overnight.study.state import CandidateState, StudyState
from overnight.trials import Bench, Wanted

_STAGE = 10_000
"""Each stage has so many seeds of its own."""


@dataclass(frozen=True, slots=True)
class Stack:
    """What the last certification certified, and what it can be taken apart into."""

    tip: str
    """The certified tip."""
    members: tuple[CandidateState, ...]
    """The candidates that were certified together, oldest first."""
    parts: tuple[str, ...]
    """The members; or the parameters of the only one, where it is a bundle of them."""


def stack_of(state: StudyState, proposal: Callable[[CandidateState], Proposal]) -> Stack | None:
    """The last certified stack, while it is the incumbent; None where nothing is certified."""
    tip = incumbent(state)
    if not state.incumbents or tip not in state.certified:
        return None
    by_commit = {one.commit: one for one in state.candidates.values()}
    members: list[CandidateState] = []
    one = state.candidates.get(tip)
    while one is not None and one.commit != state.incumbents[-1]:
        members.insert(0, one)
        one = by_commit.get(one.base)
    if len(members) > 1:
        return Stack(tip, tuple(members), tuple(member.id for member in members))
    keys = tuple(sorted(proposal(members[0]).params)) if members else ()
    return Stack(tip, tuple(members), keys if len(keys) > 1 else tuple(member.id for member in members))


def rule_of(state: StudyState) -> AblationRule:
    """The rule of an ablation, from the gain that was certified and the noise of the calibration."""
    gain, low, high = state.claimed or (0.0, 0.0, 0.0)
    noise = (state.calibration or {}).get("noise") or 0.0
    return AblationRule(margin=margin_for(Interval(gain, low, high), noise))


def why_not(state: StudyState, stack: Stack) -> str:
    """Why a certified stack was not taken apart, or not wholly; empty where it was."""
    if stack.tip in state.ablated:
        return ""
    whole = "The claim is about the whole certified stack."
    if len(stack.parts) < 2:
        return f"One change was certified, so there is nothing to take apart. {whole}"
    begun = any(one.ablates == stack.tip for one in state.candidates.values())
    if begun:
        return f"Taking the {len(stack.parts)} parts apart was begun and is not finished. {whole}"
    least, _ = rule_of(state).runs(len(stack.parts))
    return (
        f"Which of its {len(stack.parts)} parts carry the gain was not tested: that takes {least} runs or more when "
        f"the search is over, and parts that can be taken out one by one. {whole}"
    )


def _stack(bench: Bench) -> Stack | None:
    """The stack that is to be taken apart now; None where there is none."""
    state = bench.study.state
    found = stack_of(state, lambda one: drafted(bench.study.machine, bench.study.at, one).proposal)
    if found is None or len(found.parts) < 2 or found.tip in state.ablated or state.stack:
        return None
    refused = any(one.ablates == found.tip and one.refused for one in state.candidates.values())
    return None if refused or state.rung else found


# The runs


def _knock_outs(state: StudyState, stack: Stack) -> dict[frozenset[str], str]:
    """The candidates that are the stack without some of its parts; without none of them it is the stack itself."""
    found = {frozenset(one.without): one.id for one in state.candidates.values() if one.ablates == stack.tip}
    return {**found, WHOLE: stack.tip}


def _round(state: StudyState) -> int:
    return ABLATION_ROUND + len(state.incumbents)


def _runs(bench: Bench, stack: Stack) -> dict[Key, list[str]]:
    """The runs of each arm from its first seed on, as far as each has its result."""
    found: dict[Key, list[str]] = {}
    for without, candidate in _knock_outs(bench.study.state, stack).items():
        there = results(bench, candidate, "screen", _round(bench.study.state))
        for stage in {number // _STAGE for number in there}:
            own = {number % _STAGE: one for number, one in there.items() if number // _STAGE == stage}
            found[stage, without] = [name for name, _ in in_order(own)]
    return found


def _evidence(bench: Bench, runs: Mapping[Key, list[str]]) -> Evidence:
    return {key: arm(bench.contract, [bench.study.state.runs[name] for name in names]) for key, names in runs.items()}


def _asked(bench: Bench, stack: Stack) -> Ablated | tuple[ArmWanted, ...]:
    evidence = _evidence(bench, _runs(bench, stack))
    return ablate(bench.contract.metric, stack.parts, evidence, rule_of(bench.study.state))


def wanted(bench: Bench, runs_left: float) -> list[Wanted]:
    """The runs that come next; none where nothing is to be taken apart, or the budget does not hold them."""
    stack = _stack(bench)
    found = None if stack is None else _asked(bench, stack)
    if stack is None or not isinstance(found, tuple):
        return []
    knock_outs, cost = _knock_outs(bench.study.state, stack), _cost(bench, stack, found)
    if cost > runs_left or any(one.without not in knock_outs for one in found):
        return []
    return list(_missing(bench, knock_outs, found))


def _missing(bench: Bench, knock_outs: Mapping[frozenset[str], str], found: tuple[ArmWanted, ...]) -> Iterator[Wanted]:
    """Seed by seed, so that the arms of a comparison are interleaved; without what is there or going."""
    round_ = _round(bench.study.state)
    there = {one.without: set(results(bench, knock_outs[one.without], "screen", round_)) for one in found}
    for place in range(max(one.seeds for one in found)):
        for one in found:
            number = one.stage * _STAGE + place
            if place < one.seeds and number not in there[one.without]:
                yield Wanted(knock_outs[one.without], "screen", round_, number)


def _cost(bench: Bench, stack: Stack, found: tuple[ArmWanted, ...]) -> int:
    runs = _runs(bench, stack)
    return sum(one.seeds - len(runs.get((one.stage, one.without), ())) for one in found)


# The knock-outs


def draft(bench: Bench, runs_left: float) -> bool:
    """Draft one knock-out that is wanted and not there yet, and ask the gate; False when none is, or none fits."""
    stack = _stack(bench)
    found = None if stack is None else _asked(bench, stack)
    if stack is None or not isinstance(found, tuple) or _cost(bench, stack, found) > runs_left:
        return False
    knock_outs = _knock_outs(bench.study.state, stack)
    without = next((one.without for one in found if one.without not in knock_outs), None)
    tree = None if without is None else _tree(bench, stack, without)
    if without is None or tree is None:
        return False
    allowed = bench.contract.experiments
    left_out = tuple(part for part in stack.parts if part in without)
    proposal = Proposal(
        proposer=allowed.proposers[0],
        kind=allowed.kinds[0],
        hypothesis=sentence(f"Without {', '.join(left_out)} the certified gain stays."),
        predicted_effect="The score stays.",
        params=_params(bench, tree),
        bundle=_bundle(bench, tree),
    )
    how = Drafting(bench.whole, Actor.ENGINE, ablates=stack.tip, without=left_out)
    candidate = draft_candidate(bench.study, bench.store, proposal, tree, how)
    reasons = admit_candidate(bench.study, bench.store, candidate.id)
    bench.say(f"{candidate.id}  {'refused: ' + reasons[0].says if reasons else proposal.hypothesis}")
    return True


def _params(bench: Bench, tree: str) -> dict[str, Scalar]:
    """The parameters in which a tree differs from the tip, where both are nothing but parameters."""
    if bench.contract.scope.preset != "params":
        return {}
    tip, own = params_of(bench.store, bench.store.tree_of(bench.study.state.tip)), params_of(bench.store, tree)
    return {key: value for key, value in own.items() if key not in tip or tip[key] != value}


def _bundle(bench: Bench, tree: str) -> tuple[str, ...]:
    moved = _params(bench, tree)
    return tuple(f"{key} goes back to {value}" for key, value in moved.items())[:20] if len(moved) > 1 else ()


def _tree(bench: Bench, stack: Stack, without: frozenset[str]) -> str | None:
    """The stack without these parts; None where another part changed the same file, and nobody can part them."""
    store, scratch = bench.store, bench.study.at.folder
    root = store.tree_of(bench.study.state.incumbents[-1])
    if len(stack.members) == 1:
        tip = params_of(store, stack.members[0].tree)
        kept = {part: tip[part] for part in stack.parts if part not in without and part in tip}
        return with_params(store, root, kept, scratch=scratch)
    steps = [(store.tree_of(one.base), one.tree) for one in stack.members if one.id not in without]
    return lay_on(store, root, steps, scratch=scratch)


# The end


def conclude(bench: Bench, runs_left: float) -> bool:
    """Write the end of an ablation down as soon as there is one; False while there is none."""
    found = concluded(bench, runs_left)
    if found is None:
        return False
    bench.study.append(Actor.JUDGE, found)
    follow_ledger(bench.study, bench.store)
    bench.say(found.says)
    return True


def concluded(bench: Bench, runs_left: float) -> Ablation | None:
    """The record of an ablation whose runs are all there, or whose next test the budget does not hold; else None."""
    stack = _stack(bench)
    if stack is None:
        return None
    runs, rule = _runs(bench, stack), rule_of(bench.study.state)
    evidence = _evidence(bench, runs)
    found = ablate(bench.contract.metric, stack.parts, evidence, rule)
    if isinstance(found, tuple) and found[0].stage and _cost(bench, stack, found) > runs_left:
        shorter = replace(rule, most_tries=found[0].stage - 1)
        found = ablate(bench.contract.metric, stack.parts, evidence, shorter)
    if isinstance(found, tuple):
        return None
    return _record(bench, stack, found, tuple(name for names in runs.values() for name in names))


def _record(bench: Bench, stack: Stack, found: Ablated, evidence: tuple[str, ...]) -> Ablation:
    knock_outs, rule = _knock_outs(bench.study.state, stack), rule_of(bench.study.state)
    leaner = knock_outs[frozenset(found.removed)] if found.removed else None
    on = f" The search goes on from {leaner}, the stack without them." if leaner is not None else ""
    return Ablation(
        candidate=stack.tip,
        parts=tuple(
            PartFinding(
                part=one.part,
                word=one.word,
                loss=one.loss.estimate,
                loss_low=_finite(one.loss.low),
                loss_high=_finite(one.loss.high),
                says=sentence(one.says),
            )
            for one in found.parts
        ),
        margin=rule.margin,
        removed=found.removed,
        leaner=leaner,
        loss=None if found.loss is None else found.loss.estimate,
        loss_high=None if found.loss is None else _finite(found.loss.high),
        says=sentence(f"{found.says}{on}"),
        evidence=evidence,
    )


def _finite(value: float) -> float | None:
    return value if isfinite(value) else None
