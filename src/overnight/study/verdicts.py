"""What each verdict does to candidates, tip and incumbent."""

from collections.abc import Callable

from overnight.records.contract import Clause
from overnight.records.decision import Verdict
from overnight.records.lifecycle import Actor, State
from overnight.records.schedule import PAIRED_LOOK, STRETCH
from overnight.study.state import CandidateState, Data, StudyState, Unlawful, check_step, only, text


def apply_verdict(state: StudyState, one: CandidateState, data: Data) -> None:
    """Carry out one verdict of the judge, or raise `Unlawful` and change nothing."""
    _VERDICTS[Verdict(data["verdict"])](state, one, data)


def _keep(state: StudyState, one: CandidateState, data: Data) -> None:
    provisional = data.get("provisional", False) is True
    if one.provisional and one.state is State.COMPLETED and not provisional:  # fresh seeds have agreed
        one.provisional = False
        return
    if one.state is not State.COMPLETED or one.kept:
        raise Unlawful(f"{one.id} is {one.state}{' and kept' if one.kept else ''}, so it cannot be kept.")
    if not _measured(state, one, data):
        raise Unlawful(f"{one.id} cannot be kept without evidence.")
    if one.base != state.tip:
        raise Unlawful(f"{one.id} was not built on the tip, so it cannot join it.")
    one.kept, one.provisional = True, provisional
    state.stack.append(one.id)
    state.tip = one.commit


def _measured(state: StudyState, one: CandidateState, data: Data) -> bool:
    """Whether a verdict rests on at least one measured run of the candidate itself."""
    return any(state.runs[name].candidate == one.id and state.runs[name].evidence for name in data["evidence"])


def _reject(state: StudyState, one: CandidateState, data: Data) -> None:
    if one.kept:
        _undo(state, one)
        return
    check_step(one.state, State.REJECTED, Actor.JUDGE)
    one.state = State.REJECTED


def _undo(state: StudyState, one: CandidateState) -> None:
    """A kept candidate that turns out worse leaves the tip, with everything built on it."""
    if one.id not in state.stack:
        raise Unlawful(f"{one.id} is {one.state}; what was accepted can only be refuted.")
    at = state.stack.index(one.id)
    for name in state.stack[at:]:
        check_step(state.candidates[name].state, State.REVERTED, Actor.JUDGE)
    for name in state.stack[at:]:
        state.candidates[name].state = State.REVERTED
        state.candidates[name].kept = state.candidates[name].provisional = False
    del state.stack[at:]
    state.tip = state.candidates[state.stack[-1]].commit if state.stack else state.incumbent


def _inconclusive(state: StudyState, one: CandidateState, data: Data) -> None:
    if one.kept:  # a certification that does not decide leaves tip and incumbent where they are
        _count_attempt(state, certified=False)
        return
    check_step(one.state, State.INCONCLUSIVE, Actor.JUDGE)
    one.state = State.INCONCLUSIVE


def _certify(state: StudyState, one: CandidateState, data: Data) -> None:
    if not state.stack or state.stack[-1] != one.id:
        raise Unlawful(f"{one.id} is not the tip, and only the tip can be certified.")
    if not isinstance(data["audit"], str) or not data["audit"] or not _measured(state, one, data):
        raise Unlawful(f"{one.id} cannot be certified without an audit and evidence.")
    if not (isinstance(data["gain_low"], float) and data["gain_low"] > 0):
        raise Unlawful(f"{one.id} cannot be certified: the gain's interval does not lie above 0.")
    if state.candidates[one.id].provisional:
        raise Unlawful(f"{one.id} is kept only until fresh seeds have spoken, so it cannot be certified.")
    _at_a_look(state, one, data)
    broken = [found["name"] for found in data["guardrails"] if not found["worse_by"] <= found["margin"]]
    if broken:
        raise Unlawful(f"{one.id} cannot be certified: {', '.join(broken)} got worse than its margin.")
    _guardrails_reported(state, one, data)
    for name in state.stack:
        check_step(state.candidates[name].state, State.ACCEPTED, Actor.JUDGE)
    claimed = [float(data[key]) for key in ("gain", "gain_low", "gain_high")]
    for name in state.stack:
        state.candidates[name].state = State.ACCEPTED
    _count_attempt(state, certified=True)
    state.certified.append(one.id)
    state.claimed = claimed
    state.stack.clear()
    state.incumbents.append(state.incumbent)
    state.incumbent = state.tip


def _guardrails_reported(state: StudyState, one: CandidateState, data: Data) -> None:
    metric = state.approvals[Clause.METRIC]["terms"] if Clause.METRIC in state.approvals else {"guardrails": []}
    reported = {found["name"]: found["margin"] for found in data["guardrails"]}
    silent = [rail["name"] for rail in metric["guardrails"] if rail["name"] not in reported]
    widened = [rail["name"] for rail in metric["guardrails"] if reported.get(rail["name"], 0) > rail["margin"]]
    if widened:
        raise Unlawful(
            f"{one.id} cannot be certified: {', '.join(widened)} was given a wider margin than the contract's."
        )
    if silent:
        raise Unlawful(f"{one.id} cannot be certified: nothing is said about the guardrail {', '.join(silent)}.")


