"""Numeric search: known settings first, then Optuna's TPE over the trainer's declared space.

The Optuna study lives for one question and is rebuilt from the view each time. There is no second store, so
a resumed night goes on exactly where it stopped, and two processes with the same view propose the same thing.
"""

import warnings
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, replace
from hashlib import sha256
from math import isfinite, log
from typing import TYPE_CHECKING, Any, NamedTuple

from overnight.adapters.proposers.diagnosis import Finding, findings, shortened
from overnight.records import strict_json
from overnight.records.alike import fingerprint, rounded
from overnight.records.limits import Scalar
from overnight.records.proposal import Exhausted, Proposal, Tried, View, Wait
from overnight.records.space import Parameter, Space, StartingPoint

if TYPE_CHECKING:
    import optuna

ATTEMPTS = 20
"""How often an idea that was had before is drawn anew."""
MOST_CHANGES = 8
"""How many parameters one drawn idea changes at most. Simulated: a draw of all of them hardly ever beats a good tip."""
LEAST_STEP = 0.02
"""How far of its range a draw must move a number: less costs as many runs as any idea, and none of them can tell."""
STARTUP = 8
"""How many measured ideas TPE wants before it draws by them and not at random."""
_LONGEST_BUNDLE = 20


@dataclass(frozen=True, slots=True)
class SearchProposer:
    """Proposes parameter changes by search. It needs no account, no network and no language model."""

    diagnoses: bool = True
    """Whether it reads what the tip's trainings report about themselves."""

    def ask(self, view: View) -> Proposal | Wait | Exhausted:
        """Propose the next parameter set, as a change to the tip.

        Settings that are known for this very environment come first, then what the tip's own diagnostics say is
        wrong with it, then what is known of others. Then TPE
        draws: it knows every measured idea by its gain over the baseline, added up along the candidates it
        was built on; a crash has no number and ranks below every gain; a pending idea is told as running, so
        that the next one keeps away from it. Of each draw one to eight parameters are taken, and the rest
        of the tip is left alone. An idea that was had before is drawn anew, twenty times at most.
        """
        if view.space is None:
            return Exhausted(because="The trainer declares no parameters, so search has nothing to change.")
        if view.candidates_left < 1 or view.runs_left < 1:
            return Exhausted(because="The budget holds no further candidate or no further training run.")
        searched = dimensions(view.space, view.params, view.keys)
        if not searched:
            return Exhausted(because="The contract opens no parameter whose range is declared.")
        known = {fingerprint(one.params, view.space) for one in view.tried if one.proposal.params}
        known.add(fingerprint(view.params, view.space))
        seen = view if self.diagnoses else replace(view, diagnostics={})
        for origin, whole in _ideas(seen, view.space, searched):
            if fingerprint(whole, view.space) not in known:
                return _proposal(view, whole, origin)
        return Exhausted(because=f"{ATTEMPTS} draws in a row brought only parameters that were tried before.")


@dataclass(frozen=True, slots=True)
class Dimension:
    """One searched parameter.

    Whole numbers on a logarithmic scale between two powers of two are searched in powers of two, so that
    rollouts divide into minibatches and few programs need compiling.
    """

    parameter: Parameter
    low: float
    high: float
    doubling: bool

    def distribution(self) -> "optuna.distributions.BaseDistribution":
        """The dimension as Optuna sees it."""
        from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

        match self.parameter.type:
            case "choice":
                return CategoricalDistribution(list(self.parameter.choices))
            case "bool":
                return CategoricalDistribution([False, True])
            case "int" if self.doubling:
                return IntDistribution(_exponent(self.low), _exponent(self.high))
            case "int":
                return IntDistribution(int(self.low), int(self.high), log=self.parameter.log and self.low >= 1)
        return FloatDistribution(self.low, self.high, log=self.parameter.log and self.low > 0)

    def from_optuna(self, value: Any) -> Scalar:  # noqa: ANN401 - Optuna gives back what the distribution holds
        """A drawn value as the trainer takes it, with three digits; a power of two stays one."""
        return int(2**value) if self.doubling else rounded(value, self.parameter)

    def to_optuna(self, value: Scalar) -> Any:  # noqa: ANN401 - whatever the distribution holds
        """A tried value as Optuna takes it, moved into the range where it lies outside."""
        if isinstance(value, (str, bool)) or value is None or self.parameter.type == "choice":
            return value
        inside = min(max(value, self.low), self.high)
        if self.doubling:
            return _exponent(inside)
        return round(inside) if self.parameter.type == "int" else float(inside)

    def moves(self, old: Scalar, new: Scalar) -> bool:
        """Whether one value is so far from another that runs could tell them apart."""
        if self.doubling or not self.low < self.high or isinstance(old, (str, bool)) or old is None:
            return old != new
        on_scale = log if self.parameter.log and self.low > 0 else float
        low, high, here, there = map(on_scale, (self.low, self.high, self.to_optuna(old), self.to_optuna(new)))
        return abs(there - here) >= LEAST_STEP * (high - low)


