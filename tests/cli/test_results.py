"""`overnight report --results`: a table of another system's loop, told in numbers and as a picture."""

import json
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from overnight.report.exports import HEADER, Status
from overnight.report.frontier import GREEN, GREY, HEIGHT, WIDTH, axes, points
from overnight.report.png import chunks, size
from overnight.report.table import read_table, summary
from scenes import Said

LONG = "Normalise the observations by a running mean and a running deviation of all environments"
ROWS = (
    ("135.562469", "keep", "baseline"),
    ("120.000000", "discard", "Larger batches."),
    ("180.500000", "keep", LONG),
    ("0.000000", "crash", "A network of one unit."),
    ("150.000000", "discard", "No entropy bonus."),
    ("181.000000", "keep", "A smaller step."),
    ("231.000000", "keep", "16 environments."),
)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return written(tmp_path / "results.tsv", ROWS)


def written(path: Path, rows: tuple[tuple[str, str, str], ...]) -> Path:
    lines = [f"{number:07x}\t{score}\t{status}\t{says}" for number, (score, status, says) in enumerate(rows)]
    path.write_text("\n".join([HEADER, *lines]) + "\n")
    return path


def pixels(path: Path) -> Any:
    assert size(path.read_bytes()) == (WIDTH, HEIGHT)
    data = zlib.decompress(b"".join(one.data for one in chunks(path.read_bytes()) if one.kind == b"IDAT"))
    return np.frombuffer(data, np.uint8).reshape(HEIGHT, 1 + 3 * WIDTH)[:, 1:].reshape(HEIGHT, WIDTH, 3)


@pytest.mark.feature("Z40")
def test_a_table_of_results_is_told_in_numbers_and_as_a_picture(verb: Callable[..., Said], table: Path) -> None:
    done = verb("report", "--results", str(table))
    assert done.code == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[:4] == [
        "results.tsv: 7 experiments: 4 keep, 2 discard, 1 crash; 67% of what ran to its end was kept.",
        "baseline  135.562469  0000000  baseline",
        "best      231.000000  0000006  16 environments.",
        "in all    +95.437531, +70.4 % of the baseline",
    ]
    kept, most = (lines[lines.index(title) + 2 :][:3] for title in (lines[5], "What brought most:"))
    assert [one.split()[:4] for one in kept] == [
        ["#2", "2", "180.500000", "+44.937531"],
        ["#5", "3", "181.000000", "+0.500000"],
        ["#6", "1", "231.000000", "+50.000000"],
    ]
    assert [one.split()[0] for one in most] == ["#6", "#2", "#5"]
    found, picture = summary(read_table(table.read_text(), where="")), pixels(table.with_name("progress.png"))
    drawn = {row.number: (left, top) for row, left, top in points(found)}
    colours = {number: tuple(picture[top, left].tolist()) for number, (left, top) in drawn.items()}
    assert colours == {0: GREEN, 2: GREEN, 4: GREY, 5: GREEN, 6: GREEN}
    assert "1 scored too far below the baseline" in done.stdout, "the axis goes from the baseline to the best"
    up = axes(found)[1]
    assert up.low == pytest.approx(135.562469, abs=6) and up.high == pytest.approx(231, abs=6)
    for number, after in ((0, 2), (2, 5), (5, 6)):
        (left, top), (right, higher) = drawn[number], drawn[after]
        assert (picture[top, left:right] == GREEN).all() and (picture[higher:top, right] == GREEN).all(), "steps"


def test_a_label_is_cut_at_45_letters(verb: Callable[..., Said], tmp_path: Path) -> None:
    pictures = []
    for number, says in enumerate((LONG, LONG[:45] + "!", LONG[:44] + "…", LONG[:43] + "?…", LONG[:45])):
        row = written(tmp_path / f"results_{number}.tsv", (*ROWS[:2], ("180.500000", "keep", says)))
        assert verb("report", "--results", str(row)).code == 0
        pictures.append((tmp_path / f"progress_{number}.png").read_bytes())
    assert pictures[0] == pictures[1] == pictures[2], "what comes after is not drawn"
    assert pictures[3] != pictures[0] != pictures[4], "and what comes before is"


def test_the_numbers_are_there_for_programs_too(verb: Callable[..., Said], table: Path) -> None:
    told = json.loads(verb("report", "--results", str(table), "--json").stdout)
    assert told["counts"] == {"keep": 4, "discard": 2, "crash": 1} and told["keep_rate"] == pytest.approx(4 / 6)
    assert (told["baseline"]["score"], told["best"]["commit"]) == (135.562469, "0000006")
    assert told["percent"] == pytest.approx(70.4, abs=0.01) and told["top"] == ["0000006", "0000002", "0000005"]
    assert told["picture"] == str(table.with_name("progress.png"))


def test_a_table_in_which_everything_crashed_has_no_picture(verb: Callable[..., Said], tmp_path: Path) -> None:
    path = written(tmp_path / "results.tsv", (("0.000000", "crash", "baseline"),))
    done = verb("report", "--results", str(path))
    assert done.code == 0 and "No experiment has a score" in done.stdout
    assert not path.with_name("progress.png").exists()


def test_a_table_with_nothing_but_its_baseline_has_a_picture_of_one_point(
    verb: Callable[..., Said], tmp_path: Path
) -> None:
    path = written(tmp_path / "results.tsv", ROWS[:1])
    assert verb("report", "--results", str(path)).code == 0
    row, left, top = next(points(summary(read_table(path.read_text(), where=""))))
    assert row.status is Status.KEEP and tuple(pixels(path.with_name("progress.png"))[top, left].tolist()) == GREEN


@pytest.mark.parametrize("text", ["", "commit\tval_bpb\tstatus\n", f"{HEADER}\n0000000\tnan\tkeep\tx\n", "\x00\xff"])
def test_what_is_no_such_table_is_told_in_a_sentence(verb: Callable[..., Said], tmp_path: Path, text: str) -> None:
    (tmp_path / "other.tsv").write_bytes(text.encode("latin-1"))
    done = verb("report", "--results", str(tmp_path / "other.tsv"))
    assert done.code == 2 and "other.tsv" in done.stderr and not (tmp_path / "progress.png").exists()