def _refute(state: StudyState, one: CandidateState, data: Data) -> None:
    if one.state is State.ACCEPTED:
        _revert_incumbent(state, one)
        return
    if one.id not in state.stack:
        raise Unlawful(f"{one.id} is not part of the tip, so there is nothing to refute.")
    _undo(state, state.candidates[state.stack[0]])
    _count_attempt(state, certified=False)


def _count_attempt(state: StudyState, *, certified: bool) -> None:
    state.attempts += 1
    state.schedule = None
    state.attempts_certified.append(certified)


def fold_schedule(state: StudyState, data: Data, actor: str) -> None:
    """The looks of an attempt are fixed, before its first run."""
    only(actor, Actor.ENGINE)
    if state.attempt_is_open() or int(data["attempt"]) != state.attempts + 1:
        raise Unlawful("The looks of an attempt are fixed once, before its first run.")
    if not state.stack or state.stack[-1] != data["tip"] or state.candidates[data["tip"]].provisional:
        raise Unlawful(f"{data['tip']} is not the tip, and only the tip can be certified.")
    text(data["incumbent"])
    looks, shares = [int(one) for one in data["looks"]], [float(one) for one in data["shares"]]
    if looks != sorted(set(looks)) or len(looks) != len(shares) or min(shares) <= 0 or sum(shares) > 1 + 1e-9:
        raise Unlawful("Looks come at a rising number of seeds, and spend no more than there is.")
    _follows_plan(state, looks, paired=data["paired"] is True)
    state.schedule = data


def _follows_plan(state: StudyState, looks: list[int], *, paired: bool) -> None:
    """Refuse looks that are not those of the frozen plan, but for a last one that left-over runs stretch."""
    plan = [] if state.calibration is None else list(state.calibration["plan"]["looks"])
    if not plan:
        raise Unlawful("The frozen plan has no looks, so nothing can be certified.")
    stretched = [*plan[:-1], max(plan[-1], min(looks[-1], STRETCH * plan[-1]))]
    wanted = sorted({max(PAIRED_LOOK, seeds) for seeds in stretched}) if paired else stretched
    if looks != wanted:
        told = ", ".join(map(str, looks))
        raise Unlawful(f"An attempt may not look at {told} seeds a side: the frozen plan looks elsewhere.")


def _at_a_look(state: StudyState, one: CandidateState, data: Data) -> None:
    """Refuse a claim at another number of fresh seeds than one at which the frozen plan looks."""
    if state.calibration is None:
        return
    looks = set(state.calibration["plan"]["looks"])
    looks |= {max(PAIRED_LOOK, seeds) for seeds in looks}
    if state.schedule is not None:
        looks = set(state.schedule["looks"])
    arms = [sum(state.runs[name].candidate == one.id for name in data["evidence"])]
    arms.append(len(data["evidence"]) - arms[0])
    if arms[0] != arms[1] or arms[0] not in looks:
        raise Unlawful(
            f"{one.id} cannot be certified on {arms[0]} seeds against {arms[1]}: the frozen plan does not look there."
        )


def _revert_incumbent(state: StudyState, one: CandidateState) -> None:
    if one.commit != state.incumbent or not state.incumbents:
        raise Unlawful(f"{one.id} is not the incumbent, so it cannot be reverted.")
    if any(state.runs[name].outcome is None for name in one.runs):
        raise Unlawful(f"{one.id} has a run that is still going, so it cannot be reverted.")
    before = state.incumbents[-1]
    undone = [*state.stack, one.id, *_below(state, one, before)]
    for name in undone:
        check_step(state.candidates[name].state, State.REVERTED, Actor.JUDGE)
    for name in undone:
        state.candidates[name].state, state.candidates[name].kept = State.REVERTED, False
    state.stack.clear()
    state.incumbent = state.tip = state.incumbents.pop()


def _below(state: StudyState, one: CandidateState, end: str) -> list[str]:
    """The candidates that were certified together with one, down to the incumbent before."""
    accepted = {other.commit: other for other in state.candidates.values() if other.state is State.ACCEPTED}
    found: list[str] = []
    while one.base != end and one.base in accepted and accepted[one.base].id not in found:
        one = accepted[one.base]
        found.append(one.id)
    return found


_VERDICTS: dict[Verdict, Callable[[StudyState, CandidateState, Data], None]] = {
    Verdict.KEEP: _keep,
    Verdict.REJECT: _reject,
    Verdict.INCONCLUSIVE: _inconclusive,
    Verdict.CERTIFIED: _certify,
    Verdict.REFUTED: _refute,
}
