"""The report as Markdown, for terminals, repositories and agents. The same content as the page, without pictures."""

from collections.abc import Iterable

from overnight.report import story
from overnight.report.curves import BandPoint, band
from overnight.report.facts import Claim, Facts
from overnight.report.text import code_block, code_span, count, decimals_for, markdown, number, signed

_ROWS = 6


def render_markdown(facts: Facts) -> str:
    """The whole report. Identical facts give identical bytes."""
    sections = (
        _opening(facts),
        _where(facts),
        _attribution(facts),
        _tried(facts),
        _cost(facts),
        _curves(facts),
        _gain(facts),
        _episodes(facts),
        _evidence(facts),
        _next(facts),
    )
    return "\n\n".join(section for section in sections if section) + "\n"


def _opening(facts: Facts) -> str:
    parts = [f"# {markdown(story.headline(facts))}"]
    parts.append(f"Study {code_span(f'{facts.task}/{facts.study}')}, {markdown(facts.night.ended)}.")
    parts += [f"> **{markdown(alarm)}**" for alarm in story.alarms(facts)]
    parts += [markdown(says) for says in story.beneath(facts)]
    parts += [_claim(claim) for claim in facts.claims]
    parts += [markdown(facts.total)] if facts.total else []
    parts += [f"Behaviour: {markdown(' '.join(facts.behaviour), 2000)}"] if facts.behaviour else []
    return "\n\n".join(parts)


def _claim(claim: Claim) -> str:
    stack = ", ".join(code_span(one, 40) for one in claim.candidates)
    guards = f"> {markdown(story.guarded(claim))}\n>\n" if claim.guardrails else ""
    head = f"> {markdown(claim.sentence)}\n>\n> *{markdown(claim.fixed_line)}*\n>\n"
    return f"{head}{guards}> Certified stack: {stack}"


def _where(facts: Facts) -> str:
    pairs = (f"- **{name}:** {markdown(says)}" for name, says in story.where(facts))
    return _section("Where it holds", "\n".join(pairs), story.BEYOND)


def _attribution(facts: Facts) -> str:
    lines = "\n".join(f"- {markdown(says)}" for says in facts.attribution)
    return _section(story.ATTRIBUTION, lines) if lines else ""


def _tried(facts: Facts) -> str:
    lines = []
    for line in facts.candidates:
        told = f" {signed(line.gain)} {markdown(facts.metric.unit, 40)}" if line.gain is not None else ""
        word = story.label(story.standing(line))
        lines.append(
            f"- **{markdown(line.id, 40)}** {word}{told}, by {markdown(line.proposer, 40)}: "
            f"{markdown(line.hypothesis)} {markdown(story.outcome(line, facts), 1200)}"
        )
    return _section("What was tried", markdown(story.tally(facts)), "\n".join(lines))


def _cost(facts: Facts) -> str:
    return _section("What it cost", "\n".join(f"- **{name}:** {markdown(says)}" for name, says in story.cost(facts)))


def _curves(facts: Facts) -> str:
    arms = [(story.arm_name(curve.arm, facts), band(curve.seeds, _ROWS)) for curve in facts.curves]
    rows = [
        (number(point.env_steps), name, number(point.middle), f"{number(point.low)} to {number(point.high)}")
        for name, points in arms
        for point in _spread(points)
    ]
    if not rows:
        return ""
    head = ("env\\_steps", "arm", "median", "lowest to highest seed")
    return _section("How they learned", f"{markdown(facts.metric.name)}, in training:", _table(head, rows))


def _spread(points: tuple[BandPoint, ...]) -> tuple[BandPoint, ...]:
    """A few points that span the whole curve."""
    if len(points) <= _ROWS:
        return points
    return tuple(points[round(place * (len(points) - 1) / (_ROWS - 1))] for place in range(_ROWS))


def _gain(facts: Facts) -> str:
    rows = []
    for claim in facts.claims:
        places = decimals_for((claim.high - claim.low) / 2)
        stack = markdown(" + ".join(claim.candidates), 120)
        rows.append(
            (stack, story.gain(claim), story.interval(claim), number(claim.before, places), number(claim.after, places))
        )
    if rows:
        return _section("The gain", _table(("certified", "gain", "interval", "before", "after"), rows))
    short = facts.shortfall
    if short is None or short.gain is None:
        return ""
    return _section("The gain", f"Estimated, not certified: {signed(short.gain)}, interval {story.interval(short)}.")


def _episodes(facts: Facts) -> str:
    if facts.replays is None:
        return ""
    lines = (
        f"- **{markdown(one.title, 80)}:** score {number(one.score)}, train seed {one.seed}, "
        f"{count(len(one.frames), 'frame')}; the page beside this file plays it."
        for one in facts.replays
    )
    return _section("The median episodes", "\n".join(lines))


def _evidence(facts: Facts) -> str:
    files = [
        (code_span(one.path).replace("|", "\\|"), code_span(one.digest, 80))
        for claim in facts.claims
        for one in claim.evidence
    ]
    table = _table(("evidence", "SHA-256"), files) if files else ""
    ledger = f"Ledger: {count(facts.ledger_entries, 'entry', 'entries')}, head {code_span(facts.ledger_head, 80)}."
    versions = ", ".join(f"{markdown(name, 60)} {markdown(version, 60)}" for name, version in facts.versions)
    again = tuple(dict.fromkeys(claim.command for claim in facts.claims))
    remade = f"To reproduce:\n\n{code_block(again)}" if again else ""
    trained = f"The baseline trains with:\n\n{code_block((facts.baseline.command,))}"
    return _section("The evidence", table, ledger, remade, trained, f"Versions: {versions}." if versions else "")


def _next(facts: Facts) -> str:
    steps = (
        f"{place}. {markdown(one.says)}\n\n{_indented(code_block((one.command,)))}"
        for place, one in enumerate(facts.next_commands, 1)
    )
    return _section("What to do now", *steps)


def _section(title: str, *paragraphs: str) -> str:
    return "\n\n".join((f"## {title}", *(one for one in paragraphs if one)))


def _indented(block: str) -> str:
    return "\n".join(f"   {line}" for line in block.split("\n"))


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