def dimensions(space: Space, params: Mapping[str, Scalar], keys: tuple[str, ...] = ()) -> dict[str, Dimension]:
    """The parameters that are open, present and bounded, by name; no keys open all of them."""
    found = {}
    for one in space.parameters:
        if one.name not in params or (keys and one.name not in keys) or not space.is_read(one.name, params):
            continue
        if one.type in ("bool", "choice"):
            found[one.name] = Dimension(one, 0.0, 0.0, doubling=False)
        elif one.low is not None and one.high is not None and one.low < one.high:
            doubling = one.type == "int" and one.log and all(_is_power_of_two(end) for end in (one.low, one.high))
            found[one.name] = Dimension(one, one.low, one.high, doubling)
    return found


def _is_power_of_two(end: float) -> bool:
    return end >= 1 and end == int(end) and int(end).bit_count() == 1


def _exponent(value: float) -> int:
    """The power of two that is nearest on a logarithmic scale."""
    below = int(value).bit_length() - 1
    return below if value**2 < 2 * 4**below else below + 1


class _Origin(NamedTuple):
    """Where a parameter set comes from."""

    says: str
    """In a few words."""
    source: str = ""
    """Where exactly it was published, as a sentence."""


def _ideas(view: View, space: Space, searched: dict[str, Dimension]) -> Iterator[tuple[_Origin, dict[str, Scalar]]]:
    """Whole parameter sets in the order in which they are to be tried, each with where it comes from."""
    near, others = ([point for point in _points_for(view, space) if point.near is one] for one in (True, False))
    yield from _known(view, space, near)
    yield from _mended(view, searched)
    yield from _known(view, space, others)
    measured = sum(one.outcome not in ("pending", "refused") for one in view.tried)
    origin = f"drawn near the better of {measured} measured ideas" if measured >= STARTUP else "drawn at random"
    for drawn in _draws(view, searched):
        yield _Origin(origin), {**view.params, **drawn}


def _known(view: View, space: Space, points: list[StartingPoint]) -> Iterator[tuple[_Origin, dict[str, Scalar]]]:
    """Known settings that no idea has carried yet; each is whole, with what search would not draw."""
    for point in points:
        opened = shortened(view, {key: value for key, value in point.params.items() if view.opens(key)})
        carried = any(_carries(one.params, opened, space) for one in view.tried)
        if not carried and len(_changed(view, opened)) <= _LONGEST_BUNDLE:
            yield _Origin(f"from a known setting for {point.called}", point.source), {**view.params, **opened}


def _mended(view: View, searched: dict[str, Dimension]) -> Iterator[tuple[_Origin, dict[str, Scalar]]]:
    """Everything that the tip's diagnostics call for at once, and then each thing alone; nothing that was refuted."""
    found = [one for one in findings(view) if not _is_refuted(view, one, searched)]
    for some in (found, *([one] for one in found)):
        changes = {one.key: one.value for one in some}
        if changes and not any(_was_about(one, view, changes.keys()) for one in view.tried):
            yield _Origin(f"because {', '.join(one.says for one in some)}"[:900]), {**view.params, **changes}


def _is_refuted(view: View, finding: Finding, searched: dict[str, Dimension]) -> bool:
    """Whether this change, as far as runs could tell, and nothing beside it, was tried on some tip and did worse."""
    key, dimension = finding.key, searched.get(finding.key)
    worse = [one.proposal.params for one in view.tried if one.outcome in ("rejected", "reverted")]
    alone = [params[key] for params in worse if params.keys() == {key}]
    return any(not dimension.moves(old, finding.value) if dimension else old == finding.value for old in alone)


def _was_about(one: Tried, view: View, keys: Set[str]) -> bool:
    """Whether an idea changed these parameters of this tip, to whatever values."""
    rest = (key for key in view.params if key not in keys)
    return one.proposal.params.keys() == keys and all(one.params.get(key) == view.params[key] for key in rest)


def _points_for(view: View, space: Space) -> list[StartingPoint]:
    """The known settings that fit the space."""
    return [
        point
        for point in view.starting
        if all((one := space.find(key)) is None or one.why_not(value) is None for key, value in point.params.items())
    ]


