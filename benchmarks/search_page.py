"""From the results of the search benchmark to a table: a section of the page, and what `make bench-search` prints."""

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from summary import Interval, student

Line = Mapping[str, Any]
MAIN = ("ours", "tpe", "random", "greedy")
NAMES = {
    "baseline": "baseline",
    "ours": "Overnight",
    "ours, cold": "Overnight, cold",
    "ours, no diagnostics": "Overnight without diagnostics",
    "ours, no operators": "Overnight without operators",
    "tpe": "TPE, median pruner, one seed a trial",
    "random": "random search, one seed a trial",
    "greedy": "greedy keep-or-revert",
}


INTRODUCTION = """# The search beside other rules

Written by `make bench-search` from measured nights; [the guide](../docs/guides/benchmarks.md#how-good-the-search-is)
says how they are made. Every rule has the same trainer, space, mis-set baseline and total of training steps, and is
scored by what it takes at the end, trained again on eight fresh seeds that chose nothing. Ours pays for calibration and
certification out of the same total. Intervals are Student's, over repeats; a repeat is one whole night.
"""


def page(lines: Sequence[Line]) -> str:
    """The whole page."""
    repeats = 1 + max(int(line["repeat"]) for line in lines)
    told = f"{repeats} repeat{'s' if repeats > 1 else ''} at most, as the claims tell; code {lines[-1]['code']}."
    return "\n".join([INTRODUCTION, told, "", *section(lines)]) + "\n"


def section(lines: Sequence[Line]) -> list[str]:
    """The tables, as Markdown."""
    envs = list(dict.fromkeys(line["env"] for line in lines))
    if not envs:
        return ["Not measured yet: `make bench-search`."]
    found = {env: of_task([line for line in lines if line["env"] == env]) for env in envs}
    out = [
        "| task | rule | fresh-seed score, 90 % | claimed gain | true gain | claims, false ones | trainings | CPU s |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for env in envs:
        out += [_row(env, rule, runs) for rule, runs in found[env].items()]
    ranks = mean_ranks(found)
    if ranks:
        told = ", ".join(f"{NAMES[rule]} {rank:.2f}" for rule, rank in sorted(ranks.items(), key=lambda one: one[1]))
        out += ["", f"Mean rank over the tasks, 1 is best: {told}."]
    return [*out, "", *bars(found), "", *lifts(found)]


Runs = dict[str, list[dict[str, Any]]]


def of_task(lines: Sequence[Line]) -> Runs:
    """The repeats of each rule, each with its fresh-seed score and true gain."""
    baseline = next((line for line in lines if line["rule"] == "baseline"), None)
    if baseline is None:
        return {}
    known = [score for line in lines for score in line["scores"] if score is not None]
    worst = min(known)

    def mean(scores: Sequence[float | None]) -> float:
        return fmean(worst if score is None else score for score in scores)

    start = mean(baseline["scores"])
    found: Runs = {rule: [] for rule in NAMES}
    for line in sorted(lines, key=lambda one: int(one["repeat"])):
        score = mean(line["scores"]) if line["scores"] else start
        found[line["rule"]].append({**line, "score": score, "gain": score - start})
    return {rule: runs for rule, runs in found.items() if runs}


def is_false(run: Line) -> bool:
    """Whether a gain was claimed where fresh seeds show none."""
    return run["claimed"] is not None and run["gain"] <= 0


def _row(env: str, rule: str, runs: Sequence[Line]) -> str:
    claims = [run for run in runs if run["claimed"] is not None]
    claimed = f"{fmean(run['claimed'] for run in claims):+.1f}" if claims else "none"
    gained = f"{fmean(run['gain'] for run in claims):+.1f}" if claims else "none"
    false = f"{len(claims)} of {len(runs)}, {sum(map(is_false, runs))} false" if rule != "baseline" else ""
    trials, cpu = fmean(run["trials"] for run in runs), fmean(run["cpu"] for run in runs)
    spent = (f"{trials:.0f}", f"{cpu:.0f}") if rule != "baseline" else ("", "")
    score = _told(student([run["score"] for run in runs])) if rule != "baseline" else f"{runs[0]['score']:.1f}"
    return f"| {env} | {NAMES[rule]} | {score} | {claimed} | {gained} | {false} | {spent[0]} | {spent[1]} |"


def _told(one: Interval) -> str:
    ends = "" if one.low == -float("inf") else f" ({one.low:.1f} to {one.high:.1f})"
    return f"{one.middle:.1f}{ends}"


def mean_ranks(found: Mapping[str, Runs]) -> dict[str, float]:
    """The mean over the tasks of each rule's rank by its mean score; ties share a rank."""
    whole = [task for task in found.values() if all(rule in task for rule in MAIN)]
    ranks: dict[str, list[float]] = {rule: [] for rule in MAIN}
    for task in whole:
        means = {rule: fmean(run["score"] for run in task[rule]) for rule in MAIN}
        for rule in MAIN:
            above = sum(other > means[rule] for other in means.values())
            same = sum(other == means[rule] for other in means.values())
            ranks[rule].append(above + (same + 1) / 2)
    return {rule: fmean(one) for rule, one in ranks.items() if one}


def difference(ours: Sequence[Line], theirs: Sequence[Line]) -> Interval:
    """How far we are ahead, from pairs of one repeat each."""
    other = {run["repeat"]: run["score"] for run in theirs}
    return student([run["score"] - other[run["repeat"]] for run in ours if run["repeat"] in other])


def bars(found: Mapping[str, Runs]) -> list[str]:
    """What was promised, and whether it holds."""
    out = []
    for env, task in found.items():
        rivals = [rule for rule in MAIN[1:] if rule in task]
        if "ours" not in task or not rivals:
            continue
        best = max(rivals, key=lambda rule: fmean(run["score"] for run in task[rule]))
        ahead = difference(task["ours"], task[best])
        word = "holds" if ahead.high >= 0 else "MISSED"
        out.append(f"- {env}: ours less the best rival, {NAMES[best]}: {_told(ahead)}; {word}")
    false = sum(is_false(run) for task in found.values() for run in task.get("ours", ()))
    return [*out, f"- false claims of ours: {false}; {'holds' if not false else 'MISSED'}"]


def lifts(found: Mapping[str, Runs]) -> list[str]:
    """What each part of ours brings: ours less ours without it."""
    out = []
    for rule in ("ours, cold", "ours, no diagnostics", "ours, no operators"):
        told = [
            f"{env} {_told(difference(task['ours'], task[rule]))}"
            for env, task in found.items()
            if rule in task and "ours" in task
        ]
        if told:
            out.append(f"- {NAMES['ours']} less {NAMES[rule]}: {'; '.join(told)}")
    return out
