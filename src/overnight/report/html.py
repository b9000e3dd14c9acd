"""The report as one page: no other file, no request to anywhere, readable without scripts.

Everything untrusted is made plain and escaped by `text.markup`; the policy in the page's head
allows inline styles, pictures inside the page, and the one script by its hash, and nothing else.
"""

from collections.abc import Iterable
from importlib.resources import files

from overnight.report import story
from overnight.report.curves import band, drawable
from overnight.report.facts import CandidateLine, Claim, Curve, Facts
from overnight.report.figures import (
    NARROW,
    WIDE,
    Bar,
    IntervalRow,
    Level,
    Series,
    Size,
    bar_strip,
    interval_chart,
    line_chart,
)
from overnight.report.replays import policy_of_script, render_replays
from overnight.report.text import count, decimals_for, markup, number, signed

_MOST_UNFOLDED = 40
_STRIP_WIDE, _STRIP_NARROW = Size(900, 240), Size(380, 240)
_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
_TONES = {
    story.Standing.CERTIFIED: "good",
    story.Standing.KEPT: "good",
    story.Standing.CRASHED: "bad",
    story.Standing.REFUSED: "bad",
}


def render_html(facts: Facts) -> str:
    """The whole page. Identical facts give identical bytes."""
    replays = render_replays(facts.replays)
    sections = (
        _where(facts),
        _attribution(facts),
        _tried(facts),
        _cost(facts),
        _curves(facts),
        _gain(facts),
        _section("The median episodes", replays) if replays else "",
        _evidence(facts),
        _next(facts),
    )
    body = f"{_opening(facts)}<main>{''.join(sections)}</main>{_footer(facts)}"
    style = files("overnight.report").joinpath("page.css").read_text("utf-8")
    script = policy_of_script() if replays else "'none'"
    policy = f"{_POLICY}; script-src {script}"
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n<meta name="referrer" content="no-referrer">\n'
        f"<title>{markup(facts.study, 80)}: {markup(story.headline(facts), 200)}</title>\n"
        f"<style>\n{style}</style>\n</head>\n<body>\n{body}\n</body>\n</html>\n"
    )


def _opening(facts: Facts) -> str:
    named = ("Overnight", "Morning report", f"{facts.task} / {facts.study}", facts.night.ended)
    parts = [
        '<header><p class="eyebrow">',
        " ".join(f"<span>{markup(name, 160)}</span>" for name in named),
        "</p>",
        *(f'<p class="alarm">{markup(alarm)}</p>' for alarm in story.alarms(facts)),
        f"<h1>{markup(story.headline(facts))}</h1>",
        *(f'<p class="lede">{markup(says)}</p>' for says in story.beneath(facts)),
        *(_claim(claim) for claim in facts.claims),
        f'<p class="lede">{markup(facts.total)}</p>' if facts.total else "",
        f'<p class="lede">{markup(" ".join(facts.behaviour), 2000)}</p>' if facts.behaviour else "",
        "</header>",
    ]
    return "".join(parts)


def _claim(claim: Claim) -> str:
    stack = " ".join(f"<code>{markup(one, 40)}</code>" for one in claim.candidates)
    guards = f'<p class="fixed">{markup(story.guarded(claim))}</p>' if claim.guardrails else ""
    return (
        f'<blockquote class="claim"><p>{markup(claim.sentence)}</p><p class="fixed">{markup(claim.fixed_line)}</p>'
        f"{guards}<footer>Certified stack: {stack}</footer></blockquote>"
    )


def _where(facts: Facts) -> str:
    return _section("Where it holds", _pairs(story.where(facts)), f'<p class="beyond">{markup(story.BEYOND)}</p>')


def _attribution(facts: Facts) -> str:
    lines = "".join(f"<p>{markup(says)}</p>" for says in facts.attribution)
    return _section(story.ATTRIBUTION, lines) if lines else ""


