"""The last step inside of bubblewrap: what is left of our rights is given up, T2 is applied, and the command begins.

It imports as little as it can, because every start at T3 waits for it.
"""

import os
import sys

from overnight.sandbox.landlock import Ruleset
from overnight.sandbox.rights import Filter, become, give_up_privileges, hear_term


def main(words: list[str]) -> None:
    """Become a command. The words are pairs of what and how much, and after `--` the command itself."""
    end = words.index("--")
    told = [(words[place], words[place + 1]) for place in range(0, end, 2)]
    try:
        hold(told)
        os.execvp(words[end + 1], words[end + 1 :])  # noqa: S606 - the approved command
    except OSError as error:
        sys.exit(f"{words[end + 1]} could not be started: {error.strerror or error}.")


def hold(told: list[tuple[str, str]]) -> None:
    """Apply every layer that is told."""
    try:
        with open("/proc/self/oom_score_adj", "w") as file:  # noqa: PTH123 - a word to the kernel
            file.write("1000")
    except OSError:
        pass  # not every machine lets it be said
    known = dict(told)
    rules = Ruleset(network=known["network"] == "yes") if "network" in known else None
    if rules is not None:
        rules.allow_reading([path for what, path in told if what == "read"])
        rules.allow_listing([path for what, path in told if what == "list"])
        rules.allow_everything([path for what, path in told if what == "write"])
        rules.allow_devices([path for what, path in told if what == "device"])
    hear_term()
    give_up_privileges()
    become(int(known["user"]) if "user" in known else None)
    if rules is not None:
        rules.restrict()
    if "calls" in known:
        Filter(bytes.fromhex(known["calls"])).install()
