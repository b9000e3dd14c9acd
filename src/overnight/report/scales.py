"""From numbers to places on a figure: ticks that people read, and the way from a value to a pixel."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from overnight.report.text import number


@dataclass(frozen=True, slots=True)
class Scale:
    """A straight line from values to pixels. `start` may lie beyond `end`, as on a vertical axis."""

    low: float
    """The value at `start`."""
    high: float
    """The value at `end`."""
    start: float
    """The pixel of `low`."""
    end: float
    """The pixel of `high`."""

    def at(self, value: float) -> float:
        """The pixel of a value."""
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)


def nice_step(span: float, most: int) -> float:
    """The smallest of 1, 2 and 5 times a power of ten that cuts a span into at most `most` parts."""
    rough = span / most
    power = 10.0 ** math.floor(math.log10(rough))
    return next(times * power for times in (1, 2, 5, 10) if times * power >= rough * (1 - 1e-9))


def nice_ticks(low: float, high: float, most: int = 6) -> tuple[float, ...]:
    """Round values that enclose a range: the first is at most `low`, the last at least `high`.

    A range without width is widened first, so that there are always at least two ticks.
    """
    low, high = widened(low, high)
    step = nice_step(high - low, most)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    # Twelve digits hide the dust of binary fractions, such as 0.30000000000000004.
    return tuple(float(f"{place * step:.12g}") for place in range(first, last + 1))


def widened(low: float, high: float) -> tuple[float, float]:
    """A range with some width, however the two numbers lie."""
    low, high = min(low, high), max(low, high)
    if high - low > 1e-9 * max(abs(low), abs(high), 1e-9):
        return low, high
    room = abs(high) * 0.1 or 1.0
    return low - room, high + room


def tick_labels(values: Sequence[float]) -> list[str]:
    """The ticks of one axis, short and in one unit: `5k` and `10k`, `0.5M` and `1.5M`, `0.05`."""
    largest = max(map(abs, values), default=0.0)
    for size, scale, letter in ((1e9, 1e9, "G"), (1e6, 1e6, "M"), (1e4, 1e3, "k")):
        if largest >= size:
            return [number(round(value / scale, 6)) + (letter if value else "") for value in values]
    return [number(round(value, 9)) for value in values]
