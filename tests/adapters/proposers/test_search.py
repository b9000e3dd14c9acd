"""Search proposes the same thing for the same view, learns from the ledger alone, and never repeats itself."""

import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib.resources import files
from math import log
from statistics import fmean

import numpy as np
import pytest

from overnight.adapters.proposers import search
from overnight.adapters.proposers.search import SearchProposer
from overnight.ports import Proposer
from overnight.records.alike import fingerprint
from overnight.records.codec import dumps, loads
from overnight.records.limits import Scalar
from overnight.records.proposal import Ending, Exhausted, Proposal, Tried, View
from overnight.records.space import Parameter, Space, StartingPoint

Params = dict[str, Scalar]
PPO = loads(Space, files("overnight.rl.trainers").joinpath("ppo.space.json").read_bytes(), where="ppo.space.json")
TOY = Space(
    trainer="toy",
    source="Made up for this test.",
    parameters=(
        Parameter(name="rate", type="float", default=0.001, says="A rate.", low=1e-5, high=0.1, log=True),
        Parameter(name="discount", type="float", default=0.95, says="A discount.", low=0.8, high=0.9999),
        Parameter(name="envs", type="int", default=8, says="A count.", low=1, high=256, log=True),
        Parameter(name="epochs", type="int", default=4, says="A count.", low=1, high=30),
        Parameter(name="weight", type="float", default=0.01, says="A weight.", low=0.0, high=0.1),
        Parameter(name="anneal", type="bool", default=True, says="A switch."),
        Parameter(name="shape", type="choice", default="tanh", says="A shape.", choices=("tanh", "relu")),
    ),
)


def view(space: Space = TOY, *, tried: tuple[Tried, ...] = (), **what: object) -> View:
    start = View(
        task="lander",
        study="first",
        program="",
        surface=("params.json",),
        keys=(),
        space=space,
        params=space.defaults(),
        tried=tried,
        runs_left=100,
        candidates_left=100,
        seed=7,
    )
    return replace(start, **what)  # type: ignore[arg-type]


def ask(seen: View) -> Proposal:
    found = SearchProposer().ask(seen)
    assert isinstance(found, Proposal), found
    return found


def tell(seen: View, proposal: Proposal, outcome: Ending = "rejected", gain: float | None = None) -> View:
    """The view after one more idea; a kept one becomes the tip."""
    whole = {**seen.params, **proposal.params}
    kept = [one for one in seen.tried if one.outcome == "kept"]
    done = Tried(
        candidate=f"c-{len(seen.tried) + 1:04d}",
        proposal=proposal,
        params=whole,
        outcome=outcome,
        gain=gain,
        base=kept[-1].candidate if kept else None,
    )
    return replace(seen, tried=(*seen.tried, done), params=whole if outcome == "kept" else seen.params)


def unit(one: Parameter, value: Scalar) -> float:
    """Where a value lies in its range, from 0 to 1."""
    if not isinstance(value, (int, float)):
        return float(one.choices.index(value))
    if isinstance(value, bool) or one.low is None or one.high is None:
        return float(value)
    return log(value / one.low) / log(one.high / one.low) if one.log else (value - one.low) / (one.high - one.low)


def searched_in(space: Space) -> list[Parameter]:
    """The parameters that search may change."""
    return [one for one in space.parameters if one.name in search.dimensions(space, space.defaults())]


def objective(seed: int, space: Space = PPO) -> Callable[[Mapping[str, Scalar]], float]:
    """A smooth hill in as many dimensions as search has, whose top lies not far from the defaults."""
    rng, dims = np.random.default_rng(seed), searched_in(space)
    shifts, weights = rng.normal(0, 0.2, len(dims)), rng.exponential(1, len(dims))
    top = [unit(one, one.default) + shift for one, shift in zip(dims, shifts, strict=True)]

    def score(params: Mapping[str, Scalar]) -> float:
        far = [(unit(one, params[one.name]) - best) ** 2 for one, best in zip(dims, top, strict=True)]
        return float(-100 * np.mean(weights * far))

    return score


def test_search_is_a_proposer() -> None:
    proposer: Proposer = SearchProposer()
    assert proposer.ask(replace(view(), space=None)) == Exhausted(
        because="The trainer declares no parameters, so search has nothing to change."
    )


