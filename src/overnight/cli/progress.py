"""What a long verb shows while it works: lines that stay, and one line that passes."""

import os
import shutil
import sys
import time
from contextlib import suppress
from pathlib import Path

from overnight.cli.output import say
from overnight.records.text import line, lines

_BLINK_SECONDS = 0.2
_QUIET_SECONDS = 60.0


class Progress:
    """Writes to stderr. A terminal gets one line that is rewritten in place; a file gets a line a minute at most."""

    def __init__(self, log: Path | None = None) -> None:
        self._terminal = sys.stderr.isatty()
        self._log = log if log is not None and not _is_stderr(log) else None
        self._last = time.monotonic()
        self._shown = False

    def say(self, text: str) -> None:
        """A line that stays."""
        self.clear()
        self._last = time.monotonic()
        with suppress(OSError):  # a terminal that was closed, or a full disk: neither ends a night
            if self._log is not None:
                with self._log.open("a", encoding="utf-8") as file:
                    file.write(lines(text) + "\n")
            say(text)

    def passing(self, text: str) -> None:
        """What is going on at the moment."""
        now = time.monotonic()
        if now - self._last < (_BLINK_SECONDS if self._terminal else _QUIET_SECONDS):
            return
        self._last = now
        if self._terminal:
            width = shutil.get_terminal_size().columns - 1
            with suppress(OSError):  # somebody closed the terminal
                sys.stderr.write(f"\r\x1b[K{line(text)[:width]}")
                sys.stderr.flush()
            self._shown = True
        else:
            with suppress(OSError):
                say(text)

    def clear(self) -> None:
        """Take the passing line away."""
        if self._shown:
            with suppress(OSError):
                sys.stderr.write("\r\x1b[K")
                sys.stderr.flush()
            self._shown = False


def _is_stderr(log: Path) -> bool:
    """Whether what is said goes to this very file anyway."""
    with suppress(OSError, ValueError):
        return os.path.samestat(os.fstat(sys.stderr.fileno()), log.stat())
    return False
