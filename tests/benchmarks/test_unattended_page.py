"""The page of whole nights: what was certified, when, at what cost, and what is not known is said."""

import sys
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

from unattended_page import page

CLAIM = {
    "candidate": "c-0002",
    "gain": [100.0, 120.0, 140.0],
    "says": "Return 186 → 306.",
    "at": 31.6,
    "ours": [306.0, 310.0, None],
    "theirs": [180.0, 192.0, 186.0],
    "params": {"num_envs": 64, "learning_rate": 0.001},
}


def night(**changed: Any) -> dict[str, Any]:
    line = {
        "night": "warm",
        "env": "BipedalWalker-v3",
        "hours": 1.0,
        "steps": 3_200_000,
        "candidates": 4,
        "runs": 24,
        "run_cpu": 6000.0,
        "run_wall": 6100.0,
        "claims": [CLAIM],
        "transfers": [],
    }
    return line | changed


def test_a_claim_stands_with_every_seed_its_time_and_its_interval() -> None:
    told = page([night()])
    assert "`overnight start BipedalWalker-v3 --hours 1 --yes`: 4 candidates, 24 trainings of 3,200,000 steps" in told
    assert "| c-0002 | 32 | 180, 192, 186 | 306, 310, lost | 186.0 → 308.0 | +120 (+100 to +140) |" in told
    assert "c-0002: `learning_rate` 0.001, `num_envs` 64." in told


def test_what_was_not_measured_and_what_was_not_certified_is_said() -> None:
    told = page([night(claims=[]), night(night="cold", foreign=0.04)])
    assert "Nothing was certified." in told and told.count("Not measured yet.") == 1
    assert "--cold --yes`" in told and "Others used 4% of the machine." in told


def test_the_last_record_of_a_night_counts() -> None:
    assert "Nothing was certified." not in page([night(claims=[]), night()])
