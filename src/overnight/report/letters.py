"""Small letters for pictures that are drawn without a drawing library. Large ones are drawn as small ones."""

import numpy as np
from numpy.typing import NDArray

ADVANCE = 5
"""How far the next letter is, in dots."""
_GLYPHS = {
    "0": "69996", "1": "26227", "2": "E1687", "3": "E161E", "4": "99711", "5": "F8E1E", "6": "68E96", "7": "F1244",
    "8": "69696", "9": "69716", "a": "06177", "b": "88E9E", "c": "07887", "d": "11797", "e": "06B86", "f": "34E44",
    "g": "07976", "h": "88E99", "i": "20227", "j": "10196", "k": "8ACA9", "l": "62227", "m": "0FBBB", "n": "0E999",
    "o": "06996", "p": "0E9E8", "q": "07971", "r": "0BC88", "s": "07426", "t": "4E443", "u": "09997", "v": "099A4",
    "w": "0DDDF", "x": "09669", "y": "99716", "z": "0F24F", "-": "00700", ".": "00002", ",": "00024", ":": "04040",
    ";": "04024", "+": "04E40", "=": "0F0F0", "/": "11248", "(": "24442", ")": "42224", "[": "64446", "]": "62226",
    "<": "24842", ">": "84248", "%": "91249", "_": "0000F", "*": "0A4A0", "'": "44000", '"': "AA000", "#": "5F5F5",
    "!": "44404", "?": "E1604", "|": "44444", "…": "0000A", " ": "00000",
}  # fmt: skip
"""Five rows of four dots, as hexadecimal digits. What is not here is drawn as a block."""


def write(paper: NDArray[np.uint8], text: str, at: tuple[int, int], *, ink: tuple[int, int, int], dot: int = 1) -> None:
    """Write from a place on, in pixels from the left and from the top. What is off the paper is left out.

    `dot` is how many pixels wide a dot is.
    """
    height, width = paper.shape[:2]
    for place, letter in enumerate(text.lower()):
        for row, dots in enumerate(_GLYPHS.get(letter, "FFFFF")):
            for column in range(4):
                x, y = at[0] + dot * (ADVANCE * place + column), at[1] + dot * row
                if int(dots, 16) >> (3 - column) & 1 and 0 <= x < width and 0 <= y < height:
                    paper[y : y + dot, x : x + dot] = ink
