"""From the results of the comparison to a page: `make bench-page`, or `python benchmarks/page.py`.

Reads `build/benchmarks/peers.jsonl` and writes `RESULTS.md` with its figures. Of every run the attempt counts that
others disturbed least; of results from several versions of the code, only those of the last one.
"""

import argparse
import json
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

from overnight.contract.trainers import recipe
from overnight.report.curves import band
from overnight.report.figures import WIDE, Level, Series, line_chart
from overnight.report.text import number
from peers.settings import Recipe
from summary import Interval, Line, best, bootstrap, disturbed, final_return, mean_return, ratio

ROOT = Path(__file__).parents[1]
NAMES = {
    "overnight": "Overnight",
    "sb3": "Stable-Baselines3",
    "sbx": "sbx",
    "torch": "PyTorch, eager",
    "torch-envpool": "PyTorch, eager, on EnvPool",
}
TONES = {"overnight": "one", "sb3": "two", "sbx": "three", "torch": "four"}
SPEED_BARS = {"sb3": {"BipedalWalker-v3": 3.0, "LunarLander-v3": 5.0, "CartPole-v1": 5.0}}
OTHER_BAR = 1.5
WITHOUT_BAR = ("torch-envpool",)
SHARE_BAR = 0.65
PUBLISHED = {"Hopper-v5": 3613.0, "Walker2d-v5": 5026.0, "HalfCheetah-v5": 6117.0, "Ant-v5": 1113.0}
"""Returns of 12-minute trainings that zjianyi/autoRL publishes, most of them made on an H100."""
ENOUGH = 3
"""Seeds that a bar wants; with fewer, the verdict says so."""
HIGHER_BARS = {"HalfCheetah-v5": 9500.0, "Ant-v5": 3000.0}
STYLE = """<style>
text{font:12px/1 Inter,ui-sans-serif,system-ui,sans-serif;fill:#566070}.label{font-weight:650}
.paper{fill:#fbfaf7}.grid{stroke:#e3e0d8}.axis{stroke:#566070}.level{stroke:#566070;stroke-dasharray:2 4}
.median{fill:none;stroke-width:2.25;stroke-linejoin:round;stroke:var(--t)}.dot{fill:var(--t)}
.band{fill:var(--t);fill-opacity:.14}
.one{--t:#0b6b66}.two{--t:#a3341f}.three{--t:#8a5a00}.four{--t:#4a5fa8}
@media (prefers-color-scheme:dark){text{fill:#9ca6b6}.paper{fill:#10141b}.grid{stroke:#2a323e}
.one{--t:#5fd0c3}.two{--t:#ff9c86}.three{--t:#e9bd68}.four{--t:#9db0ff}}
</style>"""

Runs = dict[str, list[Line]]
CLOCKS = ("by the clock", "of processor time")
"""What seconds are."""


class Results(NamedTuple):
    """What the page is made from."""

    tables: dict[tuple[str, str, bool], Runs]
    """By table, environment and whether in processor time: the runs of each learner, in the order of their seeds."""
    starts: dict[str, float]
    """What random actions score, by environment."""
    failed: list[Line]
    """The trainings that ended without a result and never had one."""


def read(path: Path) -> Results:
    """Choose from all lines those that count."""
    lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    starts = {line["env"]: line["random"] for line in lines if "random" in line}
    runs = [line for line in lines if "learner" in line]
    tables: dict[tuple[str, str, bool], Runs] = {}
    for place in sorted(dict.fromkeys(map(_place, runs)), key=lambda one: one[2]):
        here = [line for line in runs if _place(line) == place and "failed" not in line]
        if here:
            tables[place] = _latest(here)
    there = {
        (place, name, run["seed"]) for place, table in tables.items() for name, all_ in table.items() for run in all_
    }
    failed = [line for line in runs if "failed" in line]
    failed = [line for line in failed if (_place(line), line["learner"], line["seed"]) not in there]
    return Results(tables, starts, failed)


def _place(line: Line) -> tuple[str, str, bool]:
    return line["table"], line["env"], line["cpu_time"]


