"""From the records of whole nights to a page: what each certified, when, at what cost, and its worth elsewhere."""

import json
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from overnight.records.codec import loads
from overnight.records.transfer import Transfer
from overnight.report.text import decimals_for, number, signed
from overnight.report.transfers import table

Line = Mapping[str, Any]
TITLES = {
    "warm": "Warm: the search knows settings of this family",
    "cold": "Cold: every recipe and published setting of this family withheld",
    "unknown": "An environment whose family has no recipe",
}
INTRODUCTION = """# Whole nights, unattended

Written by `make nights`, which runs `overnight start` and then `overnight transfer`, without anybody and without a
language model; [the guide](../docs/guides/benchmarks.md#whole-nights) says how. The baseline is CleanRL's plain
settings. Certified scores are greedy means over 100 hidden episodes of each fresh train seed, none of which chose
anything. Intervals are 95 %.
"""


def page(lines: Sequence[Line]) -> str:
    """The whole page: the last record of each night."""
    last = {line["night"]: line for line in lines}
    parts = [INTRODUCTION]
    for name, title in TITLES.items():
        parts += [f"## {title}", "", *(_night(last[name]) if name in last else ["Not measured yet.", ""])]
    return "\n".join(parts)


def _night(line: Line) -> list[str]:
    cold = " --cold" if line["night"] == "cold" else ""
    out = [
        f"`overnight start {line['env']} --hours {line['hours']:g}{cold} --yes`: "
        f"{line['candidates']} candidates, {line['runs']} trainings of {line['steps']:,.0f} steps, "
        f"{line['run_wall']:,.0f} s of training of which {line['run_cpu']:,.0f} s processor time.{_load(line)}",
        "",
    ]
    if not line["claims"]:
        return [*out, "Nothing was certified.", ""]
    out += [
        "| certified | in minute | baseline, each seed | certified, each seed | mean | gain, 95 % |",
        "|---|---|---|---|---|---|",
    ]
    for claim in line["claims"]:
        low, middle, high = claim["gain"]
        places = decimals_for(high - low)
        cells = (
            claim["candidate"],
            f"{claim['at']:.0f}",
            _scores(claim["theirs"], places),
            _scores(claim["ours"], places),
            f"{_mean(claim['theirs'], places + 1)} → {_mean(claim['ours'], places + 1)}",
            f"{signed(middle, places)} ({signed(low, places)} to {signed(high, places)})",
        )
        out.append(f"| {' | '.join(cells)} |")
    for claim in line["claims"]:
        changes = ", ".join(f"`{key}` {value}" for key, value in sorted(claim["params"].items()))
        out += ["", f"{claim['candidate']}: {changes}."]
    found = [loads(Transfer, json.dumps(one).encode(), where="nights.jsonl") for one in line["transfers"]]
    if found:
        out += ["", "Elsewhere, unmodified:", "", table(found, unit="return").strip()]
    return [*out, ""]


def _load(line: Line) -> str:
    if "foreign" not in line:
        return ""
    minutes = line["sitting_seconds"] / 60
    return f" It sat for {minutes:.0f} minutes, and others used {line['foreign']:.0%} of the machine."


def _scores(scores: Sequence[float | None], places: int) -> str:
    return ", ".join("lost" if one is None else number(one, places) for one in scores)


def _mean(scores: Sequence[float | None], places: int) -> str:
    known = [one for one in scores if one is not None]
    return number(fmean(known), places) if known else "none"
