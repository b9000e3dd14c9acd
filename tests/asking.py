"""Studies in which a scripted coding agent proposes: a real process, a real keeper, a real gate."""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from nights import TRAINER, bench_of, small
from overnight.adapters.proposers.agent import AgentProposer
from overnight.adapters.proposers.caller import LocalCaller
from overnight.admission import Who, enter
from overnight.begin import Place, begin_repository
from overnight.contract.draft import Stated
from overnight.desk import StudyDesk
from overnight.intake import take_up
from overnight.machine import RealMachine
from overnight.prospect import view_of
from overnight.records.approval import Strength
from overnight.records.handed import Heard
from overnight.records.proposal import Edited, Exhausted, Wait
from overnight.study.study import Study
from overnight.trials import Bench
from scenes import Scene, complete, scene_in, write_repository

SCRIPTED = Path(__file__).parent / "fixtures" / "agents" / "scripted.txt"
Turn = dict[str, Any]


class Late(RealMachine):
    """A clock that can be set forward, so that nobody has to wait for an hour."""

    def __init__(self) -> None:
        super().__init__()
        self.ahead = 0.0

    def now(self) -> float:
        return time.time() + self.ahead


def with_agent(scene: Scene, turns: list[Turn], *, speaks: str = "claude", **agent: Any) -> Scene:
    """Put a scripted agent into a study's contract, and approve it."""
    script = scene.project.parent / "script.json"
    script.write_text(json.dumps(turns))
    script.chmod(0o644)
    section = {
        "command": [sys.executable, str(SCRIPTED), speaks, str(script), "{brief}"],
        "speaks": speaks,
        "wall_seconds": 30,
        "silence_seconds": 15,
        "dollars_each": 1.0 if speaks == "claude" else 0,
        "variables": ["SCRIPTED_KEY"],
        "readable": [str(SCRIPTED), str(script)],
        **agent,
    }

    def say(terms: dict[str, Any]) -> None:
        terms["experiments"]["proposers"] = ["agent", "human"]
        terms["experiments"]["agent"] = section
        terms["budget"] |= {"max_dollars": 5, "max_tokens": 100_000}

    scene.rewrite(say)
    scene.approve()
    return scene


def code_study(project: Path) -> Scene:
    """A study of a repository whose trainer knows the answer already."""
    write_repository(project, {"train.py": TRAINER, "config.json": "{}\n", "docs/notes.md": "Notes.\n"})
    begin_repository(RealMachine(), Place(project), Stated())
    scene = scene_in(project)
    complete(scene)
    scene.rewrite(small)
    return scene


class Asking:
    """An engine that asks an agent and puts what it says before the gate, and trains nothing."""

    def __init__(self, scene: Scene, study: Study) -> None:
        contract = enter(study, Who("tester", Strength.TERMINAL))
        self.scene, self.study, self.clock = scene, study, Late()
        self.bench: Bench = bench_of(scene, study, contract)
        desk = StudyDesk(study, scene.store, contract)
        self.proposer = AgentProposer(desk, LocalCaller(), self.clock)

    def ask(self, until: Callable[[Wait], bool] = lambda _: False) -> Edited | Exhausted | Wait:
        """Ask until there is an answer, or until a wait that the test is after."""
        deadline = time.monotonic() + 60
        before = len(self.ended())
        while time.monotonic() < deadline:
            answer = self.proposer.ask(view_of(self.bench))
            if not isinstance(answer, Wait):
                assert isinstance(answer, (Edited, Exhausted))
                return answer
            if len(self.ended()) > before or until(answer):
                return answer
            time.sleep(0.05)
        raise TimeoutError("the agent did not come to an end")

    def take(self) -> Heard:
        """One idea, put before the gate."""
        answer = self.ask()
        assert isinstance(answer, Edited), answer
        return take_up(self.study, self.scene.store, answer)

    def ended(self) -> list[str]:
        """How each question ended so far."""
        return [one.outcome for one in self.study.state.asks.values() if one.outcome]

    def brief(self) -> str:
        """The last brief."""
        return sorted(self.scene.at.asks.glob("*/brief.md"))[-1].read_text()

    def close(self) -> None:
        self.proposer.close(view_of(self.bench))
