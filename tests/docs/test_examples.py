"""Every example in the repository runs as it stands."""

import os
import subprocess
import sys
from pathlib import Path

from overnight.contract.approve import AGENT_HOSTS

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_the_first_study_runs_to_its_end(tmp_path: Path) -> None:
    kept = {name: value for name, value in os.environ.items() if name not in AGENT_HOSTS}
    done = subprocess.run(
        ["bash", EXAMPLES / "first_study.sh", tmp_path / "study"],
        env=kept | {"PATH": f"{Path(sys.executable).parent}:{kept['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "entries, all sound" in done.stdout
