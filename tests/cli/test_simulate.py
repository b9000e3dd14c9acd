"""`overnight simulate` shows what a rule does where truth is known."""

import json
from pathlib import Path

import pytest

from overnight.cli.main import main


def test_a_rule_is_replayed_and_the_answer_is_the_same_for_the_same_seed(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["simulate", "--runs", "32", "--family", "gaussian", "--studies", "5", "--kind", "null", "--json"]
    assert main(words) == 0
    first = capsys.readouterr().out
    assert main(words) == 0
    assert capsys.readouterr().out == first
    assert json.loads(first)["studies"] == 5


def test_ones_own_scores_give_the_scatter(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine.csv").write_text("1\n2\n3\n4\n9\n")
    assert main(["simulate", "--runs", "8", "--studies", "2", "--scores", "mine.csv", "--dir", str(tmp_path)]) == 0
    assert "mine.csv" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--kind", "nul"], "did you mean `null`?"),
        (["--rule", "greddy"], "did you mean `greedy`?"),
        (["--family", "sacc"], "did you mean `sac`?"),
        (["--runs", "0"], "a simulated study has 1 to 100,000 runs"),
        (["--error", "2"], "lies above 0 and is at most 0.5"),
        (["--shared-luck", "1"], "lies between 0 and 0.95"),
        (["--studies", "0"], "1 to 100,000 are simulated"),
    ],
)
def test_a_wrong_option_is_told(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", *words]) == 2
    assert said in capsys.readouterr().err