def _carries(params: Mapping[str, Scalar], setting: Mapping[str, Scalar], space: Space) -> bool:
    """Whether a parameter set holds a whole setting, whatever it does beyond it."""
    common = {key: params[key] for key in setting if key in params}
    return fingerprint(common, space) == fingerprint(setting, space)


def _draws(view: View, searched: dict[str, Dimension]) -> Iterator[dict[str, Scalar]]:
    """What TPE would change in the tip; the same draws for the same view."""
    distributions = {name: one.distribution() for name, one in searched.items()}
    study = _study(view, searched, distributions)
    for attempt in range(ATTEMPTS):
        drawn = {name: searched[name].from_optuna(value) for name, value in study.ask(distributions).params.items()}
        moved = [name for name in drawn if searched[name].moves(view.params[name], drawn[name])]
        changed = sorted(moved, key=lambda name: _number(view, f"{attempt} {name}"))
        taken = changed[: 1 + _number(view, f"{attempt} changes") % MOST_CHANGES]
        yield shortened(view, {name: drawn[name] for name in taken})


def _study(
    view: View, searched: Mapping[str, Dimension], distributions: "dict[str, optuna.distributions.BaseDistribution]"
) -> "optuna.Study":
    """An Optuna study, in memory, that knows every idea of the view."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    with warnings.catch_warnings(action="ignore", category=optuna.exceptions.ExperimentalWarning):
        sampler = optuna.samplers.TPESampler(  # both flags are experimental before Optuna 5, and meant
            seed=_number(view, "sampler"), multivariate=True, constant_liar=True, n_startup_trials=STARTUP
        )
    study = optuna.create_study(direction="maximize", sampler=sampler)
    gains = _gains_over_baseline(view.tried)
    for one in view.tried:
        if one.outcome == "refused" or not one.proposal.params or not searched.keys() <= one.params.keys():
            continue  # nothing was trained, or the parameters do not say what was
        params = {name: dimension.to_optuna(one.params[name]) for name, dimension in searched.items()}
        study.add_trial(_trial(one, gains.get(one.candidate), params, distributions))
    return study


def _trial(
    one: Tried,
    gain: float | None,
    params: dict[str, Any],
    distributions: "dict[str, optuna.distributions.BaseDistribution]",
) -> "optuna.trial.FrozenTrial":
    from optuna.trial import TrialState, create_trial

    if one.outcome == "pending":
        return create_trial(state=TrialState.RUNNING, params=params, distributions=distributions)
    if gain is None or one.outcome == "crashed":
        # What was pruned without a number ranks below every number in TPE, while it learns nothing from a failed trial.
        return create_trial(state=TrialState.PRUNED, params=params, distributions=distributions)
    return create_trial(value=gain, params=params, distributions=distributions)


def _gains_over_baseline(tried: tuple[Tried, ...]) -> dict[str, float]:
    """Each measured idea's gain over the baseline: its own and those of the candidates it was built on.

    What was undone did not hold its gain on fresh seeds, so it counts as none.
    """
    found: dict[str, float] = {}
    for one in tried:
        if one.gain is not None and isfinite(one.gain):
            own = min(one.gain, 0.0) if one.outcome == "reverted" else one.gain
            found[one.candidate] = found.get(one.base or "", 0.0) + own
    return found


def _changed(view: View, params: Mapping[str, Scalar]) -> list[str]:
    return [key for key, value in params.items() if value != view.params[key]]


def _number(view: View, what: str) -> int:
    """A number that depends on the view's seed, the number of ideas and what it is for, and on nothing else."""
    return int.from_bytes(sha256(f"{view.seed} {len(view.tried)} {what}".encode()).digest()[:4])


def _proposal(view: View, whole: Mapping[str, Scalar], origin: _Origin) -> Proposal:
    changed = _changed(view, whole)
    first, more = changed[0], len(changed) - 1
    others = f" and {more} more parameter{'s' if more > 1 else ''}" if more else ""
    published = f"Its source: {origin.source}" if origin.source else ""
    step = {key: f"{key} {_told(view.params[key])} to {_told(whole[key])}" for key in changed}
    return Proposal(
        proposer="search",
        kind="hyperparameter",
        hypothesis=f"{step[first]}{others} {origin.says} should score higher than the tip.",
        predicted_effect=f"The mean score over the screening seeds rises above the tip's. {published}".rstrip(),
        params={key: whole[key] for key in changed},
        bundle=tuple(f"{step[key]}." for key in changed) if more else (),
    )


def _told(value: Scalar) -> str:
    return strict_json.canonical(value).decode() if isinstance(value, bool) or value is None else str(value)
