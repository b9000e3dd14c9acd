"""Figures as inline SVG: learning curves with seed bands, the interval of a gain, one bar for each candidate.

Colours are classes that the page's style sheet fills in, so that one drawing serves light, dark and paper.
All texts that come in are untrusted and are escaped here.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from overnight.report.curves import BandPoint
from overnight.report.scales import Scale, nice_ticks, tick_labels
from overnight.report.text import decimals_for, markup, number, signed

CHAR = 6.9
"""The width of an average character of a figure's text, in pixels."""
LINE = 16.0
"""The height of a line of text."""


@dataclass(frozen=True, slots=True)
class Size:
    """How large a drawing is, in its own pixels."""

    width: float
    """Its width."""
    height: float
    """Its height."""


WIDE = Size(900, 340)
NARROW = Size(380, 300)


@dataclass(frozen=True, slots=True)
class Series:
    """One arm of a line chart."""

    name: str
    """What to call it."""
    tone: str
    """The class that colours it."""
    band: tuple[BandPoint, ...]
    """Its median line and its band."""
    label: str
    """What stands at its end."""


@dataclass(frozen=True, slots=True)
class Level:
    """A dashed line across a chart."""

    name: str
    """What to call it."""
    value: float
    """Where it lies."""

    @property
    def label(self) -> str:
        """What stands at its end."""
        return f"{self.name} {number(self.value)}"


@dataclass(frozen=True, slots=True)
class IntervalRow:
    """One gain with its interval."""

    name: str
    """What to call it."""
    tone: str
    """The class that colours it."""
    gain: float
    """The estimate."""
    low: float
    """The low end."""
    high: float
    """The high end."""


@dataclass(frozen=True, slots=True)
class Bar:
    """One candidate in the strip."""

    name: str
    """What to call it."""
    tone: str
    """The class that colours it."""
    value: float | None
    """Its gain; None draws a cross on the zero line."""
    ring: float | None = None
    """A second value, drawn as a ring."""


def line_chart(series: Sequence[Series], levels: Sequence[Level], *, titles: tuple[str, str], size: Size) -> str:
    """Median lines with bands over env_steps; `titles` name the two axes.

    A level is drawn where it does not stretch the vertical axis to more than twice the curves' own range.
    Lines and levels are named at the right, where they end.
    """
    points = [point for one in series for point in one.band]
    if not points:
        return ""
    near = _near(levels, min(p.low for p in points), max(p.high for p in points))
    ticks_y = nice_ticks(min(_values(points, near)), max(_values(points, near)), 5)
    first, last = min(p.env_steps for p in points), max(p.env_steps for p in points)
    first = 0.0 if 0 < first < last / 10 else first
    left = 14 + CHAR * max(map(len, tick_labels(ticks_y)))
    right = size.width - 12 - CHAR * min(30, max(len(says) for says in _labels(series, near)))
    legend, rows = _legend(series, size, room=CHAR * len(titles[1]))
    across = Scale(first, last if last > first else first + 1, left, right)
    up = Scale(ticks_y[0], ticks_y[-1], size.height - 44, 12 + 18 * rows)
    ticks_x = [tick for tick in nice_ticks(first, last, 6 if size.width > 500 else 4) if first <= tick <= last]
    parts = [
        f'<text class="title" x="0" y="12">{markup(titles[1], 80)}</text>',
        *legend,
        *_grid_y(ticks_y, up, (left, right)),
        *_axis_x(ticks_x, across, up.start),
        _title(titles[0], right, size.height - 6),
        *(_level(one, up, (left, right)) for one in near),
        *(_band(one, across, up) for one in series),
        *(_median(one, across, up) for one in series),
        *_end_labels(series, near, across, up),
    ]
    return svg(parts, size, _curve_words(series))


def interval_chart(rows: Sequence[IntervalRow], *, unit: str, size: Size) -> str:
    """One row for each gain: a dot for the estimate, a bar for the interval, and the line of no gain."""
    if not rows:
        return ""
    values = [0.0, *(row.low for row in rows), *(row.high for row in rows)]
    ticks = nice_ticks(min(values), max(values), 6 if size.width > 500 else 4)
    across = Scale(ticks[0], ticks[-1], 24, size.width - 24)
    drawn = Size(size.width, 62 * len(rows) + 48)
    floor = drawn.height - 40
    parts = _axis_x(ticks, across, floor)
    title = f"gain in {unit}; higher is better" if size.width > 500 else f"gain in {unit}"
    parts.append(_title(title, across.end, drawn.height - 4))
    parts.append(f'<line class="zero" x1="{across.at(0):.1f}" x2="{across.at(0):.1f}" y1="4" y2="{floor:.1f}"/>')
    for place, row in enumerate(rows):
        parts += _interval(row, across, 62 * place + 42)
    words = "; ".join(
        f"{row.name}: {signed(row.gain)}, interval {signed(row.low)} to {signed(row.high)}" for row in rows
    )
    return svg(parts, drawn, f"Gain in {unit}. {words}.")


