"""Cheaters whose scores cannot be true, or cannot be had twice; and what a proposer may learn of the rest."""

import json
import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

from nights import bench_of
from overnight import judge, trials
from overnight.errors import Refused
from overnight.evaluate import referee
from overnight.evaluate.measure import measure_and_check
from overnight.evaluate.seeds import Seeds
from overnight.machine import RealMachine
from overnight.propose.view import rounded
from overnight.records.decision import Decision, LoopDecision, Verdict
from overnight.records.env import EnvSpec
from overnight.records.lifecycle import Actor
from overnight.records.run import Outcome, RunEnd
from overnight.sandbox.probe import strongest
from overnight.trials import Bench
from scenes import Scene

GOOD = "(3 * obs[:, 2] + obs[:, 3] > 0).astype(int)"
WEAK = "np.zeros(len(obs), int)"
FICKLE = f"({GOOD}) if next(STEPS) < LAST else {WEAK}"  # each process lets go at a step of its own
CARTPOLE = EnvSpec(backend="gymnasium", id="CartPole-v1")


def leave_policy(folder: Path, acts: str) -> Path:
    """What a run left behind: a policy of code that acts so."""
    policy = folder / "policy"
    policy.mkdir(parents=True)
    spec = {"schema": "overnight/policy/1", "kind": "code", "entry": "acting:load"}
    (policy / "policy.json").write_text(json.dumps(spec))
    code = (
        "import itertools, os, sys\nimport numpy as np\n"
        "STEPS, LAST = itertools.count(), 20 + int.from_bytes(os.urandom(2), 'big') % 400\n"
        f"def load(folder):\n    return lambda obs, reset: {acts}\n"
    )
    (policy / "acting.py").write_text(code)
    return folder


# The spot check


@pytest.mark.parametrize(
    ("acts", "by"), [pytest.param(GOOD, "", id="honest"), pytest.param(FICKLE, "policy", id="fickle")]
)
def test_a_policy_that_cannot_do_it_again_is_found(tmp_path: Path, acts: str, by: str) -> None:
    found = measure_and_check(RealMachine(), CARTPOLE, leave_policy(tmp_path, acts), range(40), strongest())
    assert (found.error, found.repeated, found.differs) == ("", 2, by)
    assert bool(found.different) is bool(by)


