"""What a proposer may see, gathered from the ledger: everything that was tried, nothing that is hidden."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256

from overnight.records.agent import Ask
from overnight.records.codec import decode, encode
from overnight.records.contract import Contract
from overnight.records.lifecycle import State
from overnight.records.limits import Scalar
from overnight.records.proposal import Ending, Proposal, Tried, View
from overnight.records.space import Space, StartingPoint
from overnight.records.text import sentence
from overnight.study.state import CandidateState, StudyState

_ENDINGS: dict[State, Ending] = {
    State.ACCEPTED: "certified",
    State.REJECTED: "rejected",
    State.INCONCLUSIVE: "inconclusive",
    State.REVERTED: "reverted",
}


@dataclass(frozen=True, slots=True)
class Sources:
    """Where the parts of a view come from that the state itself does not hold."""

    program: str
    """The direction in prose."""
    space: Space | None
    """What the trainer declares."""
    params: Callable[[str], Mapping[str, Scalar]]
    """The parameters of a tree."""
    proposal: Callable[[CandidateState], Proposal]
    """The idea that a candidate carries."""
    starting: tuple[StartingPoint, ...] = ()
    """Known settings that may be tried."""
    diagnostics: Callable[[CandidateState], Mapping[str, float]] = lambda _: {}
    """What the trainings of a candidate reported about themselves."""


def view(state: StudyState, contract: Contract, sources: Sources) -> View:
    """Build the view of one moment; the same ledger gives the same view."""
    ideas = state.ideas()
    admitted = sum(one.validated_under is not None for one in ideas)
    tip = next((one for one in state.candidates.values() if one.commit == state.tip), None)
    return View(
        task=state.task,
        study=state.study,
        program=sources.program[:20_000],
        surface=contract.scope.paths,
        keys=contract.scope.keys,
        space=sources.space,
        params=sources.params(tip.tree if tip is not None else state.tree),
        tried=tuple(_tried(state, contract, one, sources) for one in ideas),
        runs_left=max(contract.budget.max_runs - state.paid_runs, 0),
        candidates_left=max(contract.experiments.stop.max_candidates - admitted, 0),
        seed=int.from_bytes(sha256(f"{state.task}/{state.study}".encode()).digest()[:4], "big"),
        asks=_asks(state),
        dollars_left=max(contract.budget.max_dollars - state.dollars, 0.0),
        tokens_left=max(contract.budget.max_tokens - state.tokens, 0),
        starting=sources.starting,
        diagnostics=sources.diagnostics(tip if tip is not None else state.candidates[state.baseline])
        if state.baseline
        else {},
        kept_out=tuple(sentence(says) for says in state.refused[:5]),
    )


def _tried(state: StudyState, contract: Contract, one: CandidateState, sources: Sources) -> Tried:
    base = next((other.id for other in state.candidates.values() if other.commit == one.base), None)
    return Tried(
        candidate=one.id,
        proposal=sources.proposal(one),
        params=sources.params(one.tree),
        outcome=ending(one),
        gain=None if one.gain is None else rounded(one.gain, contract.metric.precision),
        base=base if base != state.baseline else None,
        because=_because(one),
    )


def _because(one: CandidateState) -> tuple[str, ...]:
    """What stood against a candidate that was never measured: the gate's reasons, or its own failure."""
    said = {"refused": one.refused, "crashed": [one.failure]}.get(ending(one), [])
    return tuple(sentence(says) for says in said[:5])


def _asks(state: StudyState) -> tuple[Ask, ...]:
    plain = ({"id": name, **encode(one), "outcome": one.outcome or None} for name, one in state.asks.items())
    return tuple(decode(Ask, one, where="ask") for one in plain)


def rounded(value: float, precision: float) -> float:
    """A number as a proposer may see it: to the contract's step, and never more than three significant digits."""
    return float(f"{round(value / precision) * precision:.3g}")


def ending(one: CandidateState) -> Ending:
    """How a candidate ended, in the word that a proposer is told."""
    if one.failure and one.state in (State.REJECTED, State.DEBUG) and one.gain is None:
        return "crashed"
    if one.kept and one.state is not State.ACCEPTED:
        return "kept"
    if one.state is State.DRAFT and one.refused:
        return "refused"
    return _ENDINGS.get(one.state, "pending")
