"""What the tip's own training says is wrong with it, and the change of parameters that would mend it.

Each rule reads numbers that the built-in trainers report and names one parameter. They are rules of thumb about policy
gradients and not about any environment, so a cold night may use them.

    few updates      fewer than 24 rollouts fit into the budget         shorter rollouts
    slow             an update hardly moves the policy                  a larger step size
    wild             an update moves the policy too far                 a smaller step size
    short sight      the discount ends long before an episode does      a later horizon
    blind critic     the value explains little of the return            normalised rewards
    raw input        observations go into the network as they are       normalised observations
    forgetful        much of the best return is lost again at the end   rehearsals, which keep the best policy
"""

from collections.abc import Iterator, Mapping
from math import sqrt
from typing import NamedTuple

from overnight.records.alike import rounded
from overnight.records.limits import Scalar
from overnight.records.proposal import View
from overnight.records.space import Parameter, Space

LEAST_UPDATES = 24
"""Rollouts that should fit into a budget. The recipes with 8 and with 32 of them, 64 environments and 16,000 to 65,000
steps, 4 to 6 seeds: LunarLander −195 and 4, Acrobot −183 and −89, InvertedDoublePendulum 236 and 4,248, Hopper 212 and
565, Pendulum the same; CartPole 371, and 432 with 16 of them."""
_SHORTEST = 16
_ROLLOUTS = ("rollout_steps", "lap_steps")
_CALM, _WANTED, _WILD = 0.003, 0.01, 0.05
"""The divergence of one update below which a policy hardly moves, that is aimed at, and from which it moves too far."""
_SIGHT = 0.3
"""The share of an episode over which the discount should reach."""
_NEAR = 30.0
_WORTH = 1.5
"""A horizon is moved by at least this factor, or not at all."""
_FAR = 0.995
_EXPLAINED = 0.3
_LOST = 0.15
"""The share of the best gain in return that may be lost again."""
_REHEARSED = 8
_CHEAP = 0.01
"""The share of the budget that one rehearsal may take for it to be worth it."""


class Finding(NamedTuple):
    """One thing that is wrong, and the change that would mend it."""

    says: str
    key: str
    value: Scalar


def findings(view: View) -> list[Finding]:
    """Everything that the tip's diagnostics say, in the order in which it matters."""
    if view.space is None or not view.diagnostics:
        return []
    return [
        Finding(says, key, rounded(value, one))
        for rule in _RULES
        for says, key, value in rule(view.params, view.diagnostics)
        if (one := _open(view, view.space, key)) is not None and one.why_not(rounded(value, one)) is None
    ]


def _open(view: View, space: Space, key: str) -> Parameter | None:
    """The parameter, where it is there and may be changed."""
    return space.find(key) if view.opens(key) else None


def shortened(view: View, changes: Mapping[str, Scalar]) -> dict[str, Scalar]:
    """The same changes, with a rollout that is short enough for some updates to fit into the budget."""
    key, updates = _rollout_of(view.params), view.diagnostics.get("updates")
    if key is None or not updates or view.space is None or _open(view, view.space, key) is None:
        return dict(changes)
    whole = {**view.params, **changes}
    budget = updates * _number(view.params, key) * _number(view.params, "num_envs")
    steps, most = int(_number(whole, key)), budget / LEAST_UPDATES / _number(whole, "num_envs")
    while steps > _SHORTEST and steps > most:
        steps //= 2
    return {**changes, key: steps} if steps != whole[key] else dict(changes)


def _rollout_of(params: Mapping[str, Scalar]) -> str | None:
    return next((key for key in _ROLLOUTS if key in params), None)


def _number(params: Mapping[str, Scalar], key: str) -> float:
    value = params.get(key)
    return float(value) if isinstance(value, int | float) else 1.0


def _few_updates(params: Mapping[str, Scalar], told: Mapping[str, float]) -> Iterator[Finding]:
    key, updates = _rollout_of(params), told.get("updates", float(LEAST_UPDATES))
    if key is not None and updates < LEAST_UPDATES:
        steps = int(_number(params, key))
        while steps > _SHORTEST and updates < LEAST_UPDATES:
            steps, updates = steps // 2, updates * 2
        yield Finding(f"only {told['updates']:.0f} updates fit into the budget", key, steps)


def _pace(params: Mapping[str, Scalar], told: Mapping[str, float]) -> Iterator[Finding]:
    """Divergence grows with the square of the step size."""
    kl, rate = told.get("approx_kl"), params.get("learning_rate")
    steered = "target_kl" in params and _number(params, "target_kl") > 0
    if kl is None or not isinstance(rate, float) or steered:
        return
    if kl < _CALM:
        factor = min(max(sqrt(_WANTED / max(kl, 1e-9)), 2.0), 10.0)
        yield Finding(f"an update hardly moves the policy (divergence {kl:.2g})", "learning_rate", rate * factor)
    elif kl > _WILD:
        factor = max(min(sqrt(_WANTED / kl), 0.5), 0.1)
        yield Finding(f"an update moves the policy too far (divergence {kl:.2g})", "learning_rate", rate * factor)


def _sight(params: Mapping[str, Scalar], told: Mapping[str, float]) -> Iterator[Finding]:
    """A policy that knows little has short episodes, so a few dozen steps should be seen whatever they last."""
    length, gamma = told.get("episodic_length", 0.0), params.get("gamma")
    reach = max(_SIGHT * length, min(length, _NEAR))
    if isinstance(gamma, float) and gamma < 1 and 1 / (1 - gamma) < reach:
        further = max(0.99, min(1 - 1 / reach, _FAR))
        if 1 - further <= (1 - gamma) / _WORTH:
            says = f"the discount of {gamma:g} sees {1 / (1 - gamma):.0f} steps of episodes of {length:.0f}"
            yield Finding(says, "gamma", further)


def _critic(params: Mapping[str, Scalar], told: Mapping[str, float]) -> Iterator[Finding]:
    explained = told.get("explained_variance")
    if explained is not None and explained < _EXPLAINED and params.get("normalize_rewards") is False:
        yield Finding(f"the critic explains {explained:.0%} of the return", "normalize_rewards", value=True)


def _input(params: Mapping[str, Scalar], told: Mapping[str, float]) -> Iterator[Finding]:
    if told and params.get("normalize_observations") is False:
        yield Finding("observations are not normalised", "normalize_observations", value=True)


def _forgetful(params: Mapping[str, Scalar], told: Mapping[str, float]) -> Iterator[Finding]:
    """The steps told are a mean over the middle half of a run, so the whole run has twice as many."""
    lost, steps = told.get("forgotten", 0.0), 2 * told.get("env_steps", 0.0)
    cheap = _REHEARSED * told.get("episodic_length", steps) <= _CHEAP * steps
    if lost > _LOST and cheap and params.get("rehearsal_episodes") == 0:
        yield Finding(f"{lost:.0%} of the best return is lost again at the end", "rehearsal_episodes", _REHEARSED)


_RULES = (_few_updates, _pace, _sight, _critic, _input, _forgetful)
