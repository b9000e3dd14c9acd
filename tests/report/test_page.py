"""The style sheet keeps text readable in the light and in the dark."""

import re
from importlib.resources import files

import pytest

STYLE = files("overnight.report").joinpath("page.css").read_text("utf-8")


def palettes() -> dict[str, dict[str, str]]:
    found = [
        dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{3,6});", block))
        for block in re.findall(r":root \{(.*?)\}", STYLE, re.DOTALL)
    ]
    return dict(zip(("light", "dark", "paper"), found, strict=True))


def brightness(colour: str) -> float:
    digits = colour[1:] if len(colour) == 7 else "".join(2 * digit for digit in colour[1:])
    parts = [int(digits[place : place + 2], 16) / 255 for place in (0, 2, 4)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    dark, bright = sorted((brightness(one), brightness(other)))
    return (bright + 0.05) / (dark + 0.05)


TEXT_ON = [
    *((ink, ground) for ink in ("ink", "quiet") for ground in ("paper", "card", "soft", "warn-wash", "bad-wash")),
    *(("good", ground) for ground in ("paper", "card", "good-wash")),
    *(("base", "paper"), ("placebo", "card"), ("cheat", "card"), ("bad", "card")),
]


@pytest.mark.parametrize("name", ["light", "dark", "paper"])
@pytest.mark.parametrize(("ink", "ground"), TEXT_ON)
def test_text_stands_out_from_what_it_stands_on(name: str, ink: str, ground: str) -> None:
    palette = palettes()[name]
    assert contrast(palette[ink], palette[ground]) >= 4.5


def test_every_colour_that_is_used_is_in_every_palette() -> None:
    used = set(re.findall(r"var\(--([a-z-]+)", STYLE)) - {"tone"}
    assert all(used == palette.keys() for palette in palettes().values())
