"""Small builders for tests: real studies on disk, real git, the command line, and a real terminal."""

import fcntl
import json
import os
import re
import select
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from io import FileIO
from pathlib import Path
from typing import Any, NamedTuple

from overnight import admission as loop
from overnight.admission import Who
from overnight.begin import Place, begin_env, begin_repository
from overnight.candidate.build import Ground, build
from overnight.candidate.copy import write_copy
from overnight.candidate.tree import Store
from overnight.contract.approve import AGENT_HOSTS
from overnight.contract.draft import Stated
from overnight.contract.read import Reading
from overnight.machine import RealMachine
from overnight.records.approval import Strength
from overnight.records.codec import decode, digest
from overnight.records.contract import Clause, Contract
from overnight.records.decision import Decision, LoopDecision, Verdict
from overnight.records.evidence import Evidence
from overnight.records.lifecycle import Actor, State
from overnight.records.proposal import Proposal
from overnight.records.refusal import Reason, Refusal
from overnight.records.run import Outcome, Run, RunEnd
from overnight.study import yaml
from overnight.study.layout import StudyFolder
from overnight.study.state import StudyState
from overnight.study.study import Study, active_study, read_state

MACHINE = RealMachine()
TESTER = Who("tester", Strength.TERMINAL)
WAIT_SECONDS = 60.0


# Studies


@dataclass(frozen=True, slots=True)
class Scene:
    """One study on disk, and what the people and the cheaters of a test do to it."""

    at: StudyFolder

    @property
    def project(self) -> Path:
        """The folder that holds `.overnight/`."""
        return self.at.task.root.project

    @property
    def store(self) -> Store:
        """The candidate store."""
        return Store(MACHINE, self.at.task.root.store)

    def open(self) -> Study:
        """Take the study for writing."""
        return Study.open(MACHINE, self.at, doing="a test")

    def state(self) -> StudyState:
        """The state, folded from the ledger on disk."""
        return read_state(MACHINE, self.at, quickly=False)

    def terms(self) -> Reading:
        """The contract as it stands on disk."""
        return loop.read_terms(MACHINE, self.at)

    def contract(self) -> Contract:
        """The contract, which must be complete."""
        found = self.terms().contract()
        assert found is not None
        return found

    def standings(self) -> dict[str, str]:
        """Each clause and where its approval stands."""
        return {str(one.clause): str(one.standing) for one in loop.standings(self.terms(), self.state())}

    def entries(self, kind: str) -> list[dict[str, Any]]:
        """What the ledger on disk holds of one kind, oldest first."""
        found = [json.loads(line)["e"] for line in self.at.ledger.read_text().splitlines()]
        return [entry["data"] for entry in found if entry["kind"] == kind]

    def state_of(self, candidate: str) -> State:
        """Where one candidate stands."""
        return self.state().candidates[candidate].state

    def edit(self, old: str, new: str) -> None:
        """Edit the contract as a person does, in the text; `old` must stand there exactly once."""
        text = self.at.contract.read_text()
        assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times in the contract"
        self.at.contract.write_text(text.replace(old, new))

    def rewrite(self, change: Callable[[dict[str, Any]], object]) -> None:
        """Edit the contract as data, where an edit of the text would be hard to read."""
        data: Any = yaml.load(self.at.contract.read_bytes(), where="contract")
        change(data)
        self.at.contract.write_text(yaml.dump(data))

    def approve(self, *clauses: Clause, who: Who = TESTER) -> None:
        """Approve some clauses, or all eight."""
        with self.open() as study:
            loop.approve_clauses(study, self.terms(), clauses or tuple(Clause), who)

    def enter(self) -> None:
        """Give the word to enter the loop."""
        with self.open() as study:
            loop.enter(study, TESTER)

    def copy(self) -> Path:
        """A plain copy of the tip, to be edited."""
        target = self.project.parent / f"copy-{len(list(self.project.parent.iterdir()))}"
        write_copy(self.store, self.store.tree_of(self.state().tip), target)
        return target

    def propose(self, change: Path | Mapping[str, Any], **said: Any) -> tuple[Reason, ...]:
        """Put a copy or some parameters before the gate; return what the gate said."""
        params, base = {} if isinstance(change, Path) else dict(change), said.pop("base", None)
        proposal = proposed(params=params, **said)
        with self.open() as study:
            loop.follow_ledger(study, self.store)
            drafted = (
                loop.propose_copy(study, self.store, proposal, change, base=base)
                if isinstance(change, Path)
                else loop.propose_params(study, self.store, proposal)
            )
            if isinstance(drafted, Refusal):
                return drafted.reasons
            return loop.admit_candidate(study, self.store, drafted.id)

    def check(self, candidate: str) -> tuple[Reason, ...]:
        """Ask the gate again, as is done right before a launch."""
        with self.open() as study:
            return loop.admit_candidate(study, self.store, candidate)

    def smuggle(self, paths: Mapping[str, tuple[str, str]], *, hide: bool = False, **said: Any) -> tuple[Reason, ...]:
        """Write a tree into the store by plumbing, past every reader of copies, and put it before the gate.

        `hide` records the candidate as one that changes nothing.
        """
        with self.open() as study:
            base = study.state.tip
            tree = self.store.write_tree(self.store.tree_of(base), paths, scratch=self.at.folder)
            ground = Ground(study.state.next_candidate(), base, digest(self.contract()), MACHINE.now())
            built = build(self.store, proposed(**said), tree, on=ground)
            candidate = replace(built, changed_paths=0, changes=digest(())) if hide else built
            study.append(Actor.PROPOSER, candidate)
            self.store.move_ref(self.at.ref("candidates", candidate.id), candidate.commit, old=None)
            return loop.admit_candidate(study, self.store, candidate.id)

    def git(self, *words: str, stdin: str = "") -> str:
        """Run plain git on the candidate store, as a cheater would."""
        return git(self.project, f"--git-dir={self.at.task.root.store}", *words, stdin=stdin)

    def run_of(self, candidate: str, *, number: int = 1, **other: Any) -> Run:
        """The entry that launches one candidate."""
        contract = self.contract()
        said = {
            "id": f"r-{number:04d}",
            "candidate": candidate,
            "tree": self.store.tree_of(self.store.ref(self.at.ref("candidates", candidate)) or ""),
            "command": contract.baseline.command,
            "train_seed": number,
            "phase": "screen",
            "round": 0,
            "number": number,
            "contract": digest(contract),
            "comparability": contract.comparability(),
        }
        return Run(**{**said, **other})

    def train(self, candidate: str, *, number: int = 1, wall_seconds: float = 1.0) -> Run:
        """Write down a whole training run, as the launcher will."""
        run = self.run_of(candidate, number=number)
        with self.open() as study:
            study.append(Actor.RUNNER, run)
            ended = RunEnd(run=run.id, outcome=Outcome.COMPLETED, because="It ended.", wall_seconds=wall_seconds)
            study.append(Actor.RUNNER, ended)
        return run

    def keep(self, run: Run) -> None:
        """Write down that a run's candidate was measured, found better and kept: the tip moves on to it."""
        named = {"run": run.id, "candidate": run.candidate, "tree": run.tree, "comparability": run.comparability}
        measured = {"phase": "screen", "score": 9.0, "episodes": 20, "guardrails": {}, "artefact": "0" * 64}
        kept = Decision(
            candidate=run.candidate,
            verdict=Verdict.KEEP,
            because="It is better.",
            loop=LoopDecision.CONTINUE,
            rule="Better is better.",
            evidence=(run.id,),
        )
        with self.open() as study:
            study.append(Actor.REFEREE, decode(Evidence, {**named, **measured}, where="a test"))
            study.append(Actor.JUDGE, kept)


