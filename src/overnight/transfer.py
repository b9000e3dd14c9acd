"""A certified change, unmodified, against the baseline in other environments and at longer budgets.

The trees, the command, the machine and the train seeds are the same for both arms, which take turns, and run side by
side where the machine has the cores. The launch path is the one that every run takes, and what never passed the gate
is not launched here either. Results lie in files of their own and are noted in the ledger. They decide nothing and are
never part of a claim.
"""

import json
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

from overnight.admission import may_launch_now
from overnight.again import train_side_by_side
from overnight.begin import EPISODE_STEPS, env_facts, slug
from overnight.claims import incumbent
from overnight.contract import trainers
from overnight.decide.belief import Score
from overnight.decide.transferred import judge_transfer
from overnight.errors import Refused, UserError
from overnight.evaluate.measure import measure_and_check
from overnight.isolation import tier_for
from overnight.ports import Machine
from overnight.records.codec import decode, digest, dumps, loads
from overnight.records.contract import Contract
from overnight.records.entry import Note
from overnight.records.env import EnvSpec
from overnight.records.lifecycle import Actor, State
from overnight.records.order import RunBudget
from overnight.records.run import Outcome, Run
from overnight.records.strict_json import canonical
from overnight.records.text import sentence
from overnight.records.transfer import Transfer
from overnight.report import transfers
from overnight.run.launch import clear, exit_of, sweep
from overnight.study.durable import make_folder, write_file
from overnight.trials import Bench

MOST_TRIES = 3
"""So often a run is tried that was lost without its own fault."""
_ARMS = ("baseline", "candidate")


@dataclass(frozen=True, slots=True)
class Setting:
    """Somewhere else: an environment, and how many times the study's own budget."""

    env: EnvSpec
    times: float

    def told(self) -> str:
        """The setting in a few words."""
        return self.env.id if self.times == 1 else f"{self.env.id} at {self.times:g} times the budget"


@dataclass(frozen=True, slots=True, kw_only=True)
class Journey:
    """What is transferred, and on how many seeds."""

    bench: Bench
    candidate: str
    seeds: int
    tell: Callable[[str], None]


def settings(machine: Machine, contract: Contract, envs: Sequence[str], times: Sequence[float]) -> tuple[Setting, ...]:
    """Every environment at every budget; the study's own where none is named. Unknown ones are refused at once."""
    if not envs and not times:
        hint = "`overnight transfer --env Acrobot-v1`, or `--budget 4x` for longer training"
        raise UserError("overnight transfer", "needs another environment or another budget", hint=hint)
    found = [_env(machine, contract, name) for name in envs] or [contract.task.env]
    return tuple(Setting(env, one) for env in found for one in times or (1.0,))


def _env(machine: Machine, contract: Contract, name: str) -> EnvSpec:
    env = decode(EnvSpec, {"backend": "gymnasium", "id": name}, where="--env")
    if name == contract.task.env.id:
        return contract.task.env
    facts, _ = env_facts(machine, name)
    trainer = trainers.trainer_of(contract.baseline.command)
    if trainer is not None:
        trainers.check_actions(trainer, facts.actions)
    return replace(env, max_episode_steps=facts.max_episode_steps or EPISODE_STEPS)


def transfer(journey: Journey, wanted: Sequence[Setting]) -> Iterator[Transfer]:
    """Train and measure both arms in each setting; what was measured before is not trained again."""
    _check(journey)
    progress = _Progress(journey, sum(len(list(_missing(journey, one))) for one in wanted))
    for setting in wanted:
        _train(journey, setting, progress)
        yield _settled(journey, setting)


def recorded(journey: Journey) -> tuple[Transfer, ...]:
    """Every transfer of the candidate that is on file."""
    machine, folder = journey.bench.study.machine, journey.bench.study.at.transfers
    texts = [(path, machine.read(str(path))) for path in sorted(folder.glob("*/transfer.json"))]
    found = [loads(Transfer, text, where=str(path)) for path, text in texts if text is not None]
    return tuple(one for one in found if one.candidate == journey.candidate)


