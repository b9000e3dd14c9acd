"""Bringing a result home: a policy that stands alone, parameters, a patch, or a branch.

What is taken is the tree that the ledger names and the policy that the run's supervisor took;
each is checked against the record before it is written. Everything is checked before anything
is written, so that a refusal leaves nothing behind.
"""

import shutil
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

from overnight.admission import find_candidate, read_terms
from overnight.candidate.branch import Ground, Step, find_ground, grow
from overnight.candidate.build import params_bytes, params_of
from overnight.candidate.tree import Store
from overnight.claims import Claim, claims, incumbent, median_run, stack
from overnight.decide.certify import MEANING
from overnight.errors import Refused, UserError
from overnight.evaluate.architectures import POLICY, WEIGHTS, kind_of
from overnight.evaluate.measure import measure
from overnight.ports import Machine
from overnight.records import strict_json
from overnight.records.codec import encode
from overnight.records.contract import PARAMS_FILE, Contract
from overnight.records.text import line
from overnight.report.text import markdown
from overnight.run.harvest import harvest
from overnight.run.launch import exit_of
from overnight.study.durable import make_folder, write_file
from overnight.study.layout import StudyFolder
from overnight.study.ledger import RawEntry, read_sound
from overnight.study.state import CandidateState, StudyState
from overnight.study.study import read_state

PUBLIC_SEEDS = range(20)
"""The seeds of a taken policy's check. They are no secret, and no decision rests on them."""


@dataclass(slots=True)
class Source:
    """One study, read for what can be taken from it."""

    machine: Machine
    at: StudyFolder
    state: StudyState
    contract: Contract
    entries: list[RawEntry] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Read every entry; a ledger that is not sound ends it here."""
        if not self.entries:
            read_sound(self.machine, self.at.folder, lambda entry, _: self.entries.append(entry))

    @property
    def store(self) -> Store:
        """The candidate store."""
        return Store(self.machine, self.at.task.root.store)

    @property
    def called(self) -> str:
        """The study's full name."""
        return f"{self.at.task.name}/{self.at.name}"

    def claim_on(self, candidate: str) -> Claim | None:
        """The certified gain of a candidate, where there is one."""
        found = claims(self.state, self.entries, self.contract)
        return next((one for one in found if one.candidate == candidate), None)

    def candidate(self, name: str | None) -> CandidateState:
        """A candidate by its id or as `baseline`; without a name, the incumbent."""
        if not self.state.baseline:
            raise UserError(self.called, "has not trained anything yet", hint="`overnight start` does")
        if name is None or name == "baseline":
            return self.state.candidates[incumbent(self.state) if name is None else self.state.baseline]
        return find_candidate(self.state, name)

    def run_of(self, candidate: str, wanted: str | None = None) -> str:
        """The run whose policy stands for a candidate: the median one, or the one that is asked for."""
        if wanted is None:
            found = median_run(self.state, candidate)
            if found is None:
                raise Refused(candidate, ("No run of it was completed, so it has no policy.",))
            return found
        run = self.state.runs.get(wanted)
        if run is None or run.candidate != candidate or run.score is None:
            scored = [
                name for name, one in self.state.runs.items() if one.candidate == candidate and one.score is not None
            ]
            hint = f"choose from {', '.join(scored)}" if scored else ""
            raise UserError("--run", f"{wanted[:40]!r} is not a measured run of {candidate}", hint=hint)
        return wanted


def read_source(machine: Machine, at: StudyFolder) -> Source:
    """A study as it stands, or a sentence that says why nothing can be taken from it."""
    state, contract = read_state(machine, at, quickly=False), read_terms(machine, at).contract()
    if contract is None:
        raise UserError(str(at.contract), "is not complete", hint="`overnight contract check` lists what is missing")
    return Source(machine, at, state, contract)


class Wish(NamedTuple):
    """What is to be taken, and where to."""

    policy: Path | None = None
    config: Path | None = None
    patch: Path | None = None
    branch: str | None = None
    run: str | None = None
    force: bool = False


class Taking(NamedTuple):
    """One candidate on its way home."""

    source: Source
    candidate: CandidateState
    claim: Claim | None


def choose(source: Source, name: str | None, *, uncertified: bool) -> Taking:
    """The candidate to take; one that was never certified only for somebody who says so."""
    one = source.candidate(name)
    if name is None and uncertified and one.id == source.state.baseline:
        one = _tip(source)
    claim = source.claim_on(one.id)
    if claim is None and not uncertified:
        raise Refused(
            one.id, (_why_not(source, one, named=name is not None),), hint="`--uncertified` takes it as it is"
        )
    return Taking(source, one, claim)


