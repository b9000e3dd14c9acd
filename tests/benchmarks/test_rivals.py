"""The rules that search is compared with keep to their budget, and claim what they measured."""

import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

from rivals import EVALUATIONS, RIVALS, SPACE, Lab, Pruned, Task

TASK = Task("CartPole-v1", 1024, {"learning_rate": 5e-05, "hidden_units": 16})


@pytest.fixture(autouse=True)
def _handler_comes_back() -> Iterator[None]:
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


@pytest.mark.parametrize("rule", RIVALS)
def test_a_rival_spends_its_steps_and_takes_what_scored_most(rule: str, tmp_path: Path) -> None:
    lab = Lab(TASK, 3 * TASK.steps, tmp_path)
    found = RIVALS[rule](TASK, 1, lab)
    assert found.steps == lab.spent <= 3 * TASK.steps
    assert found.trials == lab.trials >= 3
    assert found.params.keys() == SPACE.defaults().keys()
    assert (found.claimed is None) is (found.params == TASK.baseline())
    assert found.claimed is None or found.claimed > 0


def test_a_training_is_told_at_each_tenth_and_one_that_is_pruned_pays_for_what_it_used(tmp_path: Path) -> None:
    lab, looks = Lab(TASK, 10 * TASK.steps, tmp_path), []

    def told(look: int, value: float) -> None:
        looks.append((look, value))
        if look >= EVALUATIONS // 2:
            raise Pruned

    with pytest.raises(Pruned):
        lab.score(TASK.baseline(), 1, told=told)
    assert lab.spent == TASK.steps // 2
    assert looks
    assert all(value > 0 for _, value in looks)


def test_the_same_settings_and_seed_score_the_same(tmp_path: Path) -> None:
    lab = Lab(TASK, 10 * TASK.steps, tmp_path)
    assert lab.score(TASK.baseline(), 3) == lab.score(TASK.baseline(), 3)
