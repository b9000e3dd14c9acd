"""The rules that search is compared with, on the same trainer, space, baseline and total of training steps.

    tpe      Optuna's TPE with a median pruner, one train seed a trial, as rl-zoo3 tunes; the best trial is taken
    random   draws over the whole space, one train seed each; the best draw is taken
    greedy   keep-or-revert: our own draws, each against the tip on one train seed, kept where it scored more

Each has measured the baseline once, as its first trial, and claims the difference to it. Trials run in this process,
so a rule pays neither for imports nor for compiling twice. Nobody here knows recipes or published settings.
"""

import contextlib
import io
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

from overnight.adapters.proposers.search import SearchProposer, dimensions
from overnight.contract import trainers
from overnight.evaluate.architectures import load
from overnight.evaluate.episodes import play
from overnight.guest.train import Budget, Env, Order, Training
from overnight.records.env import EnvSpec
from overnight.records.limits import Scalar
from overnight.records.proposal import Exhausted, Proposal, Tried, View, Wait

Params = dict[str, Scalar]
SPACE = trainers.space("ppo")
EVALUATIONS = 10
"""How often a trial is looked at on its way; the pruner waits for the third look, and for ten trials."""
STARTUP = 10
MOST_CPU = 6.0
"""A trial that takes longer, ten times CartPole's baseline, has crashed: a night of three minutes cannot wait."""
SCREEN_EPISODES = 20


class Task(NamedTuple):
    """One small task, its training budget, and what its baseline gets wrong."""

    env: str
    steps: int
    """Environment steps of one training run."""
    misset: Mapping[str, Scalar]
    """What the baseline has instead of the defaults."""

    def baseline(self) -> Params:
        """The settings that every rule starts from."""
        return {**SPACE.defaults(), **self.misset}


class Outcome(NamedTuple):
    """What a rule came to."""

    params: Params
    """The settings that it takes."""
    claimed: float | None
    """The gain over the baseline that it claims; None where it claims none."""
    steps: int
    """Environment steps that it spent on training."""
    trials: int
    """How many trainings it began."""


class Pruned(Exception):
    """A trial that was given up on its way."""


class Watched(Training):
    """A training whose returns are told on the way."""

    def __init__(self, order: Order, out: Path, told: Callable[[int, float], None]) -> None:
        super().__init__(order, out)
        self.told, self.steps, self._looks = told, 0, 0
        self._seen: list[float] = []

    def report(self, env_steps: int, **numbers: float) -> None:
        """Tell the mean return of training since the last look, at each tenth of the budget."""
        self.steps = env_steps
        if self.cpu_seconds() > MOST_CPU:
            sys.exit(f"The training took more than {MOST_CPU} processor seconds")
        found = numbers.get("episodic_return", float("nan"))
        if found == found:
            self._seen.append(found)
        looks = int(EVALUATIONS * self.share(env_steps))
        if looks > self._looks and self._seen:
            self._looks, seen = looks, fmean(self._seen)
            self._seen = []
            self.told(looks, seen)


@dataclass
class Lab:
    """Where trainings of one task are made, in this process, and their steps counted."""

    task: Task
    budget: int
    """Environment steps that there are in all."""
    cache: Path
    spent: int = 0
    trials: int = 0
    prepared: bool = field(default=False, init=False)

    def has_room(self) -> bool:
        """Whether one more training fits."""
        return self.spent + self.task.steps <= self.budget

    def score(
        self,
        params: Mapping[str, Scalar],
        seed: int,
        *,
        episodes: int = SCREEN_EPISODES,
        told: Callable[[int, float], None] = lambda *_: None,
    ) -> float | None:
        """Train once and play; None for a training that crashed. What `told` raises ends the training."""
        from overnight.rl.settings import prepare_device
        from overnight.rl.trainers import ppo

        order = Order(
            run="r-0001",
            env=Env("gymnasium", self.task.env, {}, None, clip_actions=True),
            train_seed=seed,
            budget=Budget("env_steps", self.task.steps),
            params=params,
            cores=1,
            device="cpu",
            compile_cache=str(self.cache),
        )
        if not self.prepared:
            prepare_device(order)
            self.prepared = True
        self.trials += 1
        with tempfile.TemporaryDirectory() as name:
            training = Watched(order, Path(name), told)
            used = self.task.steps  # a run is a run, as ours are counted, even where its first rollout did not fit
            try:
                with contextlib.redirect_stderr(io.StringIO()):
                    ppo.train(training)
            except SystemExit:
                return None
            except Pruned:
                used = training.steps
                raise
            finally:
                self.spent += used
            spec = EnvSpec(backend="gymnasium", id=self.task.env)
            seeds = range(10_000_000 + 1000 * seed, 10_000_000 + 1000 * seed + episodes)
            return fmean(one.total for one in play(spec, load(Path(name) / "policy"), tuple(seeds), lanes=episodes))


