"""Whole nights in which a coding agent proposes: real processes, a real keeper, real runs, a scripted agent."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from asking import Turn, code_study, with_agent
from nights import bench_of, params_study
from overnight.admission import Who, enter
from overnight.cli.proposing import proposing
from overnight.loop import Night, night
from overnight.records.approval import Strength
from overnight.sandbox.processes import with_variable
from overnight.study.study import Study
from scenes import MACHINE, Scene, overnight

LOOK: Turn = {
    "write": {"config.json": '{"angle": 1.0}\n'},
    "answer": {"kind": "code", "hypothesis": "The angle helps."},
}
AGAIN: Turn = {"write": {"config.json": '{ "angle": 1.0001 }\n'}, "answer": {"kind": "code"}}
BOTH: Turn = {
    "write": {"config.json": '{"angle": 1.0, "speed": 1.0}\n'},
    "answer": {"kind": "code", "hypothesis": "Its speed helps too.", "parents": ["c-0002"]},
}


@pytest.fixture(autouse=True)
def _own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "keys"))
    yield
    assert not [pid for pid in with_variable("SCRIPTED_NIGHT=1") if pid != os.getpid()]


def sit(scene: Scene, seconds: float = 3600) -> str:
    with Study.open(MACHINE, scene.at, doing="overnight start") as study:
        contract = enter(study, Who("tester", Strength.TERMINAL))
        bench = bench_of(scene, study, contract)
        with proposing(bench) as proposer:
            return night(Night(bench, proposer, study.machine.running() + seconds))


def test_a_night_with_an_agent_certifies_what_it_proposed_and_survives_its_failures(tmp_path: Path) -> None:
    scene = code_study(tmp_path / "project")
    turns: list[Turn] = [
        {"ends": "refusal"},
        LOOK,
        {"write": {"evaluate.py": "print(1)\n"}, "answer": {"kind": "code"}},
        AGAIN,
        {"ends": "quota", "resets_at": time.time() + 1},
        BOTH,
        {"write": {}},
    ]
    with_agent(scene, turns, max_asks=7)
    assert "asked 7 times" in sit(scene)
    state = scene.state()
    assert state.incumbents, "the agent's idea was certified"
    outcomes = [one.outcome for one in state.asks.values()]
    assert outcomes[:6] == ["refusal", "proposal", "proposal", "proposal", "limited", "proposal"]
    assert outcomes[6:] == ["empty"]
    refused = [one for one in state.candidates.values() if one.refused]
    assert len(refused) == 2 and not any(one.runs for one in refused), "what was refused cost no compute"
    tree = {file.path for file in scene.store.files(scene.store.tree_of(state.tip))}
    assert tree == {"train.py", "config.json", "docs/notes.md"}, "nothing outside the surface landed"
    lineage = scene.entries("drafted")[-1]["proposal"]
    assert lineage["parents"] == ["c-0002"] and lineage["operator"] in ("tune", "draft", "simplify", "combine")
    assert state.dollars == pytest.approx(0.25 * 6), "what was told counts, and waiting costs nothing"


@pytest.mark.skipif("OVERNIGHT_SOAK" not in os.environ, reason="a minute of real runs: `make soak`")
def test_search_goes_on_while_an_agent_stalls(tmp_path: Path) -> None:
    scene = params_study(tmp_path / "project")
    with_agent(scene, [{"ends": "stall"}], silence_seconds=600, wall_seconds=600)

    def both(terms: dict[str, Any]) -> None:
        terms["experiments"]["proposers"] = ["agent", "search"]
        terms["experiments"]["stop"]["max_candidates"] = 3
        terms["baseline"] |= {"trainer": "built-in", "command": ["python", "-m", "overnight.rl.trainers.ppo"]}
        terms["budget"] |= {"stop_amount": 512}

    scene.rewrite(both)
    scene.approve()
    assert sit(scene) == "The stop rule fired: 3 candidates were tried."
    proposers = [one["proposal"]["proposer"] for one in scene.entries("drafted")[1:]]
    assert proposers == ["search"] * 3
    assert [one.outcome for one in scene.state().asks.values()] == ["stopped"]


def test_a_persons_idea_is_taken_up_while_the_night_runs(tmp_path: Path) -> None:
    scene = code_study(tmp_path / "project")
    with_agent(scene, [{"ends": "stall"}], silence_seconds=600, wall_seconds=600)
    copy = tmp_path / "mine"
    assert overnight("propose", "--edit", str(copy), cwd=scene.project).returncode == 0
    (copy / "config.json").write_text('{"angle": 1.0}\n')
    said: list[subprocess.CompletedProcess[str]] = []

    def propose() -> None:
        time.sleep(2)
        words = ("propose", "--from", str(copy), "--kind", "code", "--because", "A person knows.", "--wait", "50")
        said.append(overnight(*words, cwd=scene.project))

    person = threading.Thread(target=propose)
    person.start()
    why = sit(scene, seconds=25)
    person.join()
    assert said[0].returncode == 0 and "c-0002" in said[0].stdout, said[0].stderr
    assert "time of the night is used up" in why or "runs are kept" in why, "by the speed of the machine"
    mine = scene.state().candidates["c-0002"]
    assert mine.hypothesis == "A person knows." and mine.runs
    assert scene.entries("drafted")[-1]["proposal"]["proposer"] == "human"


ENGINE = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from flow.test_agent_night import sit
from scenes import scene_in
print(sit(scene_in(Path(sys.argv[1]))))
"""


def test_an_engine_that_is_killed_leaves_no_agent_behind_and_its_question_is_accounted_for(tmp_path: Path) -> None:
    scene = code_study(tmp_path / "project")
    with_agent(scene, [{"ends": "stall"}, LOOK], silence_seconds=600, wall_seconds=600, max_asks=2)
    engine = subprocess.Popen(
        [sys.executable, "-c", ENGINE, str(scene.project), str(Path(__file__).parents[1])],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
    )
    folder = scene.at.ask("a-0001")
    until = time.monotonic() + 50
    while time.monotonic() < until and not with_variable(f"OVERNIGHT_ASK={folder}"):
        time.sleep(0.1)
    os.kill(engine.pid, signal.SIGKILL)
    engine.wait()
    time.sleep(1.0)
    assert not with_variable(f"OVERNIGHT_ASK={folder}"), "an agent dies with its engine"
    assert not (folder / "home").exists(), "and so do the credentials that it was given"
    assert "asked 2 times" in sit(scene)
    assert [one.outcome for one in scene.state().asks.values()] == ["lost", "proposal"]
    assert scene.state().incumbents, "the night went on and certified what the agent proposed then"
