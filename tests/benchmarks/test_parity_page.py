"""The page of EnvPool and Gymnasium: a difference that is more than noise is told."""

import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

parity: Any = pytest.importorskip("parity")

ALIKE = {"env": "A-v0", "steps": 1000, "pool": [1.0, 3.0, 1.0, 3.0], "gymnasium": [2.0, 4.0, 2.0, 4.0]}
"""Both have the variance 4/3, so the noise of the difference is the root of 2/3: 0.816."""


def test_a_difference_within_noise_is_the_same_and_its_interval_is_shown() -> None:
    assert parity.difference(ALIKE) == (-1.0, pytest.approx(0.8165, abs=1e-4))
    assert "| A-v0 | 1,000 | 2.0 | 3.0 | -1.0 | -2.6 to +0.6 | yes |" in parity.page([ALIKE])


def test_a_difference_beyond_noise_is_told() -> None:
    far = {**ALIKE, "gymnasium": [5.0, 7.0, 5.0, 7.0]}  # 4 apart, which is 4.9 times the noise
    assert not parity.is_same(far)
    assert "| **no** |" in parity.page([far])


def test_scores_without_any_scatter_have_to_be_equal() -> None:
    flat = {**ALIKE, "pool": [500.0, 500.0], "gymnasium": [500.0, 500.0]}
    assert parity.is_same(flat)
    assert not parity.is_same({**flat, "gymnasium": [499.0, 499.0]})


def test_the_last_comparison_of_an_environment_counts() -> None:
    assert parity.page([{**ALIKE, "steps": 7}, ALIKE]).count("A-v0") == 1
    assert "| 1,000 |" in parity.page([{**ALIKE, "steps": 7}, ALIKE])
