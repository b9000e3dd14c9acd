"""The fold of ablations: a certified stack is taken apart, and dead weight leaves the tip; see `fold`."""

from overnight.records.lifecycle import Actor, State
from overnight.study.sittings import check_one_rung
from overnight.study.state import (
    CandidateState,
    Data,
    Moment,
    StudyState,
    Unlawful,
    candidate_of,
    check_comparable,
    check_evidence,
    only,
    text,
)


def check_knock_out(state: StudyState, data: Data, actor: str) -> None:
    """Refuse a draft that calls itself a knock-out and is none of the engine's, or of nothing certified."""
    ablates = data.get("ablates")
    if ablates is None:
        return
    if actor != Actor.ENGINE:
        raise Unlawful(f"Only the engine knocks parts out of a stack, but the {actor} drafted {data['id']}.")
    _incumbent(state, ablates)
    if not data.get("without"):
        raise Unlawful(f"{data['id']} knocks nothing out of {ablates}.")


def _incumbent(state: StudyState, name: str) -> CandidateState:
    one = state.candidates.get(name)
    if one is None or name not in state.certified or one.commit != state.incumbent:
        raise Unlawful(f"{name} is not the certified incumbent, so there is nothing to take apart.")
    return one


def fold_ablation(state: StudyState, data: Data, actor: str) -> None:
    """A certified stack was taken apart; what is shown to be dead weight leaves the tip."""
    only(actor, Actor.JUDGE)
    one = _incumbent(state, candidate_of(state, data).id)
    if one.id in state.ablated:
        raise Unlawful(f"{one.id} was taken apart before.")
    check_evidence(state, data["evidence"])
    check_one_rung(state, data["evidence"])
    check_comparable(state, data["evidence"])
    for name in data["evidence"]:
        run = state.runs[name]
        if run.phase != "screen" or one.id not in (run.candidate, state.candidates[run.candidate].ablates):
            raise Unlawful(f"{name} is no run of {one.id} or of a knock-out of it.")
    removed = [text(part) for part in data["removed"]]
    if removed:
        _slim(state, one, removed, data)
    state.ablated.append(one.id)


def _slim(state: StudyState, one: CandidateState, removed: list[str], data: Data) -> None:
    leaner = state.candidates.get(data["leaner"])
    if leaner is None or leaner.ablates != one.id or set(leaner.without) != set(removed):
        raise Unlawful(f"{data['leaner']} is not {one.id} without {', '.join(removed)}.")
    if state.stack or leaner.base != state.tip or leaner.state is not State.COMPLETED:
        raise Unlawful(f"{leaner.id} is {leaner.state} and cannot follow the tip.")
    if not any(state.runs[name].candidate == leaner.id and state.runs[name].evidence for name in data["evidence"]):
        raise Unlawful(f"{leaner.id} cannot follow the tip without evidence.")
    if not float(data["loss"]) < float(data["margin"]):
        raise Unlawful(f"{leaner.id} loses {data['loss']}, which is not below the margin of {data['margin']}.")
    leaner.kept, leaner.verdict = True, text(data["says"])
    state.stack.append(leaner.id)
    state.tip = leaner.commit
    state.moments.append(Moment("decided", leaner.id, "keep", state.tip, state.incumbent))