def _latest(lines: Sequence[Line]) -> Runs:
    """The runs that are as long as the last one, of each learner's last version and settings."""
    alike = [line for line in lines if line["seconds"] == lines[-1]["seconds"]]
    found: Runs = {}
    for learner in [name for name in (*NAMES, "overnight, recorded") if any(one["learner"] == name for one in alike)]:
        own = [line for line in alike if line["learner"] == learner]
        own = [line for line in own if all(line[name] == own[-1][name] for name in ("settings", "versions"))]
        seeds = sorted({line["seed"] for line in own})
        found[learner] = [best([line for line in own if line["seed"] == seed]) for seed in seeds]
    return found


def paired(ours: Sequence[Line], theirs: Sequence[Line], name: str) -> tuple[list[float], list[float]]:
    """One value of both sides for every seed that both have."""
    left, right = ({run["seed"]: run[name] for run in side} for side in (ours, theirs))
    both = sorted(left.keys() & right.keys())
    return [left[seed] for seed in both], [right[seed] for seed in both]


def verdict(found: Interval, bar: float) -> str:
    """Whether a bar is held, and by the whole interval or only by its middle."""
    if found.low >= bar:
        return "held"
    if math.isinf(found.high):
        return "held by one seed" if found.middle >= bar else "**missed by one seed**"
    return "held by the middle, not by the whole interval" if found.middle >= bar else "**missed**"


def told(found: Interval, places: int) -> str:
    """An interval as people read it; one seed has none."""
    if math.isinf(found.high):
        return f"{found.middle:,.{places}f} (one seed)"
    return f"{found.middle:,.{places}f} ({found.low:,.{places}f} to {found.high:,.{places}f})"


def row(*cells: str) -> str:
    """One line of a table."""
    return f"| {' | '.join(cells)} |"


def heading(*cells: str) -> list[str]:
    """The first two lines of a table."""
    return [row(*cells), row(*("---" for _ in cells))]


def marks(runs: Sequence[Line]) -> str:
    """How many of these runs others disturbed."""
    count = sum(map(disturbed, runs))
    return f"{count} of {len(runs)}" if count else "none"


def cores_used(runs: Sequence[Line]) -> float:
    """The mean number of cores that a learner kept busy."""
    return float(sum(run["cpu"] / run["wall"] for run in runs) / len(runs))


def mean(runs: Sequence[Line], name: str) -> float:
    """The mean of one number."""
    return float(sum(run[name] for run in runs) / len(runs))


def speed_section(results: Results) -> list[str]:
    """Steps a second."""
    lines = heading(
        *("environment", "learner", "steps/s", "with compiling", "cores busy", "we are … times as fast"),
        *("with compiling", "bar", "verdict", "disturbed"),
    )
    for (table, env, _), runs in results.tables.items():
        for name, theirs in runs.items() if table == "speed" else ():
            if name == "overnight, recorded":
                continue
            cells = [env, NAMES[name], f"{mean(theirs, 'late_rate'):,.0f}", f"{mean(theirs, 'rate'):,.0f}"]
            cells += [f"{cores_used(theirs):.2f}", *_ratio_cells(runs.get("overnight", []), theirs, name, env)]
            lines.append(row(*cells, marks(theirs)))
    return [*lines, "", _recipes(results)] if len(lines) > 2 else ["Not measured yet: `make bench`."]


def _recipes(results: Results) -> str:
    """What all learners of the first table follow, in each environment."""
    found = []
    for (table, env, _), runs in results.tables.items():
        if table == "speed":
            recipe = Recipe.of(next(iter(runs.values()))[-1]["settings"])
            found.append(
                f"on {env} {recipe.num_envs} environments of {recipe.rollout_steps} steps, minibatches of "
                f"{recipe.minibatch()}, {recipe.update_epochs} epochs, two layers of {recipe.hidden_units}"
            )
    return f"The recipes: {'; '.join(found)}."


def _ratio_cells(ours: Sequence[Line], theirs: Sequence[Line], name: str, env: str) -> list[str]:
    late, whole = paired(ours, theirs, "late_rate"), paired(ours, theirs, "rate")
    if name == "overnight" or not late[0]:
        return ["", "", "", ""]
    found, with_compiling = ratio(*late), ratio(*whole)
    if name in WITHOUT_BAR:
        return [told(found, 2), told(with_compiling, 2), "none", ""]
    bar = SPEED_BARS.get(name, {}).get(env, OTHER_BAR)
    return [told(found, 2), told(with_compiling, 2), f"{bar:g}", verdict(found, bar)]


