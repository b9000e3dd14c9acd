"""The table for other systems' readers: four columns, three words, a number in every row."""

from dataclasses import replace

import pytest

from overnight.errors import UserError
from overnight.records.lifecycle import State
from overnight.report.exports import HEADER, check_results_tsv, results_tsv
from overnight.report.facts import CandidateLine
from report.hostile import HOSTILE
from report.sample import night

LINE = night().candidates[0]


def rows(*candidates: CandidateLine) -> list[list[str]]:
    return [line.split("\t") for line in results_tsv(replace(night(), candidates=candidates)).splitlines()]


def test_the_header_and_the_baseline_come_first() -> None:
    assert rows() == [
        ["commit", "avg_return", "status", "description"],
        ["5f1c0aa", "265.100000", "keep", "baseline ppo"],
    ]


def test_before_anything_was_measured_there_is_only_the_header() -> None:
    untried = replace(night(), candidates=(), baseline=replace(night().baseline, score=None))
    assert results_tsv(untried) == HEADER + "\n"


@pytest.mark.parametrize(
    ("state", "kept", "status"),
    [
        (State.ACCEPTED, True, "keep"),
        (State.COMPLETED, True, "keep"),
        (State.REJECTED, False, "discard"),
        (State.INCONCLUSIVE, False, "discard"),
        (State.REVERTED, False, "discard"),
        (State.DEBUG, False, "crash"),
    ],
)
def test_states_become_the_three_words(state: State, kept: bool, status: str) -> None:
    assert rows(replace(LINE, state=state, kept=kept))[2][2] == status


def test_what_has_no_outcome_has_no_row() -> None:
    undecided = (
        replace(LINE, state=State.COMPLETED, kept=False),
        replace(LINE, state=State.VALIDATED),
        replace(LINE, state=State.DRAFT, refusals=("No.",)),
    )
    assert len(rows(*undecided)) == 2


@pytest.mark.feature("Z37")
def test_a_crash_prints_zero_and_another_status_is_rejected() -> None:
    crashed = replace(LINE, state=State.REJECTED, crashed=True, score=None)
    assert rows(crashed)[2][1:3] == ["0.000000", "crash"]
    text = results_tsv(replace(night(), candidates=(crashed,)))
    assert check_results_tsv(text) == 2
    with pytest.raises(UserError, match="'pending' in line 3"):
        check_results_tsv(text.replace("\tcrash\t", "\tpending\t"))


@pytest.mark.parametrize("score", [None, float("nan"), float("inf")])
def test_a_row_without_a_number_is_a_crash_to_its_readers(score: float | None) -> None:
    assert rows(replace(LINE, score=score))[2][1:3] == ["0.000000", "crash"]


@pytest.mark.feature("Z36")
def test_a_description_with_tabs_and_lines_is_one_cell() -> None:
    (_, _, row) = rows(replace(LINE, hypothesis="a\tb\nc\r\n d"))
    assert row == [LINE.commit[:7], "246.900000", "discard", "a b c d"]
    assert len(row[0]) == 7
    assert len(rows(replace(LINE, hypothesis=HOSTILE))[2]) == 4


def test_the_sample_is_a_table_in_the_format() -> None:
    assert check_results_tsv(results_tsv(night())) == 14


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("commit,avg_return,status,description\n", "its header is"),
        (f"{HEADER}\nabc1234\t1.000000\tkeep\n", "3 columns in line 2"),
        (f"{HEADER}\nabc123\t1.000000\tkeep\tx\n", "7 digits of a commit"),
        (f"{HEADER}\nabc1234\t1.0\tkeep\tx\n", "6 decimals"),
    ],
)
def test_a_table_of_another_format_is_refused_with_the_place(text: str, says: str) -> None:
    with pytest.raises(UserError, match=says):
        check_results_tsv(text)
