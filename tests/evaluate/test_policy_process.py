"""A policy in its own process, asked directly: what is announced, and what it is worth."""

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from overnight.evaluate import episodes
from overnight.evaluate.policy_process import Folders, PolicyProcess
from overnight.records.env import EnvSpec

COUNTS = """
import numpy as np
def load(folder):
    asked = [0]
    def act(observations, reset):
        asked[0] += 1
        return np.full(len(observations), asked[0] % 2)
    return act
"""


@pytest.fixture
def policy(tmp_path: Path) -> Iterator[PolicyProcess]:
    folder = tmp_path / "policy"
    folder.mkdir()
    (folder / "policy.json").write_text('{"schema": "overnight/policy/1", "kind": "code", "entry": "act:load"}')
    (folder / "act.py").write_text(COUNTS)
    environment = episodes.make(EnvSpec(backend="gymnasium", id="CartPole-v1"))
    apart = PolicyProcess(Folders(tmp_path, folder), environment, 2, "T1")
    yield apart
    apart.close()
    environment.close()


def ask(policy: PolicyProcess) -> list[int]:
    found: list[int] = policy(np.zeros((2, 4), np.float32), np.zeros(2, bool)).tolist()
    return found


def test_a_question_that_was_announced_is_asked_once(policy: PolicyProcess) -> None:
    answers = [ask(policy)]
    for _ in range(3):
        policy.announce()
        policy.announce()  # the last episode of a wave ended after it: the next wave asks
        answers.append(ask(policy))
    assert answers == [[1, 1], [0, 0], [1, 1], [0, 0]]


def test_nothing_is_announced_before_the_policy_has_loaded(policy: PolicyProcess) -> None:
    policy.announce()
    assert ask(policy) == [1, 1]


def test_each_sweep_over_the_lanes_announces_the_next_question(policy: PolicyProcess) -> None:
    told: list[str] = []

    def asked(observations: np.ndarray, reset: np.ndarray) -> np.ndarray:
        told.append("asked")
        return policy(observations, reset)

    asked.announce = lambda: told.append("announced")  # type: ignore[attr-defined]
    spec = EnvSpec(backend="gymnasium", id="CartPole-v1")
    played = episodes.play(spec, asked, [1, 2], lanes=2)
    sweeps = max(one.steps for one in played)
    assert told == ["asked", "announced"] * sweeps


def test_an_announcement_changes_no_episode(policy: PolicyProcess) -> None:
    spec, seeds = EnvSpec(backend="gymnasium", id="CartPole-v1"), range(6)
    silent = SimpleNamespace(asked=0)

    def plain(observations: np.ndarray, _: np.ndarray) -> np.ndarray:
        silent.asked += 1
        return np.full(len(observations), silent.asked % 2)

    assert episodes.play(spec, policy, seeds, lanes=2) == episodes.play(spec, plain, seeds, lanes=2)
