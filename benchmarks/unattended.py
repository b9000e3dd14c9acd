"""Whole nights and what they are worth elsewhere: `make nights`, or `python benchmarks/unattended.py warm cold`.

Each night is the public command, `overnight start`, in a folder under `build/nights`, without anybody and without a
language model; then its certified change is taken to other environments and to a longer training with `overnight
transfer`. A night that was stopped goes on where it was. What it tried, certified and cost is read from its ledger, and
is added to `benchmarks/measured/nights.jsonl` with what it was worth elsewhere and with the load of the machine.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from overnight.machine import RealMachine
from overnight.study.ledger import read_sound
from overnight.study.study import active_study, read_state
from trainers import busy_seconds
from unattended_page import page

ROOT = Path(__file__).parents[1]
FOLDERS = ROOT / "build" / "nights"
TARGET = ROOT / "benchmarks" / "measured" / "nights.jsonl"
PAGE = ROOT / "benchmarks" / "NIGHTS.md"

Line = dict[str, Any]


class Night(NamedTuple):
    """One night, and where its certified change is taken afterwards."""

    env: str
    hours: float
    cold: bool
    elsewhere: tuple[tuple[str, ...], ...]
    """Each is one call of `overnight transfer`."""


NIGHTS = {
    "warm": Night(
        "BipedalWalker-v3",
        1.0,
        cold=False,
        elsewhere=(("--env=LunarLanderContinuous-v3", "--env=Pendulum-v1", "--seeds=4"), ("--budget=4x", "--seeds=3")),
    ),
    "cold": Night("BipedalWalker-v3", 4.0, cold=True, elsewhere=()),
    "unknown": Night("FrozenLake-v1", 0.5, cold=False, elsewhere=()),
}


def sit(name: str, night: Night, folder: Path, hours: float) -> Line:
    """Let a night run to its end, and say what it took; one that was stopped goes on."""
    folder.mkdir(parents=True, exist_ok=True)
    words = [night.env, f"--hours={hours:g}", *(["--cold"] if night.cold else [])]
    words = [] if (folder / ".overnight").exists() else words
    began, busy, own = time.monotonic(), busy_seconds(), _children()
    overnight("start", *words, "--yes", folder=folder)
    wall, used = time.monotonic() - began, _children() - own
    foreign = max(0.0, busy_seconds() - busy - used) / (wall * (os.cpu_count() or 1))
    return {"night": name, "sitting_seconds": wall, "own_cpu": used, "foreign": foreign}


def overnight(*words: str, folder: Path) -> None:
    """Give one command, and stop where it fails."""
    done = subprocess.run([sys.executable, "-m", "overnight.cli.main", *words, "--dir", str(folder)], check=False)
    if done.returncode:
        sys.exit(f"overnight {' '.join(words)} ended with {done.returncode}")


def _children() -> float:
    used = os.times()
    return used.children_user + used.children_system


# What the ledger says


def told(folder: Path) -> Line:
    """A night in numbers, from its ledger, and the transfers beside it."""
    machine = RealMachine()
    at = active_study(machine, folder)
    state, entries = read_state(machine, at), list[Line]()
    read_sound(machine, at.folder, lambda entry, _: entries.append(dict(entry)))
    data = [(one["kind"], one["data"]) for one in entries]
    scores = {one["run"]: one["score"] for kind, one in data if kind == "measured"}
    claims = [one for kind, one in data if kind == "decided" and one["verdict"] == "certified"]
    ended = [one for kind, one in data if kind == "ended"]
    launched = {one["id"]: one["candidate"] for kind, one in data if kind == "launched"}
    contract = next(one["terms"] for kind, one in data if kind == "approved" and one["clause"] == "task")
    budget = next(one["terms"] for kind, one in data if kind == "approved" and one["clause"] == "budget")
    return {
        "env": contract["env"]["id"],
        "hours": budget["max_wall_hours"],
        "steps": budget["stop_amount"],
        "candidates": len(state.candidates) - 1,
        "runs": len(state.runs),
        "run_cpu": sum(one["cpu_seconds"] or 0.0 for one in ended),
        "run_wall": sum(one["wall_seconds"] for one in ended),
        "claims": [
            {
                "candidate": one["candidate"],
                "gain": [one["gain_low"], one["gain"], one["gain_high"]],
                "says": one["because"],
                "at": _minutes(entries, one),
                "ours": [scores[run] for run in one["evidence"] if launched[run] == one["candidate"]],
                "theirs": [scores[run] for run in one["evidence"] if launched[run] != one["candidate"]],
                "params": _params(data, one["candidate"]),
            }
            for one in claims
        ],
        "transfers": [json.loads(path.read_bytes()) for path in sorted(at.transfers.glob("*/transfer.json"))],
    }


def _minutes(entries: list[Line], claim: Line) -> float:
    """Minutes from the word to begin until a claim."""
    first = next(one["at"] for one in entries if one["kind"] == "entered")
    last = next(one["at"] for one in entries if one["kind"] == "decided" and one["data"] == claim)
    return (datetime.fromisoformat(last) - datetime.fromisoformat(first)).total_seconds() / 60


def _params(data: list[tuple[str, Line]], candidate: str) -> Line:
    """Everything in which a candidate differs from the baseline: its own change, and those of the tips it stands on."""
    drafted = {one["commit"]: one for kind, one in data if kind == "drafted"}
    found, at = Line(), next(commit for commit, one in drafted.items() if one["id"] == candidate)
    while at in drafted:
        found = {**drafted[at]["proposal"]["params"], **found}
        at = drafted[at]["base"]
    return found


def main() -> int:
    """Sit through the nights that are asked for, and write the page."""
    asked = argparse.ArgumentParser(description="Whole nights, and what they are worth elsewhere.")
    asked.add_argument("nights", nargs="*", choices=[*NIGHTS, []], help="warm, cold or unknown; all of them by default")
    asked.add_argument("--hours", type=float, help="another length, to try it out")
    asked.add_argument("--folder", type=Path, help="a study that is there already: read it, and run nothing")
    asked.add_argument("--elsewhere", action="store_true", help="only the transfers of nights that are there")
    asked.add_argument("--table", action="store_true", help="run nothing, and write the page")
    said = asked.parse_args()
    for name in [] if said.table else said.nights or NIGHTS:
        night, folder = NIGHTS[name], said.folder or FOLDERS / name
        line: Line = {"night": name}
        if said.folder is None and not said.elsewhere:
            line = sit(name, night, folder, said.hours or night.hours)
        if said.folder is None and told(folder)["claims"]:
            for words in night.elsewhere:
                overnight("transfer", *words, folder=folder)
        TARGET.parent.mkdir(exist_ok=True)
        found = told(folder)
        with TARGET.open("a") as file:
            file.write(json.dumps({**_sat_before(name, found["claims"]), **line, **found}) + "\n")
    PAGE.write_text(page(_records()))
    print(PAGE)
    return 0


def _records() -> list[Line]:
    return [json.loads(line) for line in TARGET.read_text().splitlines()] if TARGET.exists() else []


def _sat_before(name: str, claims: list[Line]) -> Line:
    """What is on file about the sitting of this very night, which its transfers come after."""
    before = next((one for one in reversed(_records()) if one["night"] == name and one["claims"] == claims), Line())
    return {key: before[key] for key in ("sitting_seconds", "own_cpu", "foreign") if claims and key in before}


if __name__ == "__main__":
    sys.exit(main())
