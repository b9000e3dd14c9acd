"""`overnight live`: watch a night without touching it."""

import os
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from overnight.cli.options import HERE, Dir, Json, active, verb_app
from overnight.cli.output import data, say, shown

if TYPE_CHECKING:
    from overnight.ports import Machine
    from overnight.study.layout import StudyFolder
    from overnight.watch import Picture

app = verb_app("Watch a night.")


@app.command()
def live(
    plain: Annotated[bool, typer.Option("--plain", help="Print lines instead of drawing, as in a pipe.")] = False,
    folder: Dir = HERE,
    as_json: Json = False,
) -> None:
    """Watch the night of the active study. Starts nothing, and ends nothing unless you press `k`.

    Keys: `q` leaves, `p` pauses the view, tab changes between candidates and log, the arrows scroll, `k` asks the night
    to finish what is running and report, `K` stops it now. In a pipe, and where `TERM` is `dumb`, it prints the log
    and every new line of it; Ctrl-C ends the watching only. With `--json` it prints one picture and ends.

    Example: `overnight live`
    """
    from overnight.watch import Watcher

    machine, at = active(folder)
    watcher = Watcher(machine, at)
    if as_json:
        picture = watcher.look()
        data(_told(picture), "", as_json=True)
        return
    if plain or not drawable():
        _print_lines(machine, at)
        return
    from overnight.cli.view import show

    show(watcher.look, lambda now: _stop(machine, at, now=now))


def drawable() -> bool:
    """Whether this is a terminal that can be drawn on."""
    dumb = os.environ.get("TERM", "") in ("", "dumb")
    return sys.stdin.isatty() and sys.stdout.isatty() and not dumb


def _print_lines(machine: "Machine", at: "StudyFolder") -> None:
    from overnight.background import night_of
    from overnight.watch import follow

    if night_of(machine, at) is None:
        say("No night is running; this is what the last one said.")
    try:
        follow(at, machine, lambda one: data({}, one, as_json=False), lambda: night_of(machine, at) is not None)
    except KeyboardInterrupt:
        say("The night goes on; only the watching has ended.")


def _stop(machine: "Machine", at: "StudyFolder", *, now: bool) -> str:
    from overnight.adapters.launchers.local import LocalLauncher
    from overnight.background import ask_to_finish, end_now, night_of

    if night_of(machine, at) is None:
        return "No night is running."
    if now:
        end_now(machine, at, LocalLauncher())
        return "The night was stopped, and nothing of it is left; `overnight start` goes on."
    ask_to_finish(at)
    return "The night was asked to stop: it finishes what is running and reports."


def _told(picture: "Picture") -> dict[str, object]:
    engine = picture.engine
    return {
        "study": picture.study,
        "running": engine is not None,
        "pid": engine.pid if engine is not None else None,
        "facts": dict(picture.facts),
        "candidates": shown(list(picture.candidates)),
        "log": list(picture.log[-50:]),
    }
