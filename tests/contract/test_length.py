"""How long one training run is where nobody says it."""

import pytest

from overnight.contract.length import LEAST_RUNS, LEAST_SHARE, UNKNOWN_STEPS, steps


@pytest.mark.parametrize(
    ("env", "usual"), [("CartPole-v1", 100_000), ("LunarLander-v3", 1_000_000), ("BipedalWalker-v3", 5_000_000)]
)
def test_in_a_whole_night_a_run_is_as_long_as_it_usually_is(env: str, usual: int) -> None:
    assert steps(env, 8.0, 2) == usual


def test_half_an_hour_on_two_cores_holds_enough_shorter_runs() -> None:
    assert steps("BipedalWalker-v3", 1.0, 2) == 5_000_000
    short = steps("BipedalWalker-v3", 0.5, 2)
    assert 0 <= 5_000_000 * (3600 / 300) / LEAST_RUNS - short < 100_000


def test_a_run_is_never_so_short_that_it_says_little() -> None:
    assert steps("BipedalWalker-v3", 0.01, 1) == 5_000_000 * LEAST_SHARE // 100_000 * 100_000
    assert steps("CartPole-v1", 0.001, 1) == UNKNOWN_STEPS


def test_the_version_and_the_package_of_an_environment_do_not_matter() -> None:
    assert steps("LunarLander-v2", 8.0, 2) == steps("some.package:LunarLander-v7", 8.0, 2) == 1_000_000


def test_an_environment_that_nobody_knows_gets_a_short_run() -> None:
    assert steps("corridor:Corridor-v0", 8.0, 2) == UNKNOWN_STEPS