def proposed(**said: Any) -> Proposal:
    """A proposal, with everything that a test does not care about filled in."""
    usual = {"proposer": "human", "kind": "hyperparameter", "hypothesis": "It helps.", "predicted_effect": "It rises."}
    return Proposal(**{**usual, **said})


def scene_in(project: Path) -> Scene:
    """The active study of a project."""
    return Scene(active_study(MACHINE, project))


def draft_cartpole(project: Path, *, task: str | None = None, study: str = "first") -> Scene:
    """A drafted study of CartPole, not approved."""
    project.mkdir(parents=True, exist_ok=True)
    return Scene(begin_env(MACHINE, Place(project, task, study), Stated(env="CartPole-v1")).at)


WORST_DECILE = {"name": "worst_decile_return", "direction": "higher", "margin": 0.0}
FILES = {
    "train.py": "SEED = 1\nLEARNING_RATE = 0.001\nprint('training')\n",
    "evaluate.py": "print('the score')\n",
    "config.json": '{"gamma": 0.99}\n',
    "policy/net.py": "WIDTH = 64\n",
    "policy/frozen.py": "LIMIT = 1.0\n",
    "weights/incumbent.bin": "".join(chr(33 + number % 90) for number in range(900)),
}


def write_repository(folder: Path, files: Mapping[str, str] = FILES) -> Path:
    """A user's git repository with one commit."""
    folder.mkdir(parents=True)
    git(folder, "init", "--quiet", "--initial-branch=main")
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    git(folder, "add", "--all", "--force")
    git(folder, "commit", "--quiet", "--message=Train")
    return folder


def draft_repository(project: Path) -> Scene:
    """A drafted study of a repository, with everything unknown that nobody stated."""
    return Scene(begin_repository(MACHINE, Place(project), Stated()).at)


def complete(scene: Scene) -> None:
    """Say everything that a repository's draft leaves unknown."""

    def say(terms: dict[str, Any]) -> None:
        terms["task"] |= {"mission": "Walk further.", "non_goals": ["Real hardware."]}
        terms["task"]["env"] = {"backend": "gymnasium", "id": "CartPole-v1"}
        terms["metric"] |= {"name": "episode_return", "unit": "return", "direction": "higher"}
        terms["metric"] |= {"source": "episode_return", "guardrails": [WORST_DECILE]}
        terms["scope"] |= {"paths": ["train.py", "config.json", "policy/**"], "protected": ["policy/frozen.py"]}
        terms["budget"] |= {"stop_amount": 1000, "max_wall_hours": 1}
        terms["baseline"]["command"] = ["python", "train.py"]
        terms["experiments"]["kinds"] = ["hyperparameter", "code"]

    scene.rewrite(say)


