"""Ablation on win: which parts of a certified stack carry the gain, and which are dead weight. Pure.

About half of the changes inside a certified stack are passengers. Two stages, as everywhere:

    knock-outs   the stack without one part, for each part, on seeds that all share: attribution, decides nothing alone
    removal      the stack without everything that seemed to carry nothing, against the stack, on fresh seeds: removed
                 only where that is shown to lose less than the margin (non-inferiority), and no guardrail suffers

Parts that replace one another each seem dead alone. That is why what is removed is tested as one, on seeds that did
not pick it, and always against the certified stack itself: losses cannot add up over many small removals. The claim
stays one about the whole certified stack.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, stdev, variance
from typing import Literal

from overnight.decide.belief import Score
from overnight.decide.certify import Arm, better_is_higher
from overnight.decide.guards import loses_more, mean_gain_interval, non_inferior
from overnight.decide.intervals import Interval
from overnight.decide.looks import floored
from overnight.decide.permute import mean_gain_p, paired_gain_p
from overnight.decide.student import t_quantile
from overnight.decide.telling import decimals, told
from overnight.records.metric import MetricSpec

Key = tuple[int, frozenset[str]]
"""Which arm on which seeds: 0 for the knock-outs, from 1 on each try at a removal; and the parts that are left out."""
Evidence = Mapping[Key, Arm]
"""What was measured so far. An arm that was not run yet may be missing."""
WHOLE: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class AblationRule:
    """How much an ablation spends, and how much may be lost by a removal."""

    margin: float
    """A removal that loses this much or more is not made; in the metric's unit, for everything removed together."""
    knockout_seeds: int = 6
    """On how many seeds each knock-out is run."""
    looks: tuple[int, ...] = (8, 16)
    """Fresh seeds a side at each look of a removal."""
    total_error: float = 0.05
    """The chance that something is removed that loses the margin or more."""
    most_tries: int = 3
    """How many sets of parts are tried at most."""

    def runs(self, parts: int) -> tuple[int, int]:
        """The fewest and the most runs that a stack of so many parts needs: knock-outs, and with every try."""
        if parts < 2:
            return 0, 0
        first = (parts + 1) * self.knockout_seeds
        return first, first + self.most_tries * 2 * self.looks[-1]


@dataclass(frozen=True, slots=True)
class ArmWanted:
    """One arm that needs more runs before anything can be said."""

    stage: int
    """0 for the knock-outs; from 1 on the try at a removal. Each stage has seeds of its own."""
    without: frozenset[str]
    """The parts that are left out of the certified stack."""
    seeds: int
    """How many seeds of the stage the arm needs in all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartVerdict:
    """What one part of the stack is worth."""

    part: str
    """Its name."""
    word: Literal["carries", "dead weight", "unclear"]
    """Whether it was shown to carry a part of the gain, was removed, or neither."""
    loss: Interval
    """What the stack loses without it, higher is worse always, with an interval that holds for all parts together."""
    says: str
    """The verdict in one sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ablated:
    """The end of an ablation."""

    parts: tuple[PartVerdict, ...]
    """Each part, in the stack's order."""
    removed: tuple[str, ...]
    """What may be taken out of the stack, in the stack's order."""
    loss: Interval | None
    """What the removal of all of it together loses, with its 95 % interval; None where nothing is removed."""
    says: str
    """The result in one sentence."""


def margin_for(gain: Interval, noise: float) -> float:
    """How much a removal may lose: half a noise or a quarter of the gain, and never half of what was surely gained."""
    return max(0.0, min(max(noise / 2, gain.estimate / 4), gain.low / 2))


