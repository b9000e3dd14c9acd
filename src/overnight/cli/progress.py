"""What a long verb shows while it works: lines that stay, and one line that passes."""

import shutil
import sys
import time

from overnight.cli.output import say
from overnight.records.text import line

_BLINK_SECONDS = 0.2
_QUIET_SECONDS = 60.0


class Progress:
    """Writes to stderr. A terminal gets one line that is rewritten in place; a file gets a line a minute at most."""

    def __init__(self) -> None:
        self._terminal = sys.stderr.isatty()
        self._last = time.monotonic()
        self._shown = False

    def say(self, text: str) -> None:
        """A line that stays."""
        self.clear()
        self._last = time.monotonic()
        say(text)

    def passing(self, text: str) -> None:
        """What is going on at the moment."""
        now = time.monotonic()
        if now - self._last < (_BLINK_SECONDS if self._terminal else _QUIET_SECONDS):
            return
        self._last = now
        if self._terminal:
            width = shutil.get_terminal_size().columns - 1
            sys.stderr.write(f"\r\x1b[K{line(text)[:width]}")
            sys.stderr.flush()
            self._shown = True
        else:
            say(text)

    def clear(self) -> None:
        """Take the passing line away."""
        if self._shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
            self._shown = False