def test_importing_search_does_not_import_optuna() -> None:
    code = "import json, sys, overnight.adapters.proposers.search; print(json.dumps('optuna' in sys.modules))"
    assert json.loads(subprocess.check_output([sys.executable, "-c", code])) is False


POINTS = tuple(
    StartingPoint(called=name, family="made up", source=f"Made up for {name}.", params=params)
    for name, params in (
        ("One", {"rate": 0.01, "envs": 16, "anneal": False}),
        ("Two", {"rate": 0.02, "discount": 0.9}),
        ("Three", {"rate": 7.0}),
    )
)


def test_starting_points_come_first_in_the_order_of_the_view_and_those_outside_the_space_never() -> None:
    seen, first = view(starting=POINTS), []
    for _ in range(2):
        proposal = ask(seen)
        first.append(proposal.hypothesis.split("known setting for ")[1].split(" ")[0])
        assert "Its source: Made up for" in proposal.predicted_effect
        seen = tell(seen, proposal, gain=-1.0)
    assert first == ["One", "Two"]
    assert "drawn" in ask(seen).hypothesis


def test_a_starting_point_is_proposed_whole() -> None:
    proposal = ask(view(starting=POINTS))
    assert proposal.hypothesis.startswith("rate 0.001 to 0.01 and 2 more parameters from a known setting for One")
    assert dict(proposal.params) == POINTS[0].params
    assert len(proposal.bundle) == len(proposal.params)


def test_a_starting_point_keeps_what_search_itself_would_not_draw() -> None:
    silent = Parameter(name="tries", type="int", default=0, says="A count that has no range.")
    of_two = Parameter(name="only", type="float", default=0.1, says="A rate.", low=0.0, high=1.0, algorithms=("two",))
    kind = Parameter(name="algorithm", type="choice", default="one", says="Which.", choices=("one", "two"))
    space = replace(TOY, parameters=(*TOY.parameters, silent, of_two, kind))
    whole: Params = {"algorithm": "two", "only": 0.5, "tries": 3}
    seen = view(space, starting=(replace(POINTS[0], params=whole),))
    assert not {"only", "tries"} & search.dimensions(space, space.defaults()).keys()
    assert dict(ask(seen).params) == whole


def test_a_starting_point_touches_only_open_keys() -> None:
    proposal = ask(view(starting=POINTS, keys=("rate",)))
    assert dict(proposal.params) == {"rate": 0.01}
    assert proposal.bundle == ()


def test_a_starting_point_is_not_tried_again_on_another_tip() -> None:
    seen = view(starting=POINTS[:1], keys=("rate", "discount"))
    seen = tell(seen, ask(seen), gain=-1.0)
    moved = replace(seen, params={**seen.params, "epochs": 8})
    assert "One" not in ask(moved).hypothesis


def test_a_proposal_holds_only_what_differs_from_the_tip() -> None:
    seen = view()
    for _ in range(12):
        proposal = ask(seen)
        assert proposal.params
        assert all(seen.params[key] != value for key, value in proposal.params.items())
        assert len(proposal.bundle) in ((0,) if len(proposal.params) == 1 else (len(proposal.params),))
        assert all(TOY.find(key).why_not(value) is None for key, value in proposal.params.items())  # type: ignore[union-attr]
        seen = tell(seen, proposal, gain=-1.0)


def test_the_same_view_brings_the_same_proposal_in_another_process() -> None:
    seen = view()
    for number in range(12):
        seen = tell(seen, ask(seen), "kept" if number % 5 == 0 else "rejected", float(number % 5 == 0) - 0.5)
    lines = (
        "import sys",
        "from overnight.adapters.proposers.search import SearchProposer",
        "from overnight.records.codec import dumps, loads",
        "from overnight.records.proposal import View",
        "sys.stdout.buffer.write(dumps(SearchProposer().ask(loads(View, sys.stdin.buffer.read(), where='view'))))",
    )
    again = subprocess.run([sys.executable, "-c", "\n".join(lines)], input=dumps(seen), capture_output=True, check=True)
    assert loads(Proposal, again.stdout, where="stdout") == ask(seen)