def leave_pages(journey: Journey) -> tuple[Path, Path]:
    """Write the table and the bar chart of everything that is on file about the candidate."""
    study, found = journey.bench.study, recorded(journey)
    unit = journey.bench.contract.metric.unit
    page, chart = (study.at.transfers / f"{journey.candidate}.{end}" for end in ("md", "svg"))
    write_file(study.machine, page, transfers.table(found, unit=unit).encode())
    write_file(study.machine, chart, transfers.bar_chart(found, unit=unit).encode())
    return page, chart


def certified(bench: Bench, name: str | None) -> str:
    """The certified candidate to be transferred: the incumbent, or the one that is named."""
    state = bench.study.state
    found = name or incumbent(state)
    if found not in state.candidates:
        raise UserError(found[:40], "is not a candidate of this study", hint="`overnight candidates` lists them")
    if found == state.baseline or state.candidates[found].state is not State.ACCEPTED:
        raise Refused(found, ("It is not certified, and only a certified change is transferred.",))
    return found


def _check(journey: Journey) -> None:
    """Refuse whatever did not pass the gate as it stands in the store."""
    bench = journey.bench
    study, state = bench.study, bench.study.state
    says = [reason.says for reason in may_launch_now(study) if reason.rule != "budget"]  # a transfer searches nothing
    for name in (journey.candidate, state.baseline):
        one = state.candidates[name]
        if one.validated_under is None:
            says.append(f"{name} has not passed the gate.")
        if (
            bench.store.ref(study.at.ref("candidates", name)) != one.commit
            or bench.store.tree_of(one.commit) != one.tree
        ):
            says.append(f"The store has another tree under {name} than the ledger.")
    if says:
        raise Refused(journey.candidate, says)


def _changed(contract: Contract, setting: Setting) -> Contract:
    """The terms with the other environment and budget; everything else is the study's."""
    budget = contract.budget
    longer = replace(
        budget,
        stop_amount=budget.stop_amount * setting.times,
        run_wall_seconds=budget.run_wall_seconds * max(setting.times, 1.0),
    )
    return replace(contract, task=replace(contract.task, env=setting.env), budget=longer)


def _folder(journey: Journey, setting: Setting) -> Path:
    """Where a setting lies: anything that would make its results incomparable has another folder."""
    contract, state = _changed(journey.bench.contract, setting), journey.bench.study.state
    trees = [state.candidates[name].tree for name in (journey.candidate, state.baseline)]
    key = digest((contract.comparability(), contract.baseline.command, *trees))
    name = f"{slug(setting.env.id)}-{setting.times:g}x-{key[:8]}"
    return journey.bench.study.at.transfers / name


def _missing(journey: Journey, setting: Setting) -> Iterator[tuple[str, int]]:
    """The runs that are not on file yet; the arms take turns."""
    folder = _folder(journey, setting)
    for number in range(journey.seeds):
        for arm in _ARMS:
            if not (folder / f"{arm}-{number + 1}.json").exists():
                yield arm, number


def _train(journey: Journey, setting: Setting, progress: "_Progress") -> None:
    """Every run of a setting that is not on file, with its measurement left as a file; a lost one is tried again."""
    bench, at = replace(journey.bench, contract=_changed(journey.bench.contract, setting)), _folder(journey, setting)
    runs = {at / f"{arm}-{number + 1}": _run(journey, bench, arm, number) for arm, number in _missing(journey, setting)}
    tries = Counter[Path]()
    make_folder(bench.study.machine, at)

    def starting(run: Run) -> None:
        arm = "candidate" if run.candidate == journey.candidate else "baseline"
        progress.begin(f"{setting.told()}: {arm}, seed {run.number + 1} of {journey.seeds}")

    wanted = deque((run, folder) for folder, run in runs.items())
    with closing(train_side_by_side(bench, wanted, starting, journey.tell)) as ended:
        for folder in ended:
            if _record(bench, runs[folder], folder):
                progress.done += 1
                continue
            tries[folder] += 1
            if tries[folder] == MOST_TRIES:
                says = f"It was lost {MOST_TRIES} times in a row in {setting.told()}; nothing was recorded."
                raise Refused(runs[folder].candidate, (says,))
            progress.wanted += 1
            wanted.append((runs[folder], folder))