class Dice(gymnasium.Env[Any, Any]):
    """An environment that draws numbers which its seed does not fix."""

    observation_space = gymnasium.spaces.Box(-1, 1, (1,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        return np.zeros(1, np.float32), {}

    def step(self, _: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        return np.zeros(1, np.float32), random.random(), True, False, {}


def test_an_environment_that_cannot_do_it_again_is_not_held_against_the_policy() -> None:
    gymnasium.register("Dice-v0", lambda **_: Dice())
    env = {"backend": "gymnasium", "id": "Dice-v0"}
    found = referee.measure({"env": env, "reference": "no-op", "seeds": [1, 2, 3], "repeat": 1})
    assert (found["repeated"], found["different"], found["differs"]) == (1, 1, "environment")


# Quarantine, on a bench with the real referee


@contextmanager
def bench(scene: Scene, **metric: float) -> Iterator[Bench]:
    """A study with one idea, entered; its contract calls these scores possible."""
    scene.rewrite(lambda terms: terms["metric"].update(metric))
    scene.rewrite(lambda terms: terms["evaluation"].update(screen_episodes=5))
    scene.approve()
    assert scene.propose({"gamma": 0.95}) == ()
    scene.enter()
    with scene.open() as study:
        yield bench_of(scene, study, scene.contract())


def tried(one: Bench, scene: Scene, number: int, acts: str) -> dict[str, Any]:
    """Let the idea's next run end with a policy that acts so, and measure it."""
    run = scene.run_of("c-0001", number=number)
    one.study.append(Actor.RUNNER, run)
    ended = RunEnd(run=run.id, outcome=Outcome.COMPLETED, because="It ended.", wall_seconds=1.0)
    leave_policy(scene.at.runs / run.id, acts)
    one.study.append(Actor.RUNNER, ended)
    trials.settle(one)
    return scene.entries("measured")[-1]


def test_an_impossible_score_is_measured_again_and_then_not_believed(cartpole: Scene) -> None:
    with bench(cartpole, lowest=0.0, highest=100.0) as one:
        found = tried(one, cartpole, 1, GOOD)
        assert (found["score"], found["guardrails"]) == (None, {})
        assert found["error"].startswith("The score 500 is impossible by the contract, in two measurements")
        assert "its score 500 is impossible, because the contract says 0 to 100" in found["quarantined"]
        assert found["quarantined"] in [note["says"] for note in cartpole.entries("noted")]
        assert found["set_aside"] is not None


def test_an_impossible_score_of_what_others_are_compared_with_stops_the_night(cartpole: Scene) -> None:
    with bench(cartpole, lowest=0.0, highest=100.0) as one:
        one.study.state.baseline = "c-0001"
        with pytest.raises(Refused, match="Others are compared with it, so nothing can be decided") as refused:
            tried(one, cartpole, 1, GOOD)
        assert "metric.highest" in refused.value.hint
    assert cartpole.entries("measured") == []


def test_a_score_beyond_everything_so_far_counts_only_as_it_is_measured_on_fresh_episodes(cartpole: Scene) -> None:
    with bench(cartpole) as one:
        for number in (1, 2, 3):
            assert tried(one, cartpole, number, WEAK)["quarantined"] == ""
        found = tried(one, cartpole, 4, GOOD)
        assert found["score"] == 500.0
        assert "is too good to be believed at once, after" in found["quarantined"]
        first, second = (stored(cartpole, found[key]) for key in ("set_aside", "artefact"))
        assert not {seed for seed, _, _ in first} & {seed for seed, _, _ in second}
        verdict = Decision(
            candidate="c-0001",
            verdict=Verdict.KEEP,
            because="It is better.",
            loop=LoopDecision.CONTINUE,
            rule="Better is better.",
            evidence=("r-0003", "r-0004"),
        )
        said = judge._with_doubts(one, verdict).because
        assert said.startswith("It is better. r-0004 was measured twice, the second time on fresh episodes: its score")
        assert judge._with_doubts(one, replace(verdict, evidence=("r-0003",))) == replace(verdict, evidence=("r-0003",))


def stored(scene: Scene, digest: str) -> list[tuple[int, float, int]]:
    found: list[tuple[int, float, int]] = json.loads((scene.at.objects / digest).read_text())["episodes"]
    return found


def test_a_policy_that_cannot_do_it_again_has_no_score(cartpole: Scene) -> None:
    with bench(cartpole) as one:
        found = tried(one, cartpole, 1, FICKLE)
        assert found["score"] is None
        assert "does not play the same episode twice in the same way, in two measurements" in found["error"]
        assert "1 of 1 episodes came out differently" in found["quarantined"]


def test_a_contract_may_allow_policies_that_draw_numbers(cartpole: Scene) -> None:
    cartpole.rewrite(lambda terms: terms["evaluation"].update(repeatable=False))
    with bench(cartpole) as one:
        found = tried(one, cartpole, 1, FICKLE)
        assert found["score"] is not None and found["quarantined"] == ""
        assert (found["repeated"], found["different"]) == (1, 1)


# What leaks


def test_what_a_policy_prints_about_hidden_episodes_is_nowhere(cartpole: Scene) -> None:
    shout = "[print('HIDDEN', obs.tolist(), flush=True), print('HIDDEN', obs, file=sys.stderr, flush=True)] and "
    keep = "[open(p + '/HIDDEN', 'w') for p in (os.path.dirname(__file__),) if os.access(p, 2)] is None or "
    with bench(cartpole) as one:
        assert tried(one, cartpole, 1, f"({shout}{keep}{WEAK})")["score"] is not None
    kept = [path for path in cartpole.project.rglob("*") if path.is_file() and "acting" not in path.name]
    assert not [path for path in kept if b"HIDDEN" in path.read_bytes() or path.name == "HIDDEN"]


@pytest.mark.parametrize(
    ("gain", "precision", "seen"),
    [(123.456, 0.01, 123.0), (12.3456, 0.01, 12.3), (0.123456, 0.01, 0.12), (-4.449, 0.1, -4.4), (7.0, 10.0, 10.0)],
)
def test_a_proposer_sees_gains_to_the_contracts_step_and_three_digits_at_most(
    gain: float, precision: float, seen: float
) -> None:
    assert rounded(gain, precision) == pytest.approx(seen)


def test_the_seeds_of_a_second_measurement_are_those_of_no_other() -> None:
    seeds = Seeds(b"k" * 32, "cartpole/first")
    phases = [seeds.episodes(phase, number, 50) for phase in ("dev", "screen", "confirm") for number in range(3)]
    second = [seeds.other_episodes("screen", run, 50) for run in ("r-0001", "r-0002")]
    everything = [seed for some in (*phases, *second) for seed in some]
    assert len(set(everything)) == len(everything)
