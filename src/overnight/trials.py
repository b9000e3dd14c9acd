"""One trial: a candidate is trained on one seed by a supervised run, and the referee measures what it left.

Everything here follows what the ledger says: a run is an entry before it starts, its end is
an entry after its supervisor has told it, and its score is an entry of the referee's.
"""

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from overnight.admission import admit_candidate, may_launch_now, record_refusal
from overnight.candidate.build import params_of
from overnight.candidate.copy import write_copy
from overnight.candidate.tree import Store
from overnight.contract import trainers
from overnight.errors import Refused
from overnight.evaluate.measure import RefereeFailed, keep, measure
from overnight.evaluate.seeds import Seeds
from overnight.ports import Launcher
from overnight.records.codec import digest
from overnight.records.contract import Contract
from overnight.records.entry import Note
from overnight.records.evidence import Evidence
from overnight.records.job import Job
from overnight.records.lifecycle import Actor, State
from overnight.records.order import RunBudget, RunOrder
from overnight.records.run import Outcome, Run, RunEnd
from overnight.run.launch import Prepared, clear, exit_of, launch, prepare, sweep
from overnight.study.state import RunState
from overnight.study.study import Study

SILENCE_SECONDS = 900.0
Phase = Literal["screen", "confirm"]


@dataclass(frozen=True, slots=True)
class Wanted:
    """One run that the next verdict needs."""

    candidate: str
    phase: Phase
    round: int
    number: int


@dataclass(slots=True)
class Bench:
    """Where trials happen: the study, its store, its seeds, and the runs that are going."""

    study: Study
    store: Store
    contract: Contract
    launcher: Launcher
    seeds: Seeds
    slots: int
    say: Callable[[str], None]
    """Told each thing that happens, in one line."""
    passing: Callable[[str], None] = lambda _: None
    """Told what is going on at the moment; only the last of it matters."""
    going: dict[str, Path] = field(default_factory=dict)
    """Runs that are going, by id."""
    taken: dict[str, int] = field(default_factory=dict)
    """The slot that each of them has, so that no two share their cores."""

    def free_slot(self) -> int:
        """The first slot that no run has."""
        taken = {self.taken.get(name) for name in self.going}
        return next((slot for slot in range(self.slots) if slot not in taken), 0)


def adopt(one: Bench) -> None:
    """Find the runs that were going when the last engine ended, and watch them again."""
    for name, run in one.study.state.runs.items():
        if run.outcome is None:
            one.going[name] = one.study.at.runs / name


def settle(one: Bench) -> None:
    """Runs that have ended become entries, and completed ones are measured."""
    for name, folder in list(one.going.items()):
        if (folder / "exit.json").exists() or not one.launcher.is_alive(folder):
            _end(one, name, folder)
            del one.going[name]
    for name, run in one.study.state.runs.items():
        if run.outcome is Outcome.COMPLETED and not run.evidence:
            _measure(one, name, run)


def _end(one: Bench, name: str, folder: Path) -> None:
    ended = exit_of(one.study.machine, folder)
    swept = sweep(folder)
    if ended is None:
        because = f"Its supervisor is gone and left no word{f'; {swept} processes were ended' if swept else ''}."
        end = RunEnd(run=name, outcome=Outcome.LOST, because=because, wall_seconds=0.0)
    else:
        end = RunEnd(
            run=name,
            outcome=ended.outcome,
            because=ended.because,
            wall_seconds=ended.wall_seconds,
            cpu_seconds=ended.cpu_seconds,
            exit_status=ended.exit_status,
        )
    one.study.append(Actor.RUNNER, end)
    clear(folder)


def _measure(one: Bench, name: str, run: RunState) -> None:
    """Ask the referee for the score of one run; a policy that cannot be measured is the candidate's crash."""
    folder, seeds = one.study.at.runs / name, episode_seeds(one, run)
    for _ in range(3):
        try:
            found = measure(one.study.machine, one.contract.task.env, folder, seeds)
            break
        except RefereeFailed as failed:
            one.study.append(
                Actor.ENGINE, Note(says=f"{name} could not be measured and is asked again: {failed}"[:1900])
            )
    else:
        raise Refused(name, ("The referee failed three times in a row; nothing was decided on this run.",))
    artefact = keep(one.study.machine, one.study.at, found)
    evidence = Evidence(
        run=name,
        candidate=run.candidate,
        tree=run.tree,
        phase=_phase(run.phase),
        score=found.score() if not found.error else None,
        error=found.error,
        episodes=len(seeds),
        guardrails=found.guardrails() if not found.error else {},
        comparability=run.comparability,
        artefact=artefact,
    )
    one.study.append(Actor.REFEREE, evidence)
    told = f"{evidence.score:.1f}" if evidence.score is not None else found.error
    one.passing(f"{run.candidate} seed {run.number + 1} ({run.phase}): {told}")


