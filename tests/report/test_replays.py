"""Episodes move without a script, and a broken one is told instead of shown."""

import re
from base64 import b64decode
from dataclasses import replace

import pytest

from overnight.report.png import chunks
from overnight.report.replays import MOST_FRAMES, render_replays, thinned
from report.sample import episode


def test_no_replays_bring_no_script() -> None:
    assert render_replays(None) == ""


def test_both_episodes_are_moving_pictures_with_all_their_frames() -> None:
    text = render_replays((episode("baseline"), episode("winner")))
    moving = [b64decode(one) for one in re.findall(r'<img src="data:image/png;base64,([^"]+)"', text)]
    assert [sum(one.kind == b"fcTL" for one in chunks(picture)) for picture in moving] == [34, 60]
    assert 'data-milliseconds="50"' in text


def test_who_asked_for_less_motion_gets_a_still_picture() -> None:
    text = render_replays((episode("baseline"), episode("winner")))
    still = re.findall(
        r'<source media="\(prefers-reduced-motion: reduce\)" srcset="data:image/png;base64,([^"]+)"', text
    )
    assert [b64decode(one) for one in still] == [episode("baseline").frames[0], episode("winner").frames[0]]


def test_a_broken_episode_is_told_and_the_other_is_shown() -> None:
    text = render_replays((replace(episode("baseline"), frames=(b"<svg onload=x>",)), episode("winner")))
    assert "The episode cannot be shown. The picture does not begin as a PNG does." in text
    assert text.count("<img ") == 1


def test_a_long_episode_is_thinned_and_lasts_as_long() -> None:
    long = replace(episode("winner"), frames=episode("winner").frames * 20)
    short = thinned(long)
    assert len(short.frames) == MOST_FRAMES
    lasts, lasted = (len(one.frames) * one.seconds_per_frame for one in (short, long))
    assert lasts == pytest.approx(lasted)
