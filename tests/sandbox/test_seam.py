"""Where another tier or another operating system plugs in: what is missing is said, and nothing is trusted untried."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from overnight.sandbox.bounds import bounds_for
from overnight.sandbox.probe import Proof, prove, tried
from overnight.sandbox.start import start
from overnight.sandbox.tiers import HOLDERS, Child, NotHeld
from runs import need

EXAMPLES = Path(__file__).parents[2] / "examples" / "evaluators"
ON_MACOS = """
import platform, sys
platform.system = lambda: "Darwin"
from overnight.sandbox import tiers
tiers.HOLDERS_ON.clear()
tiers.HOLDERS.clear()
from overnight.cli.main import main
sys.exit(main(sys.argv[1:]))
"""


def on_macos(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """What a command says where the table has no line for the operating system."""
    command = [sys.executable, "-c", ON_MACOS, *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=120)


def test_where_nothing_holds_a_candidate_that_is_said_and_nothing_is_started(tmp_path: Path) -> None:
    why = "candidates are held by means of Linux, and this is macOS"
    drafted = on_macos(tmp_path, "init", "CartPole-v1", "--hours", "1")
    assert drafted.returncode == 0, drafted.stderr
    assert f"No night can run here: {why}." in drafted.stdout + drafted.stderr
    assert on_macos(tmp_path, "approve", "--yes").returncode == 0
    told = json.loads(on_macos(tmp_path, "doctor", "--json").stdout)
    row = next(one for one in told["findings"] if one["name"] == "isolation")
    assert row["says"] == f"nothing holds a candidate here: {why}"
    assert row["command"].startswith("runs and measurements need Linux")
    for words in (("start",), ("attack", str(EXAMPLES / "one_train_file"))):
        refused = on_macos(tmp_path, *words)
        assert refused.returncode == 3, refused.stdout + refused.stderr
        assert f"Nothing holds a candidate here: {why}." in refused.stderr
    assert not list(tmp_path.rglob("runs/r-*"))


def test_a_tier_that_is_not_in_the_table_is_missing_and_never_faked(tmp_path: Path) -> None:
    assert prove("T4") == Proof("T4", "there is no tier T4 yet.")
    child = Child(command=("/bin/true",), cwd="/", env={})
    with pytest.raises(NotHeld, match="there is no tier T4 yet"):
        start(child, bounds_for((), writable=(str(tmp_path),)), "T4")


def test_a_tier_that_is_put_into_the_table_is_tried_by_the_canary_before_it_is_trusted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(HOLDERS, "T4", HOLDERS["T1"])  # somebody's new tier, which holds nothing
    assert tried("T4").why.startswith("a canary at T4 was not stopped: read outside, write outside")
    monkeypatch.setitem(HOLDERS, "T4", HOLDERS["T2"])
    need("T2")
    assert tried("T4").holds()
