"""The controlling terminal: the one place where a person, and not a pipe, can be asked.

Proves only that something could read and write the terminal. A program with the user's
rights can open one of its own; approvals by terminal say so (see SECURITY).
"""

import os
import secrets
from collections.abc import Mapping

from overnight.errors import Refused
from overnight.records.text import lines

_WORDS = """
amber anchor apple autumn basil beacon birch bramble bridge candle canyon cedar cinder clover cobalt copper coral cotton
cypress dapple delta ember falcon fennel fern flint garnet ginger harbor hazel heron hickory indigo ivory jasper juniper
kestrel lantern larch laurel lemon linden lotus lunar maple marble meadow mellow mint nectar nutmeg oak olive onyx opal
orchid pebble pepper pine plum poplar prairie quartz quill raven reed ripple river rosemary saffron sage sienna silver
sparrow spruce summit sumac tamarack thistle timber topaz tulip umber velvet violet walnut willow winter yarrow zephyr
"""


def attended(env: Mapping[str, str]) -> bool:
    """Whether a person may be at the terminal: there is one, and no agent host shows itself."""
    from overnight.contract.approve import agent_host

    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC))
    except OSError:
        return False
    return agent_host(env) is None


def confirm_on_terminal(page: str) -> bool:
    """Show a page and a fresh word on the controlling terminal, and tell whether the word was typed back."""
    word = f"{secrets.choice(_WORDS.split())}-{secrets.randbelow(90) + 10}"
    try:
        terminal = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError as error:
        raise Refused(
            "overnight approve",
            ("There is no controlling terminal, so no person can be asked.",),
            hint="run it in a terminal; for a built-in trainer on plain parameters, `--yes` approves unattended",
        ) from error
    with os.fdopen(terminal, "r+b", buffering=0) as tty:
        tty.write(f"{lines(page)}\n\nType {word} to approve, anything else to leave it: ".encode())
        answer = bytearray()
        while not answer.endswith(b"\n") and len(answer) < 1000 and (byte := tty.read(1)):
            answer += byte
    return secrets.compare_digest(bytes(answer).strip(), word.encode())
