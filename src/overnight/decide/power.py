"""How small a gain a certification can find. Pure: the only chance in it is a simulation with a fixed seed."""

from functools import lru_cache
from math import comb

import numpy as np

from overnight.decide.certify import POWER, SHOWN_LEVEL, detectable_gain
from overnight.decide.intervals import MOST_COUNTED

_SEED = 20_250_101
_MOST_ROUNDS, _MOST_NUMBERS = 20_000, 4_000_000


def smallest_gain(seeds: int, alpha: float, *, noise_sd: float = 1.0, least_gain: float = 0.0) -> float | None:
    """The true gain that a certification of `seeds` against `seeds` finds four times in five.

    None when no gain is large enough: then even the clearest order of so few seeds is not rare enough.
    In the unit of `noise_sd`, the standard deviation of scores between train seeds, which are taken as normal
    with the same spread in both arms. Scores with two humps need more; guardrails are not part of it.
    """
    if seeds < 1 or noise_sd < 0 or not 0 < alpha <= 0.5:
        raise ValueError(f"A seed, a noise of at least 0 and an error up to 0.5 are needed: {seeds, noise_sd, alpha}.")
    spreads = _gain_in_spreads(seeds, min(alpha, (1 - SHOWN_LEVEL) / 2))
    return None if spreads is None else least_gain + spreads * noise_sd


def wins_needed(seeds: int, others: int, alpha: float) -> int | None:
    """How many of the pairs across the arms the candidate must win to be certified; None when all are too few.

    The exact law of that number when nothing is better: its generating function is Gauss's binomial coefficient,
    which is multiplied out here factor by factor in whole numbers.
    """
    pairs = seeds * others
    counts = [1] + [0] * pairs
    for step in range(1, seeds + 1):
        for at in range(pairs, others + step - 1, -1):
            counts[at] -= counts[at - others - step]
        for at in range(step, pairs + 1):
            counts[at] += counts[at - step]
    rare, tail = alpha * comb(seeds + others, seeds), 0
    for wins in range(pairs, -1, -1):
        tail += counts[wins]
        if tail > rare:
            return wins + 1 if wins < pairs else None
    return 0


@lru_cache(maxsize=64)
def _gain_in_spreads(seeds: int, alpha: float) -> float | None:
    """The smallest gain as a multiple of the noise.

    In one simulated certification, a gain wins enough pairs exactly when it is above the so-many-th smallest of
    the incumbent's leads. So the gain found four times in five is a quantile of that one number, without a search.
    """
    if seeds > MOST_COUNTED:
        return detectable_gain(1.0, seeds, seeds, alpha)
    wins = wins_needed(seeds, seeds, alpha)
    if wins is None:
        return None
    rounds, rng = min(_MOST_ROUNDS, _MOST_NUMBERS // seeds**2), np.random.default_rng(_SEED)
    ours, theirs = rng.normal(size=(rounds, seeds, 1)), rng.normal(size=(rounds, 1, seeds))
    leads = (theirs - ours).reshape(rounds, seeds**2)
    enough = np.partition(leads, wins - 1, axis=1)[:, wins - 1]
    return float(np.quantile(enough, POWER))
