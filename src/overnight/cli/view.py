"""The view of a night in a terminal: drawn anew four times a second, with a few keys. It changes nothing by itself."""

import curses
import os
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from itertools import cycle

from overnight.watch import Picture

REFRESH_MS = 250
KEYS = "[q] leave  [p] pause  [tab] candidates/log  [↑↓] scroll  [k] stop: finish first  [K] stop now"
_SPIN = "|/-\\"
_RULE = "─"


@dataclass(slots=True)
class View:
    """What the keys have made of the view so far."""

    paused: bool = False
    shows_log: bool = False
    back: int = 0
    """How many lines the list is scrolled back from its end."""
    said: str = ""
    """What the last key did."""

    def press(self, key: int, most: int) -> None:
        """Take a key that changes only the view."""
        if key == ord("p"):
            self.paused = not self.paused
        elif key == ord("\t"):
            self.shows_log, self.back = not self.shows_log, 0
        elif key in (curses.KEY_UP, curses.KEY_PPAGE):
            self.back = min(self.back + (1 if key == curses.KEY_UP else 10), max(most - 1, 0))
        elif key in (curses.KEY_DOWN, curses.KEY_NPAGE):
            self.back = max(self.back - (1 if key == curses.KEY_DOWN else 10), 0)
        elif key == curses.KEY_HOME:
            self.back = max(most - 1, 0)
        elif key == curses.KEY_END:
            self.back = 0


def page(picture: Picture, view: View, spin: str, size: tuple[int, int]) -> list[str]:
    """The rows of the view, as many and as wide as the terminal is."""
    height, width = size
    mark = spin if picture.engine is not None else " "
    paused = "  (view paused)" if view.paused else ""
    clock = time.strftime("%H:%M:%S")
    title = f" {mark} overnight  {picture.study}  {picture.standing()}{paused}"
    room = width - len(clock) - 1
    head = [title[:room].ljust(room) + clock + " " if room > 2 * len(clock) else title.ljust(width)]
    head += [f" {name:<10} {text}" for name, text in picture.facts]
    called = "what the engine said" if view.shows_log else "candidate  standing          mean      gain  idea"
    head += [f"{_RULE * 2} {called} ".ljust(width, _RULE)]
    foot = [view.said or KEYS]
    body = list(picture.log if view.shows_log else picture.candidates)
    room = max(height - len(head) - len(foot), 0)
    end = len(body) - min(view.back, max(len(body) - 1, 0))
    shown = body[max(end - room, 0) : end]
    rows = [*head[: max(height - 1, 0)], *shown, *[""] * (room - len(shown)), *foot]
    return [row[:width] for row in rows[:height]]


def show(look: Callable[[], Picture], stop: Callable[[bool], str]) -> None:
    """Show the view until somebody leaves it. `stop` is told whether to stop now, and says what came of it."""
    with suppress(KeyboardInterrupt):  # Ctrl-C ends the view, never the night
        curses.wrapper(_run, look, stop)


def _run(window: "curses.window", look: Callable[[], Picture], stop: Callable[[bool], str]) -> None:
    with suppress(curses.error):
        curses.curs_set(0)
    window.timeout(REFRESH_MS)
    view, picture, size = View(), look(), window.getmaxyx()
    for spin in cycle(_SPIN):
        if not view.paused:
            picture = look()
        size = _fit(window, size)
        _draw(window, page(picture, view, spin, size))
        key = window.getch()
        if key in (ord("q"), 27):
            return
        if key in (ord("k"), ord("K")):
            view.said = stop(key == ord("K"))
        elif key not in (-1, curses.KEY_RESIZE):
            view.said = ""
            view.press(key, len(picture.log if view.shows_log else picture.candidates))


def _fit(window: "curses.window", before: tuple[int, int]) -> tuple[int, int]:
    """Take the terminal's size as it is now, and draw everything anew where it has changed."""
    width, height = os.get_terminal_size(sys.stdout.fileno())
    if (height, width) != before:
        curses.resizeterm(height, width)
        window.clear()
        window.clearok(True)
    return height, width


def _draw(window: "curses.window", rows: list[str]) -> None:
    window.erase()
    width = window.getmaxyx()[1]
    for place, row in enumerate(rows):
        how = curses.A_REVERSE if place == 0 else curses.A_BOLD if place == len(rows) - 1 else curses.A_NORMAL
        with suppress(curses.error):  # a terminal that shrank in the meantime, or its very last cell
            window.addnstr(place, 0, row, width, how)
    window.refresh()
