"""Figures put values at the pixels that arithmetic gives, and let no text out of its place."""

import itertools
import re
from xml.etree import ElementTree

import pytest

from overnight.report.curves import BandPoint
from overnight.report.figures import (
    CHAR,
    Bar,
    IntervalRow,
    Level,
    Series,
    Size,
    apart,
    bar_strip,
    interval_chart,
    line_chart,
)

SIZE = Size(600, 344)


def parsed(drawing: str) -> ElementTree.Element:
    return ElementTree.fromstring(drawing)


def numbers(text: str) -> list[float]:
    return [float(one) for one in re.findall(r"-?\d+\.?\d*", text)]


def found(drawing: str, tag: str, look: str) -> list[ElementTree.Element]:
    return [one for one in parsed(drawing).iter(tag) if one.get("class") == look]


def series() -> Series:
    band = (BandPoint(0, 0, 0, 0, 2), BandPoint(50, 20, 50, 80, 2), BandPoint(100, 90, 95, 100, 2))
    return Series("arm, 2 seeds", "winner", band, "arm 95")


def test_a_median_line_runs_through_hand_computed_pixels() -> None:
    drawing = line_chart([series()], [], titles=("env_steps", "return"), size=SIZE)
    left, right, floor, roof = 14 + CHAR * len("100"), 600 - 12 - CHAR * len("arm 95"), 300.0, 30.0
    (line,) = found(drawing, "polyline", "median winner")
    wanted = [left, floor, (left + right) / 2, (floor + roof) / 2, right, floor - 0.95 * (floor - roof)]
    assert numbers(line.get("points", "")) == pytest.approx(wanted, abs=0.06)


def test_a_band_goes_out_along_the_highest_and_back_along_the_lowest_seed() -> None:
    drawing = line_chart([series()], [], titles=("env_steps", "return"), size=SIZE)
    (area,) = found(drawing, "polygon", "band winner")
    heights = numbers(area.get("points", ""))[1::2]
    assert heights == pytest.approx([300, 84, 30, 57, 246, 300], abs=0.06)


def test_a_level_is_drawn_at_its_value_and_a_far_one_is_not() -> None:
    levels = [Level("random", 20.0), Level("perfect", 1e6)]
    drawing = line_chart([series()], levels, titles=("env_steps", "return"), size=SIZE)
    (line,) = found(drawing, "line", "level")
    assert (line.get("y1"), line.get("y2")) == ("246.0", "246.0")
    assert "random 20" in drawing
    assert "perfect" not in drawing


def test_a_legend_that_finds_no_room_beside_the_title_gets_its_own_row() -> None:
    beside = line_chart([series()], [], titles=("env_steps", "return"), size=SIZE)
    below = line_chart([series()], [], titles=("env_steps", "a very long name of a metric" * 3), size=SIZE)
    assert [found(one, "rect", "band winner")[0].get("y") for one in (beside, below)] == ["2", "22"]


def test_an_interval_lies_between_its_ends_on_an_axis_with_zero() -> None:
    drawing = interval_chart([IntervalRow("gain", "winner", 50, 25, 75)], unit="return", size=Size(600, 0))
    (reach,) = found(drawing, "line", "reach winner")
    (dot,) = found(drawing, "circle", "dot winner")
    (zero,) = found(drawing, "line", "zero")
    # The axis runs from 0 at pixel 24 to 80 at pixel 576.
    assert [reach.get("x1"), reach.get("x2"), dot.get("cx"), zero.get("x1")] == ["196.5", "541.5", "369.0", "24.0"]


def test_bars_stand_on_zero_and_hang_below_it() -> None:
    bars = [Bar("c-1", "good", 100.0, 50.0), Bar("c-2", "calm", -50.0), Bar("c-3", "bad", None)]
    drawing = bar_strip(bars, unit="return", size=Size(600, 272))
    # The axis runs from 100 at pixel 26 to -50 at pixel 226, so zero lies at 159.3.
    boxes = [(one.get("y"), one.get("height")) for one in parsed(drawing).iter("rect")]
    assert boxes == [("26.0", "133.3"), ("159.3", "66.7")]
    assert [one.get("cy") for one in found(drawing, "circle", "ring")] == ["92.7"]
    assert len(found(drawing, "path", "cross bad")) == 1


def test_every_candidate_of_a_short_night_is_labelled_in_alternating_rows() -> None:
    bars = [Bar(f"c-{place:04}", "calm", 1.0) for place in range(14)]
    labels = list(parsed(bar_strip(bars, unit="return", size=Size(900, 240))).iter("text"))
    rows = {one.text: one.get("y") for one in labels}
    assert [rows[bar.name] for bar in bars] == ["216.0", "232.0"] * 7


@pytest.mark.parametrize(("many", "width"), [(300, 380), (200, 900), (61, 380)])
def test_labels_of_a_long_night_do_not_run_into_each_other(many: int, width: int) -> None:
    bars = [Bar(f"c-{place:04}", "calm", 1.0) for place in range(many)]
    drawing = parsed(bar_strip(bars, unit="return", size=Size(width, 240)))
    for row in ("216.0", "232.0"):
        places = [float(one.get("x", "0")) for one in drawing.iter("text") if one.get("y") == row]
        assert len(places) > 1 and all(right - left > CHAR * 7 for left, right in itertools.pairwise(places))


def test_labels_that_end_together_are_moved_apart_around_their_middle() -> None:
    assert apart([10.0, 12.0, 50.0], 16) == [3.0, 19.0, 50.0]
    assert apart([0.0, 16.0], 16) == [0.0, 16.0]


def test_nothing_to_draw_is_no_drawing() -> None:
    assert line_chart([], [], titles=("x", "y"), size=SIZE) == ""
    assert interval_chart([], unit="return", size=SIZE) == ""
    assert bar_strip([Bar("c-1", "bad", None)], unit="return", size=SIZE) == ""


def test_every_drawing_says_in_words_what_it_shows() -> None:
    said = parsed(line_chart([series()], [], titles=("env_steps", "return"), size=SIZE)).get("aria-label")
    assert said == "Learning curves: arm, 2 seeds ends at a median of 95, 90 to 100 over 2 seeds."


def test_hostile_names_stay_text() -> None:
    evil = '"/><script>alert(1)</script>'
    one = Series(evil, "winner", series().band, evil)
    drawings = [
        line_chart([one], [Level(evil, 50.0)], titles=(evil, evil), size=SIZE),
        interval_chart([IntervalRow(evil, "winner", 1, 0, 2)], unit=evil, size=SIZE),
        bar_strip([Bar(evil, "calm", 1.0)], unit=evil, size=SIZE),
    ]
    for drawing in drawings:
        assert {element.tag for element in parsed(drawing).iter()} <= {
            "svg",
            "text",
            "line",
            "circle",
            "rect",
            "polygon",
            "polyline",
        }
