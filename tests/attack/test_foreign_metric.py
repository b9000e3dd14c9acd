"""A score is read from what programs usually print."""

import math

import pytest

from overnight.attack.foreign.metric import ALONE, choose, forged, is_better, is_lower_better, read


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        ("epoch 1\nscore: 123.4\n", "score", 123.4),
        ("steps=100 eval_return=-3.5e2 len=4\n", "eval_return", -350.0),
        ("---\navg_return:   42.700000\nstd_return:   1.0\n", "avg_return", 42.7),
        ('noise\n{"episodes": 3, "mean_reward": 7.25}\n', "mean_reward", 7.25),
        ('{"eval": {"success_rate": 0.5}}\n', "success_rate", 0.5),
        ("mean_reward:210.40 +/- 3.2\n", "mean_reward", 210.4),
        ("done\n17.5\n", ALONE, 17.5),
        ("score: 1\nscore: 2\n", "score", 2.0),
        ("val_bpb: 0.99\n", "val_bpb", 0.99),
        ("Average reward over 4 episodes: 8.75\n", "Average reward over 4 episodes", 8.75),
        ("foo_return=3 len=4\n", "foo_return", 3.0),
        ("Episode 1 reward: 5\nEpisode 2 reward: 7\nMean reward: 6\n", "reward", 6.0),
    ],
)
def test_the_score_is_found_and_read(text: str, name: str, value: float) -> None:
    assert choose(text) == name
    assert read(text, name) == value


def test_numbers_that_nobody_would_call_a_score_are_not_chosen() -> None:
    assert choose("steps: 10\nseconds: 3\n") is None
    assert read("steps: 10\n", "score") is None


def test_better_depends_on_the_direction_and_nan_is_never_better() -> None:
    assert is_better(2, 1, lower=False) and not is_better(2, 1, lower=True)
    assert is_better(math.inf, 1, lower=False)
    assert not is_better(math.nan, 1, lower=False) and not is_better(math.nan, 1, lower=True)
    assert not is_better(1.5, 1, lower=False, margin=1)


@pytest.mark.parametrize(
    ("honest", "name", "fake"), [(42.7, "score", 142.7), (0.25, "success_rate", 1.0), (2.0, "val_loss", 0.2)]
)
def test_a_forged_score_is_better_and_could_be_believed(honest: float, name: str, fake: float) -> None:
    assert forged(honest, name, lower=is_lower_better(name)) == fake
