"""Whether a tip is clearly learning, so that a greater budget is worth its cost. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite

from overnight.decide.intervals import paired_interval
from overnight.records.metric import Direction, MetricSpec

LEVEL = 0.8
"""How sure the low end of the learning gain is."""


@dataclass(frozen=True, slots=True)
class Learning:
    """What was found about a tip."""

    gain: float | None
    """The low end of its gain over acting at random; null where nothing was measured."""
    says: str
    """A full sentence with the numbers in it."""

    def is_shown(self) -> bool:
        """Whether it is clearly learning."""
        return self.gain is not None and self.gain > 0


def learning(metric: MetricSpec, scores: Sequence[float | None], random: float) -> Learning:
    """Compare the tip's scores, one for each train seed, with that of acting at random on the same episodes.

    Learning is shown when the low end of the 80 % interval on the mean gain is above 0; with one train seed, the gain
    itself must be. A seed that was lost shows no learning, so then nothing is shown.
    """
    sign = 1.0 if metric.direction is Direction.HIGHER else -1.0
    if not scores or any(score is None for score in scores):
        return Learning(None, "Not every train seed of the tip has a score, so no learning is shown.")
    gains = [sign * (score - random) for score in scores if score is not None]
    found = paired_interval(gains, level=LEVEL)
    low = found.low if isfinite(found.low) else found.estimate
    word = "is clearly learning" if low > 0 else "is not clearly learning"
    says = (
        f"The tip {word}: over {len(gains)} train seeds it gains {found.estimate:.4g} {metric.unit} over acting at "
        f"random, at least {low:.4g} at {LEVEL:.0%}."
    )
    return Learning(low, says)