def share_section(results: Results) -> list[str]:
    """Our rate as a share of the environments' own."""
    runs = next((all_["overnight, recorded"] for all_ in results.tables.values() if "overnight, recorded" in all_), [])
    if not runs:
        return ["Not measured yet: `make bench`."]
    lines = heading("seed", "training, steps/s", "the same steps without learning", "share", "the same episodes")
    for run in runs:
        again = run["replay"]
        cells = [str(run["seed"]), f"{run['late_rate']:,.0f}", f"{again['late_rate']:,.0f}"]
        lines.append(row(*cells, f"{run['late_rate'] / again['late_rate']:.0%}", "yes" if again["same"] else "**no**"))
    found = ratio([run["late_rate"] for run in runs], [run["replay"]["late_rate"] for run in runs])
    ends = "one seed" if math.isinf(found.high) else f"{found.low:.0%} to {found.high:.0%}"
    spread = f"{found.middle:.0%} ({ends})"
    says = f"On BipedalWalker-v3 the share is {spread}; the bar is {SHARE_BAR:.0%}: {verdict(found, SHARE_BAR)}."
    return [*lines, "", says]


def return_section(results: Results, figures: Path) -> list[str]:
    """Return for time, with a figure for each environment."""
    lines: list[str] = []
    value = mean_return(results.starts)
    for (table, env, metered), runs in results.tables.items():
        if table != "return" or env not in results.starts:
            continue
        seconds = next(iter(runs.values()))[0]["seconds"]
        kind = "return-processor" if metered else "return"
        lines += [f"### {env}, {seconds:g} s {CLOCKS[metered]}", ""]
        lines += [*_figure(env, runs, results.starts[env], figures, kind), ""]
        lines += heading(
            *("learner", "mean return on the way", "we lie above", "return at the end", "we lie above"),
            *("seeds at the end", "steps", "disturbed"),
        )
        areas, finals = ({n: bootstrap(all_, by) for n, all_ in runs.items()} for by in (value, final_return))
        for name, all_ in runs.items():
            cells = [NAMES[name], told(areas[name], 1), _ahead(areas, name), told(finals[name], 1)]
            cells += [_ahead(finals, name), _seeds(all_), f"{mean(all_, 'steps'):,.0f}", marks(all_)]
            lines.append(row(*cells))
        lines.append("")
    return lines or ["Not measured yet: `make bench`."]


def _ahead(intervals: Mapping[str, Interval], name: str) -> str:
    if name == "overnight" or "overnight" not in intervals:
        return ""
    ours, theirs = intervals["overnight"], intervals[name]
    if ours.apart(theirs):
        return "yes"
    return "**no: they lie above**" if theirs.apart(ours) else "**intervals overlap**"


def _seeds(runs: Sequence[Line]) -> str:
    return ", ".join(f"{final_return(run, None):,.0f}" for run in runs)


def _figure(env: str, runs: Runs, start: float, figures: Path, kind: str) -> list[str]:
    """Draw the median of each learner's curves; the band is from the lowest to the highest seed."""
    series = []
    for name, all_ in runs.items():
        curves = tuple(tuple(_points(run, start)) for run in all_)
        label = f"{NAMES[name]} {number(round(median(curve[-1][1] for curve in curves)))}"
        series.append(Series(NAMES[name], TONES[name], band(curves), label))
    levels = [Level("published", PUBLISHED[env])] if kind == "mujoco" and env in PUBLISHED else []
    titles = ("seconds of training", f"{env}: return of the greedy policy")
    drawn = line_chart(series, levels, titles=titles, size=WIDE)
    whole = '<rect class="paper" x="-12" y="-12" width="924" height="364"/>'
    drawn = drawn.replace('viewBox="0 0 900 340"', 'xmlns="http://www.w3.org/2000/svg" viewBox="-12 -12 924 364"', 1)
    place = drawn.index(">") + 1
    figures.mkdir(parents=True, exist_ok=True)
    path = figures / f"{kind}-{env}.svg"
    path.write_text(f"{drawn[:place]}{STYLE}{whole}{drawn[place:]}\n")
    return [f"![{env}: return over seconds of training](figures/{path.name})"]


