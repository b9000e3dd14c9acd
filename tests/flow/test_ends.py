"""How a night goes on after an interruption between two entries, and how it ends when nothing may run."""

from collections.abc import Callable
from pathlib import Path

import pytest

from overnight import ideas, intake, judge
from overnight.adapters.launchers.local import LocalLauncher
from overnight.admission import Who, admit_candidate, enter
from overnight.evaluate.seeds import Seeds, load_key
from overnight.loop import MOST_REFUSED, Night, night
from overnight.records.approval import Strength
from overnight.records.lifecycle import State
from overnight.records.proposal import Exhausted, Proposal, View
from overnight.trials import Bench
from runs import MACHINE, tiny_study
from scenes import Scene, proposed


class Asked:
    """A proposer that answers by a function of how often it was asked."""

    def __init__(self, answer: Callable[[int], Proposal | Exhausted]) -> None:
        self.answer, self.times = answer, 0

    def ask(self, view: View) -> Proposal | Exhausted:
        self.times += 1
        return self.answer(self.times)


def sit(scene: Scene, proposer: Asked) -> str:
    with scene.open() as study:
        contract = enter(study, Who("tester", Strength.TERMINAL))
        seeds = Seeds(load_key(study.state.seed_commitment or ""), "cartpole/first")
        bench = Bench(study, scene.store, contract, LocalLauncher(), seeds, 2, lambda _: None)
        return night(Night(bench, proposer, MACHINE.monotonic() + 3600))


class Killed(BaseException):
    """Stands for a kill at this very place."""


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scene:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "keys"))
    return tiny_study(tmp_path / "project")


def test_a_night_whose_ideas_are_all_refused_comes_to_an_end(scene: Scene) -> None:
    proposer = Asked(lambda n: proposed(params={"no_such_parameter": n}))
    assert sit(scene, proposer).startswith(f"The gate refused {MOST_REFUSED} ideas in a row; the last time: ")
    assert proposer.times == MOST_REFUSED
    assert {run.candidate for run in scene.state().runs.values()} == {"c-0001"}, "only the baseline was calibrated"
    assert [turn["loop"] for turn in scene.entries("turned")] == ["escalate", "stop"]


@pytest.mark.parametrize("drafts", [1, 2], ids=["the baseline", "an idea"])
def test_an_engine_killed_between_a_draft_and_the_gate_asks_the_gate_when_it_goes_on(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, drafts: int
) -> None:
    calls = []

    def killed(*given: object) -> object:
        calls.append(given)
        if len(calls) == drafts:
            raise Killed
        return admit_candidate(*given)  # type: ignore[arg-type]

    answers = {1: proposed(params={"learning_rate": 0.001})}
    for module in (ideas, intake):
        monkeypatch.setattr(module, "admit_candidate", killed)
    with pytest.raises(Killed):
        sit(scene, Asked(lambda n: answers.get(n, Exhausted(because="That was all."))))
    for module in (ideas, intake):
        monkeypatch.setattr(module, "admit_candidate", admit_candidate)
    last = f"c-{drafts:04d}"
    assert scene.state_of(last) is State.DRAFT
    monkeypatch.setattr(judge, "wanted", lambda _, **__: iter(()))  # the runs themselves are not the question
    assert sit(scene, Asked(lambda _: Exhausted(because="That was all."))) == "That was all."
    assert scene.state_of(last) is State.VALIDATED
