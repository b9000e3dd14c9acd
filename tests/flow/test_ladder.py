"""The ladder of budgets: small runs first, up only with a tip that learns, and comparisons on one rung alone."""

import json
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nights import SMALL, TRAINER, Silent, sit
from overnight.begin import Place, begin_env
from overnight.contract.draft import Stated
from overnight.decide.ladder import learning
from overnight.errors import Refused, UserError
from overnight.machine import RealMachine
from overnight.records.codec import decode
from overnight.records.contract import Budget
from overnight.records.ladder import Promoted
from overnight.records.lifecycle import Actor
from overnight.report.journal import Experiment
from overnight.report.png import chunks
from overnight.report.score_graph import GREEN, GREY, HEIGHT, WIDTH, points
from scenes import Scene, overnight, scene_in

RUNGS = [
    {"amount": 12, "episodes": 8},
    {"amount": 32, "episodes": 8},
    {"amount": 64, "episodes": 12},
    {"amount": 128, "episodes": 16},
    {"amount": 256, "episodes": 24},
    {"amount": 512, "episodes": 48},
    {"amount": 1000, "episodes": 100},
]


def budget(**more: object) -> Budget:
    plain = {"stop_unit": "env_steps", "stop_amount": 1000, "run_wall_seconds": 60, "max_runs": 9, "max_wall_hours": 1}
    return decode(Budget, plain | more, where="budget")


def test_a_ladder_rises_to_the_budget_that_was_approved() -> None:
    assert [budget(ladder=RUNGS).amount(rung) for rung in range(8)] == [12, 32, 64, 128, 256, 512, 1000, 1000]
    assert budget().amount(3) == 1000
    for wrong in (RUNGS[:-1], [*RUNGS, RUNGS[0]], [RUNGS[1], RUNGS[0], RUNGS[-1]]):
        with pytest.raises(UserError, match="they must rise to 1000"):
            budget(ladder=wrong)


@pytest.mark.feature("H49")
@pytest.mark.parametrize(
    ("scores", "shown"),
    [
        ([50.0, 55.0, 60.0], True),
        ([9.0, 9.0], False),
        ([50.0, 5.0], False),
        ([30.0], True),
        ([30.0, None], False),
        ([], False),
    ],
)
def test_learning_is_shown_by_scores_that_are_clearly_above_acting_at_random(
    cartpole: Scene, scores: list[float | None], shown: bool
) -> None:
    assert learning(cartpole.contract().metric, scores, 10.0).is_shown() is shown


# A whole climb, with a trainer that knows the answer


def climbing(project: Path, *, knows: bool) -> Scene:
    """A study on a ladder of three rungs, one candidate on each; its trainer acts well where it `knows`."""
    project.mkdir(parents=True)
    trainer = project.parent / "trainer.py"
    text = TRAINER if knows else TRAINER.replace('order.params["learning_rate"] > 0.001', "False")
    trainer.write_text(text)
    begin_env(RealMachine(), Place(project), Stated(env="CartPole-v1", env_steps=1000, hours=1))
    scene = scene_in(project)

    def say(terms: dict[str, Any]) -> None:
        terms["baseline"] |= {"trainer": "repository", "command": ["python", str(trainer)]}
        terms["experiments"]["proposers"] = ["human"]
        terms["evaluation"] |= SMALL
        rungs = ((10, 4), (100, 5), (1000, 6))
        terms["budget"]["ladder"] = [{"amount": a, "episodes": e, "candidates": 1} for a, e in rungs]

    scene.rewrite(say)
    scene.approve()
    return scene


@pytest.fixture
def keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "keys"))


@pytest.mark.timeout(300)
@pytest.mark.usefixtures("keys")
@pytest.mark.feature("H48", "H51", "H65", "H66")
def test_a_tip_that_learns_climbs_and_is_run_again_first_on_every_rung(tmp_path: Path) -> None:
    scene = climbing(tmp_path / "project", knows=True)
    assert scene.propose({"learning_rate": 0.01}) == ()
    sit(scene, Silent(), lambda: scene.state().rung == 1)
    state = scene.state()
    assert state.rung == 1 and [data["rung"] for data in scene.entries("promoted")] == [1]
    tip = next(one.id for one in state.candidates.values() if one.commit == state.tip)
    assert scene.propose({"learning_rate": 0.02}) == ()
    sit(scene, Silent())
    runs = list(scene.state().runs.items())
    orders = {name: json.loads((scene.at.runs / name / "run.json").read_text())["budget"]["amount"] for name, _ in runs}
    assert {(run.rung, orders[name]) for name, run in runs} >= {(0, 10.0), (1, 100.0)}
    first = next(run for _, run in runs if run.rung == 1)
    assert first.candidate == tip, "the tip is what others are compared with there, and comes first"
    measured = {data["run"]: data["episodes"] for data in scene.entries("measured")}
    assert {measured[name] for name, run in runs if run.phase == "screen" and run.rung == 0} == {4}
    assert {measured[name] for name, run in runs if run.phase == "screen" and run.rung == 1} == {5}
    for data in scene.entries("decided"):
        assert len({scene.state().runs[name].rung for name in data["evidence"]}) == 1
        assert len({scene.state().runs[name].comparability for name in data["evidence"]}) == 1
    check_journal(scene)


