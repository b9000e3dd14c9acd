"""The benchmark tool of the trainers, run as a person runs it."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).parents[2] / "benchmarks" / "trainers.py"


@pytest.mark.skipif(importlib.util.find_spec("matplotlib") is None, reason="matplotlib comes with EnvPool")
@pytest.mark.feature("H99")
def test_seconds_from_start_to_end_and_ms_per_update_are_written_as_json_and_drawn(tmp_path: Path) -> None:
    command = [sys.executable, str(TOOL), "3", "1", "Pendulum-v1"]
    told = os.environ | {"OVERNIGHT_BENCHMARKS": str(tmp_path), "MPLCONFIGDIR": str(tmp_path)}
    subprocess.run(command, env=told, check=True, capture_output=True, timeout=200)
    cases = json.loads((tmp_path / "trainers.json").read_text())["cases"]
    assert [(one["trainer"], one["device"]) for one in cases] == [("ppo", "cpu"), ("sac", "cpu")]
    assert all(one["seconds"] > 2 and one["milliseconds_per_update"] > 0 for one in cases)
    assert (tmp_path / "trainers.png").read_bytes().startswith(b"\x89PNG")
