"""What came of a certified change elsewhere: a table in Markdown, and bars of baseline and candidate as one drawing.

Each setting has an axis of its own, because scores of different environments are not on one scale. A bar is the mean,
a ring is one seed. The drawing stands alone: it brings its colours with it.
"""

from collections.abc import Sequence
from statistics import fmean

from overnight.records.transfer import Transfer
from overnight.report.figures import Size, svg
from overnight.report.scales import Scale, nice_ticks, tick_labels
from overnight.report.text import count, markdown, markup, number, signed

FOOTNOTE = (
    "Both arms ran unmodified on the same train seeds, took turns on the same machine, and were measured by the same "
    "referee. Nothing here is part of a claim."
)
_PANEL, _GAP, _HEIGHT = 190.0, 24.0, 300.0
_STYLE = (
    "<style>text{font:12px system-ui,sans-serif;fill:#566070}.label{font-weight:650;fill:#1c2330}"
    ".grid{stroke:#e3e0d8}.zero{stroke:#566070}.base{fill:#626b7a}.good{fill:#0b6b66}"
    ".ring{fill:none;stroke:#1c2330;stroke-opacity:.55}"
    "@media(prefers-color-scheme:dark){text{fill:#9ca6b6}.label{fill:#e6e9ef}.grid{stroke:#2a323e}"
    ".base{fill:#98a2b3}.good{fill:#5fd0c3}.ring{stroke:#e6e9ef}}</style>"
)


def table(found: Sequence[Transfer], *, unit: str) -> str:
    """One line for each setting, with seeds, hardware and the interval of the gain."""
    lines = [
        f"| environment | training | baseline | candidate | gain, {markdown(unit, 60)} | interval | seeds | lost |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for one in found:
        span = "unknown" if one.gain_low is None else f"{signed(one.gain_low)} to {signed(one.gain_high)}"
        lost = f"{one.ours.count(None)} v {one.theirs.count(None)}"
        cells = (
            markdown(one.env.id, 80),
            f"{number(one.budget.amount)} {one.budget.unit} ({one.times:g}x)",
            number(_mean(one.theirs)),
            number(_mean(one.ours)),
            signed(one.gain),
            span,
            f"{len(one.train_seeds)} each",
            lost,
        )
        lines.append("| " + " | ".join(cells) + " |")
    machines = sorted({markdown(one.hardware, 200) for one in found})
    return "\n".join((*lines, "", *(one for one in machines), "", FOOTNOTE, ""))


def bar_chart(found: Sequence[Transfer], *, unit: str) -> str:
    """A panel for each setting: the baseline's bar, the candidate's bar, and a ring for each seed."""
    if not found:
        return ""
    size = Size(len(found) * (_PANEL + _GAP), _HEIGHT)
    parts = [_STYLE]
    for place, one in enumerate(found):
        parts += _panel(one, place * (_PANEL + _GAP), unit)
    words = "; ".join(one.says.rstrip(".") for one in found)
    drawn = svg(parts, size, f"{count(len(found), 'setting')}. {words}.")
    return drawn.replace("<svg ", f'<svg xmlns="http://www.w3.org/2000/svg" width="{size.width:g}" ', 1)


def _panel(one: Transfer, left: float, unit: str) -> list[str]:
    arms = (("baseline", "base", one.theirs), (one.candidate, "good", one.ours))
    values = [score for _, _, scores in arms for score in scores if score is not None]
    ticks = nice_ticks(min(0.0, *values, 0.0), max(0.0, *values, 0.0), 4)
    up, start = Scale(ticks[0], ticks[-1], _HEIGHT - 56, 40), left + 44
    room = (_PANEL - 44) / len(arms)
    parts = [f'<text class="label" x="{left:.1f}" y="14">{markup(one.env.id, 26)}</text>']
    parts.append(f'<text x="{left:.1f}" y="30">{markup(f"{one.times:g}x the training, {unit}", 32)}</text>')
    for tick, label in zip(ticks, tick_labels(ticks), strict=True):
        line = "zero" if tick == 0 else "grid"
        y = up.at(tick)
        parts.append(f'<line class="{line}" x1="{start:.1f}" x2="{left + _PANEL:.1f}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(f'<text x="{start - 6:.1f}" y="{y + 4:.1f}" text-anchor="end">{label}</text>')
    for place, (name, tone, scores) in enumerate(arms):
        parts += _bar(name, tone, scores, (start + room * (place + 0.5), up))
    return parts


def _bar(name: str, tone: str, scores: Sequence[float | None], where: tuple[float, Scale]) -> list[str]:
    (middle, up), mean = where, _mean(scores)
    below = _HEIGHT - 36
    parts = [f'<text class="label" x="{middle:.1f}" y="{below:.1f}" text-anchor="middle">{markup(name, 16)}</text>']
    told = "no score" if mean is None else number(mean)
    parts.append(f'<text x="{middle:.1f}" y="{below + 16:.1f}" text-anchor="middle">{told}</text>')
    if mean is not None:
        top, height = min(up.at(mean), up.at(0)), max(abs(up.at(mean) - up.at(0)), 1.0)
        box = f'x="{middle - 22:.1f}" y="{top:.1f}" width="44" height="{height:.1f}"'
        parts.append(f'<rect class="{tone}" {box} rx="1.5"/>')
    rings = [score for score in scores if score is not None]
    parts += [f'<circle class="ring" cx="{middle:.1f}" cy="{up.at(score):.1f}" r="3.5"/>' for score in rings]
    return parts


def _mean(scores: Sequence[float | None]) -> float | None:
    known = [score for score in scores if score is not None]
    return fmean(known) if known else None
