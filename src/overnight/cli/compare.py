"""`overnight compare A.csv B.csv`: is this difference real?"""

from pathlib import Path
from typing import Annotated

import typer

from overnight.cli.options import HERE, Dir, Json, verb_app
from overnight.cli.output import data, table

app = verb_app("Say whether the difference between two per-seed tables is real.")
_MOST_BYTES = 20_000_000


@app.command()
def compare(
    first: Annotated[Path, typer.Argument(metavar="A.csv", help="Scores of one side, such as a baseline.")],
    second: Annotated[Path, typer.Argument(metavar="B.csv", help="Scores of the other side.")],
    lower: Annotated[bool, typer.Option("--lower", help="Lower scores are better.")] = False,
    profile: Annotated[bool, typer.Option("--profile", help="Print the performance profiles too.")] = False,
    seed: Annotated[int, typer.Option(help="The bootstrap follows from it.")] = 0,
    folder: Dir = HERE,
    as_json: Json = False,
) -> None:
    """Say whether B differs from A, from one score a train seed: anybody's results, no study needed.

    A table has one score a line, or a header with the columns `score` and, where there are any, `seed` and `task`.
    Each task gets its gain with a 95 % interval, an exact permutation p-value and the probability of improvement;
    several tasks together get the gain of the interquartile mean with a stratified bootstrap interval. A performance
    profile is the share of runs above each score; `--json` always has it.

    Example: `overnight compare baseline.csv ours.csv`
    """
    from dataclasses import asdict

    from overnight.decide.compare import compare as compare_tables
    from overnight.errors import UserError

    one, two = (read_scores(folder / path) for path in (first, second))
    if sorted(one) != sorted(two):
        only = sorted(set(one) ^ set(two))
        raise UserError(str(second), f"has other tasks than {first}: {', '.join(only[:5])} are in one of them alone")
    if lower:
        one, two = ({task: [-score for score in found] for task, found in side.items()} for side in (one, two))
    found = compare_tables(one, two, seed=seed)
    text = _text(found, lower=lower) + (_profile_text(found, lower=lower) if profile else "")
    data({**asdict(found), "lower_is_better": lower}, text, as_json=as_json)


def read_scores(path: Path) -> dict[str, list[float]]:
    """The scores of a table by task, or a sentence about the line that is wrong."""
    import csv

    from overnight.errors import UserError

    if not path.is_file():
        raise UserError(str(path), "is not a file")
    if path.stat().st_size > _MOST_BYTES:
        raise UserError(str(path), f"is larger than {_MOST_BYTES // 1_000_000} MB; one score a train seed is wanted")
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise UserError(str(path), "is not text in UTF-8") from None
    rows = [(number, row) for number, row in enumerate(csv.reader(text.splitlines()), start=1) if any(row)]
    if not rows:
        raise UserError(str(path), "holds no scores")
    header = [cell.strip().lower() for cell in rows[0][1]]
    if "score" in header:
        return _by_columns(path, header, rows[1:])
    if len(header) > 1:
        hint = "begin with a line such as `seed,score` or `seed,score,task`"
        raise UserError(f"{path}:1", "has several columns, but none is called `score`", hint=hint)
    return {"": _enough(path, "", [_number(path, line, row[0]) for line, row in rows])}


def _by_columns(path: Path, header: list[str], rows: list[tuple[int, list[str]]]) -> dict[str, list[float]]:
    from overnight.errors import UserError

    found: dict[str, list[float]] = {}
    seen: set[tuple[str, str]] = set()
    for line, row in rows:
        if len(row) != len(header):
            raise UserError(f"{path}:{line}", f"has {len(row)} cells, but the header has {len(header)}")
        cells = dict(zip(header, (cell.strip() for cell in row), strict=True))
        task = cells.get("task", "")
        if "seed" in cells:
            if (task, cells["seed"]) in seen:
                where = f" of task {task[:60]}" if task else ""
                raise UserError(f"{path}:{line}", f"gives seed {cells['seed'][:60]}{where} a second time")
            seen.add((task, cells["seed"]))
        found.setdefault(task, []).append(_number(path, line, cells["score"]))
    if not found:
        raise UserError(str(path), "holds no scores below its header")
    return {task: _enough(path, task, scores) for task, scores in found.items()}


def _number(path: Path, line: int, text: str) -> float:
    from math import isfinite

    from overnight.errors import UserError

    hint = "a crash is no score, but leaving it out on one side alone makes that side look better"
    try:
        score = float(text)
    except ValueError:
        raise UserError(f"{path}:{line}", f"says `{text[:60]}`, which is not a number", hint=hint) from None
    if not isfinite(score):
        raise UserError(f"{path}:{line}", f"says `{text[:60]}`, but a score is finite", hint=hint)
    return score


def _enough(path: Path, task: str, scores: list[float]) -> list[float]:
    from overnight.errors import UserError

    if len(scores) < 2:
        where = f"task {task[:60]} has" if task else "has"
        raise UserError(str(path), f"{where} {len(scores)} score, but noise shows only from two on")
    return scores


def _text(found: object, *, lower: bool) -> str:
    from overnight.decide.compare import Comparison
    from overnight.decide.telling import decimals, told

    assert isinstance(found, Comparison)  # noqa: S101 - told to the type checker
    sign = -1.0 if lower else 1.0
    rows = []
    for one in found.tasks:
        places = decimals(one.gain.high - one.gain.low, digits=3)
        span = f"{told(one.gain.low, places)} to {told(one.gain.high, places)}"
        rows.append(
            (
                one.task or "all",
                f"{one.seeds[0]} v {one.seeds[1]}",
                f"{told(sign * one.means[0], places)} → {told(sign * one.means[1], places)}",
                told(one.gain.estimate, places, sign=True),
                span,
                f"{one.p_value:.2g}",
                f"{100 * one.improvement:.0f} %",
            )
        )
    header = ("task", "seeds", "mean", "better by", "95 % interval", "p", "B beats A")
    lines = [found.says, "", table(rows, header=header)]
    if found.iqm is not None and found.improvement is not None and len(found.tasks) > 1:
        places = decimals(found.iqm.high - found.iqm.low, digits=3)
        lines += [
            "",
            f"Interquartile mean over all tasks: better by {told(found.iqm.estimate, places, sign=True)}, "
            f"95 % interval {told(found.iqm.low, places)} to {told(found.iqm.high, places)} (stratified bootstrap).",
            f"Probability of improvement: {100 * found.improvement.estimate:.0f} %, 95 % interval "
            f"{100 * found.improvement.low:.0f} to {100 * found.improvement.high:.0f} %.",
        ]
    return "\n".join(lines)


def _profile_text(found: object, *, lower: bool) -> str:
    from overnight.decide.compare import Comparison
    from overnight.decide.telling import decimals, told

    assert isinstance(found, Comparison)  # noqa: S101 - told to the type checker
    if not found.profiles:
        return "\n\nTasks have unequal numbers of seeds, so there is no performance profile over all of them."
    first, last, sign = found.profiles[0].score, found.profiles[-1].score, -1.0 if lower else 1.0
    places = decimals(last - first, digits=3)

    def share(one: object) -> str:
        estimate, low, high = (100 * getattr(one, end) for end in ("estimate", "low", "high"))
        return f"{estimate:.0f} % ({low:.0f} to {high:.0f})"

    rows = [(told(sign * one.score, places), share(one.first), share(one.second)) for one in found.profiles]
    header = ("better than", "runs of A", "runs of B, with 95 % bands")
    return "\n\n" + table(rows, header=header)
