"""One trial: a candidate is trained on one seed by a supervised run, and the referee measures what it left.

Everything here follows what the ledger says: a run is an entry before it starts, its end is
an entry after its supervisor has told it, and its score is an entry of the referee's.
"""

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from overnight.admission import admit_candidate, may_launch_now, record_refusal
from overnight.candidate.build import params_of
from overnight.candidate.copy import write_copy
from overnight.candidate.tree import Store
from overnight.contract import trainers
from overnight.decide.plausible import doubt, is_possible
from overnight.errors import Refused
from overnight.evaluate.measure import Measured, RefereeFailed, is_code, keep, measure_and_check
from overnight.evaluate.seeds import Seeds, keys_folder
from overnight.isolation import proven, tier_for
from overnight.ports import Launcher
from overnight.racing import Follower
from overnight.records.codec import digest, loads
from overnight.records.contract import Contract
from overnight.records.entry import Note
from overnight.records.evidence import Evidence
from overnight.records.job import Exit, Job
from overnight.records.lifecycle import Actor, State
from overnight.records.limits import Scalar
from overnight.records.order import RunBudget, RunOrder
from overnight.records.proposal import Proposal
from overnight.records.refusal import Reason
from overnight.records.run import Outcome, Run, RunEnd
from overnight.records.text import sentence
from overnight.run.launch import Prepared, clear, give_up, launch, prepare, sweep
from overnight.study.state import RunState
from overnight.study.study import Study

SILENCE_SECONDS = 900.0
OVERDUE_SECONDS = 120.0
"""How long after its hard limit a run may go on before the engine ends its supervisor."""
MOST_LOSSES = 5
"""So many losses on one train seed are no accident: a candidate can kill itself, or need more memory than there is."""
REFEREE_TRIES = 3
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

    since: dict[str, float] = field(default_factory=dict)
    """Since when each of them is watched, by the clock that does not count what stood still."""
    follower: Follower = field(default_factory=Follower)
    """The race, which is told each moment of the ledger once."""

    ideas: dict[str, Proposal] = field(default_factory=dict)
    """The idea of each candidate, read from the ledger once: it never changes."""
    params: dict[str, Mapping[str, Scalar]] = field(default_factory=dict)
    """The parameters of each tree, read from the store once."""

    def watch(self, name: str, folder: Path, slot: int | None) -> None:
        """Count a run among those that are going."""
        self.going[name], self.since[name] = folder, self.study.machine.running()
        if slot is not None:
            self.taken[name] = slot

    def free_slot(self) -> int:
        """The first slot that no run has."""
        taken = {self.taken.get(name) for name in self.going}
        return next((slot for slot in range(self.slots) if slot not in taken), 0)


def note_isolation(one: Bench) -> None:
    """Write down what holds candidates tonight; where that is less than the contract's, write down the refusal."""
    try:
        tier_for(one.contract.evaluation.min_tier)
    except Refused as refused:
        record_refusal(one.study, None, tuple(Reason(rule="isolation", says=says) for says in refused.says))
        raise
    one.study.append(Actor.ENGINE, Note(says=sentence(proven())))


def adopt(one: Bench) -> None:
    """Find the runs that were going when the last engine ended, and watch them again."""
    for name, run in one.study.state.runs.items():
        if run.outcome is None:
            one.watch(name, one.study.at.runs / name, _slot_of(one, one.study.at.runs / name))


def _slot_of(one: Bench, folder: Path) -> int | None:
    """The slot whose cores an adopted run has."""
    text = one.study.machine.read(str(folder / "job.json"))
    cores = loads(Job, text, where=str(folder / "job.json")).cores if text is not None else ()
    free = sorted(os.sched_getaffinity(0))
    return free.index(cores[0]) // len(cores) if cores and cores[0] in free else None


def settle(one: Bench) -> None:
    """Runs that have ended become entries, and completed ones are measured.

    What lies in a run's folder is believed only once its supervisor has let go of the lock.
    """
    for name, folder in list(one.going.items()):
        if one.launcher.is_alive(folder):
            _check_overdue(one, name, folder)
        elif (ended := give_up(one.study.machine, folder)) is not None:
            _end(one, name, ended)
            clear(folder)
            del one.going[name]
    for name, run in one.study.state.runs.items():
        if run.outcome is Outcome.COMPLETED and not run.evidence:
            _measure(one, name, run)


