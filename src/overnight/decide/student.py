"""Student's t for any degrees of freedom, exact to ten digits, with nothing but the standard library."""

from functools import lru_cache
from math import exp, lgamma, log, sqrt

_STEPS = 300
_CLOSE = 1e-14
_TINY = 1e-300


@lru_cache(maxsize=256)
def t_quantile(level: float, freedom: float) -> float:
    """The value below which Student's t lies with this probability, for levels of at least one half."""
    if not 0.5 <= level < 1 or freedom <= 0:
        raise ValueError(f"A level of 0.5 to 1 and positive degrees of freedom are needed, not {level} and {freedom}.")
    low, high = 0.0, 1.0
    while t_below(high, freedom) < level:
        high *= 2
    for _ in range(200):
        middle = (low + high) / 2
        if t_below(middle, freedom) < level:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def t_below(value: float, freedom: float) -> float:
    """The probability that Student's t lies below a value of at least 0."""
    return 1 - 0.5 * _beta_share(freedom / (freedom + value * value), freedom / 2, 0.5)


def welch_freedom(variances: tuple[float, float], seeds: tuple[int, int]) -> float:
    """Welch's degrees of freedom for two means with their own variances."""
    one, two = variances[0] / seeds[0], variances[1] / seeds[1]
    if not one + two:
        return float(min(seeds) - 1)
    return (one + two) ** 2 / (one**2 / (seeds[0] - 1) + two**2 / (seeds[1] - 1))


def mean_error(variances: tuple[float, float], seeds: tuple[int, int]) -> float:
    """The standard error of the difference of two means."""
    return sqrt(variances[0] / seeds[0] + variances[1] / seeds[1])


def _beta_share(x: float, a: float, b: float) -> float:
    """The regularised incomplete beta function, by its continued fraction on the side where that is quick."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log(1 - x))
    if x < (a + 1) / (a + b + 2):
        return front * _fraction(x, a, b) / a
    return 1 - front * _fraction(1 - x, b, a) / b


def _fraction(x: float, a: float, b: float) -> float:
    """Lentz's way through the continued fraction."""
    c, d = 1.0, 1 / _not_zero(1 - (a + b) * x / (a + 1))
    found = d
    for m in range(1, _STEPS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for part in (even, odd):
            d = 1 / _not_zero(1 + part * d)
            c = _not_zero(1 + part / c)
            found *= c * d
        if abs(c * d - 1) < _CLOSE:
            break
    return found


def _not_zero(value: float) -> float:
    return value if abs(value) > _TINY else _TINY
