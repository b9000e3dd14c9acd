"""The page of whole nights: what was certified, when, at what cost, and what is not known is said."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from overnight.contract.trainers import family, recipe
from overnight.records.codec import dumps
from overnight.records.env import EnvSpec
from overnight.records.order import RunBudget
from overnight.records.transfer import Transfer

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

import unattended
from unattended_page import TITLES, page

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


def test_a_claim_on_a_small_scale_keeps_its_decimals() -> None:
    told = page([night(claims=[CLAIM | {"gain": [0.11, 0.274, 0.44], "ours": [0.72, 0.75], "theirs": [0.37, None]}])])
    assert "| 0.37, lost | 0.72, 0.75 | 0.370 → 0.735 | +0.27 (+0.11 to +0.44) |" in told


def test_what_was_not_measured_and_what_was_not_certified_is_said() -> None:
    told = page([night(claims=[]), night(night="cold", foreign=0.04, sitting_seconds=6540.0)])
    assert "Nothing was certified." in told and told.count("Not measured yet.") == 1
    assert "--cold --yes`" in told and "It sat for 109 minutes, and others used 4% of the machine." in told


def test_a_certified_candidate_differs_from_the_baseline_by_the_changes_of_all_tips_that_it_stands_on() -> None:
    stack = {"a": ("root", {}), "b": ("a", {"num_envs": 16, "gamma": 0.99}), "c": ("b", {"gamma": 0.97})}
    drafted = [
        ("drafted", {"id": name, "commit": name, "base": base, "proposal": {"params": params}})
        for name, (base, params) in stack.items()
    ]
    assert unattended._params(drafted, "c") == {"num_envs": 16, "gamma": 0.97}


def test_the_last_record_of_a_night_counts() -> None:
    assert "Nothing was certified." not in page([night(claims=[]), night()])


def test_what_a_change_was_worth_elsewhere_has_a_row() -> None:
    made = Transfer(
        candidate="c-0002",
        tree="a" * 40,
        baseline="b" * 40,
        env=EnvSpec(backend="gymnasium", id="Pendulum-v1"),
        budget=RunBudget(unit="env_steps", amount=1000),
        times=1.0,
        hardware="any, cpu, 1 cores a run",
        train_seeds=(1, 2),
        ours=(-150.0, -160.0),
        theirs=(-280.0, -270.0),
        gain=120.0,
        gain_low=60.0,
        gain_high=180.0,
        says="Pendulum-v1: the gain holds.",
    )
    told = page([night(transfers=[json.loads(dumps(made))])])
    assert "Elsewhere, unmodified:" in told and "+60 to +180" in told


def test_the_unknown_environment_is_of_no_family_and_every_night_has_a_title() -> None:
    assert family(unattended.NIGHTS["unknown"].env) is None and recipe("ppo", unattended.NIGHTS["unknown"].env) is None
    assert unattended.NIGHTS.keys() == TITLES.keys()


def test_transfers_that_come_later_keep_what_is_known_of_their_nights_sitting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unattended, "TARGET", tmp_path / "nights.jsonl")
    assert unattended._sat_before("warm", [CLAIM]) == {}
    unattended.TARGET.write_text(json.dumps(night(sitting_seconds=3000.0, own_cpu=5000.0, foreign=0.02)) + "\n")
    kept = {"sitting_seconds": 3000.0, "own_cpu": 5000.0, "foreign": 0.02}
    assert unattended._sat_before("warm", [CLAIM]) == kept
    assert unattended._sat_before("warm", [CLAIM | {"at": 50.0}]) == {}, "another night's sitting"
