"""Attacks by the change that a candidate proposes, put before the real gate of a real study."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from overnight.admission import Who, admit_candidate, approve_clauses, propose_copy, read_terms
from overnight.attack.attacks import Attack
from overnight.begin import Place, begin_repository
from overnight.candidate.copy import write_copy
from overnight.candidate.tree import Store
from overnight.contract.draft import Stated
from overnight.errors import OvernightError
from overnight.machine import RealMachine
from overnight.records.approval import Strength
from overnight.records.contract import Clause
from overnight.records.proposal import Proposal
from overnight.records.refusal import Reason, Refusal
from overnight.study import yaml
from overnight.study.layout import StudyFolder
from overnight.study.study import Study

_MACHINE = RealMachine()
_FILES = {
    "train.py": "SEED = 1\nLEARNING_RATE = 0.001\nprint('training')\n",
    "evaluate.py": "print('the score')\n",
    "config.json": '{"gamma": 0.99}\n',
    "policy/net.py": "WIDTH = 64\n",
    "policy/frozen.py": "LIMIT = 1.0\n",
}
Edit = Callable[[Path], object]
"""Changes a plain copy of the project."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeAttack(Attack):
    """One change, and the rule that must refuse it."""

    edit: Edit
    rule: str
    """The rule of the gate; empty where the change is refused before it becomes a candidate."""
    said: Mapping[str, Any]
    """What the proposal says otherwise than usual."""


def _one(name: str, tries: str, rule: str, edit: Edit, **said: Any) -> ChangeAttack:  # noqa: ANN401 - a proposal's fields
    return ChangeAttack(
        id=name,
        family=said.pop("family", "files"),
        tries=tries,
        stopped_by=f"the rule `{rule}`" if rule else "copies are read without following anything",
        seen="a change gets past the gate",
        edit=edit,
        rule=rule,
        said=said,
    )


def _write(path: str, text: str) -> Edit:
    def edit(copy: Path) -> None:
        (copy / path).parent.mkdir(exist_ok=True)
        (copy / path).write_text(text)

    return edit


def _spread(copy: Path) -> None:
    for number in range(400):
        (copy / "policy" / f"part{number}.py").write_text("X = 1\n")


def _link(copy: Path) -> None:
    (copy / "policy" / "net.py").unlink()
    (copy / "policy" / "net.py").symlink_to("/etc/passwd")


def _repository(copy: Path) -> None:
    """A nested repository whose settings name a program."""
    (copy / "policy" / ".git").mkdir()
    (copy / "policy" / ".git" / "config").write_text("[core]\n    fsmonitor = touch owned\n")


_TRAINED = "WEIGHTS = '" + "QUJD" * 300 + "'\n"

ATTACKS: tuple[ChangeAttack, ...] = (
    _one(
        "edit-the-evaluator",
        "edits the evaluator of the project",
        "surface",
        _write("evaluate.py", "print('score: 99999')\n"),
    ),
    _one(
        "edit-what-is-protected",
        "edits a protected file among open ones",
        "surface",
        _write("policy/frozen.py", "LIMIT = 1e9\n"),
    ),
    _one(
        "conftest",
        "adds a file that a test runner would load by itself",
        "surface",
        _write("conftest.py", "print('all passed')\n"),
    ),
    _one(
        "weights-in-the-code",
        "carries a trained policy as a long word in its source",
        "embedded-data",
        _write("policy/net.py", _TRAINED),
        family="budget",
    ),
    _one(
        "weights-in-a-file",
        "carries a trained policy as a binary file",
        "embedded-data",
        lambda copy: (copy / "policy" / "start.npz").write_bytes(b"PK\3\4\0\0" + bytes(256)),
        family="budget",
    ),
    _one("too-much-to-read", "changes more files than anybody can review", "change-size", _spread),
    _one(
        "set-the-seed",
        "sets another seed and calls it an idea",
        "seeds",
        _write("train.py", "SEED = 137\nLEARNING_RATE = 0.001\nprint('training')\n"),
        family="statistics",
    ),
    _one(
        "seed-in-the-settings",
        "sets a seed in a settings file",
        "seeds",
        _write("config.json", '{"gamma": 0.99, "env": {"seed": 137}}\n'),
        family="statistics",
    ),
    _one("link-in-the-tree", "makes a source file a link to a file of the host's", "file-modes", _link),
    _one("name-that-is-gits", "hides a nested repository whose settings name a program", "", _repository),
    _one(
        "another-class",
        "proposes a change of a kind that nobody approved",
        "experiment-class",
        _write("policy/net.py", "WIDTH = 128\n"),
        kind="reward",
    ),
    _one(
        "unknown-proposer",
        "proposes in a name that nobody approved",
        "experiment-class",
        _write("policy/net.py", "WIDTH = 129\n"),
        proposer="agent",
    ),
)


