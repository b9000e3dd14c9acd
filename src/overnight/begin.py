"""From an environment or a repository to a drafted study: everything that happens before the loop.

Each step is done only if it is not done yet, so a beginning that was interrupted is
finished by beginning again, and a second beginning changes nothing.
"""

import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from overnight import __version__
from overnight.candidate.build import params_bytes
from overnight.candidate.tree import REGULAR, Store, UserCommit, user_commit
from overnight.contract import draft, trainers
from overnight.contract.draft import EnvFacts, Ground, Stated
from overnight.contract.read import read
from overnight.errors import UserError
from overnight.evaluate.seeds import new_key
from overnight.isolation import drafted
from overnight.ports import Machine
from overnight.records import strict_json
from overnight.records.codec import decode
from overnight.records.contract import PARAMS_FILE, Clause, Task
from overnight.records.entry import Created
from overnight.records.env import EnvSpec
from overnight.records.lifecycle import Actor
from overnight.room import usable_cores
from overnight.study import yaml
from overnight.study.durable import write_file
from overnight.study.layout import STATE_FOLDER, Root, StudyFolder, check_project
from overnight.study.ledger import read_sound
from overnight.study.study import Study, activate, lay_out

EPISODE_STEPS = 1000
"""Where an episode is cut in the draft when its environment sets no limit."""
_ENTRY_POINTS = ("train*.py", "*/train*.py", "eval*.py", "*/eval*.py", "main.py", "*/main.py")


@dataclass(frozen=True, slots=True)
class Begun:
    """A study that is ready to be read and approved."""

    at: StudyFolder
    new: bool
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Place:
    """Where a study is begun, and under which names; a missing task name is taken from what it is about."""

    project: Path
    task: str | None = None
    study: str = "first"


def begin_env(machine: Machine, place: Place, stated: Stated) -> Begun:
    """Draft a study of one Gymnasium environment with a built-in trainer: no repository is needed."""
    decode(EnvSpec, {"backend": "gymnasium", "id": stated.env}, where="environment")
    at = _at(place, stated.env or "")
    if at.contract.exists() and _has_entries(machine, at):
        return _again(machine, at, stated)
    trainer = stated.trainer or trainers.DEFAULT
    space = trainers.space(trainer)
    params, source = space.defaults(), space.source
    if stated.recipe and stated.cold:
        raise UserError(
            "--cold",
            "withholds the recipes of this family, but --recipe takes one as the baseline",
            hint="leave one of the two out",
        )
    if stated.recipe:
        found = trainers.need_recipe(trainer, stated.env or "")
        params, source = {**params, **found.params}, f"Overnight's recipe for {found.family}. {found.source}"
    if stated.params:
        params, source = {**params, **trainers.fitting(space, stated.params)}, _changed_source(source, stated.params)
    facts, notes = _with_an_end(*env_facts(machine, stated.env or ""))
    trainers.check_actions(trainer, facts.actions)
    store = Store(machine, at.task.root.store)
    lay_out(machine, at)
    store.create()
    blob = store.write_blob(params_bytes(params))
    tree = store.write_tree(None, {PARAMS_FILE: (REGULAR, blob)}, scratch=at.folder)
    baseline = {"command": list(trainers.command(trainer)), "source": source}
    tier, why = drafted()
    text = draft.for_env(
        stated,
        facts,
        Ground(at.task.name, tree, tier=tier, slots=usable_cores()),
        keys=tuple(one.name for one in space.parameters),
        trainer=baseline,
    )
    return _create(machine, at, store, tree, text, (*notes, *why))


def _changed_source(source: str, params: Mapping[str, object]) -> str:
    changes = ", ".join(f"{key} is {value}" for key, value in params.items())
    return f"{source} Stated for this study: {changes}."


