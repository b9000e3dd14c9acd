"""What a long study gained in all is measured on seeds that selected nothing, and never added up from its claims."""

from pathlib import Path

import pytest

from benches import Silent, bench_of, calibrate, entered, judged, level, play, raced, run_once
from overnight import loop, total
from overnight.loop import Night
from overnight.machine import RealMachine
from overnight.racing import LAST_ROUND
from overnight.trials import Bench

SEEDS = 8
"""How many a study of 300 runs and more keeps back."""


def certified(bench: Bench) -> str:
    calibrate(bench)
    one = entered(bench)
    assert total.missing(bench) == [], "nothing is certified yet"
    raced(bench, level(one))
    play(bench, level(one))
    judged(bench)
    assert bench.study.state.certified == [one]
    return one


def test_a_long_study_tells_what_it_gained_in_all_from_seeds_that_selected_nothing(tmp_path: Path) -> None:
    with bench_of(tmp_path / "project", plants=False) as bench:
        one = certified(bench)
        before = bench.study.state.tip, bench.study.state.incumbent
        wanted = total.wanted(bench, 1000.0)
        assert [(want.candidate, want.phase, want.round) for want in wanted] == [(one, "screen", LAST_ROUND)] * SEEDS
        for number, want in enumerate(wanted):
            assert total.says(bench.study.state, bench.contract) == "", "a part of the seeds tells nothing"
            run_once(bench, want, 290.0 + number)
        assert total.missing(bench) == []
        found = total.gain_in_all(bench.study.state, bench.contract)
        assert found is not None and found.low < found.estimate < found.high
        assert (bench.study.state.tip, bench.study.state.incumbent) == before, "they move nothing"
        told = total.says(bench.study.state, bench.contract)
        assert told.startswith("In all since the baseline: return ") and "8 seeds that selected nothing" in told


def test_the_search_ends_while_the_runs_that_tell_the_whole_gain_are_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with bench_of(tmp_path / "project", plants=False) as bench:
        certified(bench)
        one = Night(bench, Silent(), RealMachine().monotonic() + 1e6)
        monkeypatch.setattr(loop, "runs_left", lambda _: SEEDS)
        assert (
            loop._why_over(one) == f"The last {SEEDS} runs are kept for seeds that tell what the study gained in all."
        )
        assert len(total.wanted(bench, SEEDS)) == SEEDS
        assert total.wanted(bench, SEEDS - 1) == [], "fewer than planned are not begun"


@pytest.mark.parametrize("lost", [0, SEEDS - 1])
def test_a_seed_that_the_incumbent_loses_by_its_own_fault_leaves_the_whole_gain_untold(
    tmp_path: Path, lost: int
) -> None:
    with bench_of(tmp_path / "project", plants=False) as bench:
        certified(bench)
        for want in total.wanted(bench, 1000.0):
            run_once(bench, want, None if want.number == lost else 300.0)
        assert total.missing(bench) == []
        assert total.says(bench.study.state, bench.contract) == ""
