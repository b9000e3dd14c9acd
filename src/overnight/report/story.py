"""The sentences of the report, written once and printed by every renderer.

Texts that come from the facts stand in them as they are; the renderers make them plain and escape them.
"""

from collections import Counter
from enum import StrEnum

from overnight.records.lifecycle import State
from overnight.records.metric import Direction
from overnight.report.facts import CandidateLine, Claim, Facts, Shortfall
from overnight.report.text import count, decimals_for, duration, name, number, percent, signed


class Standing(StrEnum):
    """What became of a candidate, in the word that a reader sees."""

    CERTIFIED = "certified"
    KEPT = "kept"
    REJECTED = "rejected"
    INCONCLUSIVE = "inconclusive"
    CRASHED = "crashed"
    REFUSED = "refused"
    REVERTED = "reverted"
    UNDECIDED = "undecided"
    NOT_RUN = "not run"


_PLANTED = {
    "placebo": "Planted placebo: the baseline under another name.",
    "cheat": "Planted cheat: a change made to raise the score without better behaviour.",
}


def standing(line: CandidateLine) -> Standing:
    """What became of a candidate. A crash stays one when it is then rejected."""
    if line.crashed:
        return Standing.CRASHED
    if line.state is State.COMPLETED:
        return Standing.KEPT if line.kept else Standing.UNDECIDED
    if line.state in (State.DRAFT, State.VALIDATED, State.LAUNCHED):
        return Standing.REFUSED if line.refusals else Standing.NOT_RUN
    return {
        State.ACCEPTED: Standing.CERTIFIED,
        State.REJECTED: Standing.REJECTED,
        State.INCONCLUSIVE: Standing.INCONCLUSIVE,
        State.DEBUG: Standing.CRASHED,
        State.REVERTED: Standing.REVERTED,
    }[line.state]


def label(word: Standing) -> str:
    """A standing where it stands alone. A stack is certified as a whole, and no single change in it is."""
    return "in the certified stack" if word is Standing.CERTIFIED else str(word)


def without_gain(word: Standing) -> str:
    """What stands in the place of a gain that nobody could measure."""
    if word in (Standing.REFUSED, Standing.NOT_RUN):
        return "not run"
    return "crash" if word is Standing.CRASHED else "not compared"


def headline(facts: Facts) -> str:
    """The one sentence a person reads first."""
    if facts.claims:
        claim = facts.claims[0]
        reach = f"{percent(claim.confidence)} interval {interval(claim).replace('+', '')}"
        size = gain(claim).removeprefix("+")
        return f"A gain of {size} {name(facts.metric.unit)} on {name(facts.environment)} was certified, {reach}."
    opening = f"No improvement was certified on {name(facts.environment)}"
    short = facts.shortfall
    if short is None:
        return f"{opening}."
    if short.ruled_out is not None:
        least = f"{number(short.ruled_out)} {name(facts.metric.unit)}"
        return f"{opening}; a gain of {least} or more is ruled out at {percent(short.confidence)}."
    return f"{opening}, and the question is open."


def beneath(facts: Facts) -> tuple[str, ...]:
    """What stands under the headline: the two means, or why nothing was certified and what would decide."""
    if facts.claims:
        claim = facts.claims[0]
        places = decimals_for((claim.high - claim.low) / 2)
        better = "Higher is better" if facts.metric.direction is Direction.HIGHER else "Lower is better"
        moved = f"{name(facts.metric.name)} went from {number(claim.before, places)} to {number(claim.after, places)}"
        return (f"The {moved}, measured on {count(claim.seeds_each, 'fresh train seed')} each. {better}.",)
    short = facts.shortfall
    return (short.because, short.would_decide) if short is not None else ()


def gain(claim: Claim) -> str:
    """A claim's gain, with as many decimals as its interval deserves."""
    return signed(claim.gain, decimals_for((claim.high - claim.low) / 2))


def interval(one: Claim | Shortfall) -> str:
    """The two ends of an interval, or that there is none."""
    if one.low is None or one.high is None:
        return "unknown"
    places = decimals_for((one.high - one.low) / 2)
    return f"{signed(one.low, places)} to {signed(one.high, places)}"


def guarded(claim: Claim) -> str:
    """How the guarded measures fared, and what their margins asked for; empty where none is told."""
    parts = []
    for rail, worse, margin in claim.guardrails:
        size = f"{number(abs(worse))} {'worse' if worse > 0 else 'better'}" if worse else "unchanged"
        asked = f"its margin is {number(margin)}" if margin else "its margin is 0, so it had to be shown to be better"
        parts.append(f"{name(rail)} is {size} ({asked})")
    return f"Guardrails: {'; '.join(parts)}." if parts else ""


def where(facts: Facts) -> tuple[tuple[str, str], ...]:
    """What the result is bound to, as pairs of a name and a text."""
    direction = f"{facts.metric.direction} is better"
    pairs = [
        ("Environment", name(facts.environment)),
        ("Metric", f"{name(facts.metric.name)}, in {name(facts.metric.unit)}; {direction}"),
        ("Budget of a run", facts.budget),
        ("Hardware", facts.hardware),
        ("Isolation", facts.isolation),
        ("Baseline", f"{name(facts.baseline.name)}, from {facts.baseline.source}"),
    ]
    if facts.search:
        pairs.append(("Search", facts.search))
    if facts.references:
        told = ", ".join(f"{name(one.name)} {number(one.score)}" for one in facts.references)
        pairs.append(("Scores without learning", told))
    if facts.metric.solved is not None:
        pairs.append(("Counts as solved at", f"{number(facts.metric.solved)} {name(facts.metric.unit)}"))
    return tuple(pairs)


