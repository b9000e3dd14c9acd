"""The page of the comparison, from results that are made up here."""

import json
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest

from overnight.contract.trainers import need_recipe

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

import page
from summary import Interval


def line(table: str, learner: str, env: str, seed: int, **more: object) -> dict[str, Any]:
    """One result."""
    machine = {"cpu": "a processor", "cores": 2, "system": "Linux", "python": "3.11.7"}
    found: dict[str, Any] = {"table": table, "learner": learner, "env": env, "seed": seed, "seconds": 10.0}
    found |= {
        "settings": {"recipe": {}},
        "versions": {"code": "a"},
        "cpu_time": False,
        "foreign": 0.01,
        "cpu": 10.0,
        "wall": 10.0,
    }
    found |= {"rate": 900.0, "late_rate": 1000.0, "steps": 9000, "end": 10.0, "not_followed": [], "machine": machine}
    return found | more


def written(folder: Path, lines: list[dict[str, Any]]) -> str:
    """The page that these results give."""
    source = folder / "results.jsonl"
    source.write_text("".join(json.dumps(one) + "\n" for one in lines))
    return page.page(page.read(source), folder / "figures")


def cells(text: str, beginning: str) -> list[str]:
    """The cells of the first row of a table that begins so."""
    found = next(one for one in text.splitlines() if one.startswith(f"| {beginning}"))
    return [cell.strip() for cell in found.strip("|").split("|")]


def speeds(ours: float, theirs: float, learner: str = "sb3") -> list[dict[str, Any]]:
    """Three rounds of two learners on BipedalWalker."""
    return [
        line("speed", name, "BipedalWalker-v3", seed, late_rate=rate + seed)
        for seed in (101, 102, 103)
        for name, rate in (("overnight", ours), (learner, theirs))
    ]


def test_an_empty_file_gives_a_page_that_says_so(tmp_path: Path) -> None:
    text = written(tmp_path, [])
    assert text.count("Not measured yet") == 5
    assert "Nothing was measured yet." in text


@pytest.mark.parametrize(
    ("ours", "says"), [(16000.0, "held"), (8000.0, "**missed**")], ids=["four times as fast", "twice as fast"]
)
def test_a_speed_is_judged_by_its_bar(tmp_path: Path, ours: float, says: str) -> None:
    row = cells(written(tmp_path, speeds(ours, 4000.0)), "BipedalWalker-v3 | Stable-Baselines3")
    assert row[7:9] == ["3", says]


def test_the_recipe_that_all_follow_stands_under_the_speeds(tmp_path: Path) -> None:
    recipe = {"num_envs": 32, "rollout_steps": 64, "num_minibatches": 8, "update_epochs": 5, "hidden_units": 48}
    runs = [one | {"settings": {"recipe": recipe}} for one in speeds(16000.0, 4000.0)]
    says = "on BipedalWalker-v3 32 environments of 64 steps, minibatches of 256, 5 epochs, two layers of 48."
    assert says in written(tmp_path, runs)


def test_pytorch_on_envpool_has_no_bar(tmp_path: Path) -> None:
    row = cells(written(tmp_path, speeds(5000.0, 4000.0, "torch-envpool")), "BipedalWalker-v3 | PyTorch, eager, on")
    assert row[7:9] == ["none", ""]


def test_a_bar_within_the_interval_is_not_simply_held() -> None:
    assert page.verdict(Interval(3.1, 2.9, 3.3), 3) == "held by the middle, not by the whole interval"


def test_a_disturbed_run_is_counted_and_the_quieter_attempt_taken(tmp_path: Path) -> None:
    busy = speeds(16000.0, 4000.0)
    busy[0] |= {"foreign": 0.4}
    assert cells(written(tmp_path, busy), "BipedalWalker-v3 | Overnight")[-1] == "1 of 3"
    again = busy[0] | {"foreign": 0.0}
    assert cells(written(tmp_path, [*busy, again]), "BipedalWalker-v3 | Overnight")[-1] == "none"


def test_results_of_older_code_are_left_out(tmp_path: Path) -> None:
    old = [one | {"versions": {"code": "old"}, "late_rate": 1.0} for one in speeds(1.0, 1.0)]
    row = cells(written(tmp_path, [*old, *speeds(16000.0, 4000.0)]), "BipedalWalker-v3 | Overnight")
    assert row[2] == "16,102"


def test_the_share_of_the_environments_own_speed_is_told_with_its_bar(tmp_path: Path) -> None:
    replay = {"late_rate": 2000.0, "rate": 2000.0, "same": True}
    recorded = [
        line("speed", "overnight, recorded", "BipedalWalker-v3", seed, replay=replay, late_rate=1600.0)
        for seed in (101, 102)
    ]
    text = written(tmp_path, recorded)
    assert cells(text, "101")[3:] == ["80%", "yes"]
    assert "the share is 80% (80% to 80%); the bar is 65%: held." in text


def returns(level: float, learner: str) -> list[dict[str, Any]]:
    """Three seeds that end at about one level."""
    points = [{"seconds": 5.0, "returns": [level / 2] * 10}]
    return [
        line("return", learner, "LunarLander-v3", seed, points=points, final=[level + seed - 102] * 50)
        for seed in (101, 102, 103)
    ]