def _tried(facts: Facts) -> str:
    """Every candidate; after a long night those that were simply rejected are folded away."""
    told = f"<p>{markup(story.tally(facts))}</p>"
    many = len(facts.candidates) > _MOST_UNFOLDED
    shown, folded = list[CandidateLine](), list[CandidateLine]()
    for line in facts.candidates:
        plain = line.plant is None and story.standing(line) == story.Standing.REJECTED
        (folded if many and plain else shown).append(line)
    summary = f"<summary>{count(len(folded), 'rejected candidate')}</summary>"
    rest = f"<details>{summary}{_rows(folded, facts)}</details>" if folded else ""
    return _section("What was tried", told, _strip(facts), _rows(shown, facts), rest)


def _rows(lines: Iterable[CandidateLine], facts: Facts) -> str:
    rows = "".join(_candidate(line, facts) for line in lines)
    return f'<ol class="tried">{rows}</ol>' if rows else ""


def _candidate(line: CandidateLine, facts: Facts) -> str:
    word = story.standing(line)
    plant = f' <span class="chip plant">planted {line.plant}</span>' if line.plant is not None else ""
    alarm = " alarm" if story.got_through(line) else ""
    missing = f"<small>{story.without_gain(word)}</small>"
    unit = f"<small>{markup(facts.metric.unit, 24)}</small>"
    gain = f"{signed(line.gain)} {unit}" if line.gain is not None else missing
    return (
        f'<li class="{line.plant or "idea"}{alarm}"><div class="who"><code>{markup(line.id, 40)}</code> '
        f'<span class="chip {_TONES.get(word, "calm")}">{story.label(word)}</span>{plant}</div>'
        f'<div class="what"><p class="idea">{markup(line.hypothesis)}</p>'
        f'<p class="why">{markup(story.outcome(line, facts), 1200)}</p></div>'
        f'<div class="gain">{gain}<br><small>by {markup(line.proposer, 40)}</small></div></li>'
    )


def _strip(facts: Facts) -> str:
    bars = []
    for line in facts.candidates:
        lead = story.lucky_lead(line, facts)
        tone = line.plant or _TONES.get(story.standing(line), "calm")
        bars.append(Bar(line.id, tone, line.gain if drawable(line.gain) else None, lead if drawable(lead) else None))
    drawn = (bar_strip(bars, unit=facts.metric.unit, size=size) for size in (_STRIP_WIDE, _STRIP_NARROW))
    caption = (
        "Gain over the tip of each moment, as the screening estimated it. A ring is the luckiest single score, "
        "which is what a greedy loop would have seen; it is not evidence. A cross is a candidate without a number."
    )
    return _figure(drawn, caption)


def _cost(facts: Facts) -> str:
    return _section("What it cost", _pairs(story.cost(facts)))


def _curves(facts: Facts) -> str:
    series = [one for curve in facts.curves if (one := _series(curve, facts)) is not None]
    if not series:
        return ""
    levels = [Level(one.name, one.score) for one in facts.references]
    if facts.metric.solved is not None:
        levels.append(Level("solved", facts.metric.solved))
    drawn = (line_chart(series, levels, titles=("env_steps", facts.metric.name), size=size) for size in (WIDE, NARROW))
    caption = (
        "The line is the median of the train seeds, the band reaches from the lowest seed to the highest. "
        "Curves show how something was learned and prove nothing; claims rest on fresh seeds."
    )
    return _section("How they learned", _figure(drawn, caption), _numbers(series))


def _series(curve: Curve, facts: Facts) -> Series | None:
    points = band(curve.seeds)
    if not points:
        return None
    name, last = story.arm_name(curve.arm, facts), points[-1]
    seeds = count(max(point.seeds for point in points), "seed")
    return Series(
        f"{name}, {seeds}", curve.arm, points, f"{name} {number(last.middle, decimals_for(last.high - last.low))}"
    )


