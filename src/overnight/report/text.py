"""Untrusted text and bare numbers as a page or Markdown holds them. Every renderer goes through here.

Does not: judge what a text says. A hostile sentence stays a sentence; it only cannot become
markup, drive a terminal, reorder the line it stands in, or fill the page.
"""

import html
import math
import re

from overnight.records import text as text_

MOST = 600
"""The longest text that is printed, in characters."""

NAME = 60
"""The longest name that a sentence carries."""

_MARKDOWN = re.compile(r"([\\`*_{}\[\]<>#|!~&$])")
_LINK = re.compile(r":(?=//)|(?<=\bwww)\.|@(?=\w)", re.IGNORECASE)
_OPENER = re.compile(r"^(?:-(?=[-\s]|$)|\+(?=\s|$)|=|\d{1,9}(?=[.)](?:\s|$)))")


def plain(text: str, most: int = MOST) -> str:
    """One line of text without control, bidirectional or invisible characters, and not endless.

    What cannot be shown goes without a mark, whole terminal sequences included, and white space of any kind
    becomes a single space.
    """
    found = text_.line(text, most, mark="")
    return " ".join(found.split()) if found != " …" else found


def name(text: str) -> str:
    """Untrusted text that should be a short name, as it may stand inside a sentence."""
    return plain(text, NAME)


def markup(text: str, most: int = MOST) -> str:
    """Text as it may stand in HTML or SVG, in an element or in a quoted attribute; no line breaks before a `%`."""
    return html.escape(plain(text, most), quote=True).replace(" %", "&#160;%")


def markdown(text: str, most: int = MOST) -> str:
    """Text as it may stand in a Markdown line or table cell: no markup, no link, no mention comes alive."""
    escaped = _MARKDOWN.sub(r"\\\1", plain(text, most))
    escaped = _LINK.sub(lambda found: "\\" + found[0], escaped)
    return _OPENER.sub(lambda found: found[0] + "\\" if found[0].isdigit() else "\\" + found[0], escaped)


def code_span(text: str, most: int = MOST) -> str:
    """Text as Markdown code inside a line; the fence is longer than any run of backticks in it."""
    line = plain(text, most)
    fence = _fence(line, 1)
    pad = " " if line.startswith("`") or line.endswith("`") or not line else ""
    return f"{fence}{pad}{line}{pad}{fence}"


def code_block(lines: tuple[str, ...], language: str = "console") -> str:
    """Lines as a Markdown code block that none of them can close."""
    shown = [plain(line, 2000) for line in lines]
    fence = _fence("\n".join(shown), 3)
    return "\n".join((f"{fence}{language}", *shown, fence))


def _fence(text: str, least: int) -> str:
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    return "`" * max(least, longest + 1)


def decimals_for(spread: float) -> int:
    """How many decimals show two significant digits of a spread, such as an interval's half width."""
    if not math.isfinite(spread) or spread <= 0:
        return 2
    return min(6, max(0, 1 - math.floor(math.log10(spread))))


def number(value: float | None, decimals: int | None = None) -> str:
    """A number as a person reads it, or `unknown` for what is none.

    Without `decimals`, about three significant digits are shown and trailing zeros are not.
    """
    if value is None or not math.isfinite(value):
        return "unknown"
    if abs(value) >= 1e15:
        return f"{value:.3g}".replace("-", "−")
    if decimals is not None:
        shown = f"{value:,.{decimals}f}"
    else:
        size = abs(value)
        places = 0 if size >= 1000 else 1 if size >= 10 else 2 if size >= 1 else decimals_for(size * 2)
        shown = f"{value:,.{places}f}"
        shown = shown.rstrip("0").rstrip(".") if "." in shown else shown
    return "0" if re.fullmatch(r"-0(?:\.0*)?", shown) else shown.replace("-", "−")


def signed(value: float | None, decimals: int | None = None) -> str:
    """A number with its sign, for gains."""
    shown = number(value, decimals)
    return f"+{shown}" if value is not None and math.isfinite(value) and value > 0 and shown[0].isdigit() else shown


def percent(share: float) -> str:
    """A share as a percentage without needless decimals."""
    return f"{number(share * 100)} %"


def duration(seconds: float) -> str:
    """A length of time in the two units that matter."""
    if not math.isfinite(seconds) or seconds < 0:
        return "unknown"
    if seconds < 60:
        return f"{number(seconds)} s"
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{minutes} min"
    hours, rest = divmod(minutes, 60)
    return f"{number(hours)} h {rest} min" if rest else f"{number(hours)} h"


def count(many: int, one: str, more: str = "") -> str:
    """A count with its noun in the right number."""
    return f"{number(many, 0)} {one if many == 1 else more or one + 's'}"
