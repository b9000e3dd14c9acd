"""`overnight status`, and `overnight` alone: where you are, and what comes next."""

from collections import Counter
from typing import TYPE_CHECKING

from overnight.cli.options import HERE, Dir, Json, verb_app
from overnight.cli.output import data

if TYPE_CHECKING:
    from collections.abc import Iterator

    from overnight.study.state import StudyState

app = verb_app("Say where the study stands.")


@app.command()
def status(folder: Dir = HERE, as_json: Json = False) -> None:
    """Say where the study stands and what comes next. Reads only; nothing is started or changed.

    Example: `overnight status --json`
    """
    from overnight.adapters.launchers.local import LocalLauncher
    from overnight.admission import opening, read_terms
    from overnight.machine import RealMachine
    from overnight.resume import around, next_step
    from overnight.study.layout import find_root
    from overnight.study.study import active_study, read_state

    if find_root(folder) is None:
        command = "overnight init CartPole-v1"
        text = f"There is no study here yet.\nnext: {command}    or, in your own repository: overnight init ."
        data({"study": None, "next": command}, text, as_json=as_json)
        return
    machine = RealMachine()
    at = active_study(machine, folder.resolve())
    state, reading = read_state(machine, at), read_terms(machine, at)
    case = opening(state, reading)
    now = around(machine, at, state, LocalLauncher())
    sentence, command = next_step(state, reading, now)
    in_force = sum(one.standing == "in force" for one in case.standings)
    states = Counter(str(one.state) for one in state.candidates.values())
    counted = ", ".join(f"{count:,} {name}" for name, count in sorted(states.items())) or "none"
    told = {
        "task": state.task,
        "study": state.study,
        "entries": state.entries,
        "head": state.head,
        "tip": state.tip,
        "incumbent": state.incumbent,
        "approvals": {str(one.clause): str(one.standing) for one in case.standings},
        "candidates": dict(states),
        "runs": state.paid_runs,
        "lost_runs": state.lost_runs,
        "wall_seconds": state.wall_seconds,
        "asks": len(state.asks),
        "dollars": state.dollars,
        "tokens": state.tokens,
        "night": now.engine.pid if now.engine is not None and now.engine.is_night() else None,
        "sentence": sentence,
        "next": command,
    }
    lines = [
        f"{state.task}/{state.study}",
        f"approvals    {in_force} of {len(case.standings)} in force",
        f"candidates   {counted}",
        f"runs         {state.paid_runs:,} ({state.wall_seconds / 3600:.2f} h){state.lost_told()}",
        *_agent(state),
        f"tip          {state.tip[:12]}{'  (the incumbent)' if state.tip == state.incumbent else ''}",
        f"incumbent    {state.incumbent[:12]}",
        f"ledger       {state.entries:,} entries, head {state.head[:12]}",
        sentence,
        f"next: {command}",
    ]
    data(told, "\n".join(lines), as_json=as_json)


def _agent(state: "StudyState") -> "Iterator[str]":
    """How often a coding agent was asked, how that ended, and what it cost; silent where none was."""
    if state.asks:
        ended = Counter(one.outcome or "at work" for one in state.asks.values())
        told = ", ".join(f"{count} {outcome}" for outcome, count in ended.most_common())
        yield f"agent        asked {len(state.asks):,} times ({told}), ${state.dollars:.2f}, {state.tokens:,} tokens"
