"""A night under isolation: every run and every measurement names its tier, and a night below `min_tier` is refused."""

from pathlib import Path

import pytest

from nights import sit
from overnight.errors import Refused
from overnight.sandbox.probe import strongest
from runs import tiny_study
from scenes import Scene


@pytest.fixture(autouse=True)
def _keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "keys"))


def test_every_run_and_every_measurement_of_a_night_names_its_tier(params: Scene) -> None:
    for kind in ("ended", "measured"):
        assert {data["tier"] for data in params.entries(kind)} == {strongest()}
    first = next(data["says"] for data in params.entries("noted"))
    assert first.startswith(f"Isolation {strongest()} is used; a canary proved")


def test_a_night_below_the_contracts_tier_is_refused_before_anything_starts(tmp_path: Path) -> None:
    scene = tiny_study(tmp_path / "project")
    scene.rewrite(lambda terms: terms["evaluation"].update(min_tier="T4"))
    scene.approve()
    with pytest.raises(Refused, match="wants isolation T4 or stronger, and this machine proved"):
        sit(scene)
    assert list(scene.entries("launched")) == []
    refused = [reason for data in scene.entries("refused") for reason in data["reasons"]]
    assert [reason["rule"] for reason in refused] == ["isolation", "isolation"]
    assert "there is no tier T4 yet" in refused[1]["says"]