ATTRIBUTION = "What carries the gain"
BEYOND = "Nothing was tested beyond this: another environment, budget, machine or metric is another question."


def tally(facts: Facts) -> str:
    """How many candidates there were, and what became of them."""
    if not facts.candidates:
        return "No candidate was tried."
    found = Counter(standing(line) for line in facts.candidates)
    told = ", ".join(f"{found[word]} {label(word)}" for word in Standing if found[word])
    planted = sum(line.plant is not None for line in facts.candidates)
    plants = f" {planted} of them {'was' if planted == 1 else 'were'} planted by the engine to test the judge."
    return f"{count(len(facts.candidates), 'candidate')}: {told}.{plants if planted else ''}"


def outcome(line: CandidateLine, facts: Facts) -> str:
    """What became of one candidate and why; a plant is called one."""
    if line.plant is not None:
        return _plant(line, facts)
    return " ".join(_reasons(line)) or f"It is {standing(line)}."


def _reasons(line: CandidateLine) -> tuple[str, ...]:
    if standing(line) is Standing.REFUSED:
        return line.refusals
    return (line.verdict,) if line.verdict else ()


def _plant(line: CandidateLine, facts: Facts) -> str:
    word = standing(line)
    parts = [_PLANTED[line.plant or "placebo"]]
    why = f"it was {word} because {_clause(' '.join(_reasons(line)))}" if _reasons(line) else f"it was {word}."
    if got_through(line):
        why = f"it was {word}, which is a false alarm of the judge. {' '.join(_reasons(line))}".rstrip()
    if line.luckiest is None or line.tip_mean is None:
        return " ".join((*parts, why[0].upper() + why[1:]))
    lucky = f"Its luckiest single score was {number(line.luckiest)}"
    if tempting(line, facts):
        return " ".join((*parts, f"{lucky}, which a greedy loop would have kept; {why}"))
    return " ".join((*parts, f"{lucky}, no better than the tip's mean of {number(line.tip_mean)}; {why}"))


def _clause(sentence: str) -> str:
    """A sentence as it stands after `because`: an ordinary first word loses its capital."""
    return sentence[0].lower() + sentence[1:] if sentence[1:2].islower() or sentence[1:2] == " " else sentence


def tempting(line: CandidateLine, facts: Facts) -> bool:
    """Whether one lucky score beats the tip's mean, so that a loop without a judge would have kept it."""
    lead = lucky_lead(line, facts)
    return lead is not None and lead > 0


def lucky_lead(line: CandidateLine, facts: Facts) -> float | None:
    """How far the best single score lies beyond the tip's mean; higher is better, whatever the direction."""
    if line.luckiest is None or line.tip_mean is None:
        return None
    lead = line.luckiest - line.tip_mean
    return lead if facts.metric.direction is Direction.HIGHER else -lead


def got_through(line: CandidateLine) -> bool:
    """Whether a plant was kept, or a gain was found in the placebo, which is then left inconclusive."""
    word = standing(line)
    fooled = line.plant == "placebo" and word is Standing.INCONCLUSIVE
    return line.plant is not None and (fooled or word in (Standing.KEPT, Standing.CERTIFIED))


def alarms(facts: Facts) -> tuple[str, ...]:
    """What a reader must know before believing anything else."""
    return tuple(
        f"Warning: the planted {line.plant} {name(line.id)} was {standing(line)}. "
        "The judge failed its own test tonight, so read every claim on this page with doubt."
        for line in facts.candidates
        if got_through(line)
    )


def cost(facts: Facts) -> tuple[tuple[str, str], ...]:
    """What the night cost, as pairs of a name and a text."""
    night = facts.night
    paid = f"{night.answers}; ${night.dollars:.2f}, {number(night.tokens, 0)} tokens"
    agent = (("Coding agent", f"asked {number(night.asks, 0)} times: {paid}"),) if night.asks else ()
    gaps = [f"{duration(seconds)} until {until[:16].replace('T', ' ')} UTC" for until, seconds in night.gaps]
    still = (("Stood still", f"{', '.join(gaps)}; no budget counts that, and what ran then was run again"),)
    again = "run again, and the budget of runs does not count them"
    lost = f"; {number(night.lost_runs, 0)} more were lost by the machine and {again}" if night.lost_runs else ""
    return (
        ("Night", f"{night.started} to {night.ended}, {duration(night.hours * 3600)}"),
        ("Candidates", number(night.candidates, 0)),
        ("Training runs", f"{number(night.runs, 0)}{lost}"),
        ("Wall time of all runs", duration(night.wall_seconds)),
        ("Processor time of all runs", duration(night.cpu_seconds)),
        *agent,
        *(still if gaps else ()),
    )


def arm_name(arm: str, facts: Facts) -> str:
    """What an arm of the curves is called: only what is certified is a winner."""
    return arm if arm == "baseline" or facts.claims else "tip"
