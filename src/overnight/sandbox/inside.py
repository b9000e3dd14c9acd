"""The last step inside of bubblewrap: what is left of our rights is given up, T2 is applied, and the command begins."""

import contextlib
import json
import os
import signal
import sys

from overnight.sandbox.bounds import Bounds
from overnight.sandbox.processes import give_up_privileges
from overnight.sandbox.start import become, filter_for, rules_for


def main(words: list[str]) -> None:
    """Become the command that is told as JSON."""
    told = json.loads(words[0])
    without = frozenset(told["without"])
    bounds = Bounds(
        readable=(*told["readable"],),
        writable=(*told["writable"], "/tmp", "/dev/shm"),  # noqa: S108 - private folders of this view
        listable=(*told["listable"],),
        network=told["network"],
        local_sockets=True,
    )
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:  # noqa: PTH123 - a word to the kernel
        file.write("1000")
    rules = rules_for(bounds) if "landlock" not in without else None
    calls = filter_for(bounds) if "seccomp" not in without else None
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if "capabilities" not in without:
        give_up_privileges()
        become(told["user"])
    if rules is not None:
        rules.restrict()
    if calls is not None:
        calls.install()
    command = told["command"]
    try:
        os.execvp(command[0], command)  # noqa: S606 - the approved command
    except OSError as error:
        sys.exit(f"{command[0]} could not be started: {error.strerror}.")