@contextmanager
def study_in(folder: Path) -> Iterator["Project"]:
    """An approved study of a small repository; its key lies beside it and not in the user's home."""
    state = os.environ.get("XDG_STATE_HOME")
    os.environ["XDG_STATE_HOME"] = str(folder / "state")
    try:
        yield Project(_begin(folder / "project"))
    finally:
        os.environ.pop("XDG_STATE_HOME")
        if state is not None:
            os.environ["XDG_STATE_HOME"] = state


@dataclass(slots=True)
class Project:
    """A study whose gate is asked."""

    at: StudyFolder
    copies: int = 0

    def ask(self, attack: ChangeAttack) -> tuple[Reason, ...]:
        """Put a change before the gate; what the gate says, or what was said before it was even asked."""
        store = Store(_MACHINE, self.at.task.root.store)
        self.copies += 1
        copy = self.at.task.root.project.parent / f"copy-{self.copies}"
        usual = {"proposer": "human", "kind": "code", "hypothesis": attack.id, "predicted_effect": "It rises."}
        with Study.open(_MACHINE, self.at, doing="the gallery") as study:
            write_copy(store, store.tree_of(study.state.tip), copy)
            attack.edit(copy)
            try:
                drafted = propose_copy(study, store, Proposal(**{**usual, **attack.said}), copy)
            except OvernightError as refused:
                return (Reason(rule="proposal", says=refused.what),)
            return drafted.reasons if isinstance(drafted, Refusal) else admit_candidate(study, store, drafted.id)


def _begin(project: Path) -> StudyFolder:
    for name, text in _FILES.items():
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(text)
    _commit(project)
    at = begin_repository(_MACHINE, Place(project), Stated()).at
    terms: Any = yaml.load(at.contract.read_bytes(), where="contract")
    _complete(terms)
    at.contract.write_text(yaml.dump(terms))
    with Study.open(_MACHINE, at, doing="the gallery") as study:
        approve_clauses(study, read_terms(_MACHINE, at), tuple(Clause), Who("gallery", Strength.TERMINAL))
    return at


def _commit(project: Path) -> None:
    names = {"GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "A", "GIT_COMMITTER_EMAIL": "a@b"}
    env = {"PATH": os.environ.get("PATH", os.defpath), "GIT_CONFIG_GLOBAL": "/dev/null", "HOME": "/nonexistent"}
    for words in (("init", "--quiet"), ("add", "--all"), ("commit", "--quiet", "--message=Train")):
        done = _MACHINE.run_process(("git", "-C", str(project), *words), env={**env, **names}, limit_seconds=30.0)
        if done.returncode != 0:
            raise OSError(done.stderr.decode(errors="replace"))


def _complete(terms: dict[str, Any]) -> None:
    """Say what a repository's draft leaves unknown."""
    guard = {"name": "worst_decile_return", "direction": "higher", "margin": 0.0}
    terms["task"] |= {"mission": "Walk further.", "non_goals": ["Real hardware."]}
    terms["task"]["env"] = {"backend": "gymnasium", "id": "CartPole-v1"}
    terms["metric"] |= {"name": "episode_return", "unit": "return", "direction": "higher"}
    terms["metric"] |= {"source": "episode_return", "guardrails": [guard]}
    terms["scope"] |= {"paths": ["train.py", "config.json", "policy/**"], "protected": ["policy/frozen.py"]}
    terms["budget"] |= {"stop_amount": 1000, "max_wall_hours": 1}
    terms["baseline"]["command"] = ["python", "train.py"]
    terms["experiments"]["kinds"] = ["hyperparameter", "code"]
