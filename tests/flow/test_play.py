"""One episode by the referee, as a moving picture."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from overnight.home import read_source
from overnight.machine import RealMachine
from overnight.play import MOST_FRAMES, play
from overnight.report.png import chunks
from scenes import Said, Scene

Verb = Callable[..., Said]


def test_an_episode_is_written_as_a_moving_picture(params: Scene, tmp_path: Path) -> None:
    source = read_source(RealMachine(), params.at)
    found = play(source, source.run_of("c-0002"), 0, tmp_path / "before.png")
    assert found.missing == "" and found.picture is not None
    kinds = [one.kind for one in chunks(found.picture.read_bytes())]
    frames = kinds.count(b"fcTL")
    assert 1 < frames <= MOST_FRAMES and found.steps == found.total
    assert [path.name for path in tmp_path.iterdir() if path.suffix == ".npy"] == []
    assert play(source, source.run_of("c-0002"), 0, tmp_path / "before.png") == found, "it may be written over"


@pytest.mark.parametrize("who", [None, "baseline"])
def test_the_incumbent_or_the_baseline_is_played_by_name(
    who: str | None, params: Scene, tmp_path: Path, verb: Verb, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    words = [who] if who is not None else []
    said = verb("play", *words, "--seed", "3", "--dir", str(params.project), "--json")
    told = json.loads(said.stdout)
    assert said.code == 0 and told["return"] == told["steps"] > 0
    assert (told["return"] > 100) is (who != "baseline")
    assert told["missing"] == "" and (tmp_path / "episode.png").exists()


def test_only_pictures_are_written_over(params: Scene, tmp_path: Path, verb: Verb) -> None:
    target = tmp_path / "thesis.png"
    target.write_text("not a picture")
    for out in (target, tmp_path / "episode.html"):
        assert verb("play", "--out", str(out), "--dir", str(params.project)).code == 2
    assert target.read_text() == "not a picture"