def _numbers(series: Iterable[Series]) -> str:
    rows = []
    for one in series:
        for place in range(6):
            point = one.band[round(place * (len(one.band) - 1) / 5)]
            cells = (one.name, number(point.env_steps), number(point.middle), number(point.low), number(point.high))
            rows.append("".join(f"<td>{markup(cell)}</td>" for cell in cells))
    head = "".join(f'<th scope="col">{name}</th>' for name in ("arm", "env_steps", "median", "lowest", "highest"))
    body = "".join(f"<tr>{row}</tr>" for row in dict.fromkeys(rows))
    table = f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
    return f"<details><summary>The numbers behind the figure</summary>{table}</details>"


def _gain(facts: Facts) -> str:
    rows = [row for row in _interval_rows(facts) if drawable(row.low) and drawable(row.gain) and drawable(row.high)]
    drawn = (interval_chart(rows, unit=facts.metric.unit, size=size) for size in (WIDE, NARROW))
    caption = (
        "The dot is the estimate and the bar its interval; only a bar that lies above zero as a whole is certified."
    )
    return _section("The gain", _figure(drawn, caption)) if rows else ""


def _interval_rows(facts: Facts) -> list[IntervalRow]:
    rows = [
        IntervalRow(" + ".join(one.candidates) if place else "certified gain", "winner", one.gain, one.low, one.high)
        for place, one in enumerate(facts.claims)
    ]
    short = facts.shortfall
    if not rows and short is not None and short.gain is not None and short.low is not None and short.high is not None:
        rows.append(IntervalRow("tip, not certified", "baseline", short.gain, short.low, short.high))
    return rows


def _evidence(facts: Facts) -> str:
    rows = "".join(
        f"<tr><td><code>{markup(one.path)}</code></td>"
        f'<td><code class="digest">{markup(one.digest, 80)}</code></td></tr>'
        for claim in facts.claims
        for one in claim.evidence
    )
    head = '<thead><tr><th scope="col">file</th><th scope="col">SHA-256</th></tr></thead>'
    table = f'<div class="scroll"><table class="files">{head}<tbody>{rows}</tbody></table></div>' if rows else ""
    again = tuple(dict.fromkeys(claim.command for claim in facts.claims))
    remade = f"<h3>Reproduce it</h3>{''.join(_command(one) for one in again)}" if again else ""
    entries = count(facts.ledger_entries, "entry", "entries")
    ledger = (
        f'<p>The ledger has {entries}; its head is <code class="digest">{markup(facts.ledger_head, 80)}</code>.</p>'
    )
    trained = f"<h3>Train the baseline</h3>{_command(facts.baseline.command)}"
    return _section("The evidence", table, ledger, remade, trained)


def _next(facts: Facts) -> str:
    steps = "".join(f"<li><p>{markup(one.says)}</p>{_command(one.command)}</li>" for one in facts.next_commands)
    return _section("What to do now", f'<ol class="steps">{steps}</ol>')


def _footer(facts: Facts) -> str:
    versions = ", ".join(f"{markup(name, 60)} {markup(version, 60)}" for name, version in facts.versions)
    return (
        f"<footer><p>Made from the ledger alone; rendering it again gives the same bytes.</p><p>{versions}</p></footer>"
    )


def _section(title: str, *parts: str) -> str:
    return f"<section><h2>{title}</h2>{''.join(parts)}</section>"


def _pairs(pairs: Iterable[tuple[str, str]]) -> str:
    told = "".join(f"<div><dt>{markup(name)}</dt><dd>{markup(says)}</dd></div>" for name, says in pairs)
    return f'<dl class="pairs">{told}</dl>'


def _figure(drawn: Iterable[str], caption: str) -> str:
    """A drawing in two widths, of which the style sheet shows one, above its caption."""
    wide, narrow = drawn
    if not wide:
        return ""
    views = f'<div class="wide">{wide}</div><div class="narrow">{narrow}</div>'
    return f"<figure>{views}<figcaption>{markup(caption)}</figcaption></figure>"


def _command(command: str) -> str:
    return f'<pre class="command"><code>{markup(command, 2000)}</code></pre>'