def ablate(
    metric: MetricSpec, parts: Sequence[str], evidence: Evidence, rule: AblationRule
) -> Ablated | tuple[ArmWanted, ...]:
    """The verdicts on the parts of a certified stack, or the runs that are wanted next.

    A fold of the evidence: asked again with the same scores it gives the same answer, whoever was killed in between.
    """
    if len(parts) < 2:
        return _alone(parts)
    wanted = _missing(evidence, 0, [WHOLE, *(frozenset({part}) for part in parts)], rule.knockout_seeds)
    if wanted:
        return wanted
    losses = {part: _knocked_out(metric, evidence, part, len(parts)) for part in parts}
    trying = [part for part in parts if losses[part].low <= 0 and losses[part].estimate < rule.margin / 2]
    removed, loss = frozenset[str](), None
    for stage in range(1, rule.most_tries + 1):
        if not trying:
            break
        found = _removal(metric, evidence, _Try(stage, frozenset(trying), rule, _is_paired(evidence, parts)))
        if isinstance(found, tuple):
            return found
        if found.shown:
            removed, loss = frozenset(trying), found.loss
            break
        trying.remove(max(trying, key=lambda part: losses[part].estimate))
    return _ended(metric, parts, losses, removed, loss)


@dataclass(frozen=True, slots=True)
class _Try:
    """One attempt to remove some parts together."""

    stage: int
    without: frozenset[str]
    rule: AblationRule
    paired: bool
    """Whether arms are compared seed by seed; known before the first of the try's scores."""

    def error(self) -> float:
        """Each try may spend two thirds of what is left; each of its looks an equal part of that."""
        return self.rule.total_error * 2 / 3.0**self.stage / len(self.rule.looks)


@dataclass(frozen=True, slots=True)
class _Found:
    shown: bool
    loss: Interval


def _removal(metric: MetricSpec, evidence: Evidence, one: _Try) -> _Found | tuple[ArmWanted, ...]:
    """Whether the stack without these parts is shown to lose less than the margin; or what the next look needs."""
    found = None
    for seeds in one.rule.looks:
        wanted = _missing(evidence, one.stage, [WHOLE, one.without], seeds)
        if wanted:
            return wanted
        whole, less = (_first(evidence[one.stage, without], seeds) for without in (WHOLE, one.without))
        theirs, ours = (better_is_higher(metric.direction, arm.scores) for arm in (whole, less))
        loss = _loss(ours, theirs, level=0.95)
        noise = _spread(whole.scores)
        held = not loses_more(ours, theirs) and _guardrails_hold(
            metric, less, whole, one.rule.margin / noise if noise else 0.0
        )
        found = _Found(held and _p_inferior(ours, theirs, one) <= one.error(), loss)
        if found.shown or loss.low > one.rule.margin:
            break
    if found is None:
        raise ValueError("A removal needs at least one look, but its rule has none.")
    return found


def _p_inferior(ours: Sequence[Score], theirs: Sequence[Score], one: _Try) -> float:
    """How probable such scores are when the margin or more is lost."""
    mine, other = floored(ours, theirs)
    if one.paired:
        return paired_gain_p([two - three + one.rule.margin for two, three in zip(mine, other, strict=True)])
    return mean_gain_p(mine, other, shift=-one.rule.margin)


def _is_paired(evidence: Evidence, parts: Sequence[str]) -> bool:
    """Whether the knock-outs scattered less around the whole stack seed by seed than they did by themselves."""
    whole, alone, apart = evidence[0, WHOLE].scores, 0.0, 0.0
    for part in parts:
        ours, theirs = floored(evidence[0, frozenset({part})].scores, whole)
        alone += variance(ours) + variance(theirs)
        apart += variance([one - two for one, two in zip(ours, theirs, strict=True)])
    return apart < alone


def _spread(values: Sequence[Score]) -> float:
    known = [one for one in values if one is not None]
    return stdev(known) if len(known) > 1 else 0.0


def _guardrails_hold(metric: MetricSpec, less: Arm, whole: Arm, noises: float) -> bool:
    """Whether every guardrail is shown to lose less than its margin, or less than so many of its own noises.

    A margin of 0 asks a candidate to be better, which nothing that is merely left out ever is. So a removal is given
    as much room in each guardrail as in the score, measured in the noise of the certified stack itself.
    """
    for declared in metric.guardrails:
        room = noises * _spread(whole.guardrails.get(declared.name, ()))
        rail = replace(declared, margin=max(declared.margin, room))
        ours, theirs = less.guardrails.get(rail.name, ()), whole.guardrails.get(rail.name, ())
        mine, other = [one for one in ours if one is not None], [one for one in theirs if one is not None]
        if min(len(mine), len(other)) < 2 or not non_inferior(rail, mine, other)[1]:
            return False
    return True