def _tip(source: Source) -> CandidateState:
    state = source.state
    return state.candidates[state.stack[-1] if state.stack else state.baseline]


def _why_not(source: Source, one: CandidateState, *, named: bool) -> str:
    if one.id == source.state.baseline:
        if named:
            return "It is the baseline, which every gain is measured against."
        return "No candidate is certified; the incumbent is still the baseline."
    whole = [claim for claim in claims(source.state, source.entries, source.contract) if one.id in claim.stack]
    if whole:
        return f"It was certified as a part of {whole[-1].candidate}, and never by itself."
    return f"It was never certified; it is {one.state}."


def take(taking: Taking, wish: Wish) -> dict[str, Any]:
    """Write everything that is wished for, and say what was written."""
    source, one = taking.source, taking.candidate
    if not any((wish.policy, wish.config, wish.patch, wish.branch)):
        raise UserError(
            "overnight take", "needs at least one of `--policy`, `--config`, `--patch` and `--branch`",
            hint="`overnight take --policy better`",
        )  # fmt: skip
    _check_tree(source, one)
    run = source.run_of(one.id, wish.run) if wish.policy is not None else None
    ground = _check_targets(taking, wish)
    told: dict[str, Any] = {"candidate": one.id, **claim_fields(taking)}
    if wish.policy is not None and run is not None:
        told |= {"policy": str(wish.policy), "run": run, "returns": write_policy(taking, run, wish.policy)}
    if wish.config is not None:
        write_file(source.machine, wish.config, _config(taking))
        told["config"] = str(wish.config)
    if wish.patch is not None:
        write_file(source.machine, wish.patch, source.store.patch(source.state.tree, one.tree))
        told["patch"] = str(wish.patch)
    if ground is not None:
        told |= {"branch": ground.name, "commit": _write_branch(taking, ground)}
    return told


def _check_tree(source: Source, one: CandidateState) -> None:
    """Refuse a candidate whose commit in the store is not the one that the ledger names."""
    stored = source.store.ref(source.at.ref("candidates", one.id))
    if stored != one.commit or source.store.tree_of(one.commit) != one.tree:
        raise Refused(one.id, ("The store has another tree under this name than the ledger.",))


def _check_targets(taking: Taking, wish: Wish) -> Ground | None:
    source, one = taking.source, taking.candidate
    for path in (wish.config, wish.patch):
        if path is not None and path.exists() and not wish.force:
            raise UserError(str(path), "is there already", hint="`--force` writes over it")
    for path in (wish.policy, wish.config, wish.patch):
        if path is not None and not path.absolute().parent.is_dir():
            raise UserError(str(path), "lies in a folder that does not exist", hint="make it first")
    if wish.policy is not None and wish.policy.exists() and (not wish.policy.is_dir() or any(wish.policy.iterdir())):
        raise UserError(str(wish.policy), "is there already, and not an empty folder", hint="name a new one")
    if wish.config is not None and source.contract.scope.preset != "params":
        raise UserError("--config", "this study changes files, not parameters", hint="take `--patch` or `--branch`")
    if (wish.patch or wish.branch) and one.id == source.state.baseline:
        raise UserError(one.id, "is the baseline, so there is no change to take")
    if wish.branch is None:
        return None
    return _ground(source, wish.branch)


def _ground(source: Source, branch: str) -> Ground:
    """Where a branch would stand: on the commit that the study began with, or on HEAD where there is none."""
    began = source.contract.baseline.source_commit
    ground = find_ground(source.machine, source.at.task.root.project, branch, revision=began or "HEAD")
    theirs = Store(source.machine, ground.repository.git_dir)
    if began is not None and theirs.tree_of(ground.repository.commit) != source.state.tree:
        raise Refused("--branch", (f"The commit {began[:12]} is not the baseline that the ledger names.",))
    return ground


# What is said about it


def claim_fields(taking: Taking) -> dict[str, Any]:
    """The claim as data: what was certified, where, and how to see it again."""
    source, claim = taking.source, taking.claim
    said: dict[str, Any] = {
        "certified": claim is not None,
        "says": claim.sentence if claim is not None else "This was never certified.",
        "study": source.called,
        "environment": source.contract.task.env.id,
        "reproduce": f"overnight reproduce {taking.candidate.id}",
    }
    if claim is not None:
        said |= {key: claim.decision[key] for key in ("gain", "gain_low", "gain_high")}
        said |= {"meaning": MEANING, "ledger_head": source.state.head}
    return said


def _config(taking: Taking) -> bytes:
    params = params_of(taking.source.store, taking.candidate.tree)
    claim = {"candidate": taking.candidate.id, **claim_fields(taking)}
    return strict_json.pretty({"params": dict(sorted(params.items())), "claim": claim})