def test_a_proposer_that_was_asked_before_answers_like_a_fresh_one() -> None:
    old, seen = SearchProposer(), view()
    for _ in range(10):
        proposal = old.ask(seen)
        assert proposal == SearchProposer().ask(seen)
        assert isinstance(proposal, Proposal)
        seen = tell(seen, proposal, gain=-1.0)


def test_another_seed_brings_other_ideas() -> None:
    assert ask(view(seed=1)) != ask(view(seed=2))


def test_what_is_searched_in_powers_of_two_stays_one_above_a_thousand() -> None:
    steps = Parameter(name="rollout_steps", type="int", default=128, low=8, high=4096, log=True, says="Steps.")
    one = search.Dimension(steps, 8, 4096, doubling=True)
    assert [one.from_optuna(power) for power in (3, 10, 11, 12)] == [8, 1024, 2048, 4096]


def test_forty_ideas_are_forty_different_ones() -> None:
    seen, met = view(), {fingerprint(view().params, TOY)}
    for number in range(40):
        proposal = ask(seen)
        mark = fingerprint({**seen.params, **proposal.params}, TOY)
        assert mark not in met
        met.add(mark)
        seen = tell(seen, proposal, "kept" if number % 7 == 6 else "rejected", 1.0 if number % 7 == 6 else -1.0)


def test_a_draw_moves_every_number_far_enough_for_runs_to_tell() -> None:
    seen = view(PPO)
    for _ in range(40):
        proposal = ask(seen)
        for name, value in proposal.params.items():
            one, before = PPO.find(name), seen.params[name]
            assert one is not None
            if one.type in ("int", "float"):
                assert abs(unit(one, value) - unit(one, before)) > 0.018, f"{name} {before} to {value}"
        seen = tell(seen, proposal, "kept", 1.0)


def test_pending_ideas_are_not_proposed_twice() -> None:
    seen = view()
    for _ in range(6):
        seen = tell(seen, ask(seen), gain=-1.0)
    for _ in range(6):
        seen = tell(seen, ask(seen), "pending")
    assert len({fingerprint(one.params, TOY) for one in seen.tried}) == 12


def test_a_space_that_is_used_up_is_exhausted() -> None:
    seen = view(keys=("anneal",))
    seen = tell(seen, ask(seen), gain=-1.0)
    found = SearchProposer().ask(seen)
    assert found == Exhausted(because="20 draws in a row brought only parameters that were tried before.")


@pytest.mark.parametrize("left", [{"candidates_left": 0}, {"runs_left": 0}, {"keys": ("unknown",)}])
def test_without_budget_or_open_keys_there_is_nothing_to_propose(left: dict[str, object]) -> None:
    assert isinstance(SearchProposer().ask(view(**left)), Exhausted)  # type: ignore[arg-type]


def test_optuna_is_told_a_crash_without_a_number_and_a_pending_idea_as_running() -> None:
    seen = view()
    told: tuple[tuple[Ending, float | None], ...] = (
        ("rejected", -1.5),
        ("crashed", None),
        ("rejected", None),
        ("pending", None),
        ("refused", None),
    )
    for outcome, gain in told:
        seen = tell(seen, ask(seen), outcome, gain)
    searched = search.dimensions(TOY, seen.params)
    study = search._study(seen, searched, {name: one.distribution() for name, one in searched.items()})
    found = [(trial.state.name, trial.values) for trial in study.get_trials()]
    assert found == [("COMPLETE", [-1.5]), ("PRUNED", None), ("PRUNED", None), ("RUNNING", None)]


def crash_rate(seed: int, ideas: int = 40) -> float:
    """How many of the last twenty ideas crash where a rate in the upper half of its range always does."""
    seen, crashed = view(keys=("rate", "discount"), seed=seed), []
    rate = TOY.parameters[0]
    for _ in range(ideas):
        proposal = ask(seen)
        at = unit(rate, {**seen.params, **proposal.params}["rate"])
        crashed.append(at > 0.5)
        gain = None if at > 0.5 else -abs(at - 0.2)
        seen = tell(seen, proposal, "crashed" if at > 0.5 else "rejected", gain)
    return fmean(crashed[-20:])


def test_search_keeps_away_from_what_crashed() -> None:
    assert fmean(crash_rate(seed) for seed in range(3)) < 0.25