def begin_repository(machine: Machine, place: Place, stated: Stated) -> Begun:
    """Draft a study of the training repository that the project's folder belongs to, without changing it."""
    project = check_project(place.project)
    if stated.trainer is not None:
        raise UserError(
            "--trainer",
            f"names the built-in trainer {stated.trainer!r}, but a repository trains by its own command",
            hint="name an environment instead of the repository, or leave --trainer out",
        )
    for option, said in (("--cold", stated.cold), ("--set", stated.params)):
        if said:
            raise UserError(
                option,
                "is about the settings of a built-in trainer, but a repository trains by its own command",
                hint=f"name an environment instead of the repository, or leave {option} out",
            )
    source = user_commit(machine, project)
    if source is None:
        raise UserError(
            str(project),
            "is not a git repository, and no environment was named",
            hint="`overnight init CartPole-v1` needs no repository; for your own code, `git init` and commit it first",
        )
    at = _at(place, project.name)
    if at.contract.exists() and _has_entries(machine, at):
        return _again(machine, at, stated)
    facts, notes = env_facts(machine, stated.env) if stated.env is not None else (EnvFacts(), ())
    store = Store(machine, at.task.root.store)
    lay_out(machine, at)
    store.create(object_format=source.object_format)
    if store.object_format() != source.object_format:
        raise UserError(
            str(at.task.root.store),
            f"uses git's {store.object_format()} ids, but your repository uses {source.object_format}",
            hint="begin this study in a folder without an `.overnight` of its own",
        )
    tree = store.adopt_tree(source.objects, source.commit)
    evidence = _entry_points(store, tree)
    tier, why = drafted()
    text = draft.for_repository(stated, facts, Ground(at.task.name, tree, source.commit, evidence, tier))
    return _create(machine, at, store, tree, text, (*notes, *why, *_uncommitted_note(source)))


def begin_single_file(machine: Machine, place: Place, stated: Stated, *, seconds: int) -> Begun:
    """Draft a study of a repository with one file to change, as `scaffold` writes it. Nothing stays unknown."""
    project = check_project(place.project)
    source = user_commit(machine, project)
    if source is None:
        raise UserError(str(project), "is not a git repository", hint="`overnight new single-file` makes one")
    at = _at(place, stated.env or "")
    if at.contract.exists() and _has_entries(machine, at):
        return _again(machine, at, stated)
    facts, notes = _with_an_end(*env_facts(machine, stated.env or ""))
    store = Store(machine, at.task.root.store)
    lay_out(machine, at)
    store.create(object_format=source.object_format)
    tree = store.adopt_tree(source.objects, source.commit)
    tier, why = drafted()
    ground = Ground(at.task.name, tree, source.commit, tier=tier)
    text = draft.for_single_file(stated, facts, ground, seconds=seconds)
    if not at.program.exists():  # one page of direction: whoever edits it in the repository steers the night
        at.program.symlink_to(os.path.relpath(project / at.program.name, at.folder))
    return _create(machine, at, store, tree, text, (*notes, *why))


def env_facts(machine: Machine, env: str) -> tuple[EnvFacts, tuple[str, ...]]:
    """Ask the installed packages about an environment, in a process of its own."""
    try:
        done = machine.run_process(
            (sys.executable, "-I", "-m", "overnight.evaluate.describe", env),
            env={"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"},
            limit_seconds=60.0,
        )
    except (OSError, TimeoutError) as error:
        return EnvFacts(), (f"Nothing could be found out about {env}: {error}.",)
    said = strict_json.parse(done.stdout.strip() or b"{}", where=f"facts about {env}")
    facts = said if isinstance(said, dict) else {}
    if facts.get("missing"):
        raise UserError(env, str(facts.get("why", "is not known")), hint=str(facts.get("hint", "")))
    if not facts.get("proven"):
        why = facts.get("why", "it could not be asked")
        return EnvFacts(), (
            f"The environment was not looked up ({why}); `pip install overnight[gym]` makes that possible.",
        )
    steps = facts.get("max_episode_steps")
    threshold = facts.get("reward_threshold")
    actions = facts.get("actions")
    return EnvFacts(
        max_episode_steps=steps if isinstance(steps, int) else None,
        reward_threshold=float(threshold) if isinstance(threshold, (int, float)) else None,
        actions=actions if isinstance(actions, str) else None,
        proven=True,
    ), ()


