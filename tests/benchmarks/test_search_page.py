"""The tables of the search benchmark, from results that are made up here."""

import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

import search_page


def line(rule: str, repeat: int, scores: list[float | None], claimed: float | None = None) -> dict[str, Any]:
    found: dict[str, Any] = {"env": "CartPole-v1", "rule": rule, "repeat": repeat, "code": "a", "scores": scores}
    return found | {"claimed": claimed, "trials": 40, "cpu": 60.0, "steps": 1000}


LINES = [
    line("baseline", 0, [100.0, 100.0]),
    *(line("ours", n, [300.0 + n, 302.0 + n], 190.0) for n in range(2)),
    *(line("ours, cold", n, [], None) for n in range(2)),
    *(line("tpe", n, [250.0, 250.0], 350.0) for n in range(2)),
    *(line("random", n, [80.0, 90.0], 120.0) for n in range(2)),
    *(line("greedy", n, [200.0, None], 300.0) for n in range(2)),
]


def cells(rule: str) -> list[str]:
    text = search_page.section(LINES)
    found = next(one for one in text if one.startswith(f"| CartPole-v1 | {search_page.NAMES[rule]} |"))
    return [cell.strip() for cell in found.strip("|").split("|")]


def test_nothing_measured_is_said() -> None:
    assert search_page.section([]) == ["Not measured yet: `make bench-search`."]


def test_a_row_has_the_score_the_claim_the_truth_and_the_false_claims() -> None:
    assert cells("ours")[2:6] == ["301.5 (298.3 to 304.7)", "+190.0", "+201.5", "2 of 2, 0 false"]
    assert cells("random")[3:6] == ["+120.0", "-15.0", "2 of 2, 2 false"]


def test_a_night_that_certified_nothing_scores_as_the_baseline() -> None:
    assert cells("ours, cold")[2:6] == ["100.0 (100.0 to 100.0)", "none", "none", "0 of 2, 0 false"]


def test_a_training_that_crashed_counts_as_the_worst_score_of_its_task() -> None:
    assert cells("greedy")[2].startswith("140.0")


def test_ranks_bars_and_lifts_are_told() -> None:
    text = "\n".join(search_page.section(LINES))
    assert "1 is best: Overnight 1.00, TPE, median pruner, one seed a trial 2.00" in text
    assert "ours less the best rival, TPE, median pruner, one seed a trial: 51.5 (48.3 to 54.7); holds" in text
    assert "false claims of ours: 0; holds" in text
    assert "Overnight less Overnight, cold: CartPole-v1 201.5" in text


@pytest.mark.parametrize("scores", [[200.0, 200.0]])
def test_a_rival_that_is_clearly_above_is_a_missed_bar(scores: list[float | None]) -> None:
    worse = [one for one in LINES if one["rule"] != "ours"] + [line("ours", n, scores, 100.0) for n in range(2)]
    assert "-50.0 (-50.0 to -50.0); MISSED" in "\n".join(search_page.section(worse))
