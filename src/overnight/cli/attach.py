"""`overnight attach`: sit down at a night that runs without a terminal."""

import signal
from typing import TYPE_CHECKING

from overnight.cli.options import HERE, Dir, Json, active, verb_app
from overnight.cli.output import data, say

if TYPE_CHECKING:
    from overnight.background import Hold
    from overnight.ports import Machine
    from overnight.study.layout import StudyFolder

app = verb_app("Attach to a night.")


@app.command()
def attach(folder: Dir = HERE, as_json: Json = False) -> None:
    """Sit down at a night that was started with `--detach`, as if it had been started here.

    Prints what the engine says until the night ends. Ctrl-C once asks it to finish what is running and report; twice
    stops it now. To watch without being able to end anything by Ctrl-C, use `overnight live`.

    Example: `overnight attach`
    """
    from overnight.errors import UserError

    machine, at = active(folder)
    if not sit_down(machine, at, as_json=as_json):
        raise UserError(
            f"{at.task.name}/{at.name}",
            "has no night that is running",
            hint="`overnight start --detach` starts one, `overnight live` shows what the last one said",
        )


def sit_down(machine: "Machine", at: "StudyFolder", *, as_json: bool) -> bool:
    """Follow the night of a study to its end; False where none is running."""
    from overnight.background import hold

    with hold(machine, at) as held:
        if held is None:
            return False
        _follow(machine, at, held)
        told = {"pid": held.engine.pid, "ended": not held.lives(), "handoff": str(at.handoff)}
        data(told, f"The night (pid {held.engine.pid}) has ended; its handoff is {at.handoff}", as_json=as_json)
    return True


def _follow(machine: "Machine", at: "StudyFolder", held: "Hold") -> None:
    from overnight.adapters.launchers.local import LocalLauncher
    from overnight.background import ask_to_finish, end_now
    from overnight.watch import follow

    asked: list[int] = []

    def hear(*_: object) -> None:
        asked.append(1)
        if len(asked) > 1:
            raise KeyboardInterrupt
        ask_to_finish(at)
        say("Finishing what is running; press Ctrl-C again to stop now.")

    before = signal.signal(signal.SIGINT, hear)
    try:
        follow(at, machine, say, held.lives)
    except KeyboardInterrupt:
        end_now(machine, at, LocalLauncher())
        say("The night was stopped, and nothing of it is left.")
    finally:
        signal.signal(signal.SIGINT, before)