# What a test compares


def digest_of(*roots: Path, without: Iterable[str] = ()) -> dict[str, str]:
    """Every file below some folders: its mode, its time of change, its bytes or its target."""
    left_out, found = set(without), {}
    for root in roots:
        for where, folders, names in os.walk(root):
            folders[:] = [name for name in folders if name not in left_out]
            for name in (*names, *folders):
                path = Path(where, name)
                how = path.lstat()
                body = os.readlink(path) if path.is_symlink() else sha256(path.read_bytes()) if path.is_file() else ""
                told = body if isinstance(body, str) else body.hexdigest()
                changed = how.st_mtime_ns if path.is_file() else 0
                found[str(path)] = f"{how.st_mode:o} {changed} {told}"
    return found


def said(reasons: Iterable[Reason], rule: str) -> str:
    """Everything that one rule said."""
    return " ".join(one.says for one in reasons if one.rule == rule)


def refused_in_ledger(scene: Scene, candidate: str | None, rule: str, sentence: str) -> bool:
    """Whether the ledger on disk ends its refusals with this sentence, about this candidate, from this rule."""
    last = scene.entries("refused")[-1]
    says = [reason["says"] for reason in last["reasons"] if reason["rule"] == rule]
    return last["candidate"] == candidate and any(sentence in one for one in says)


# Programs


def git(folder: Path, *words: str, stdin: str = "") -> str:
    """Run git as a user does, with no configuration of the machine's own."""
    names = {"GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "A", "GIT_COMMITTER_EMAIL": "a@b"}
    env = clean_env(GIT_CONFIG_GLOBAL="/dev/null", GIT_CONFIG_NOSYSTEM="1", **names)
    done = subprocess.run(
        ["git", *words], cwd=folder, env=env, input=stdin, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def clean_env(**extra: str) -> dict[str, str]:
    """The environment of a person's shell: no agent host, no git variables."""
    kept = {k: v for k, v in os.environ.items() if k not in AGENT_HOSTS and not k.startswith(("GIT_", "COLUMNS"))}
    return {**kept, **extra}


def overnight(
    *words: str | bytes, cwd: Path, env: Mapping[str, str] | None = None, stdin: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run one command line as a process of its own, without a controlling terminal."""
    return subprocess.run(
        [sys.executable, "-m", "overnight.cli.main", *words],
        cwd=cwd,
        env=clean_env() if env is None else env,
        input=stdin,
        capture_output=True,
        text=True,
        timeout=WAIT_SECONDS,
        start_new_session=True,
        check=False,
    )


class Said(NamedTuple):
    """What came of a verb that was called in this very process."""

    code: int
    stdout: str
    stderr: str


class Seen(NamedTuple):
    """What came of a command at a terminal."""

    code: int
    terminal: str
    stdout: str
    stderr: str


def at_terminal(
    *words: str,
    cwd: Path,
    types: Callable[[str], str] = lambda word: f"{word}\n",
    env: Mapping[str, str] | None = None,
) -> Seen:
    """Run one command line under a controlling terminal, and answer the word that it shows there."""
    ours, theirs = os.openpty()  # ours stays open on both sides, so that a read never ends before the program does
    with (
        tempfile.TemporaryFile("w+") as stdout,
        tempfile.TemporaryFile("w+") as stderr,
        open(ours, "r+b", buffering=0) as terminal,
        open(theirs, "r+b", buffering=0),
        subprocess.Popen(
            [sys.executable, "-m", "overnight.cli.main", *words],
            cwd=cwd,
            env=clean_env() if env is None else env,
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(theirs, termios.TIOCSCTTY, 0),
        ) as process,
    ):
        try:
            shown = _converse(terminal, process, types)
        finally:
            process.kill()
        stdout.seek(0)
        stderr.seek(0)
        return Seen(process.wait(), shown, stdout.read(), stderr.read())


def _converse(terminal: FileIO, process: subprocess.Popen[bytes], types: Callable[[str], str]) -> str:
    """Read until the program has ended; answer its question once, when it is complete."""
    shown, answered, deadline = "", False, time.monotonic() + WAIT_SECONDS
    while time.monotonic() < deadline:
        ended = process.poll() is not None
        while select.select([terminal], [], [], 0.0 if ended else 0.02)[0]:
            shown += (terminal.read(65536) or b"").decode(errors="replace")
        asked = re.search(r"Type (\S+) to approve, anything else to leave it: ", shown)
        if asked and not answered:
            terminal.write(types(asked.group(1)).encode())
            answered = True
        if ended:
            return shown
    raise TimeoutError(f"the program did not end; the terminal showed {shown[-500:]!r}")
