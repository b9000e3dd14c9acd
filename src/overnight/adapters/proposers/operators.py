"""Typed operators: what an idea does with earlier ones, chosen from the view, and carried out on plain parameters.

Search itself drafts and tunes. What is added here needs no draw: leaving something out, taking a bundle apart,
joining near misses, mending a crash. Each is made from earlier ideas, which become the proposal's parents.
"""

from collections.abc import Callable, Iterator, Mapping

from overnight.records import strict_json
from overnight.records.agent import Operator
from overnight.records.alike import fingerprint, rounded
from overnight.records.limits import Scalar
from overnight.records.proposal import Proposal, Tried, View

PLATEAU = 6
"""So many measured ideas in a row without a kept one are a plateau."""
EVERY = 3
"""Before a plateau, an agent is asked for something else than tuning every third time."""
MOST_FIXES = 3
"""An idea that still crashes after so many fixes is dropped."""
CYCLE: tuple[Operator, ...] = ("combine", "simplify", "ablate", "debug", "draft")
"""What is wanted in turn where tuning brings nothing, as far as there is something to work on."""
_STEPS = ("learning_rate", "lr")


def operator_for(view: View) -> Operator:
    """What sort of idea search is wanted for: tuning, and on a plateau everything else in turn."""
    return _in_turn(view, len(view.tried)) if on_plateau(view) else "tune"


def agents_operator(view: View) -> Operator:
    """What sort of idea an agent is asked for: a draft first, then tuning with the others now and then.

    A crash of its own is mended before anything else. On a plateau tuning stops, and the others take turns.
    """
    asked = len(view.asks)
    if not asked:
        return "draft"
    if view.tried and view.tried[-1].proposal.proposer == "agent" and _crash_of(view, view.tried[-1]) in to_mend(view):
        return "debug"
    return _in_turn(view, asked) if on_plateau(view) or asked % EVERY == 0 else "tune"


def on_plateau(view: View) -> bool:
    """Whether the last measured ideas all brought nothing."""
    judged = [one for one in view.tried if one.outcome not in ("pending", "refused")]
    return len(judged) >= PLATEAU and not any(one.outcome in ("kept", "certified") for one in judged[-PLATEAU:])


def to_mend(view: View) -> set[str]:
    """Ideas that crashed and may still be mended: no fix of them held, and fewer than three were tried."""
    fixes: dict[str, list[Tried]] = {one.candidate: [] for one in view.tried if _is_first_crash(one)}
    for one in view.tried:
        if one.proposal.operator == "debug" and (crash := _crash_of(view, one)) in fixes:
            fixes[crash].append(one)
    return {
        crash
        for crash, found in fixes.items()
        if len(found) < MOST_FIXES and all(one.outcome in ("crashed", "refused") for one in found)
    }


def _is_first_crash(one: Tried) -> bool:
    return one.outcome == "crashed" and one.proposal.operator != "debug"


def _crash_of(view: View, one: Tried) -> str:
    """The idea whose crash a fix is about: what its parents lead to, or else the newest crash before it."""
    if one.proposal.operator != "debug":
        return one.candidate
    before = view.tried[: view.tried.index(one)]
    for parent in reversed(before):
        if parent.candidate in one.proposal.parents and parent.outcome == "crashed":
            return _crash_of(view, parent)
    return next((other.candidate for other in reversed(before) if _is_first_crash(other)), "")


def _in_turn(view: View, turn: int) -> Operator:
    """The next operator that has something to work on; a draft always has."""
    kept = [one for one in view.tried if one.outcome in ("kept", "certified")]
    there = {
        "combine": sum(one.outcome in ("inconclusive", "rejected") and _is_near(one) for one in view.tried) > 1,
        "simplify": bool(kept),
        "ablate": any(one.proposal.bundle for one in kept),
        "debug": bool(to_mend(view)),
        "draft": True,
    }
    able = [operator for operator in CYCLE if there[operator]]
    return able[turn % len(able)]


def operated(view: View) -> Proposal | None:
    """An idea by the wanted operator on plain parameters; None where it has nothing to work on."""
    if view.space is None or not view.params or view.operator not in _IDEAS:
        return None
    known = {fingerprint(one.params, view.space) for one in view.tried if one.params and one.outcome != "refused"}
    known.add(fingerprint(view.params, view.space))
    known.add(fingerprint({**view.params, **_defaults(view)}, view.space))
    for idea in _IDEAS[view.operator](view):
        whole = {**view.params, **idea.params}
        allowed = all(map(view.opens, idea.params))
        if allowed and idea.params and fingerprint(whole, view.space) not in known:
            return idea
    return None