def _write_branch(taking: Taking, ground: Ground) -> str:
    source = taking.source
    steps = [_step(taking, source.state.candidates[name]) for name in stack(source.state, taking.candidate.id)]
    machine = source.machine
    return grow(machine, ground, steps, store=source.store, at=machine.now(), scratch=source.at.folder)


def _step(taking: Taking, idea: CandidateState) -> Step:
    source, whole = taking.source, taking.candidate.id
    said = claim_fields(taking)
    lead = "" if idea.id == whole else f"A part of {whole}: "
    message = (
        f"{line(idea.hypothesis)}\n\n{lead}{said['says']}\n\n"
        f"Study: {source.called}\nCandidate: {idea.id}\nReproduce: {said['reproduce']}\n"
    )
    if source.contract.baseline.source_commit is not None:
        return Step(message, tree=idea.tree)
    params = params_bytes(params_of(source.store, idea.tree))
    return Step(message, file=(f"overnight/{source.at.task.name}/{PARAMS_FILE}", params))


# A policy that stands alone


def write_policy(taking: Taking, run: str, target: Path) -> list[float]:
    """Write a folder that plays the run's policy without Overnight, and the returns to be expected of it."""
    source = taking.source
    beside = target.absolute().with_name(f".{target.name}.new")
    shutil.rmtree(beside, ignore_errors=True)
    try:
        make_folder(source.machine, beside)
        kind = _copy_policy(source, run, beside)
        measured = expected_returns(source, run)
        _write_pages(taking, run, kind, measured, beside)
        beside.rename(target)
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    return [total for _, total, _ in measured]


def _copy_policy(source: Source, run: str, target: Path) -> str:
    """Copy the policy's files: weights beside `act.py`, code with all its files in a folder of its own."""
    folder, inner = source.at.runs / run, target / "policy"
    ended = exit_of(source.machine, folder)
    taken = harvest(folder / "policy", inner)
    if ended is None or ended.policy != taken:
        raise Refused(run, ("Its policy is not the one that its supervisor took.",))
    kind = kind_of(inner)
    if kind == "weights":
        for name in (POLICY, WEIGHTS):
            (inner / name).rename(target / name)
        shutil.rmtree(inner)
    return kind


def expected_returns(source: Source, run: str) -> tuple[tuple[int, float, int], ...]:
    """What the referee measures on the public seeds, one episode at a time as `act.py` plays them."""
    env = source.contract.task.env
    found = measure(source.machine, env, source.at.runs / run, PUBLIC_SEEDS, lanes=1)
    if found.error:
        raise Refused(run, (f"Its policy cannot be played. {found.error}",))
    return found.episodes


def _write_pages(
    taking: Taking, run: str, kind: str, measured: tuple[tuple[int, float, int], ...], target: Path
) -> None:
    source = taking.source
    episodes = [{"seed": seed, "return": total, "steps": steps} for seed, total, steps in measured]
    expected = {
        "env": encode(source.contract.task.env),
        "run": run,
        "episodes": episodes,
        "claim": claim_fields(taking),
    }
    machine = source.machine
    write_file(machine, target / "expected.json", strict_json.pretty(expected))
    write_file(machine, target / "act.py", files("overnight.taken").joinpath("act.py").read_bytes())
    mean = sum(total for _, total, _ in measured) / len(measured)
    page = _README.format(
        candidate=taking.candidate.id,
        run=run,
        env=source.contract.task.env.id,
        says=claim_fields(taking)["says"],
        meaning=f"\n{MEANING}\n" if taking.claim is not None else "",
        hypothesis=markdown(taking.candidate.hypothesis),
        mean=f"{mean:g}",
        files=_FILES[kind],
        reproduce=claim_fields(taking)["reproduce"],
    )
    write_file(machine, target / "README.md", page.encode())


_FILES = {
    "weights": "`policy.json` says which network it is; `model.safetensors` holds the weights and the normaliser.",
    "code": "`policy/` holds the policy's own files as training left them; `policy/policy.json` names its entry.",
}

_README = """# A policy for {env}

{says}
{meaning}
It is the policy of run {run} of {candidate}: {hypothesis}

## Use it

`act.py` needs NumPy. {files}

```python
import act
import gymnasium

environment = gymnasium.make("{env}")
policy = act.load(".")
observation, _ = environment.reset(seed=0)
action = act.fit(policy(observation), environment.action_space)
```

## Check it

`python act.py` plays the seeds 0 to 19 and compares each return with `expected.json`, where the mean is {mean}. It ends
with 1 when one differs. Equal to the last digit is what to expect from the same versions of NumPy, Gymnasium and the
environment; another version may round differently.

`{reproduce}`, where the study lies, trains it again from the start.
"""
