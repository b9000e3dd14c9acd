"""Policies that are only weights: the referee computes their actions itself, in NumPy, with no candidate code.

A folder holds `policy.json` (a `PolicySpec` of kind `weights`) and `model.safetensors`. The one
registered architecture is `mlp`: `layer0.weight` with one row for each input and one column for
each output, `layer0.bias`, and so on, all float32; the activation stands after every layer but
the last. With a normaliser, `obs_mean` and `obs_scale` give
`clip((observation - obs_mean) * obs_scale, -normalizer_clip, normalizer_clip)`.

Actions are greedy: the number of the greatest score, of each list where there are several; or the
mean; or, under the head `squashed`, `tanh(mean) * action_scale + action_shift`. Does not: clip an action to its
space, or restore an action's shape; the referee does.
"""

from collections.abc import Callable
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from overnight.errors import UserError
from overnight.evaluate.tensors import Tensors, read, read_bounded
from overnight.records.codec import loads
from overnight.records.policy import PolicySpec
from overnight.records.strict_json import MAX_BYTES

Act = Callable[[NDArray[Any], NDArray[np.bool_]], NDArray[Any]]
"""From observations `[B, ...]` and which of them begin an episode to actions `[B]` or `[B, K]`."""
Layers = tuple[tuple[NDArray[np.float32], NDArray[np.float32]], ...]

POLICY, WEIGHTS = "policy.json", "model.safetensors"


def load(folder: Path) -> Act:
    """Read a policy of kind `weights` and return the function that acts."""
    spec = read_spec(folder)
    if spec.kind != "weights":
        raise UserError(POLICY, "is of kind `code`, which is loaded in the guest's process only")
    tensors = read(folder / WEIGHTS)
    _check_names(tensors, spec)
    layers = _layers(tensors, spec)
    normalise = _normaliser(tensors, spec)
    activate = np.tanh if spec.activation == "tanh" else _relu
    choose = _head(tensors, spec)

    def act(observations: NDArray[Any], reset_mask: NDArray[np.bool_]) -> NDArray[Any]:
        x = _flat(observations, spec)
        if reset_mask.shape != (len(x),):
            raise UserError("reset mask", f"has the shape {reset_mask.shape}, but ({len(x)},) is needed")
        # Weights may be huge: an overflow is the candidate's own result, not a warning of ours.
        with np.errstate(all="ignore"):
            x = normalise(x)
            for weight, bias in layers[:-1]:
                x = activate(x @ weight + bias)
            return choose(x @ layers[-1][0] + layers[-1][1])

    return act


def kind_of(folder: Path) -> str:
    """Whether a policy is `weights` or `code`."""
    return read_spec(folder).kind


def read_spec(folder: Path) -> PolicySpec:
    """Read what a policy says about itself."""
    return loads(PolicySpec, read_bounded(folder / POLICY, MAX_BYTES), where=POLICY)


def _relu(x: NDArray[np.float32]) -> NDArray[np.float32]:
    return np.maximum(x, np.float32(0))


def _flat(observations: NDArray[Any], spec: PolicySpec) -> NDArray[np.float32]:
    flat = np.asarray(observations).reshape(len(observations), -1).astype(np.float32, copy=False)
    if flat.shape[1] != spec.observation_size:
        raise UserError(POLICY, f"takes {spec.observation_size} numbers, but an observation has {flat.shape[1]}")
    return flat


def _check_names(tensors: Tensors, spec: PolicySpec) -> None:
    depth = len(spec.hidden) + 1
    needed = {f"layer{i}.{part}" for i in range(depth) for part in ("weight", "bias")}
    if spec.normalizer:
        needed |= {"obs_mean", "obs_scale"}
    if spec.head == "squashed":
        needed |= {"action_scale", "action_shift"}
    if missing := sorted(needed - tensors.keys()):
        raise UserError(WEIGHTS, f"has no array `{missing[0]}`, which `{POLICY}` asks for")
    if extra := sorted(tensors.keys() - needed):
        raise UserError(WEIGHTS, f"has the array `{extra[0][:80]}`, which `{POLICY}` does not ask for")


def _layers(tensors: Tensors, spec: PolicySpec) -> Layers:
    widths = (spec.observation_size or 0, *spec.hidden, spec.action_size or 0)
    return tuple(
        (_array(tensors, f"layer{i}.weight", pair), _array(tensors, f"layer{i}.bias", pair[1:]))
        for i, pair in enumerate(pairwise(widths))
    )


def _normaliser(tensors: Tensors, spec: PolicySpec) -> Callable[[NDArray[np.float32]], NDArray[np.float32]]:
    if not spec.normalizer:
        return lambda x: x
    shape = (spec.observation_size or 0,)
    mean, scale = _array(tensors, "obs_mean", shape), _array(tensors, "obs_scale", shape)
    clip = np.float32(spec.normalizer_clip)
    return lambda x: np.clip((x - mean) * scale, -clip, clip)


def _head(tensors: Tensors, spec: PolicySpec) -> Callable[[NDArray[Any]], NDArray[Any]]:
    """From what the last layer gives to the greedy action."""
    if spec.head == "gaussian":
        return lambda out: out
    if spec.head == "squashed":
        shape = (spec.action_size or 0,)
        scale, shift = _array(tensors, "action_scale", shape), _array(tensors, "action_shift", shape)
        return lambda out: np.tanh(out) * scale + shift
    firsts = np.array(spec.firsts or (0,) * max(len(spec.lists), 1))
    if len(spec.lists) <= 1:
        return lambda out: out.argmax(axis=1) + firsts[0]
    borders = list(accumulate(spec.lists[:-1]))
    return lambda out: np.stack([part.argmax(axis=1) for part in np.split(out, borders, axis=1)], axis=1) + firsts


def _array(tensors: Tensors, name: str, shape: tuple[int, ...]) -> NDArray[np.float32]:
    """One float32 array of a known shape, with finite numbers only."""
    found = tensors[name]
    if found.dtype != np.float32 or found.shape != shape:
        has = f"{found.dtype} of shape {list(found.shape)}"
        raise UserError(WEIGHTS, f"`{name}` is {has}, but float32 of shape {list(shape)} is needed")
    if not np.isfinite(found).all():
        raise UserError(WEIGHTS, f"`{name}` holds numbers that are not finite")
    return found
