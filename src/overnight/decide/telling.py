"""Numbers as verdicts tell them."""

from math import floor, isfinite, log10


def decimals(size: float, *, digits: int) -> int:
    """How many decimals show that many digits of a figure of this size."""
    return max(0, digits - 1 - floor(log10(abs(size)))) if size and isfinite(size) else 0


def told(value: float, places: int, *, sign: bool = False) -> str:
    """A number as sentences tell it: thousands apart, a true minus, and never a negative zero."""
    text = f"{abs(value):,.{places}f}"
    if not any(digit in text for digit in "123456789"):
        return text
    return f"−{text}" if value < 0 else f"+{text}" if sign else text