def bar_strip(bars: Sequence[Bar], *, unit: str, size: Size) -> str:
    """One labelled bar for each candidate around the line of no gain; labels alternate in two rows."""
    values = [value for bar in bars for value in (bar.value, bar.ring) if value is not None]
    if not values:
        return ""
    ticks = nice_ticks(min(0.0, *values), max(0.0, *values), 6)
    left = 14 + CHAR * max(map(len, tick_labels(ticks)))
    up = Scale(ticks[0], ticks[-1], size.height - 46, 26)
    room = (size.width - left - 8) / len(bars)
    zero = up.at(0)
    parts = [f'<text class="title" x="0" y="12">gain in {markup(unit, 60)}</text>']
    parts += _grid_y(ticks, up, (left, size.width - 8))
    parts.append(f'<line class="zero" x1="{left:.1f}" x2="{size.width - 8:.1f}" y1="{zero:.1f}" y2="{zero:.1f}"/>')
    longest = max(len(bar.name) for bar in bars)
    every = max(1, math.ceil((CHAR * longest + 8) / (2 * room)))
    for place, bar in enumerate(bars):
        middle = left + room * (place + 0.5)
        parts += _bar(bar, up, middle, min(26.0, room * 0.55))
        if place % every == 0:
            row = size.height - 24 + LINE * (place // every % 2)
            parts.append(f'<text class="tick" x="{middle:.1f}" y="{row:.1f}" text-anchor="middle">')
            parts.append(f"{markup(bar.name, 24)}</text>")
    told = "; ".join(
        f"{bar.name} {'without a number' if bar.value is None else signed(bar.value)}" for bar in bars[:60]
    )
    return svg(parts, size, f"Gain of each candidate in {unit}: {told}.")


def svg(parts: Sequence[str], size: Size, says: str) -> str:
    """A drawing with the sentence that stands in for it."""
    box = f"0 0 {size.width:g} {size.height:g}"
    return f'<svg viewBox="{box}" role="img" aria-label="{markup(says, 1200)}">{"".join(parts)}</svg>'


def _title(says: str, x: float, y: float) -> str:
    return f'<text class="title" x="{x:.1f}" y="{y:.1f}" text-anchor="end">{markup(says, 80)}</text>'


def _labels(series: Sequence[Series], levels: Sequence[Level]) -> list[str]:
    return [*(one.label for one in series), *(one.label for one in levels)]


def _values(points: Sequence[BandPoint], levels: Sequence[Level]) -> list[float]:
    return [*(p.low for p in points), *(p.high for p in points), *(one.value for one in levels)]


def _near(levels: Sequence[Level], low: float, high: float) -> list[Level]:
    room = (high - low) or abs(high) or 1.0
    return [one for one in levels if low - room <= one.value <= high + room]


def _grid_y(ticks: Sequence[float], up: Scale, ends: tuple[float, float]) -> list[str]:
    parts = []
    for tick, label in zip(ticks, tick_labels(ticks), strict=True):
        y = up.at(tick)
        parts.append(f'<line class="grid" x1="{ends[0]:.1f}" x2="{ends[1]:.1f}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(f'<text class="tick" x="{ends[0] - 8:.1f}" y="{y + 4:.1f}" text-anchor="end">{label}</text>')
    return parts


def _axis_x(ticks: Sequence[float], across: Scale, y: float) -> list[str]:
    parts = [f'<line class="axis" x1="{across.start:.1f}" x2="{across.end:.1f}" y1="{y:.1f}" y2="{y:.1f}"/>']
    for tick, label in zip(ticks, tick_labels(ticks), strict=True):
        x = across.at(tick)
        parts.append(f'<line class="axis" x1="{x:.1f}" x2="{x:.1f}" y1="{y:.1f}" y2="{y + 5:.1f}"/>')
        parts.append(f'<text class="tick" x="{x:.1f}" y="{y + 19:.1f}" text-anchor="middle">{label}</text>')
    return parts


def _level(level: Level, up: Scale, ends: tuple[float, float]) -> str:
    y = up.at(level.value)
    return f'<line class="level" x1="{ends[0]:.1f}" x2="{ends[1]:.1f}" y1="{y:.1f}" y2="{y:.1f}"/>'


def _band(one: Series, across: Scale, up: Scale) -> str:
    top = [f"{across.at(p.env_steps):.1f},{up.at(p.high):.1f}" for p in one.band]
    bottom = [f"{across.at(p.env_steps):.1f},{up.at(p.low):.1f}" for p in reversed(one.band)]
    return f'<polygon class="band {one.tone}" points="{" ".join(top + bottom)}"/>'


def _median(one: Series, across: Scale, up: Scale) -> str:
    points = " ".join(f"{across.at(p.env_steps):.1f},{up.at(p.middle):.1f}" for p in one.band)
    return f'<polyline class="median {one.tone}" points="{points}"/>'


def _legend(series: Sequence[Series], size: Size, *, room: float) -> tuple[list[str], int]:
    """The legend at the right of the title, or in a row of its own where the title leaves too little room."""
    wide = sum(CHAR * len(one.name) + 26 for one in series) + 18 * (len(series) - 1)
    beside = room + 24 + wide <= size.width
    y, x = (8, size.width - wide) if beside else (28, 0.0)
    parts = []
    for one in series:
        parts.append(f'<rect class="band {one.tone}" x="{x:.1f}" y="{y - 6}" width="20" height="12"/>')
        parts.append(f'<line class="median {one.tone}" x1="{x:.1f}" x2="{x + 20:.1f}" y1="{y}" y2="{y}"/>')
        parts.append(f'<text class="note" x="{x + 26:.1f}" y="{y + 4}">{markup(one.name, 60)}</text>')
        x += CHAR * len(one.name) + 26 + 18
    return parts, 1 if beside else 2


def _end_labels(series: Sequence[Series], levels: Sequence[Level], across: Scale, up: Scale) -> list[str]:
    """The names of lines and levels where they end, moved apart where they end close together."""
    ends = [(up.at(one.band[-1].middle), one.label, f"label {one.tone}") for one in series if one.band]
    parts = [
        f'<circle class="dot {one.tone}" cx="{across.at(one.band[-1].env_steps):.1f}" '
        f'cy="{up.at(one.band[-1].middle):.1f}" r="3.5"/>'
        for one in series
        if one.band
    ]
    ends = sorted([*ends, *((up.at(one.value), one.label, "note") for one in levels)])
    for y, (_, says, look) in zip(apart([end[0] for end in ends], LINE), ends, strict=True):
        parts.append(f'<text class="{look}" x="{across.end + 9:.1f}" y="{y + 4:.1f}">{markup(says, 30)}</text>')
    return parts


def apart(places: Sequence[float], room: float) -> list[float]:
    """Places in order, moved as little as is simple so that neighbours have room and the group stays centred."""
    groups: list[list[float]] = []
    for place in places:
        groups.append([place])
        while len(groups) > 1 and _middle(groups[-1]) - _middle(groups[-2]) < room * _half(groups[-2:]):
            last = groups.pop()
            groups[-1] += last
    return [_middle(group) + room * (n - (len(group) - 1) / 2) for group in groups for n in range(len(group))]


def _middle(group: Sequence[float]) -> float:
    return sum(group) / len(group)


def _half(pair: Sequence[Sequence[float]]) -> float:
    return sum(len(group) for group in pair) / 2


def _curve_words(series: Sequence[Series]) -> str:
    told = []
    for one in series:
        if one.band:
            last = one.band[-1]
            places = decimals_for(last.high - last.low)
            spread = f"{last.low:.{places}f} to {last.high:.{places}f} over {last.seeds} seeds"
            told.append(f"{one.name} ends at a median of {last.middle:.{places}f}, {spread}")
    return f"Learning curves: {'; '.join(told)}."


def _interval(row: IntervalRow, across: Scale, y: float) -> list[str]:
    low, high, middle = across.at(row.low), across.at(row.high), across.at(row.gain)
    places = decimals_for((row.high - row.low) / 2)
    told = f"{row.name}: {signed(row.gain, places)} ({signed(row.low, places)} to {signed(row.high, places)})"
    x = min(max(middle, across.start + CHAR * len(told) / 2), across.end - CHAR * len(told) / 2)
    parts = [f'<line class="reach {row.tone}" x1="{low:.1f}" x2="{high:.1f}" y1="{y:.1f}" y2="{y:.1f}"/>']
    parts += [
        f'<line class="median {row.tone}" x1="{end:.1f}" x2="{end:.1f}" y1="{y - 7:.1f}" y2="{y + 7:.1f}"/>'
        for end in (low, high)
    ]
    parts.append(f'<circle class="dot {row.tone}" cx="{middle:.1f}" cy="{y:.1f}" r="6"/>')
    parts.append(f'<text class="label {row.tone}" x="{x:.1f}" y="{y - 14:.1f}" text-anchor="middle">')
    parts.append(f"{markup(told, 120)}</text>")
    return parts


def _bar(bar: Bar, up: Scale, middle: float, width: float) -> list[str]:
    zero, parts, small = up.at(0), [], min(4.0, width * 0.5)
    if bar.value is None:
        arm = f"{2 * small:.1f}"
        cross = f"M{middle - small:.1f} {zero - small:.1f}l{arm} {arm}m0 -{arm}l-{arm} {arm}"
        parts.append(f'<path class="cross {bar.tone}" d="{cross}"/>')
    else:
        y = up.at(bar.value)
        top, height = min(y, zero), max(abs(y - zero), 1.0)
        box = f'x="{middle - width / 2:.1f}" y="{top:.1f}" width="{width:.1f}" height="{height:.1f}"'
        parts.append(f'<rect class="bar {bar.tone}" {box} rx="1.5"/>')
    if bar.ring is not None:
        parts.append(f'<circle class="ring" cx="{middle:.1f}" cy="{up.at(bar.ring):.1f}" r="{small:.1f}"/>')
    return parts