def test_returns_are_compared_by_their_intervals_and_drawn(tmp_path: Path) -> None:
    start = {"env": "LunarLander-v3", "random": -180.0}
    text = written(tmp_path, [start, *returns(250.0, "overnight"), *returns(40.0, "sb3"), *returns(250.0, "torch")])
    assert cells(text, "Stable-Baselines3")[2] == "yes" and cells(text, "Stable-Baselines3")[4] == "yes"
    assert cells(text, "PyTorch, eager")[4] == "**intervals overlap**"
    assert cells(text, "Overnight")[5] == "249, 250, 251"
    drawn = (tmp_path / "figures" / "return-LunarLander-v3.svg").read_text()
    root = ElementTree.fromstring(drawn)
    assert len([one for one in root.iter() if one.tag.endswith("polyline")]) == 3
    assert "figures/return-LunarLander-v3.svg" in text


def test_what_was_measured_by_the_clock_and_in_processor_time_stands_side_by_side(tmp_path: Path) -> None:
    start = {"env": "LunarLander-v3", "random": -180.0}
    metered = [one | {"cpu_time": True} for one in (*returns(250.0, "overnight"), *returns(40.0, "sb3"))]
    text = written(tmp_path, [start, *metered, *returns(250.0, "overnight"), *returns(240.0, "torch")])
    clock, processor = text.index("s by the clock"), text.index("s of processor time")
    assert clock < text.index("| PyTorch, eager |") < processor < text.index("| Stable-Baselines3 |")
    assert {one.name for one in (tmp_path / "figures").iterdir()} == {
        "return-LunarLander-v3.svg",
        "return-processor-LunarLander-v3.svg",
    }


def test_mujoco_is_judged_by_the_published_return_or_by_the_higher_bar_of_ours(tmp_path: Path) -> None:
    points = [{"seconds": 5.0, "returns": [1.0]}]
    today = {env: {"recipe": dict(need_recipe("ppo", env).params)} for env in ("Hopper-v5", "HalfCheetah-v5")}
    runs = [
        line("mujoco", "overnight", env, seed, points=points, final=[7000.0] * 100, settings=settings)
        for env, settings in today.items()
        for seed in (101, 102, 103)
    ]
    text = written(tmp_path, runs)
    assert cells(text, "Hopper-v5")[3:6] == ["3,613", "3,613", "held"]
    assert cells(text, "HalfCheetah-v5")[3:6] == ["6,117", "9,500", "**missed**"]
    assert cells(written(tmp_path, runs[:2]), "Hopper-v5")[5] == "held, with 2 of 3 seeds"
    before = [run | {"settings": {"recipe": {"gamma": 0.9}}} for run in runs[:3]]
    assert cells(written(tmp_path, before), "Hopper-v5")[5] == "held, with an earlier recipe"


def test_a_training_that_failed_is_named(tmp_path: Path) -> None:
    failed = line("classic", "sbx", "CartPole-v1", 101) | {"failed": "it diverged"}
    text = written(tmp_path, [*speeds(16000.0, 4000.0), failed])
    assert "sbx on CartPole-v1, seed 101, failed: it diverged" in text


def test_runs_by_the_wall_clock_and_by_processor_time_are_told_apart(tmp_path: Path) -> None:
    points = [{"seconds": 5.0, "returns": [1.0]}]
    metered = line("mujoco", "overnight", "Ant-v5", 101, cpu_time=True, foreign=0.5, points=points, final=[1.0] * 100)
    text = written(tmp_path, [*speeds(16000.0, 4000.0), metered])
    assert "- 6 runs by the clock on the wall; other programs used 1.0% of the machine in the middle one" in text
    assert "- 1 runs by processor time of the learner's own (mujoco)" in text
    assert "none counted as disturbed" in text


def test_code_that_differs_from_table_to_table_is_told_for_each(tmp_path: Path) -> None:
    points = [{"seconds": 5.0, "returns": [1.0]}]
    later = {"versions": {"code": "b"}, "points": points, "final": [1.0] * 100}
    text = written(tmp_path, [*speeds(16000.0, 4000.0), line("mujoco", "overnight", "Ant-v5", 101, **later)])
    assert "- Overnight (speed): code a\n- Overnight (mujoco): code b\n" in text
    assert "- Stable-Baselines3: code a\n" in text


def test_a_policy_that_was_kept_early_is_drawn_to_the_end_of_the_time() -> None:
    points = [{"seconds": 2.0, "returns": [40.0, 60.0]}]
    early = line("mujoco", "overnight", "Ant-v5", 101, points=points, final=[80.0], end=4.0)
    assert page._points(early, 1.0) == [(0.0, 1.0), (2.0, 50.0), (4.0, 80.0), (10.0, 80.0)]
    late = line("mujoco", "overnight", "Ant-v5", 1, points=[], final=[80.0], end=10.4)
    assert page._points(late, 1.0) == [(0.0, 1.0), (10.0, 80.0), (10.0, 80.0)], "all seeds end at one place"