def test_crashes_refusals_and_ideas_in_code_are_all_digested() -> None:
    seen = view()
    endings: tuple[Ending, ...] = ("crashed", "refused", "pending", "inconclusive", "reverted", "certified", "kept")
    for outcome in endings * 2:
        seen = tell(seen, ask(seen), outcome, 0.5 if outcome in ("kept", "certified", "reverted") else None)
    code = Proposal(proposer="agent", kind="code", hypothesis="A loop.", predicted_effect="Faster.")
    odd = Tried(candidate="c-0099", proposal=code, params={}, outcome="kept", gain=3.0)
    assert isinstance(SearchProposer().ask(replace(seen, tried=(*seen.tried, odd))), Proposal)


def test_gains_over_different_tips_are_added_up_and_undone_ones_are_not() -> None:
    proposal = ask(view())

    def one(number: int, outcome: Ending, gain: float | None, base: int | None) -> Tried:
        name = None if base is None else f"c-{base:04d}"
        return Tried(candidate=f"c-{number:04d}", proposal=proposal, params={}, outcome=outcome, gain=gain, base=name)

    tried = (
        one(1, "kept", 10.0, None),
        one(2, "rejected", -2.0, 1),
        one(3, "reverted", 5.0, 1),
        one(4, "rejected", 1.0, 3),
        one(5, "crashed", None, 1),
    )
    assert search._gains_over_baseline(tried) == {"c-0001": 10.0, "c-0002": 8.0, "c-0003": 10.0, "c-0004": 11.0}


def drawn_at_random(rng: np.random.Generator, space: Space) -> Params:
    found: Params = {}
    for one in searched_in(space):
        if one.low is None or one.high is None:
            choices = one.choices or (False, True)
            found[one.name] = choices[rng.integers(len(choices))]
            continue
        at = rng.random()
        value = one.low * (one.high / one.low) ** at if one.log else one.low + at * (one.high - one.low)
        found[one.name] = round(value) if one.type == "int" else value
    return found


def night(seed: int, propose: Callable[[View], Mapping[str, Scalar]], ideas: int = 40) -> float:
    """The true gain of the tip after a night of noisy screening."""
    score, rng = objective(seed), np.random.default_rng([seed, 1])
    seen = view(replace(PPO, trainer="without-points"), seed=seed)
    begun = score(seen.params)
    for _ in range(ideas):
        params = propose(seen)
        gain = score({**seen.params, **params}) - score(seen.params) + rng.normal(0, 0.2)
        bundle = tuple(f"{key}." for key in params) if len(params) > 1 else ()
        proposal = Proposal(
            proposer="search", kind="hyperparameter", hypothesis="x", predicted_effect="y", params=params, bundle=bundle
        )
        seen = tell(seen, proposal, "kept" if gain > 0.2 else "rejected", round(gain, 2))
    return score(seen.params) - begun


def test_search_is_better_than_drawing_at_random() -> None:
    searched = [night(seed, lambda seen: ask(seen).params) for seed in range(16)]
    drawn = []
    for seed in range(16):
        rng = np.random.default_rng([seed, 2])
        drawn.append(night(seed, lambda seen, rng=rng: drawn_at_random(rng, PPO)))  # type: ignore[misc]
    assert fmean(searched) > fmean(drawn) + 0.5


def test_what_the_chosen_algorithm_does_not_read_is_neither_searched_nor_a_new_idea() -> None:
    space = Space(
        trainer="toy",
        source="Made up for this test.",
        parameters=(
            Parameter(name="algorithm", type="choice", default="one", says="Which.", choices=("one", "two")),
            Parameter(name="rate", type="float", default=0.1, says="A rate.", low=0.0, high=1.0),
            Parameter(name="only", type="float", default=0.1, says="A rate.", low=0.0, high=1.0, algorithms=("two",)),
        ),
    )
    params = space.defaults()
    two = {**params, "algorithm": "two"}
    assert search.dimensions(space, params).keys() == {"algorithm", "rate"}
    assert search.dimensions(space, two).keys() == {"algorithm", "rate", "only"}
    assert fingerprint(params, space) == fingerprint({**params, "only": 0.9}, space)
    assert fingerprint(two, space) != fingerprint({**two, "only": 0.9}, space)
