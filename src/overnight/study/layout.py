"""Where everything lies. The only module that knows a path inside `.overnight/`."""

import re
from dataclasses import dataclass
from pathlib import Path

from overnight.errors import UserError

STATE_FOLDER = ".overnight"
_SLUG = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")
_RECORD_ID = re.compile(r"[acr]-[0-9]{4,9}")


def check_slug(text: str, *, called: str) -> str:
    """Return a task or study name unchanged, or refuse one that could leave its folder."""
    if not _SLUG.fullmatch(text):
        raise UserError(
            called,
            f"is {text[:80]!r}, but 1 to 40 lower-case letters, digits and hyphens are needed",
            hint="for example `cartpole`",
        )
    return text


def check_id(text: str, *, letter: str, called: str) -> str:
    """Return a candidate or run id unchanged, or refuse what the engine never gave out."""
    if not _RECORD_ID.fullmatch(text) or text[0] != letter:
        raise UserError(
            called,
            f"is {text[:80]!r}, but an id such as `{letter}-0001` is needed",
            hint="`overnight candidates` lists them",
        )
    return text


@dataclass(frozen=True, slots=True)
class Root:
    """The `.overnight/` folder of one project."""

    folder: Path

    @property
    def project(self) -> Path:
        """The folder that holds `.overnight/`."""
        return self.folder.parent

    @property
    def registry(self) -> Path:
        """Which task and study are active."""
        return self.folder / "registry.yaml"

    @property
    def gitignore(self) -> Path:
        """Keeps the whole folder out of the user's repository."""
        return self.folder / ".gitignore"

    @property
    def store(self) -> Path:
        """The bare git repository with every candidate."""
        return self.folder / "store.git"

    @property
    def cache(self) -> Path:
        """What built-in trainers compiled, for the next run; may be deleted at any time."""
        return self.folder / "cache"

    def task(self, task: str) -> "TaskFolder":
        """One task's folder."""
        return TaskFolder(self, check_slug(task, called="task"))


@dataclass(frozen=True, slots=True)
class TaskFolder:
    """One task: its card, its adapter, its studies."""

    root: Root
    name: str

    @property
    def folder(self) -> Path:
        """The task's own folder."""
        return self.root.folder / "tasks" / self.name

    @property
    def card(self) -> Path:
        """Mission, constraints and non-goals, for people."""
        return self.folder / "task_card.md"

    @property
    def adapter(self) -> Path:
        """How this repository trains, evaluates and logs."""
        return self.folder / "adapter.yaml"

    def study(self, study: str) -> "StudyFolder":
        """One study's folder."""
        return StudyFolder(self, check_slug(study, called="study"))


@dataclass(frozen=True, slots=True)
class StudyFolder:
    """One study: contract, ledger and everything derived from it. Shares nothing with any other."""

    task: TaskFolder
    name: str

    @property
    def folder(self) -> Path:
        """The study's own folder."""
        return self.task.folder / "studies" / self.name

    @property
    def contract(self) -> Path:
        """The terms, as people write them."""
        return self.folder / "contract.yaml"

    @property
    def lock(self) -> Path:
        """The digests of the terms as they were approved."""
        return self.folder / "contract.lock"

    @property
    def approvals(self) -> Path:
        """One readable file for each approval in force."""
        return self.folder / "approvals"

    @property
    def program(self) -> Path:
        """The direction in prose; may be edited while the night runs."""
        return self.folder / "program.md"

    @property
    def engine_lock(self) -> Path:
        """Held by the one engine that may write."""
        return self.folder / "engine.lock"

    @property
    def ledger(self) -> Path:
        """Every fact, one a line."""
        return self.folder / "ledger.jsonl"

    @property
    def head(self) -> Path:
        """The ledger's anchor."""
        return self.folder / "head.json"

    @property
    def state(self) -> Path:
        """The fold of the ledger; may be deleted at any time."""
        return self.folder / "state.json"

    @property
    def candidates(self) -> Path:
        """One folder for each candidate."""
        return self.folder / "candidates"

    @property
    def runs(self) -> Path:
        """One folder for each run."""
        return self.folder / "runs"

    @property
    def asks(self) -> Path:
        """One folder for each time that a coding agent was asked."""
        return self.folder / "asks"

    @property
    def inbox(self) -> Path:
        """Proposals that were handed in while another process holds the study."""
        return self.folder / "inbox"

    @property
    def edits(self) -> Path:
        """Which tip each plain copy was made from that somebody edits."""
        return self.folder / "edits"

    @property
    def reproductions(self) -> Path:
        """One folder for each run that was trained again."""
        return self.folder / "reproductions"

    @property
    def transfers(self) -> Path:
        """One folder for each setting in which a certified change was tried beyond its claim."""
        return self.folder / "transfers"

    @property
    def objects(self) -> Path:
        """Artefacts by content."""
        return self.folder / "objects"

    @property
    def audits(self) -> Path:
        """One file for each audit."""
        return self.folder / "audits"

    @property
    def report(self) -> Path:
        """The report, rebuilt from the ledger at any time."""
        return self.folder / "report"

    @property
    def report_page(self) -> Path:
        """The report as one self-contained page."""
        return self.report / "report.html"

    @property
    def report_text(self) -> Path:
        """The report as Markdown."""
        return self.report / "report.md"

    @property
    def handoff(self) -> Path:
        """Why the loop ended, and what comes next: rewritten whenever it ends."""
        return self.folder / "handoff.md"

    @property
    def night_log(self) -> Path:
        """What the engine said, all sittings one after the other; for people."""
        return self.folder / "night.log"

    @property
    def pulse(self) -> Path:
        """What the engine is doing at the moment, rewritten while it runs; for people."""
        return self.folder / "pulse.json"

    @property
    def stop_word(self) -> Path:
        """A file whose being there asks the engine to finish what is running and to report."""
        return self.folder / "stop"

    @property
    def results(self) -> Path:
        """The table of results, rebuilt from the ledger at any time."""
        return self.folder / "results.tsv"

    def candidate(self, candidate: str) -> Path:
        """One candidate's folder."""
        return self.candidates / check_id(candidate, letter="c", called="candidate")

    def ask(self, ask: str) -> Path:
        """The folder of one time that a coding agent was asked."""
        return self.asks / check_id(ask, letter="a", called="ask")

    def ref(self, *parts: str) -> str:
        """A ref of this study in the candidate store."""
        return "/".join(("refs/overnight", self.task.name, self.name, *parts))


def find_root(start: Path) -> Root | None:
    """Find the nearest `.overnight/` at or above a folder, as git finds its own."""
    start = start.resolve()
    for folder in (start, *start.parents):
        if (folder / STATE_FOLDER).is_dir():
            return Root(folder / STATE_FOLDER)
    return None


def check_project(project: Path) -> Path:
    """Refuse to keep a study in a folder that is not there, or inside Overnight's own package."""
    if not project.is_dir():
        raise UserError(str(project), "is not a folder", hint="make it first, or name another with --dir")
    package = Path(__file__).resolve().parent.parent
    resolved = project.resolve()
    if resolved == package or package in resolved.parents or resolved.name == STATE_FOLDER:
        raise UserError(
            str(project),
            "is inside Overnight itself, but a study belongs to your own project",
            hint="change to your project's folder, or name it with --dir",
        )
    return resolved