def _simplified(view: View) -> Iterator[Proposal]:
    """One parameter of the tip back to its default, the latest change first."""
    for key, value in _defaults(view).items():
        if view.params.get(key) != value:
            says = f"{key} back to its default of {_told(value)} should cost nothing, and is one thing less."
            yield _proposal(view, "simplify", {key: value}, says, _carriers(view, (key,)))


def _ablated(view: View) -> Iterator[Proposal]:
    """One part of a kept bundle back to what it was."""
    for one in reversed(view.tried):
        if one.outcome in ("kept", "certified") and len(one.proposal.params) > 1:
            before = _before(view, one)
            for key, value in one.proposal.params.items():
                if key in before and view.params.get(key) == value:
                    says = f"Without {key} {_told(value)}, {one.candidate} shows what that part was worth."
                    yield _proposal(view, "ablate", {key: before[key]}, says, (one.candidate,))


def _combined(view: View) -> Iterator[Proposal]:
    """The changes of two near misses together: not kept, not worse, and about different parameters."""
    near = [one for one in view.tried if one.outcome in ("inconclusive", "rejected") and _is_near(one)]
    near = [one for one in near if one.proposal.params]
    near.sort(key=lambda one: -(one.gain or 0.0))
    for place, one in enumerate(near[:8]):
        for other in near[place + 1 : 8]:
            if not one.proposal.params.keys() & other.proposal.params.keys():
                both = {**other.proposal.params, **one.proposal.params}
                says = f"{one.candidate} and {other.candidate} nearly helped, and should help together."
                yield _proposal(view, "combine", both, says, (one.candidate, other.candidate))


def _debugged(view: View) -> Iterator[Proposal]:
    """An idea that crashed, with a learning rate of a third."""
    open_crashes = to_mend(view)
    for one in reversed(view.tried):
        key = next((name for name in _STEPS if name in view.params), None)
        rate = one.proposal.params.get(key, view.params.get(key)) if key is not None else None
        known = one.outcome == "crashed" and _crash_of(view, one) in open_crashes
        if known and one.proposal.params and key is not None and isinstance(rate, float):
            parameter = view.space.find(key) if view.space is not None else None
            changed = {**one.proposal.params, key: rounded(rate / 3, parameter)}
            says = f"{one.candidate} crashed; with a {key} of {_told(changed[key])} it should hold."
            yield _proposal(view, "debug", changed, says, (one.candidate,))


_IDEAS: dict[Operator, Callable[[View], Iterator[Proposal]]] = {
    "simplify": _simplified,
    "ablate": _ablated,
    "combine": _combined,
    "debug": _debugged,
}


def _is_near(one: Tried) -> bool:
    return one.gain is not None and one.gain >= 0


def _defaults(view: View) -> Mapping[str, Scalar]:
    return view.space.defaults() if view.space is not None else {}


def _before(view: View, one: Tried) -> Mapping[str, Scalar]:
    """The parameters that an idea was built on."""
    base = next((other for other in view.tried if other.candidate == one.base), None)
    return base.params if base is not None else _defaults(view)


def _carriers(view: View, keys: tuple[str, ...]) -> tuple[str, ...]:
    """The kept candidates that brought these parameters."""
    kept = (one for one in view.tried if one.outcome in ("kept", "certified"))
    return tuple(one.candidate for one in kept if set(keys) & one.proposal.params.keys())


def _proposal(
    view: View, operator: Operator, params: Mapping[str, Scalar], says: str, parents: tuple[str, ...]
) -> Proposal:
    changed = {key: value for key, value in params.items() if view.params.get(key) != value}
    parts = tuple(f"{key} {_told(view.params.get(key))} to {_told(value)}." for key, value in changed.items())
    return Proposal(
        proposer="search",
        kind="hyperparameter",
        hypothesis=says,
        predicted_effect="The mean score over the screening seeds is at least the tip's.",
        params=changed,
        bundle=parts if len(parts) > 1 else (),
        parents=parents,
        operator=operator,
    )


def _told(value: Scalar) -> str:
    return strict_json.canonical(value).decode() if isinstance(value, bool) or value is None else str(value)
