"""The engine's side of asking a coding agent: a copy of the tip, a brief, the errand, and the entries of the ledger."""

import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from math import isfinite
from pathlib import Path

from overnight.candidate.copy import changed, read_copy, write_copy
from overnight.candidate.tree import Store
from overnight.claims import incumbent
from overnight.errors import Refused
from overnight.evaluate.seeds import keys_folder
from overnight.propose.brief import SCHEMA, Facts, brief
from overnight.records import strict_json
from overnight.records.agent import Agent, Answered, Asked, Errand, Operator
from overnight.records.codec import dumps
from overnight.records.contract import Contract
from overnight.records.lifecycle import Actor, State
from overnight.records.proposal import View
from overnight.records.text import line
from overnight.study.durable import make_folder, write_file
from overnight.study.study import Study

_HARMLESS = frozenset({"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY", "SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS"})
"""Variables that say how to reach the network: an agent needs them, and they appear in its errors."""
_METRICS_BYTES, _LOG_BYTES, _MOST_METRICS = 1 << 16, 2000, 30


@dataclass(frozen=True, slots=True)
class StudyDesk:
    """See `ports.Desk`."""

    study: Study
    store: Store
    contract: Contract
    agent: Agent = field(init=False)

    def __post_init__(self) -> None:
        """Take the agent from the contract."""
        agent = self.contract.experiments.agent
        if agent is None:
            raise Refused("agent", ("The contract names no coding agent.",))
        object.__setattr__(self, "agent", agent)

    def folder(self, ask: str) -> Path:
        """See the port."""
        return self.study.at.ask(ask)

    def lay_out(self, view: View, operator: Operator, dollars: float) -> Path:
        """See the port. The entry comes before the process, so that nothing is spent unseen."""
        study, name = self.study, self.study.state.next_ask()
        folder, base = self.folder(name), study.state.tip
        shutil.rmtree(folder, ignore_errors=True)  # an engine that died before it wrote the entry
        make_folder(study.machine, folder)
        write_copy(self.store, self.store.tree_of(base), folder / "copy")
        text = brief(view, Facts(self.contract, self._incumbent(), tuple(self._diagnostics())), operator)
        write_file(study.machine, folder / "brief.md", text.encode(), mode=0o644)
        write_file(study.machine, folder / "schema.json", strict_json.pretty(SCHEMA), mode=0o644)
        write_file(study.machine, folder / "errand.json", dumps(self._errand(folder, text, dollars)))
        asked = Asked(
            id=name,
            speaks=self.agent.speaks,
            operator=operator,
            base=base,
            brief=sha256(text.encode()).hexdigest(),
            reserved_dollars=dollars,
        )
        study.append(Actor.ENGINE, asked)
        return folder

    def is_changed(self, ask: str) -> bool:
        """See the port. What can never be part of a candidate is a change too, for the gate to refuse."""
        found = read_copy(self.folder(ask) / "copy")
        base = self.store.tree_of(self.study.state.asks[ask].base)
        return bool(found.reasons) or bool(changed(self.store, base, found, store_it=False))

    def write_down(self, answered: Answered) -> None:
        """See the port. A copy without an idea in it is removed."""
        self.study.append(Actor.ENGINE, answered)
        if answered.outcome != "proposal":
            shutil.rmtree(self.folder(answered.ask) / "copy", ignore_errors=True)

    def _errand(self, folder: Path, text: str, dollars: float) -> Errand:
        filled = {
            "{brief}": text,
            "{copy}": str(folder / "copy"),
            "{schema}": json.dumps(SCHEMA),
            "{schema_file}": str(folder / "schema.json"),
            "{last}": str(folder / "out" / "last.txt"),
            "{dollars}": f"{dollars:.2f}",
        }
        agent = self.agent
        home = Path.home()
        return Errand(
            command=tuple(_filled(word, filled) for word in agent.command),
            variables=tuple(dict.fromkeys((*agent.variables, *sorted(_HARMLESS)))),
            secrets=tuple(name for name in agent.variables if name not in _HARMLESS),
            files=agent.files,
            readable=tuple(str(Path(path).expanduser()) for path in agent.readable),
            hidden=(str(self.study.at.task.root.folder), str(keys_folder()), str(home)),
            wall_seconds=agent.wall_seconds,
            silence_seconds=agent.silence_seconds,
            tier=agent.tier,
        )

    def _incumbent(self) -> str:
        state = self.study.state
        name = incumbent(state)
        certified = "The baseline is still the incumbent: nothing was certified yet."
        if name != state.baseline:
            certified = f"The incumbent is {name}, certified to be better: {state.candidates[name].hypothesis}"
        kept = f" Kept on top of it, not certified yet: {', '.join(state.stack)}." if state.stack else ""
        return f"{line(certified, 1500)}{kept}"

    def _diagnostics(self) -> Iterator[tuple[str, str]]:
        """The last metrics of the newest runs, and the end of the log of the newest crash."""
        ended = [(name, run) for name, run in self.study.state.runs.items() if run.outcome is not None]
        for name, run in ended[-3:]:
            if said := _metrics(self.study.at.runs / name / "out" / "metrics.jsonl"):
                yield f"last metrics of a run of {run.candidate}, reported by its trainer", said
        broken = [one for one in self.study.state.candidates.values() if one.state in (State.DEBUG, State.REJECTED)]
        for one in [found for found in broken if found.failure and found.runs][-1:]:
            said = _tail(self.study.at.runs / one.runs[-1] / "log").decode(errors="replace")
            yield f"end of the log of {one.id}, which crashed", said or one.failure


def _filled(word: str, filled: dict[str, str]) -> str:
    """One word with everything filled in, in one pass, so that nothing inside of a brief is filled in."""
    if word in filled:
        return filled[word]
    for mark, value in filled.items():
        if mark in word and mark != "{brief}":
            word = word.replace(mark, value)
    return word


def _tail(path: Path) -> bytes:
    """The end of a file that a trainer wrote, read without following a link or waiting."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return b""
    with os.fdopen(fd, "rb") as file:
        most = _METRICS_BYTES if path.suffix == ".jsonl" else _LOG_BYTES
        file.seek(max(os.fstat(fd).st_size - most, 0))
        return file.read(most)


def _metrics(path: Path) -> str:
    """The last line of metrics as names and numbers of three digits; whatever is no number is left out."""
    for said in reversed(_tail(path).splitlines()[-3:]):
        try:
            found = json.loads(said)
        except (ValueError, RecursionError):
            continue
        if isinstance(found, dict):
            numbers = ((name, one) for name, one in found.items() if type(one) in (int, float) and isfinite(one))
            return "\n".join(f"{line(name, 60)} {one:.3g}" for name, one in list(numbers)[:_MOST_METRICS])
    return ""