def _check_overdue(one: Bench, name: str, folder: Path) -> None:
    """A supervisor that let its own hard limit pass is stuck or was stopped: end it, and the run is lost."""
    limit = one.contract.budget.run_wall_seconds + OVERDUE_SECONDS
    now = one.study.machine.running()
    if now - one.since.get(name, now) > limit:
        one.launcher.end(folder)
        sweep(folder)


def _end(one: Bench, name: str, ended: Exit) -> None:
    run = one.study.state.runs[name]
    outcome, because = ended.outcome, ended.because
    lost = 1 + sum(_same_seed(other, run) for other in one.study.state.runs.values() if other.outcome is outcome)
    if outcome is Outcome.LOST and lost >= MOST_LOSSES:
        if _is_compared_with(one, run.candidate):
            why = f"{run.candidate} was lost {lost} times on one train seed; it is what others are compared with."
            raise Refused(name, (why, f"Nothing was decided. The last time: {because}"))
        outcome = Outcome.CRASHED
        because = sentence(f"It was lost {lost} times on this train seed, which is taken for its own doing: {because}")
    end = RunEnd(
        run=name,
        outcome=outcome,
        because=because,
        wall_seconds=ended.wall_seconds,
        cpu_seconds=ended.cpu_seconds,
        exit_status=ended.exit_status,
        tier=ended.tier,
        env_steps=ended.env_steps,
    )
    one.study.append(Actor.RUNNER, end)
    if outcome is Outcome.INFRASTRUCTURE and lost >= MOST_LOSSES:
        why = f"{run.candidate} could not be run {lost} times on one train seed, which is the machine's fault."
        raise Refused(
            name,
            (why, f"Nothing was decided. The last time: {because}"),
            hint="`overnight doctor` says what this machine can do",
        )


def _same_seed(one: RunState, other: RunState) -> bool:
    same = (one.candidate, one.phase, one.round, one.number)
    return same == (other.candidate, other.phase, other.round, other.number)


def _is_compared_with(one: Bench, candidate: str) -> bool:
    """Whether a candidate is the tip or the incumbent: a loss on its side must never become somebody's gain."""
    state = one.study.state
    commit = state.candidates[candidate].commit
    return candidate == state.baseline or commit in (state.tip, state.incumbent)


def _measure(one: Bench, name: str, run: RunState) -> None:
    """Ask the referee for the score of one run; a policy that cannot be measured is the candidate's crash."""
    folder, seeds = one.study.at.runs / name, episode_seeds(one, run)
    found, why, aside = _asked(one, name, folder, seeds), "", None
    if why := _doubt(one, run, found):
        aside = keep(one.study.machine, one.study.at, found)
        because = f"{name} was measured twice, the second time on fresh episodes: {why}."
        one.study.append(Actor.ENGINE, Note(says=sentence(because)))
        found = _asked(one, name, folder, one.seeds.other_episodes(_phase(run.phase), name, len(seeds)))
        found = _believed(one, name, found)
        why = sentence(because)
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
        tier=found.tier,
        repeated=found.repeated,
        different=found.different,
        quarantined=why,
        set_aside=aside,
    )
    one.study.append(Actor.REFEREE, evidence)
    told = f"{evidence.score:.1f}" if evidence.score is not None else found.error
    one.passing(f"{run.candidate} seed {run.number + 1} ({run.phase}): {told}")


def _doubt(one: Bench, run: RunState, found: Measured) -> str:
    """Why a measurement does not count at once; empty where it does."""
    if found.error:
        return ""
    if _is_not_repeatable(one, found):
        return f"{found.different} of {found.repeated} episodes came out differently when they were played again"
    runs = one.study.state.runs.values()
    others = [other.score for other in runs if other.comparability == run.comparability and other.score is not None]
    return doubt(one.contract.metric, found.score(), others)


def _is_not_repeatable(one: Bench, found: Measured) -> bool:
    return one.contract.evaluation.repeatable and found.differs == "policy"


def _believed(one: Bench, name: str, found: Measured) -> Measured:
    """A second measurement, or the error of a policy that is not to be believed after two."""
    if found.error:
        return found
    says = hint = ""
    if _is_not_repeatable(one, found):
        says = "The policy does not play the same episode twice in the same way, in two measurements; none is believed."
        hint = "a policy that draws random numbers needs `evaluation.repeatable: false` in the contract"
    elif not is_possible(one.contract.metric, found.score()):
        says = f"The score {found.score():.6g} is impossible by the contract, in two measurements; none is believed."
        hint = "correct `metric.lowest` and `metric.highest` in the contract if such a score is possible"
    if not says:
        return found
    if _is_compared_with(one, one.study.state.runs[name].candidate):
        raise Refused(name, (says, "Others are compared with it, so nothing can be decided."), hint=hint)
    return found._replace(error=says, episodes=())


