"""`overnight compare` answers from per-seed tables alone, and says which line is wrong."""

import json
from itertools import combinations
from pathlib import Path
from statistics import fmean

import pytest

from overnight.cli.main import main
from overnight.decide.compare import compare, welch_interval
from overnight.decide.student import t_quantile

BEFORE = (210.0, 196.0, 228.0, 206.0, 218.0, 214.0)
AFTER = (303.0, 284.0, 326.0, 299.0, 311.0, 307.0)


def written(path: Path, lines: str) -> str:
    path.write_text(lines)
    return str(path)


def test_a_real_difference_is_called_real(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one = written(tmp_path / "a.csv", "\n".join(map(str, BEFORE)))
    two = written(tmp_path / "b.csv", "seed,score\n" + "\n".join(f"{i},{s}" for i, s in enumerate(AFTER)))
    assert main(["compare", one, two]) == 0
    out = capsys.readouterr().out
    assert "The difference of +93 is real: chance alone brings one as large 22 times in ten thousand." in out
    assert main(["compare", one, two, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["tasks"][0]["p_value"] == pytest.approx(2 / 924)


def test_the_interval_and_the_p_value_are_those_of_a_plain_implementation() -> None:
    ours, theirs = (12.1, 14.0, 9.5, 13.3, 11.8), (8.0, 10.2, 9.9, 7.4, 9.1)
    found = compare({"": theirs}, {"": ours}).tasks[0]
    pooled, gain = (*ours, *theirs), fmean(ours) - fmean(theirs)
    shifts = []
    for chosen in combinations(range(10), 5):
        mine = [pooled[place] for place in chosen]
        shifts.append(fmean(mine) - (sum(pooled) - sum(mine)) / 5)
    up = sum(shift >= gain - 1e-9 for shift in shifts) / len(shifts)
    assert found.p_value == pytest.approx(2 * up)
    # scipy.stats.ttest_ind(ours, theirs, equal_var=False).confidence_interval(), SciPy 1.17
    assert (found.gain.low, found.gain.high) == pytest.approx((1.0060468176729422, 5.433953182327059))


@pytest.mark.parametrize(
    ("level", "freedom", "value"),
    [(0.975, 1, 12.70620), (0.975, 3, 3.182446), (0.975, 11, 2.200985), (0.995, 5, 4.032143), (0.8, 30, 0.853767)],
)
def test_students_t_is_that_of_the_tables(level: float, freedom: int, value: float) -> None:
    assert t_quantile(level, freedom) == pytest.approx(value, rel=1e-6)


def test_too_few_seeds_are_told() -> None:
    assert compare({"": (1.0, 2.0)}, {"": (8.0, 9.0)}).says.startswith("Nobody can tell: 2 against 2 seeds")


def test_a_difference_that_may_be_chance_says_how_many_seeds_would_decide() -> None:
    found = compare({"": BEFORE}, {"": tuple(score + 6 for score in BEFORE)})
    assert "may be chance" in found.says
    assert "seeds a side would decide" in found.says


def test_several_tasks_are_aggregated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def table(scores: tuple[float, ...]) -> str:
        rows = [f"{i},{score / 100},{task}" for task in ("run", "walk") for i, score in enumerate(scores)]
        return "\n".join(["seed,score,task", *rows])

    one, two = written(tmp_path / "a.csv", table(BEFORE)), written(tmp_path / "b.csv", table(AFTER))
    assert main(["compare", one, two]) == 0
    out = capsys.readouterr().out
    assert "real on 2 of 2 tasks" in out
    assert "Interquartile mean over all tasks: better by +0.93" in out


def test_lower_scores_can_be_better(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one = written(tmp_path / "a.csv", "\n".join(map(str, AFTER)))
    two = written(tmp_path / "b.csv", "\n".join(map(str, BEFORE)))
    assert main(["compare", one, two, "--lower"]) == 0
    assert "305.0 → 212.0  +93.0" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        pytest.param("", "holds no scores", id="empty"),
        pytest.param("1\nx\n", "b.csv:2: says `x`, which is not a number", id="no number"),
        pytest.param("1\nnan\n", "b.csv:2: says `nan`, but a score is finite", id="not finite"),
        pytest.param("1\n", "has 1 score, but noise shows only from two on", id="one score"),
        pytest.param("a,b\n1,2\n", "has several columns, but none is called `score`", id="no score column"),
        pytest.param("seed,score\n1,2\n1,3\n", "b.csv:3: gives seed 1 a second time", id="a seed twice"),
        pytest.param("seed,score\n1\n", "b.csv:2: has 1 cells, but the header has 2", id="a short line"),
        pytest.param("score,task\n1,x\n2,x\n", "has other tasks than", id="other tasks"),
    ],
)
def test_a_table_that_is_wrong_says_where(
    lines: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, two = written(tmp_path / "a.csv", "1\n2\n"), written(tmp_path / "b.csv", lines)
    assert main(["compare", one, two]) == 2
    assert said in capsys.readouterr().err


def test_two_means_without_any_scatter_have_no_width() -> None:
    found = welch_interval((2.0, 2.0), (1.0, 1.0))
    assert (found.low, found.high) == (1.0, 1.0)