def _points(run: Line, start: float) -> list[tuple[float, float]]:
    points = [(0.0, start)]
    points += [(one["seconds"], sum(one["returns"]) / len(one["returns"])) for one in run["points"]]
    last = final_return(run, None)  # a policy that was the best for long stays what it is until the time is over
    over = run["seconds"]  # where a curve is drawn to, also of one whose last rollout took longer
    return [*(one for one in points if one[0] < over), (min(run["end"], over), last), (over, last)]


def classic_section(results: Results) -> list[str]:
    """Small tasks: the return at the end."""
    lines = heading("environment", "seconds", "learner", "return at the end", "we lie above", "seeds", "disturbed")
    for (table, env, metered), runs in results.tables.items():
        if table == "classic":
            finals = {name: bootstrap(all_, final_return) for name, all_ in runs.items()}
            for name, all_ in runs.items():
                cells = [env, f"{all_[0]['seconds']:g} {CLOCKS[metered]}", NAMES[name], told(finals[name], 1)]
                lines.append(row(*cells, _ahead(finals, name), _seeds(all_), marks(all_)))
    return lines if len(lines) > 2 else ["Not measured yet: `make bench`."]


def mujoco_section(results: Results, figures: Path) -> list[str]:
    """Ours against the published table."""
    lines = heading(
        "environment", "seconds", "return at the end", "published", "our bar", "verdict", "seeds", "disturbed"
    )
    drawn: list[str] = []
    for (table, env, _), runs in results.tables.items():
        ours = runs.get("overnight", [])
        if table != "mujoco" or not ours:
            continue
        found, bar = bootstrap(ours, final_return), max(PUBLISHED[env], HIGHER_BARS.get(env, 0.0))
        cells = [env, f"{ours[0]['seconds']:g}", told(found, 0), f"{PUBLISHED[env]:,.0f}", f"{bar:,.0f}"]
        says = verdict(found, bar) + (f", with {len(ours)} of {ENOUGH} seeds" if len(ours) < ENOUGH else "")
        today = recipe("ppo", env)
        if today is not None and ours[-1]["settings"]["recipe"] != today.params:
            says += ", with an earlier recipe"
        lines.append(row(*cells, says, _seeds(ours), marks(ours)))
        drawn += ["", *_figure(env, {"overnight": ours}, results.starts.get(env, 0.0), figures, "mujoco")]
    return [*lines, *drawn] if len(lines) > 2 else ["Not measured yet: `make bench-mujoco`."]


def machine_section(results: Results) -> list[str]:
    """Machine, load and versions."""
    runs = [run for table in results.tables.values() for all_ in table.values() for run in all_]
    if not runs:
        return ["Nothing was measured yet."]
    machines = {json.dumps(run["machine"], sort_keys=True): run["machine"] for run in runs}
    lines = [
        f"- {one['cpu']}, {one['cores']} cores, {one['system']}, Python {one['python']}" for one in machines.values()
    ]
    timed = [run for run in runs if not run["cpu_time"]]
    if shares := sorted(run["foreign"] for run in timed):
        lines.append(
            f"- {len(timed)} runs by the clock on the wall; other programs used {shares[len(shares) // 2]:.1%} of the "
            f"machine in the middle one and {shares[-1]:.1%} in the worst; {marks(timed)} counted as disturbed "
            "(more than 10 %)"
        )
    if metered := [run for run in runs if run["cpu_time"]]:
        tables = ", ".join(dict.fromkeys(run["table"] for run in metered))
        lines.append(
            f"- {len(metered)} runs by processor time of the learner's own ({tables}): their seconds are that time "
            f"divided by the {metered[0]['machine']['cores']} cores of the machine; each kept "
            f"{cores_used(metered):.2f} cores busy; what ran beside it took none of that time, though "
            "it shared memory and caches"
        )
    lines += _versions(runs)
    unknown = sorted({name for run in runs for name in run["not_followed"]})
    if unknown:
        lines.append(f"- settings of our recipe that the peers do not have: {', '.join(unknown)}")
    lines += [
        f"- {run['learner']} on {run['env']}, seed {run['seed']}, failed: {run['failed']}" for run in results.failed
    ]
    return lines


def _of(tables: Sequence[str]) -> str:
    return f" ({', '.join(dict.fromkeys(tables))})"


