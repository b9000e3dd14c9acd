"""A study whose runs are written and not trained: what the judge makes of scores that a test chooses."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from overnight import calibrating, judge
from overnight.adapters.launchers.local import LocalLauncher
from overnight.admission import Who, admit_candidate, enter, propose_params
from overnight.begin import Place, begin_env
from overnight.contract.draft import Stated
from overnight.evaluate.measure import Measured, keep
from overnight.evaluate.seeds import Seeds
from overnight.loop import Night, night
from overnight.machine import RealMachine
from overnight.records.approval import Strength
from overnight.records.codec import digest
from overnight.records.evidence import Evidence
from overnight.records.lifecycle import Actor
from overnight.records.proposal import Exhausted, Proposal, View
from overnight.records.run import Outcome, Run, RunEnd
from overnight.study.state import CandidateState
from overnight.trials import Bench, Wanted
from scenes import Scene, scene_in

Score = Callable[[Wanted], float | None]
"""What a run scores; None for a crash."""
IDEA = Proposal(
    proposer="search",
    kind="hyperparameter",
    hypothesis="Larger steps learn faster.",
    predicted_effect="The score rises.",
    params={"learning_rate": 0.003},
)


@contextmanager
def bench_of(project: Path, *, plants: bool = True, **budget: Any) -> Iterator[Bench]:
    """A study, with plants or without, entered, with its baseline drafted and nothing run."""
    with seated(study_in(project, plants=plants, **budget)) as bench:
        yield bench


def study_in(project: Path, *, plants: bool, **budget: Any) -> Scene:
    """A new study that is approved."""
    project.mkdir()
    begin_env(RealMachine(), Place(project), Stated(env="CartPole-v1", env_steps=2048, hours=1, plants=plants))
    scene = scene_in(project)
    scene.rewrite(lambda terms: terms["budget"].update(budget))
    scene.approve()
    return scene


@contextmanager
def seated(scene: Scene) -> Iterator[Bench]:
    """One sitting at a study, which knows nothing but what the ledger says."""
    with scene.open() as study:
        contract = enter(study, Who("tester", Strength.TERMINAL))
        bench = Bench(study, scene.store, contract, LocalLauncher(), Seeds(b"k" * 32, "s"), 2, lambda _: None)
        night(Night(bench, Silent(), RealMachine().monotonic() + 3600, finishing=lambda: True))
        yield bench


class Silent:
    """Has no ideas."""

    def ask(self, _: View) -> Exhausted:
        return Exhausted(because="There are no ideas.")


def play(
    bench: Bench,
    score: Score,
    *,
    stored: Score | None = None,
    rail: Score | None = None,
    certifying: bool = True,
    most: int = 1000,
) -> None:
    """Write what a trainer and a referee would have written for the runs that the next verdict needs."""
    for want in list(judge.wanted(bench, certifying=certifying))[:most]:
        run_once(bench, want, score(want), stored=(stored or score)(want), rail=(rail or score)(want))


def calibrate(bench: Bench, *, level: float = 100.0, step: float = 1.0) -> None:
    """The baseline on its first seeds, and the plan that is frozen on them."""
    for _ in range(2):  # two seeds tell how long a run takes, and the others follow
        play(bench, lambda want: level + step * want.number)
    found = calibrating.calibrated(bench)
    assert found is not None
    bench.study.append(Actor.ENGINE, found)


def run_once(
    bench: Bench,
    want: Wanted,
    score: float | None,
    *,
    stored: float | None = None,
    rail: float | None = None,
    comparability: str = "",
) -> None:
    """One run as the ledger has it; without a score, it crashed."""
    study, one = bench.study, bench.study.state.candidates[want.candidate]
    run = Run(
        id=study.state.next_run(),
        candidate=one.id,
        tree=one.tree,
        command=bench.contract.baseline.command,
        train_seed=want.number,
        phase=want.phase,
        round=want.round,
        number=want.number,
        contract=digest(bench.contract),
        comparability=comparability or bench.contract.comparability(),
    )
    study.append(Actor.RUNNER, run)
    if score is None:
        study.append(Actor.RUNNER, RunEnd(run=run.id, outcome=Outcome.CRASHED, because="It broke.", wall_seconds=1.0))
        return
    study.append(Actor.RUNNER, RunEnd(run=run.id, outcome=Outcome.COMPLETED, because="Done.", wall_seconds=1.0))
    evidence = Evidence(
        run=run.id,
        candidate=one.id,
        tree=one.tree,
        phase=want.phase,
        score=score,
        episodes=10,
        guardrails={"worst_decile_return": score if rail is None else rail},
        comparability=run.comparability,
        artefact=keep(study.machine, study.at, Measured(((1, score if stored is None else stored, 10),) * 10, "")),
    )
    study.append(Actor.REFEREE, evidence)


def planted(bench: Bench, plant: str) -> CandidateState:
    return next(one for one in bench.study.state.candidates.values() if one.plant == plant)


def judged(bench: Bench) -> None:
    decision = judge.verdict(bench)
    assert decision is not None
    bench.study.append(Actor.JUDGE, decision)


def level(idea: str, up: float = 200.0) -> Score:
    """An idea that is so much better than everything else, on every seed."""
    return lambda want: 100.0 + want.number % 10 + (up if want.candidate == idea else 0.0)


def raced(bench: Bench, score: Score) -> None:
    """Run what the race wants and write down what it finds, until nothing races."""
    while list(judge.wanted(bench, certifying=False)):
        play(bench, score, certifying=False)
        decision = judge.verdict(bench)
        if decision is not None:
            bench.study.append(Actor.JUDGE, decision)


def entered(bench: Bench, **params: Any) -> str:
    """An idea that the gate has let in."""
    idea = propose_params(bench.study, bench.store, replace(IDEA, params=params) if params else IDEA).id
    assert admit_candidate(bench.study, bench.store, idea) == ()
    return idea


def kept(bench: Bench) -> str:
    """An idea that was kept after its screening, so that the tip can be certified."""
    calibrate(bench)
    play(bench, lambda want: 100.0 + want.number % 10)
    judged(bench)  # the placebo
    idea = entered(bench)
    raced(bench, level(idea))
    assert bench.study.state.candidates[idea].kept
    return idea
