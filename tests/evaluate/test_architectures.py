"""Policies that are only weights: the referee's NumPy gives what the trainer's network gives."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from overnight.errors import UserError
from overnight.evaluate.architectures import kind_of, load
from overnight.guest.train import write_tensors
from overnight.records.codec import decode
from overnight.records.policy import PolicySpec

Arrays = dict[str, NDArray[Any]]
SPEC: dict[str, Any] = {
    "kind": "weights",
    "architecture": "mlp",
    "activation": "tanh",
    "head": "categorical",
    "observation_size": 6,
    "action_size": 3,
    "hidden": [8, 5],
    "normalizer": True,
    "normalizer_clip": 1.5,
}


def weights(rng: np.random.Generator, *, normalizer: bool = True) -> Arrays:
    arrays = {}
    for i, (rows, columns) in enumerate([(6, 8), (8, 5), (5, 3)]):
        arrays[f"layer{i}.weight"] = rng.standard_normal((rows, columns))
        arrays[f"layer{i}.bias"] = rng.standard_normal(columns)
    if normalizer:
        arrays |= {"obs_mean": rng.standard_normal(6), "obs_scale": rng.uniform(0.5, 2, 6)}
    return {name: array.astype("<f4") for name, array in arrays.items()}


def write(folder: Path, spec: dict[str, Any], arrays: Arrays) -> Path:
    (folder / "policy.json").write_text(json.dumps({"schema": "overnight/policy/1", **spec}))
    names = {"<f4": "F32", "<f8": "F64"}
    tensors = {name: (names[array.dtype.str], array.shape, array.tobytes()) for name, array in arrays.items()}
    write_tensors(folder / "model.safetensors", tensors)
    return folder


@pytest.mark.parametrize("head", ["categorical", "gaussian", "squashed", "lists"])
@pytest.mark.parametrize("normalizer", [True, False])
@pytest.mark.parametrize("activation", ["tanh", "relu"])
def test_numpy_gives_the_actions_of_a_jax_network(tmp_path: Path, activation: str, normalizer: bool, head: str) -> None:
    jnp = pytest.importorskip("jax.numpy")
    rng = np.random.default_rng(3)
    arrays = weights(rng, normalizer=normalizer)
    spec = SPEC | {"activation": activation, "normalizer": normalizer, "head": head}
    if head == "lists":
        spec |= {"head": "categorical", "lists": [1, 2]}
    if head == "squashed":
        arrays |= {"action_scale": np.array([1, 2, 3], "<f4"), "action_shift": np.array([0, 1, -1], "<f4")}
    observations = rng.standard_normal((40, 2, 3)) * 3

    x = jnp.asarray(observations.reshape(40, 6), jnp.float32)
    if normalizer:
        x = jnp.clip((x - arrays["obs_mean"]) * arrays["obs_scale"], -1.5, 1.5)
    for i in range(3):
        x = x @ arrays[f"layer{i}.weight"] + arrays[f"layer{i}.bias"]
        if i < 2:
            x = jnp.tanh(x) if activation == "tanh" else jnp.maximum(x, 0)

    found = load(write(tmp_path, spec, arrays))(observations, np.ones(40, bool))
    if head == "gaussian":
        np.testing.assert_allclose(found, x, atol=1e-5)
    elif head == "squashed":
        np.testing.assert_allclose(found, jnp.tanh(x) * np.array([1, 2, 3]) + np.array([0, 1, -1]), atol=1e-5)
    elif head == "lists":
        np.testing.assert_array_equal(found, np.stack([np.zeros(40), np.asarray(x)[:, 1:].argmax(1)], 1))
    else:
        np.testing.assert_array_equal(found, np.asarray(x).argmax(1))


def test_a_policy_without_hidden_layers_is_linear(tmp_path: Path) -> None:
    spec = SPEC | {"hidden": [], "normalizer": False, "head": "gaussian", "observation_size": 2, "action_size": 1}
    arrays = {"layer0.weight": np.array([[2.0], [3.0]], "<f4"), "layer0.bias": np.array([1.0], "<f4")}
    act = load(write(tmp_path, spec, arrays))
    assert act(np.array([[1, 10], [0, 0]]), np.zeros(2, bool)).tolist() == [[33.0], [1.0]]


def test_weights_that_overflow_give_an_action_and_no_warning(tmp_path: Path) -> None:
    arrays = {name: np.full_like(array, 3e38) for name, array in weights(np.random.default_rng(0)).items()}
    act = load(write(tmp_path, SPEC | {"activation": "relu", "head": "gaussian"}, arrays))
    assert not np.isfinite(act(np.ones((2, 6)), np.zeros(2, bool))).all()


def broken(name: str, array: NDArray[Any] | None) -> Arrays:
    arrays = weights(np.random.default_rng(0)) | ({} if array is None else {name: array})
    if array is None:
        del arrays[name]
    return arrays


@pytest.mark.parametrize(
    ("arrays", "says"),
    [
        pytest.param(broken("layer2.bias", None), "has no array `layer2.bias`", id="a layer is missing"),
        pytest.param(broken("obs_mean", None), "has no array `obs_mean`", id="the normaliser is missing"),
        pytest.param(broken("extra", np.zeros(1, "<f4")), "has the array `extra`", id="an array too many"),
        pytest.param(broken("layer0.weight", np.zeros((8, 6), "<f4")), "shape [6, 8] is needed", id="transposed"),
        pytest.param(broken("layer0.bias", np.zeros(8, "<f8")), "float32 of shape [8]", id="doubles"),
        pytest.param(broken("obs_scale", np.full(6, np.nan, "<f4")), "not finite", id="NaN"),
    ],
)
def test_weights_that_do_not_fit_their_description_are_refused(tmp_path: Path, arrays: Arrays, says: str) -> None:
    with pytest.raises(UserError, match=re.escape(says)):
        load(write(tmp_path, SPEC, arrays))


def test_an_observation_of_another_size_is_refused(tmp_path: Path) -> None:
    act = load(write(tmp_path, SPEC, weights(np.random.default_rng(0))))
    with pytest.raises(UserError, match="takes 6 numbers, but an observation has 7"):
        act(np.zeros((2, 7)), np.zeros(2, bool))
    with pytest.raises(UserError, match=r"\(2,\) is needed"):
        act(np.zeros((2, 6)), np.zeros(3, bool))


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        pytest.param(SPEC | {"architecture": "transformer"}, "`architecture` is", id="an unknown architecture"),
        pytest.param(SPEC | {"colour": 1}, "`colour` is not a known key", id="an unknown key"),
        pytest.param(SPEC | {"hidden": [0]}, "`hidden.0` is 0", id="a layer without width"),
        pytest.param(SPEC | {"entry": "policy:load"}, "`entry` is given", id="weights with an entry"),
        pytest.param({"kind": "weights"}, "`architecture` is missing", id="weights without a description"),
        pytest.param({"kind": "code"}, "`entry` is missing", id="code without an entry"),
        pytest.param({"kind": "code", "entry": "os.system"}, "`entry` is 'os.system'", id="an entry without a colon"),
        pytest.param({"kind": "code", "entry": "policy:load", "head": "gaussian"}, "`head` is given", id="both kinds"),
    ],
)
def test_a_description_that_does_not_add_up_is_refused(spec: dict[str, Any], says: str) -> None:
    with pytest.raises(UserError, match=re.escape(says)):
        decode(PolicySpec, spec, where="policy.json")


def test_code_is_never_loaded_here(tmp_path: Path) -> None:
    write(tmp_path, {"kind": "code", "entry": "policy:load"}, {})
    assert kind_of(tmp_path) == "code"
    with pytest.raises(UserError, match="in the guest's process only"):
        load(tmp_path)