def drawn(task: Task, repeat: int, lab: Lab, *, pruned: bool) -> Outcome:
    """Optuna, with a sampler by model and a pruner or with neither."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    if pruned:
        sampler: optuna.samplers.BaseSampler = optuna.samplers.TPESampler(
            seed=repeat, n_startup_trials=STARTUP, multivariate=True
        )
        pruner: optuna.pruners.BasePruner = optuna.pruners.MedianPruner(
            n_startup_trials=STARTUP, n_warmup_steps=EVALUATIONS // 3
        )
    else:
        sampler, pruner = optuna.samplers.RandomSampler(seed=repeat), optuna.pruners.NopPruner()
    study = optuna.create_study(direction="maximize", sampler=sampler, pruner=pruner)
    baseline = task.baseline()
    searched = dimensions(SPACE, baseline)
    distributions = {name: one.distribution() for name, one in searched.items()}
    tried: list[tuple[float, Params]] = []
    study.enqueue_trial({name: one.to_optuna(baseline[name]) for name, one in searched.items()})
    while lab.has_room():
        trial = study.ask(distributions)
        params = {**baseline, **{name: searched[name].from_optuna(value) for name, value in trial.params.items()}}

        def told(step: int, value: float, trial: optuna.Trial = trial) -> None:
            trial.report(value, step)
            if trial.should_prune():
                raise Pruned

        try:
            score = lab.score(params if tried else baseline, 1000 * repeat + trial.number, told=told)
        except Pruned:
            study.tell(trial, state=optuna.trial.TrialState.PRUNED)
            continue
        if score is None:
            study.tell(trial, state=optuna.trial.TrialState.FAIL)
            continue
        study.tell(trial, score)
        tried.append((score, params if tried else baseline))
    best = max(tried, key=lambda one: one[0])
    claimed = best[0] - tried[0][0] if best is not tried[0] else None
    return Outcome(best[1], claimed, lab.spent, lab.trials)


def greedy(task: Task, repeat: int, lab: Lab) -> Outcome:
    """Keep whatever scored more than the tip in one run on the one seed; revert the rest."""
    seed, params = 1000 * repeat, task.baseline()
    first = score = lab.score(params, seed) or 0.0
    view = View(
        task="greedy",
        study=f"repeat-{repeat}",
        program="",
        surface=("params.json",),
        keys=(),
        space=SPACE,
        params=params,
        tried=(),
        runs_left=1000,
        candidates_left=1000,
        seed=repeat,
    )
    base = None
    while lab.has_room():
        idea = SearchProposer().ask(view)
        if isinstance(idea, Exhausted | Wait):
            break
        found = lab.score({**params, **idea.params}, seed)
        kept = found is not None and found > score
        one = _tried(view, idea, found, score, base, kept=kept)
        if kept and found is not None:
            params, score, base = {**params, **idea.params}, found, one.candidate
        view = replace(view, tried=(*view.tried, one), params=params)
    return Outcome(params, score - first if base is not None else None, lab.spent, lab.trials)


def _tried(view: View, idea: Proposal, found: float | None, tip: float, base: str | None, *, kept: bool) -> Tried:
    return Tried(
        candidate=f"c-{len(view.tried) + 2:04d}",
        proposal=idea,
        params={**view.params, **idea.params},
        outcome="crashed" if found is None else "kept" if kept else "rejected",
        gain=None if found is None else found - tip,
        base=base,
    )


RIVALS: dict[str, Callable[[Task, int, Lab], Outcome]] = {
    "tpe": lambda task, repeat, lab: drawn(task, repeat, lab, pruned=True),
    "random": lambda task, repeat, lab: drawn(task, repeat, lab, pruned=False),
    "greedy": greedy,
}
