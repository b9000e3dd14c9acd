"""The view of a night: plain lines in a pipe, rows that fit any terminal, and keys that change only the view."""

import curses
import threading
import time

import pytest

from overnight.background import Engine
from overnight.cli.view import KEYS, View, page
from overnight.watch import Picture, follow
from runs import MACHINE
from scenes import Scene, overnight

ENGINE = Engine(4711, "here", "overnight start", 1_800_000_000.0)


def picture(engine: Engine | None = ENGINE) -> Picture:
    candidates = tuple(f"c-{number:04d}  rejected" for number in range(1, 31))
    return Picture("pole/first", engine, (("doing", "trying c-0031"), ("runs", "9 of 99")), candidates, ("said",))


@pytest.mark.feature("H82")
def test_in_a_pipe_new_lines_of_the_log_are_printed_until_nobody_wants_more(cartpole: Scene) -> None:
    cartpole.at.night_log.write_text("first\n")
    told, more = list[str](), iter([True, True, False])

    def write() -> None:
        time.sleep(0.1)
        with cartpole.at.night_log.open("a") as log:
            log.write("second\nthird, not ended")

    writer = threading.Thread(target=write)
    writer.start()
    follow(cartpole.at, MACHINE, told.append, lambda: next(more))
    writer.join()
    assert told == ["first", "second"]


@pytest.mark.feature("H83")
@pytest.mark.parametrize("verb", ["live", "status"])
def test_nothing_that_drives_a_terminal_goes_into_a_pipe(cartpole: Scene, verb: str) -> None:
    cartpole.at.night_log.write_text("red \x1b[31malert\n")
    done = overnight(verb, cwd=cartpole.project)
    assert done.returncode == 0 and "\x1b" not in done.stdout + done.stderr


@pytest.mark.feature("H78")
@pytest.mark.parametrize("words", [("stop", "live"), ("live", "stop"), ("start", "--stop"), ("stop", "--live")])
def test_two_of_start_stop_and_live_at_once_are_a_mistake(cartpole: Scene, words: tuple[str, str]) -> None:
    done = overnight(*words, cwd=cartpole.project)
    assert done.returncode == 2 and not cartpole.entries("entered")


@pytest.mark.parametrize("size", [(24, 80), (50, 200), (6, 20), (3, 10), (1, 1), (0, 0)])
def test_a_page_fits_its_terminal_whatever_its_size(size: tuple[int, int]) -> None:
    rows = page(picture(), View(), "|", size)
    assert len(rows) <= size[0] and all(len(row) <= size[1] for row in rows)


def test_a_page_shows_the_newest_candidates_and_the_keys() -> None:
    rows = page(picture(), View(), "|", (20, 120))
    assert rows[0].startswith(" | overnight  pole/first  running, pid 4711") and rows[-1] == KEYS
    assert "c-0030" in rows[-2] and "c-0001" not in "".join(rows)
    assert "no night is running" in page(picture(None), View(), "|", (20, 120))[0]


def test_keys_scroll_pause_and_change_the_list_and_nothing_else() -> None:
    view = View()
    for key in (curses.KEY_UP, curses.KEY_PPAGE, curses.KEY_DOWN):
        view.press(key, 30)
    assert view.back == 10
    assert "c-0020" in page(picture(), view, "|", (20, 120))[-2]
    view.press(curses.KEY_HOME, 30)
    assert view.back == 29
    view.press(ord("\t"), 30)
    assert (view.shows_log, view.back) == (True, 0) and "said" in "".join(page(picture(), view, "|", (20, 120)))
    view.press(ord("p"), 30)
    assert view.paused and "(view paused)" in page(picture(), view, "|", (20, 120))[0]
