"""What a trainer leaves behind: a policy that needs no code of ours to run, and a checkpoint to go on from."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from overnight.guest.train import write_tensors
from overnight.rl.moments import CLIP, Moments

Array = NDArray[Any]


def write_policy(
    folder: Path,
    layers: Sequence[tuple[Array, Array]],
    seen: Moments | None,
    extra: Mapping[str, Array],
    **says: object,
) -> None:
    """Write a policy of the registered architecture `mlp`.

    `seen` are the statistics by which observations are normalised, or None; `extra` are further
    arrays, and `says` is what the policy says of itself beyond its shape.
    """
    spec: dict[str, object] = {"schema": "overnight/policy/1", "kind": "weights", "architecture": "mlp"}
    spec |= {"observation_size": layers[0][0].shape[0], "action_size": layers[-1][0].shape[1]}
    spec |= {"hidden": [bias.size for _, bias in layers[:-1]], **says}
    spec |= {"normalizer": seen is not None, "normalizer_clip": CLIP}
    arrays = dict(extra) if seen is None else {"obs_mean": seen.mean, "obs_scale": seen.scale(), **extra}
    for i, (weight, bias) in enumerate(layers):
        arrays |= {f"layer{i}.weight": weight, f"layer{i}.bias": bias}
    (folder / "policy.json").write_text(json.dumps(spec, indent=2) + "\n")
    tensors = {name: ("F32", array.shape, array.astype("<f4").tobytes()) for name, array in arrays.items()}
    write_tensors(folder / "model.safetensors", tensors)


class Checkpoint(NamedTuple):
    """A training at one moment."""

    facts: dict[str, Any]
    """Counters, and the states of the random generators."""
    arrays: dict[str, Array]
    """Weights, the optimiser's moments, statistics and, where there is one, the replay."""


def write_checkpoint(folder: Path, found: Checkpoint) -> None:
    """Write a checkpoint as one JSON file and one file of arrays."""
    (folder / "facts.json").write_text(json.dumps(found.facts) + "\n")
    np.savez(folder / "arrays.npz", allow_pickle=False, **found.arrays)


def read_checkpoint(folder: Path) -> Checkpoint:
    """Read what `write_checkpoint` wrote."""
    facts = json.loads((folder / "facts.json").read_bytes())
    with np.load(folder / "arrays.npz", allow_pickle=False) as found:
        return Checkpoint(facts, {name: found[name] for name in found.files})
