"""One episode by the referee, as a moving picture."""

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.envs.classic_control.cartpole import CartPoleEnv

from overnight.evaluate import referee
from overnight.home import read_source
from overnight.machine import RealMachine
from overnight.play import play
from overnight.ports import Finished
from overnight.report.png import chunks
from scenes import Said, Scene

Verb = Callable[..., Said]


class DrawnCartPole(CartPoleEnv):
    """CartPole that draws itself without a graphics library: the cart is a block of light."""

    def render(self) -> Any:
        picture = np.zeros((16, 64, 3), np.uint8)
        assert self.state is not None
        cart = int(np.clip(32 + 12 * self.state[0], 2, 61))
        picture[10:14, cart - 2 : cart + 2] = 255
        return picture


class Here(RealMachine):
    """A machine on which the referee answers in this process and plays the drawn environment."""

    def run_process(
        self, argv: tuple[str, ...], *, env: Mapping[str, str], stdin: bytes = b"", limit_seconds: float
    ) -> Finished:
        if "overnight.evaluate.referee" not in argv:
            return super().run_process(argv, env=env, stdin=stdin, limit_seconds=limit_seconds)
        request = json.loads(stdin)
        request["env"]["id"] = "DrawnCartPole-v0"
        return Finished(0, json.dumps(referee.measure(request)).encode(), b"")


@pytest.fixture
def drawn() -> Iterator[None]:
    gymnasium.register("DrawnCartPole-v0", entry_point=lambda **said: DrawnCartPole(**said), max_episode_steps=500)
    yield
    del gymnasium.registry["DrawnCartPole-v0"]


@pytest.mark.usefixtures("drawn")
def test_an_episode_is_written_as_a_moving_picture(params: Scene, tmp_path: Path) -> None:
    source = read_source(Here(), params.at)
    found = play(source, source.run_of("c-0002"), 0, tmp_path / "before.png")
    assert found.missing == "" and found.picture is not None
    kinds = [one.kind for one in chunks(found.picture.read_bytes())]
    assert kinds.count(b"fcTL") == found.steps == found.total
    assert [path.name for path in tmp_path.iterdir() if path.suffix == ".npy"] == []
    assert play(source, source.run_of("c-0002"), 0, tmp_path / "before.png") == found, "it may be written over"


@pytest.mark.parametrize("who", [None, "baseline"])
def test_an_environment_that_cannot_draw_itself_is_played_all_the_same(
    who: str | None, params: Scene, tmp_path: Path, verb: Verb, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    words = [who] if who is not None else []
    said = verb("play", *words, "--seed", "3", "--dir", str(params.project), "--json")
    told = json.loads(said.stdout)
    assert said.code == 0 and told["return"] == told["steps"] > 0
    assert (told["return"] > 100) is (who != "baseline")
    assert bool(told["missing"]) is not (tmp_path / "episode.png").exists()


def test_only_pictures_are_written_over(params: Scene, tmp_path: Path, verb: Verb) -> None:
    target = tmp_path / "thesis.png"
    target.write_text("not a picture")
    for out in (target, tmp_path / "episode.html"):
        assert verb("play", "--out", str(out), "--dir", str(params.project)).code == 2
    assert target.read_text() == "not a picture"