def _versions(runs: Sequence[Line]) -> list[str]:
    """What each learner was made of; where that differs from table to table, for which of them."""
    found: dict[str, dict[str, list[str]]] = {}
    for run in runs:
        made_of = ", ".join(f"{part} {what}" for part, what in run["versions"].items())
        found.setdefault(run["learner"], {}).setdefault(made_of, []).append(run["table"])
    return [
        f"- {NAMES[name]}{_of(tables) if len(kinds) > 1 else ''}: {made_of}"
        for name, kinds in found.items()
        if name in NAMES
        for made_of, tables in kinds.items()
    ]


INTRODUCTION = """# Our PPO beside its peers

Written by `make bench` and `make bench-mujoco` from measured runs; [the guide](../docs/guides/benchmarks.md) says how
they are made. Read the tables with these five sentences in mind.

1. **Same recipe** means that every learner follows our settings, which stand under the first table. They suit a fast
   environment; somebody else's recipe would give another ratio. In the returns for time the two libraries follow the
   tables of rl-zoo3, which were tuned for steps and not for seconds.
2. The peers step the vector environments that they ship with, one after another in Python; we step EnvPool. Much of
   the difference is EnvPool's. The row of PyTorch on EnvPool shows how much, and has no bar.
3. Three seeds are few. The seeds' own values stand beside every interval, and an interval from three seeds is rough.
4. All of it is PPO on one small CPU. Methods that learn more from each step, larger networks and GPUs are not in it.
5. The code of Overnight and its peers runs here under our harness: their policies are measured by our referee, and
   their clock starts, as ours does, after imports. What is compiled later is in everybody's time.
"""


def page(results: Results, figures: Path) -> str:
    """The whole page."""
    sections: list[tuple[str, str, Callable[[], list[str]]]] = [
        (
            "Steps a second, same recipe",
            "Means over seeds of the later half of each run; “with compiling” is the whole run. Ratios are of pairs "
            "that ran in the same round, with Student's 90 % interval on their logarithms; bars are judged by the "
            "later half.",
            lambda: speed_section(results),
        ),
        (
            "How near to the environments' own speed",
            "A training's actions are recorded and taken again by the same EnvPool, with the same seeds and threads "
            "and without learning. Both rates are of the same steps.",
            lambda: share_section(results),
        ),
        (
            "Return for time",
            "Snapshots at every tenth of the time, and of ours, where it rehearses, whenever a policy is better; "
            "each is measured greedily over 10 episodes in Gymnasium, the last policy over 200. The mean return "
            "on the way is the area under the curve divided by the time; every curve begins with what random "
            "actions score. Intervals are 90 %, by drawing seeds and episodes anew. Stable-Baselines3 and sbx "
            "follow rl-zoo3, PyTorch follows our recipe. The last section has the versions of each table.",
            lambda: return_section(results, figures),
        ),
        ("Small tasks", "The last policy over 50 episodes.", lambda: classic_section(results)),
        (
            "MuJoCo in twelve minutes",
            "Our PPO against the returns that zjianyi/autoRL publishes for trainings of the same length, most of them "
            "on an H100; theirs were not made here. Figures show the median seed, and a band from the lowest to the "
            "highest; each policy stays what it is until a better one replaces it.",
            lambda: mujoco_section(results, figures),
        ),
        ("Machine, load and versions", "", lambda: machine_section(results)),
    ]
    lines = [INTRODUCTION]
    for title, says, body in sections:
        lines += [f"## {title}", "", *([says, ""] if says else []), *body(), ""]
    return "\n".join(lines).rstrip() + "\n"


def main() -> int:
    """Write the page and its figures."""
    asked = argparse.ArgumentParser(description="Turn results into a page.")
    own, kept = ROOT / "build" / "benchmarks" / "peers.jsonl", ROOT / "benchmarks" / "measured" / "peers.jsonl"
    asked.add_argument("--file", type=Path, default=own if own.exists() else kept)
    asked.add_argument("--out", type=Path, default=ROOT / "benchmarks")
    told_to = asked.parse_args()
    told_to.out.mkdir(parents=True, exist_ok=True)
    text = page(read(told_to.file), told_to.out / "figures")
    (told_to.out / "RESULTS.md").write_text(text)
    print(f"{told_to.out / 'RESULTS.md'}: {len(text.splitlines())} lines")
    return 0


if __name__ == "__main__":
    sys.exit(main())