def _with_an_end(facts: EnvFacts, notes: tuple[str, ...]) -> tuple[EnvFacts, tuple[str, ...]]:
    """An episode must have an end, or it could not be measured; what nobody limited is limited by the draft."""
    if not facts.proven or facts.max_episode_steps is not None:
        return facts, notes
    says = f"The environment sets no limit to an episode, so the draft cuts it after {EPISODE_STEPS:,} steps."
    return replace(facts, max_episode_steps=EPISODE_STEPS), (*notes, says)


def _at(place: Place, about: str) -> StudyFolder:
    root = Root(check_project(place.project) / STATE_FOLDER)
    return root.task(place.task or slug(about)).study(place.study)


def slug(text: str) -> str:
    """A task name made from an environment's id or a folder's name."""
    last = text.rpartition(":")[2].rpartition("/")[2]
    words = re.sub(r"-v[0-9]+$", "", last)
    return re.sub(r"[^a-z0-9]+", "-", words.lower()).strip("-")[:40].rstrip("-") or "task"


def _has_entries(machine: Machine, at: StudyFolder) -> bool:
    return bool(read_sound(machine, at.folder).hashes)


def _again(machine: Machine, at: StudyFolder, stated: Stated) -> Begun:
    """A study that is there already becomes the active one; nothing else about it changes."""
    task = read(machine.read(str(at.contract)) or b"", where=str(at.contract)).clauses.get(Clause.TASK)
    if stated.env is not None and isinstance(task, Task) and task.env.id != stated.env:
        raise UserError(
            f"{at.task.name}/{at.name}",
            f"is there already, for {task.env.id} and not for {stated.env}",
            hint="name another with --task or --study",
        )
    activate(machine, at)
    return Begun(at, new=False, notes=(f"{at.task.name}/{at.name} is there already; its terms were not changed.",))


def _create(machine: Machine, at: StudyFolder, store: Store, tree: str, text: str, notes: tuple[str, ...]) -> Begun:
    commit = store.write_commit(tree, (), f"Baseline of {at.task.name}/{at.name}\n", at=0)
    write_file(machine, at.contract, text.encode())
    _write_pages(machine, at)
    with Study.open(machine, at, doing="overnight init") as study:
        store.clear_stale_locks(at.ref())
        for name in ("tip", "incumbent"):
            if store.ref(at.ref(name)) is None:
                store.move_ref(at.ref(name), commit, old=None)
        if not study.state.task:
            created = Created(
                task=at.task.name,
                study=at.name,
                commit=commit,
                tree=tree,
                version=__version__,
                seed_commitment=new_key()[1],
            )
            study.append(Actor.ENGINE, created)
    activate(machine, at)
    return Begun(at, new=True, notes=notes)


def _write_pages(machine: Machine, at: StudyFolder) -> None:
    if not at.program.exists():
        write_file(machine, at.program, _PROGRAM.encode())
    if not at.task.card.exists():
        card = f"# {at.task.name}\n\nMission, constraints and non-goals stand in the first clause of each contract.\n"
        write_file(machine, at.task.card, card.encode())
    if not at.task.adapter.exists():
        known = {"train_command": "unknown", "evaluate_command": "unknown", "logs": "unknown"}
        write_file(machine, at.task.adapter, yaml.dump(known).encode())


_PROGRAM = """# Direction

Write here, in plain words, what you would try next and what you would leave alone.
Proposers read this page before every idea, so it may be edited while the night runs.
Hard limits do not belong here: they stand in the contract, where they are checked.
"""


def _entry_points(store: Store, tree: str) -> tuple[str, ...]:
    paths = [Path(file.path) for file in store.files(tree)]
    found = [path.as_posix() for path in paths if any(path.match(pattern) for pattern in _ENTRY_POINTS)]
    return tuple(sorted(found, key=lambda path: (path.count("/"), path))[:8])


def _uncommitted_note(source: UserCommit) -> tuple[str, ...]:
    return (f"The baseline is the commit {source.commit[:12]}; changes that are not committed are not part of it.",)