class Spent(Exception):
    """The budget holds no further run; the message is the gate's own sentence."""


def episode_seeds(one: Bench, run: RunState) -> tuple[int, ...]:
    """The hidden seeds of the episodes on which a run is measured."""
    how, phase = one.contract.evaluation, _phase(run.phase)
    return one.seeds.episodes(phase, run.round, how.screen_episodes if phase == "screen" else how.confirm_episodes)


def begin(one: Bench, want: Wanted) -> None:
    """Start one run, after the gate has been asked once more about the study as it stands on disk.

    Raises `Spent` where nothing but the budget stands against it.
    """
    study, name = one.study, one.study.state.next_run()
    reasons = may_launch_now(study)
    if reasons:
        record_refusal(study, None, reasons)
        if all(reason.rule == "budget" for reason in reasons):
            raise Spent(reasons[0].says)
        raise Refused(f"{study.at.task.name}/{study.at.name}", (reason.says for reason in reasons))
    candidate = study.state.candidates[want.candidate]
    if candidate.state is State.VALIDATED and admit_candidate(study, one.store, want.candidate):
        return
    seed = one.seeds.train(_phase(want.phase), want.round, want.number)
    run = Run(
        id=name,
        candidate=want.candidate,
        tree=candidate.tree,
        command=one.contract.baseline.command,
        phase=_phase(want.phase),
        round=want.round,
        number=want.number,
        train_seed=seed,
        contract=digest(one.contract),
        comparability=one.contract.comparability(),
    )
    folder, slot = study.at.runs / name, one.free_slot()
    prepared = lay_out(one, run, folder)
    study.append(Actor.RUNNER, run)
    launch(prepared, one.launcher)
    one.taken[name] = slot
    one.going[name] = folder


def lay_out(one: Bench, run: Run, folder: Path) -> Prepared:
    """Write out everything that a run needs: its tree, its order and its limits. Starts nothing."""
    machine, job = one.study.machine, _job(one, _command(one.contract))
    return prepare(machine, folder, _order(one, run), job, lambda target: write_copy(one.store, run.tree, target))


def _order(one: Bench, run: Run) -> RunOrder:
    budget, hardware = one.contract.budget, one.contract.hardware
    params = params_of(one.store, run.tree) if one.contract.scope.preset == "params" else {}
    cache = one.study.at.task.root.folder / "cache"
    return RunOrder(
        run=run.id,
        env=one.contract.task.env,
        train_seed=run.train_seed,
        budget=RunBudget(unit=budget.stop_unit, amount=budget.stop_amount),
        params=params,
        cores=hardware.cores_per_run,
        device=hardware.device,
        compile_cache=str(cache) if not one.contract.runs_candidate_code() else None,
    )


def _job(one: Bench, command: tuple[str, ...]) -> Job:
    cores, per_run = sorted(os.sched_getaffinity(0)), one.contract.hardware.cores_per_run
    free = one.free_slot()
    return Job(
        command=command,
        env={"PATH": f"{Path(sys.executable).parent}:{os.environ.get('PATH', os.defpath)}", "PYTHONSAFEPATH": "1"},
        fresh_bytecode=one.contract.runs_candidate_code(),
        cores=tuple(cores[free * per_run : (free + 1) * per_run]),
        wall_seconds=one.contract.budget.run_wall_seconds,
        silence_seconds=SILENCE_SECONDS,
        disk_bytes=int(one.contract.budget.disk_gigabytes * 1e9 / 10),
    )


def _command(contract: Contract) -> tuple[str, ...]:
    """The approved command; a built-in trainer runs on the interpreter that Overnight itself runs on."""
    if trainers.trainer_of(contract.baseline.command) is not None:
        return (sys.executable, *contract.baseline.command[1:])
    return contract.baseline.command


def _phase(name: str) -> Phase:
    return "confirm" if name == "confirm" else "screen"
