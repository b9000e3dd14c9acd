"""What the trainers' networks are made of, for NumPy and for JAX alike, and how an action is drawn from an output."""

from collections.abc import Callable
from itertools import accumulate, pairwise
from typing import Any

import jax.numpy as jnp
import numpy as np

Array = Any  # of NumPy or of JAX: the same lines serve both
Activation = Callable[[Array], Array]
Layers = list[tuple[Array, Array]]

NUMPY: dict[str, Activation] = {"tanh": np.tanh, "relu": lambda x: np.maximum(x, np.float32(0))}
JAX: dict[str, Activation] = {"tanh": jnp.tanh, "relu": lambda x: jnp.maximum(x, 0)}


def mlp(layers: Layers, x: Array, activate: Activation) -> Array:
    """Run one network: the activation stands after every layer but the last."""
    for weight, bias in layers[:-1]:
        x = activate(x @ weight + bias)
    return x @ layers[-1][0] + layers[-1][1]


def uniform_layers(rng: np.random.Generator, widths: tuple[int, ...]) -> Layers:
    """Weights and biases, uniform within one over the root of a layer's inputs, as PyTorch's linear layers begin."""
    found = []
    for rows, columns in pairwise(widths):
        weight, bias = rng.uniform(-1, 1, (rows, columns)) / rows**0.5, rng.uniform(-1, 1, columns) / rows**0.5
        found.append((weight.astype(np.float32), bias.astype(np.float32)))
    return found


def borders(lists: tuple[int, ...]) -> list[int]:
    """Where each list but the first begins, when their scores stand one behind the other."""
    return list(accumulate(lists[:-1]))


def drawer(lists: tuple[int, ...], spread: Array) -> Callable[[Array, Array], Array]:
    """How actions are drawn in NumPy from outputs and noise.

    With Gumbel noise, the greatest noisy score of each list is a draw from its softmax. Where
    there are no lists, the outputs are means, and the noise is that of a normal distribution.
    """
    if not lists:
        return lambda out, noise: out + spread * noise
    if len(lists) == 1:
        return lambda out, noise: (out + noise).argmax(1)
    at = borders(lists)
    return lambda out, noise: np.stack([part.argmax(1) for part in np.split(out + noise, at, axis=1)], axis=1)
