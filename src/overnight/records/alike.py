"""When two parameter sets are the same idea: equal to three digits, in each parameter's own scale."""

from collections.abc import Mapping
from math import floor, isfinite, log10

from overnight.records.limits import Scalar
from overnight.records.space import Parameter, Space

DIGITS = 3
"""How many digits of a number count."""


def rounded(value: Scalar, parameter: Parameter | None) -> Scalar:
    """Round a value to the digits that count, and keep it inside its range.

    A number on a logarithmic scale, or without a declared range, is rounded to three
    significant digits. A number on a linear scale is rounded to the decimals that tell a
    thousandth of its range apart, so that a discount of 0.999 and one of 0.9995 stay two
    ideas while an entropy weight of 0 and one of 0.00000001 do not. Whole numbers below a
    thousand, texts and truth values are themselves.
    """
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not isfinite(value):
        return value
    if parameter is None or parameter.log or parameter.low is None or parameter.high is None:
        found = _significant(value)
    else:
        found = _linear(value, parameter.high - parameter.low)
    if parameter is not None and parameter.low is not None and parameter.high is not None:
        found = min(max(found, parameter.low), parameter.high)
    return int(found) if isinstance(value, int) else found


def fingerprint(params: Mapping[str, Scalar], space: Space | None) -> tuple[tuple[str, str], ...]:
    """What two parameter sets have in common exactly when they are the same idea: what nobody reads is left out."""
    return tuple(
        (key, _text(rounded(value, space.find(key) if space is not None else None)))
        for key, value in sorted(params.items())
        if space is None or space.is_read(key, params)
    )


def _significant(value: float) -> float:
    return round(value, DIGITS - 1 - floor(log10(abs(value)))) if value else value


def _linear(value: float, width: float) -> float:
    return round(value, max(0, DIGITS - floor(log10(width)))) if width > 0 else value


def _text(value: Scalar) -> str:
    """The number 1, the number 1.0 and the truth are three things in JSON, but the first two are one setting."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return f"{value + 0.0:.12g}"
    return f"{type(value).__name__} {value}"