def _knocked_out(metric: MetricSpec, evidence: Evidence, part: str, parts: int) -> Interval:
    """What the stack loses without one part, with an interval that holds for all parts together."""
    whole, less = evidence[0, WHOLE], evidence[0, frozenset({part})]
    theirs, ours = (better_is_higher(metric.direction, arm.scores) for arm in (whole, less))
    return _loss(ours, theirs, level=1 - 0.05 / parts)


def _loss(ours: Sequence[Score], theirs: Sequence[Score], *, level: float) -> Interval:
    """How much lower ours is: seed by seed where that scatters less, and by the two means where it does not."""
    mine, other = floored(ours, theirs)
    apart = mean_gain_interval(other, mine, level=level)
    gaps = [two - one for one, two in zip(mine, other, strict=True)]
    reach = t_quantile((1 + level) / 2, len(gaps) - 1) * stdev(gaps) / len(gaps) ** 0.5
    paired = Interval(fmean(gaps), fmean(gaps) - reach, fmean(gaps) + reach)
    return paired if reach > 0 and paired.high - paired.low < apart.high - apart.low else apart


def _missing(evidence: Evidence, stage: int, arms: Sequence[frozenset[str]], seeds: int) -> tuple[ArmWanted, ...]:
    return tuple(
        ArmWanted(stage, without, seeds)
        for without in arms
        if (stage, without) not in evidence or len(evidence[stage, without].scores) < seeds
    )


def _first(arm: Arm, seeds: int) -> Arm:
    rails = {name: tuple(values[:seeds]) for name, values in arm.guardrails.items()}
    return Arm(scores=arm.scores[:seeds], guardrails=rails)


def _alone(parts: Sequence[str]) -> Ablated:
    whole = Interval(0.0, 0.0, float("inf"))
    verdicts = tuple(
        PartVerdict(part=part, word="carries", loss=whole, says=f"{part} is the whole of what was certified.")
        for part in parts
    )
    return Ablated(parts=verdicts, removed=(), loss=None, says="There is one part, and it is what was certified.")


def _ended(
    metric: MetricSpec,
    parts: Sequence[str],
    losses: Mapping[str, Interval],
    removed: frozenset[str],
    loss: Interval | None,
) -> Ablated:
    verdicts = tuple(_verdict(metric, part, losses[part], removed=part in removed) for part in parts)
    taken = tuple(part for part in parts if part in removed)
    carrying = [one.part for one in verdicts if one.word == "carries"]
    shown = f"{', '.join(carrying) or 'no single part'} {'is' if len(carrying) < 2 else 'are'} shown to carry the gain"
    if loss is None:
        says = f"Of {len(parts)} parts, nothing was removed; {shown}."
    else:
        places = decimals(loss.high - loss.low, digits=2)
        most = told(max(loss.high, 0.0), places)
        says = (
            f"{', '.join(taken)} {'was' if len(taken) == 1 else 'were'} removed as dead weight: together they carry "
            f"{told(loss.estimate, places)} {metric.unit}, at most {most}; {shown}."
        )
    return Ablated(
        parts=verdicts,
        removed=taken,
        loss=loss,
        says=f"{says} The claim is about the whole certified stack.",
    )


def _verdict(metric: MetricSpec, part: str, loss: Interval, *, removed: bool) -> PartVerdict:
    places = decimals(loss.high - loss.low, digits=2)
    size = f"{told(loss.estimate, places)} {metric.unit} ({told(loss.low, places)} to {told(loss.high, places)})"
    if removed:
        return PartVerdict(
            part=part, word="dead weight", loss=loss, says=f"{part} is dead weight: without it, {size} are lost."
        )
    if loss.low > 0:
        return PartVerdict(part=part, word="carries", loss=loss, says=f"{part} carries {size} of the gain.")
    return PartVerdict(
        part=part, word="unclear", loss=loss, says=f"{part} stays: without it, {size} are lost, which decides nothing."
    )
