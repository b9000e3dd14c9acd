"""A running mean and variance, for observations and rewards that are normalised while they are learnt from."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
CLIP = 10.0
"""The greatest size of a normalised number."""


class Moments:
    """A running mean and variance."""

    def __init__(self, size: int) -> None:
        self.mean, self.variance, self.count = np.zeros(size), np.ones(size), 1e-4

    def absorb(self, samples: Array) -> None:
        """Take in samples `[n, size]`, by the formula of Chan and others for two sets."""
        n, count = len(samples), self.count + len(samples)
        shift, within = samples.mean(0, dtype=float) - self.mean, samples.var(0, dtype=float) * n
        self.variance = (self.variance * self.count + within + shift**2 * self.count * n / count) / count
        self.mean, self.count = self.mean + shift * n / count, count

    def scale(self) -> Array:
        """What to multiply with for a spread of 1."""
        found: Array = (1 / np.sqrt(self.variance + 1e-8)).astype(np.float32)
        return found

    def normaliser(self) -> Callable[[Array], Array]:
        """What shifts and scales samples by the mean and spread of this moment."""
        mean, scale = self.mean.astype(np.float32), self.scale()
        return lambda samples: np.clip((samples - mean) * scale, -CLIP, CLIP)

    def packed(self) -> Array:
        """Everything as one array, for a checkpoint."""
        return np.concatenate([self.mean, self.variance, [self.count]])

    def unpack(self, packed: Array) -> None:
        """Go on where `packed` was called."""
        self.mean, self.variance = np.split(packed[:-1].copy(), 2)
        self.count = float(packed[-1])