def _record(bench: Bench, run: Run, folder: Path) -> bool:
    """Measure a run that has ended and leave its score as a file; False where it was lost without its own fault."""
    ended = exit_of(bench.study.machine, folder)
    sweep(folder)
    if ended is None or ended.outcome.is_repeated():
        return False
    score, because = _measured(bench, folder) if ended.outcome is Outcome.COMPLETED else (None, ended.because)
    clear(folder)
    found = {"train_seed": run.train_seed, "score": score, "because": because}
    write_file(bench.study.machine, folder.with_suffix(".json"), canonical(found) + b"\n")
    return True


def _run(journey: Journey, bench: Bench, arm: str, number: int) -> Run:
    """One arm on one seed, under the changed terms."""
    state = bench.study.state
    name = journey.candidate if arm == "candidate" else state.baseline
    return Run(
        id=f"r-{2 * number + (arm == 'candidate') + 1:04d}",
        candidate=name,
        tree=state.candidates[name].tree,
        command=bench.contract.baseline.command,
        phase="confirm",
        round=0,
        number=number,
        train_seed=bench.seeds.train("dev", 0, number),
        contract=digest(bench.whole),
        comparability=bench.contract.comparability(),
    )


def _measured(bench: Bench, folder: Path) -> tuple[float | None, str]:
    how = bench.contract.evaluation
    seeds = bench.seeds.episodes("dev", 1, how.confirm_episodes)
    found = measure_and_check(bench.study.machine, bench.contract.task.env, folder, seeds, tier_for(how.min_tier))
    return (None, found.error) if found.error else (found.score(), "")


def _settled(journey: Journey, setting: Setting) -> Transfer:
    """The record of one setting, from the files of its runs; noted in the ledger when it is new."""
    bench, at = journey.bench, _folder(journey, setting)
    contract, state = _changed(bench.contract, setting), bench.study.state
    seeds: list[int] = []
    scores: dict[str, list[Score]] = {arm: [] for arm in _ARMS}
    for number in range(journey.seeds):
        for arm in _ARMS:
            found = json.loads((at / f"{arm}-{number + 1}.json").read_bytes())
            scores[arm].append(found["score"])
        seeds.append(found["train_seed"])
    judged = judge_transfer(contract.metric, scores["candidate"], scores["baseline"], where=setting.told())
    hardware = contract.hardware
    result = Transfer(
        candidate=journey.candidate,
        tree=state.candidates[journey.candidate].tree,
        baseline=state.candidates[state.baseline].tree,
        env=setting.env,
        budget=RunBudget(unit=contract.budget.stop_unit, amount=contract.budget.stop_amount),
        times=setting.times,
        hardware=f"{hardware.host}, {hardware.device}, {hardware.cores_per_run} cores a run"[:200],
        train_seeds=tuple(seeds),
        ours=tuple(scores["candidate"]),
        theirs=tuple(scores["baseline"]),
        gain=judged.gain.estimate if judged.gain else None,
        gain_low=judged.gain.low if judged.gain else None,
        gain_high=judged.gain.high if judged.gain else None,
        says=sentence(judged.says),
    )
    path, text = at / "transfer.json", dumps(result)
    if bench.study.machine.read(str(path)) != text:
        write_file(bench.study.machine, path, text)
        says = sentence(f"{journey.candidate} was tried elsewhere, outside of every claim. {judged.says}")
        bench.study.append(Actor.ENGINE, Note(says=says))
    return result


@dataclass(slots=True)
class _Progress:
    """How far a journey has come, and how long it may still take."""

    journey: Journey
    wanted: int
    began: int = 0
    done: int = 0
    since: float = 0.0

    def begin(self, doing: str) -> None:
        self.since, self.began = self.since or time.monotonic(), self.began + 1
        left = ""
        if self.done:
            earlier = self.began - 1  # one that still runs beside is nearly done, as it began with the one that ended
            seconds = (time.monotonic() - self.since) / earlier * (self.wanted - earlier)
            left = f", about {seconds / 60:.0f} min left" if seconds >= 90 else f", about {seconds:.0f} s left"
        self.journey.tell(f"{doing} ({self.began} of {self.wanted} runs{left})")