def check_journal(scene: Scene) -> None:
    """One section for each experiment with all six parts, and one point for each row."""
    assert overnight("report", cwd=scene.project).returncode == 0
    page = scene.at.journal.read_text()
    decided = {data["candidate"] for data in scene.entries("decided")}
    sections = page.split("\n## ")[1:]
    assert len(sections) == len(decided | {scene.state().baseline})
    six = ("Idea", "Rationale", "What worked", "What did not work", "Decision", "Next experiment")
    assert all(one.count(f"- **{part}:** ") == 1 for one in sections for part in six)
    assert all("max_steps 500" in one.splitlines()[0] and "env steps" in one.splitlines()[0] for one in sections)
    picture = pixels(scene.at.score_graph.read_bytes())
    middles = [tuple(int(x) for x in picture[top, left]) for left, top in points(_shown(scene, sections))]
    assert len(middles) == len(sections) and set(middles) <= {GREEN, GREY}


def _shown(scene: Scene, sections: list[str]) -> list[Experiment]:
    scores = [float(one.split("It scored ")[1].split(" ")[0].replace(",", "")) for one in sections]
    plain = dict.fromkeys(
        ("name", "at", "commit", "budget", "idea", "rationale", "worked", "failed", "decision", "next"), ""
    )
    return [Experiment(**plain, max_steps=None, score=score, kept=True) for score in scores]


def pixels(png: bytes) -> Any:
    data = zlib.decompress(b"".join(one.data for one in chunks(png) if one.kind == b"IDAT"))
    rows = np.frombuffer(data, np.uint8).reshape(HEIGHT, 1 + 3 * WIDTH)
    assert not rows[:, 0].any(), "no filter was used"
    return rows[:, 1:].reshape(HEIGHT, WIDTH, 3)


@pytest.mark.timeout(300)
@pytest.mark.usefixtures("keys")
def test_a_tip_that_does_not_learn_stays_where_it_is_and_the_ledger_says_why(tmp_path: Path) -> None:
    scene = climbing(tmp_path / "project", knows=False)
    assert scene.propose({"learning_rate": 0.01}) == ()
    sit(scene, Silent())
    assert scene.state().rung == 0 and not scene.entries("promoted")
    notes = [data["says"] for data in scene.entries("noted")]
    assert sum("The budget stays as it is. The tip is not clearly learning" in one for one in notes) == 1


# What the fold refuses


@pytest.mark.feature("H50", "H52")
def test_results_of_another_rung_decide_nothing_and_no_rung_is_left_out_or_gone_back_to(cartpole: Scene) -> None:
    cartpole.enter()
    assert cartpole.propose({"gamma": 0.95}) == ()
    run = cartpole.train("c-0001")
    with cartpole.open() as study:
        assert study.state.rung == 0
        climb = Promoted(rung=1, candidate="c-0001", because="It learns.", learning_gain=1.0, evidence=())
        with pytest.raises(Refused, match="may go to 1 and not to 2"):
            study.append(Actor.JUDGE, decode(Promoted, {**encoded(climb), "rung": 2}, where="x"))
        study.append(Actor.JUDGE, climb)
        with pytest.raises(Refused, match="may go to 2 and not to 1"):
            study.append(Actor.JUDGE, climb)
        with pytest.raises(Refused, match="it is for rung 0, and the study is on 1"):
            study.append(Actor.RUNNER, cartpole.run_of("c-0001", number=2))
    with pytest.raises(Refused, match="only those of rung 1 may be compared now"):
        cartpole.keep(run)
    with pytest.raises(UserError, match="learning_gain"):
        decode(Promoted, {**encoded(climb), "learning_gain": 0.0}, where="x")


def encoded(one: Promoted) -> dict[str, Any]:
    return {
        "rung": one.rung,
        "candidate": one.candidate,
        "because": one.because,
        "learning_gain": one.learning_gain,
        "evidence": [],
    }
