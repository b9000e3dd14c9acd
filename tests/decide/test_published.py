"""Published per-seed tables, compared by us and by SciPy: the same intervals, p-values and aggregates."""

import json
from pathlib import Path

import numpy as np
import pytest

from overnight.cli.main import main
from overnight.decide.compare import compare

stats = pytest.importorskip("scipy.stats")
FOLDER = Path(__file__).parent / "published"


def scores(name: str, first: int = 0, last: int = 96) -> list[float]:
    lines = (FOLDER / f"{name}.csv").read_text().splitlines()[1:]
    return [float(line.split(",")[1]) for line in lines[first:last]]


def tasks(name: str) -> dict[str, list[float]]:
    """The published seeds as eight tasks of twelve seeds."""
    return {f"task {place}": scores(name, 12 * place, 12 * place + 12) for place in range(8)}


@pytest.mark.parametrize("seeds", [5, 10, 24, 96])
def test_the_interval_of_a_difference_is_scipys(seeds: int) -> None:
    before, after = scores("td3", 0, seeds), scores("sac", 0, seeds)
    found = compare({"": before}, {"": after}).tasks[0]
    theirs = stats.ttest_ind(after, before, equal_var=False).confidence_interval(0.95)
    assert (found.gain.low, found.gain.high) == pytest.approx((theirs.low, theirs.high), rel=1e-9)


@pytest.mark.parametrize("name", ["sac", "td3"])
def test_the_command_line_prints_the_same_interval(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    other = "td3" if name == "sac" else "sac"
    assert main(["compare", str(FOLDER / f"{name}.csv"), str(FOLDER / f"{other}.csv"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)["tasks"][0]["gain"]
    theirs = stats.ttest_ind(scores(other), scores(name), equal_var=False).confidence_interval(0.95)
    assert (told["low"], told["high"]) == pytest.approx((theirs.low, theirs.high), rel=1e-9)


def test_the_exact_p_value_is_scipys() -> None:
    before, after = scores("td3", 0, 6), scores("sac", 6, 12)

    def gap(one: np.ndarray, two: np.ndarray, axis: int) -> np.ndarray:
        return np.asarray(np.mean(one, axis=axis) - np.mean(two, axis=axis))

    theirs = stats.permutation_test((after, before), gap, n_resamples=np.inf, alternative="two-sided", vectorized=True)
    assert compare({"": before}, {"": after}).tasks[0].p_value == pytest.approx(theirs.pvalue)


def test_the_probability_of_improvement_is_that_of_mann_and_whitney() -> None:
    before, after = scores("td3"), scores("sac")
    wins = stats.mannwhitneyu(after, before).statistic / (len(after) * len(before))
    found = compare({"": before}, {"": after})
    assert found.tasks[0].improvement == pytest.approx(wins)
    assert found.improvement is not None and found.improvement.estimate == pytest.approx(wins)


def test_the_interquartile_mean_is_scipys_trimmed_mean() -> None:
    found = compare(tasks("td3"), tasks("sac"))
    assert found.middles is not None and found.iqm is not None
    ours = [stats.trim_mean(scores(name), 0.25) for name in ("td3", "sac")]
    assert [one.estimate for one in found.middles] == pytest.approx(ours)
    assert found.iqm.estimate == pytest.approx(ours[1] - ours[0])


def test_bootstrap_intervals_are_scipys_within_what_two_samples_of_replicates_differ_by() -> None:
    found = compare({"": scores("td3")}, {"": scores("sac")})
    assert found.middles is not None and found.levels is not None
    for name, ours, statistic in (
        ("td3", found.middles[0], lambda x, axis: stats.trim_mean(x, 0.25, axis=axis)),
        ("sac", found.levels[1], np.mean),
    ):
        theirs = stats.bootstrap(
            (scores(name),), statistic, method="percentile", n_resamples=4_000, rng=np.random.default_rng(1)
        ).confidence_interval
        width = theirs.high - theirs.low
        assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), abs=0.06 * width)


def test_a_performance_profile_is_the_empirical_survival_function() -> None:
    found = compare({"": scores("td3")}, {"": scores("sac")})
    survival = stats.ecdf(scores("sac")).sf
    assert len(found.profiles) == 20
    for one in found.profiles:
        assert one.second.estimate == pytest.approx(float(survival.evaluate(one.score)))
        assert one.second.low <= one.second.estimate <= one.second.high


def test_the_same_seed_gives_the_same_comparison_and_another_seed_other_replicates(
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = ["compare", str(FOLDER / "td3.csv"), str(FOLDER / "sac.csv"), "--json", "--seed"]
    said = []
    for seed in ("3", "3", "4"):
        assert main([*words, seed]) == 0
        said.append(json.loads(capsys.readouterr().out))
    assert said[0] == said[1]
    assert said[0]["iqm"]["low"] != said[2]["iqm"]["low"] and said[0]["tasks"] == said[2]["tasks"]


def test_profiles_are_printed_when_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", str(FOLDER / "td3.csv"), str(FOLDER / "sac.csv"), "--profile"]) == 0
    out = capsys.readouterr().out
    assert "better than" in out and out.count(" % (") == 40