class Spent(Exception):
    """The budget holds no further run; the message is the gate's own sentence."""


def episode_seeds(one: Bench, run: RunState) -> tuple[int, ...]:
    """The hidden seeds of the episodes on which a run is measured."""
    how, phase = one.contract.evaluation, _phase(run.phase)
    return one.seeds.episodes(phase, run.round, how.screen_episodes if phase == "screen" else how.confirm_episodes)


def _asked(one: Bench, name: str, folder: Path, seeds: Sequence[int]) -> Measured:
    """Ask the referee, again where it failed; a policy of code under which it fails each time has no score."""
    tier = tier_for(one.contract.evaluation.min_tier)
    machines_fault = False
    for _ in range(REFEREE_TRIES):
        sweep(folder)  # a policy's own children may have outlived a referee that was killed
        try:
            return measure_and_check(one.study.machine, one.contract.task.env, folder, seeds, tier)
        except RefereeFailed as failed:
            machines_fault = failed.is_machines_fault
            because = sentence(f"{name} could not be measured and is asked again: {failed}")
            one.study.append(Actor.ENGINE, Note(says=because))
    sweep(folder)
    if is_code(folder) and not machines_fault and not _is_compared_with(one, one.study.state.runs[name].candidate):
        says = f"The referee failed {REFEREE_TRIES} times in a row with this policy, whose code runs beside it."
        return Measured((), says, tier)
    raise Refused(name, (f"The referee failed {REFEREE_TRIES} times in a row; nothing was decided on this run.",))


def begin(one: Bench, want: Wanted) -> None:
    """Start one run, after the gate has been asked once more about the study as it stands on disk.

    Raises `Spent` where nothing but the budget stands against it.
    """
    study, name = one.study, one.study.state.next_run()
    reasons = may_launch_now(study, want.candidate)
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
    one.watch(name, folder, slot)


def lay_out(one: Bench, run: Run, folder: Path) -> Prepared:
    """Write out everything that a run needs: its tree, its order and its limits. Starts nothing."""
    machine, job = one.study.machine, _job(one, _command(one.contract))
    return prepare(machine, folder, _order(one, run), job, lambda target: write_copy(one.store, run.tree, target))


def _order(one: Bench, run: Run) -> RunOrder:
    budget, hardware = one.contract.budget, one.contract.hardware
    params = params_of(one.store, run.tree) if one.contract.scope.preset == "params" else {}
    cache = one.study.at.task.root.cache
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
        env=_variables(one.contract),
        fresh_bytecode=one.contract.runs_candidate_code(),
        cores=tuple(cores[free * per_run : (free + 1) * per_run]),
        wall_seconds=one.contract.budget.run_wall_seconds,
        silence_seconds=SILENCE_SECONDS,
        disk_bytes=int(one.contract.budget.disk_gigabytes * 1e9 / 10),
        memory_bytes=_memory_cap(one),
        tier=tier_for(one.contract.evaluation.min_tier),
        hidden=(str(one.study.at.task.root.folder), str(keys_folder()), str(Path.home())),
        network=one.contract.experiments.permissions.network,
        metered=one.contract.budget.metered,
    )


def _variables(contract: Contract) -> dict[str, str]:
    """Our own Python comes first; only a repository's programs may import what lies beside them."""
    found = {"PATH": f"{Path(sys.executable).parent}:{os.environ.get('PATH', os.defpath)}"}
    return found if contract.runs_candidate_code() else {**found, "PYTHONSAFEPATH": "1"}


def _memory_cap(one: Bench) -> int:
    """What the contract gives each run, or its part of nine tenths of this machine's memory."""
    told = one.contract.hardware.memory_gigabytes
    whole = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return int(told * 1e9) if told is not None else int(0.9 * whole / max(one.slots, 1))


def _command(contract: Contract) -> tuple[str, ...]:
    """The approved command; a built-in trainer runs on the interpreter that Overnight itself runs on."""
    if trainers.trainer_of(contract.baseline.command) is not None:
        return (sys.executable, *contract.baseline.command[1:])
    return contract.baseline.command


def _phase(name: str) -> Phase:
    return "confirm" if name == "confirm" else "screen"
