"""The race: screening as a fold of what was measured. It moves the tip, claims nothing and may be wrong.

Everything here follows from the list of events in the ledger's order, so a night that was killed asks for the
same runs again and comes to the same verdicts. The engine folds the ledger; the simulator tells one event after
the other; both run this code.

    baseline   the root on its first tuning seeds: its level and the noise
    screen     a candidate on the tip's tuning seeds, one at a time, until it is clearly behind or clearly ahead
    fresh      a candidate that is ahead, on tuning seeds that did not select it; there it must still be ahead
    line       candidates that entered behind it: their first seeds may run already, and are looked at in turn

Tuning seeds have numbers that are never given out twice to select and to check. Numbers count over the whole study.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from math import inf, isfinite, sqrt
from statistics import NormalDist

from overnight.decide.belief import Level, Luck, Noise, Score, cautious_spread, first_level
from overnight.decide.events import Attempted, Entered, Event, Left, Moved, Planned, Ran, Settled, Want
from overnight.decide.screened import RaceRule, Screened
from overnight.records.decision import Verdict

_NORMAL = NormalDist()
_SOME_LUCK = 0.1
"""A shared luck below this is not worth taking off."""
_LEAST_OWN = 3
"""From this many scores on, an arm's own scatter is believed."""


@dataclass(slots=True, eq=False)
class _Tip:
    """Something that candidates race against: its level, and the tuning seeds on which it is known."""

    candidate: str
    base: int
    """The number of its first tuning seed."""
    level: Level
    """What the screen believes of it."""
    plain: Level
    """What its scores are believed to be on average, without the gap shortened: what certification will see."""
    scores: list[Score] = field(default_factory=list)
    """Its scores on the tuning seeds from `base` on: none of them selected it."""
    chosen_on: tuple[Score, ...] = ()
    """Its scores on the tuning seeds that selected it: they say nothing of its level, but of its scatter."""


@dataclass(slots=True)
class _Focus:
    candidate: str
    against: _Tip
    """The tip that it was built on, and on whose tuning seeds it runs."""
    simpler: bool = False
    scores: list[Score] = field(default_factory=list)
    led: Screened | None = None
    """How it came to lead, while it is checked on fresh seeds."""


class Race:
    """The race as it stands after some events. Make one with `race`, or tell it events one by one."""

    def __init__(self, rule: RaceRule, root: str) -> None:
        self.rule = rule
        self.noise = Noise()
        self.plain = Noise(winsorised=False)
        self.luck = Luck()
        self.verdicts: list[Screened] = []
        self.tip = self.incumbent = _Tip(root, 0, Level(0.0, 1.0), Level(0.0, 1.0))
        self._before = self.tip
        self._tried: _Tip | None = None
        self._started = False
        self._focus: _Focus | None = None
        self._line: list[_Focus] = []
        self._unused = rule.baseline_seeds
        self._found: dict[tuple[str, int], Score] = {}
        self._wanted: list[tuple[str, int]] = [(root, number) for number in range(rule.baseline_seeds)]

    def tell(self, event: Event) -> None:
        """Take in one event."""
        if isinstance(event, Ran):
            if event.score is not None and not isfinite(event.score):
                raise ValueError(f"A score must be finite or None for a lost seed, but one is {event.score}.")
            self._found[event.candidate, event.number] = event.score
            self._move()
        elif isinstance(event, Entered):
            self._line.append(_Focus(event.candidate, self._known_tip(), event.simpler))
            if len(self._line) == 1:
                self._look_at_next()
        elif isinstance(event, Attempted):
            self._attempted(event)
        elif isinstance(event, Planned):
            self.rule = event.rule
        elif isinstance(event, Left):
            self._leave(event.candidate)
        elif isinstance(event, Settled):
            self._look_at_next()
        else:
            self._follow(event)

    def wants(self) -> tuple[Want, ...]:
        """The runs without which nothing more can be said; none while no candidate is racing."""
        return tuple(Want(*one) for one in self._wanted if one not in self._found)

    def likely(self, count: int) -> tuple[Want, ...]:
        """The candidate's next seeds beyond those that are wanted: for slots that would stand idle.

        Nothing looks at them before the race comes to them, so they select nothing and may check as well.
        """
        focus = self._focus
        if focus is None or focus.led is not None or focus.against is not self.tip or not self._started:
            return ()
        first = self.tip.base + len(focus.scores) + 1
        numbers = range(first, first + count)
        return tuple(Want(focus.candidate, one) for one in numbers if (focus.candidate, one) not in self._found)

    def first_of(self, candidate: str) -> Want:
        """The first run of a candidate that would enter now."""
        return Want(candidate, self.tip.base)

    def expects_a_second_seed(self) -> bool:
        """Whether the racing candidate, of which nothing is known, will probably need one: half of those before did."""
        if self._focus is None or self._focus.scores:
            return False
        short = sum(one.verdict is Verdict.REJECT and one.seeds == 1 for one in self.verdicts)
        return 2 * short <= len(self.verdicts)

    @property
    def leading(self) -> Screened | None:
        """How the racing candidate came to lead, while fresh seeds have not spoken yet; None where it does not."""
        return None if self._focus is None else self._focus.led

    @property
    def racing(self) -> str | None:
        """The candidate that is racing, or None."""
        return None if self._focus is None else self._focus.candidate

    def lead(self) -> float:
        """How far the tip is believed to be ahead of the incumbent, in noises."""
        apart = self.tip.plain.mean - self.incumbent.plain.mean
        return apart / self.plain.spread if self.plain.spread else 0.0

    def is_worth_certifying(self, alpha: float, seeds: int, *, power: float = 0.8) -> bool:
        """Whether a look at so many seeds a side, at this error, would probably certify a tip not yet tried."""
        if self.tip in (self.incumbent, self._tried) or self.leading is not None:
            return False
        reach = (_NORMAL.inv_cdf(power) - _NORMAL.inv_cdf(alpha)) * sqrt((1 + self._steadiness() ** 2) / seeds)
        return self.lead() >= reach

    def _steadiness(self) -> float:
        """The tip's own scatter in noises, where it was seen to be smaller: a mended defect often scatters less."""
        own = [score for score in (*self.tip.chosen_on, *self.tip.scores) if score is not None]
        if len(own) < _LEAST_OWN or not self.plain.spread:
            return 1.0
        return min(1.0, cautious_spread(own) / self.plain.spread)

    def _move(self) -> None:
        """Go on as far as what was found allows."""
        while self._wanted and all(one in self._found for one in self._wanted):
            scores = [self._found.pop(one) for one in self._wanted]
            owners = [candidate for candidate, _ in self._wanted]
            self._wanted = []
            if not self._started:
                self._begin(scores)
            elif self._focus is not None and self._focus.led is not None:
                self._check(self._focus.led, scores)
            elif self._focus is not None:
                self._screen(self._focus, dict(zip(owners, scores, strict=True)))

    def _begin(self, scores: list[Score]) -> None:
        self._started = True
        known = [score for score in scores if score is not None] or [0.0]
        self.tip.level = first_level(self.noise, known, split=True)
        self.tip.plain = first_level(self.plain, known, split=False)
        self.tip.scores = scores
        if self._focus is not None:
            self._want_next(self._focus)

    def _look_at_next(self) -> None:
        """Turn to the first in the line where nobody races; what it has run already is looked at now."""
        if self._focus is None and self._line:
            self._focus = self._line.pop(0)
            if self._started:
                self._want_next(self._focus)
                self._move()

    def _want_next(self, focus: _Focus) -> None:
        """Ask for the candidate's next seed, and for one of the tip while its level is not well known."""
        self._wanted = [(focus.candidate, focus.against.base + len(focus.scores))]
        if focus.against is not self.tip:
            return
        if self.rule.watches_tip and focus.scores and self.tip.level.variance > self.rule.well_known():
            self._wanted.append((self.tip.candidate, self.tip.base + len(self.tip.scores)))

    def _learn(self, scores: Sequence[Score], *, plainly: bool = False) -> None:
        """Let the tip's level and the noise learn from scores that selected nothing."""
        self.tip.level = self.tip.level.learned(self.noise, scores, plainly=plainly)
        self.tip.plain = self.tip.plain.learned(self.plain, scores)

    def _gain(
        self, scores: Sequence[Score], tip: _Tip, *, plainly: bool = False
    ) -> tuple[float, list[float], list[float]]:
        """The mean gain over a tip with shared luck taken off, and both arms' residuals."""
        seeds, noise, mean = len(scores), self.noise, tip.level.mean
        if plainly:
            noise, mean = self.plain, tip.plain.mean
        ours = noise.shifted(scores, mean)
        theirs = [noise.apart(score, mean) for score in tip.scores[:seeds]]
        shared = self.luck.shared() if self.rule.pairing else 0.0
        gain = sum(ours) - (shared * sum(theirs) if shared > _SOME_LUCK else 0.0)
        return gain / seeds, ours, theirs

    def _screen(self, focus: _Focus, new: dict[str, Score]) -> None:
        focus.scores.append(new[focus.candidate])
        if focus.against is not self.tip:
            self._end(self._overtaken(focus))
            return
        if self.tip.candidate in new:
            score = new[self.tip.candidate]
            self.tip.scores.append(score)
            self._learn([score])
        seeds = len(focus.scores)
        gain, ours, theirs = self._gain(focus.scores, self.tip)
        found = self._compared(focus, gain)
        if found is None:
            self._want_next(focus)
            return
        self.luck.learn(ours, theirs)
        self._unused = max(self._unused, self.tip.base + seeds)
        if found.verdict is Verdict.KEEP:
            self._join(focus, found)
        else:
            self._end(found)

    def _compared(self, focus: _Focus, gain: float) -> Screened | None:
        """The candidate against the two lines: reject, lead, or None when another seed is wanted."""
        seeds = len(focus.scores)
        keep, reject = self._lines(focus, seeds)
        lost, tip_lost = focus.scores.count(None), self.tip.scores[:seeds].count(None)
        leads = gain >= keep
        if lost <= tip_lost and not leads and reject <= gain:
            return None
        return Screened(
            candidate=focus.candidate,
            verdict=Verdict.KEEP if leads and lost <= tip_lost else Verdict.REJECT,
            seeds=seeds,
            gain=gain,
            line=keep if leads else reject,
            noise=self.noise.spread,
            tip_mean=self.tip.level.mean,
            lost=lost,
            tip_lost=tip_lost,
            simpler=focus.simpler,
            numbers=tuple(range(self.tip.base, self.tip.base + seeds)),
        )

    def _lines(self, focus: _Focus, seeds: int) -> tuple[float, float]:
        """The gains, in the metric's unit, from which a candidate leads and below which it is rejected."""
        noise = self.noise.spread
        if not noise:  # one run of the baseline shows no noise, so the candidate must be ahead on average of two
            return (0.0 if seeds >= self.rule.least_seeds else inf), 0.0
        keep, reject = self.rule.lines(seeds, simpler=focus.simpler)
        return keep * noise, reject * noise

    def _join(self, focus: _Focus, found: Screened) -> None:
        """Let a leading candidate be the tip until fresh seeds have spoken."""
        rule, old = self.rule, self.tip
        prior = (rule.prior_gain, rule.prior_spread)
        level = old.level.shrunk(found.gain, found.seeds, self.noise.spread, prior)
        gain, _, _ = self._gain(focus.scores, old, plainly=True)
        plain = old.plain.shrunk(gain, found.seeds, self.plain.spread, prior)
        self._before, self.tip = old, _Tip(focus.candidate, self._unused, level, plain, chosen_on=tuple(focus.scores))
        self._unused += rule.fresh_seeds
        focus.led = found
        if not rule.fresh_seeds:
            self._check(found, [])
            return
        self._wanted = [(focus.candidate, self.tip.base + i) for i in range(rule.fresh_seeds)]

    def _check(self, led: Screened, scores: list[Score]) -> None:
        """Keep a candidate that still leads on fresh seeds, also with far-out scores as they are; or take it back."""
        self.tip.scores = scores
        self._learn(scores, plainly=led.gain > self.noise.highest)
        allowed = self.rule.simpler_drop * self.noise.spread if led.simpler else 0.0
        levels = ((self.tip.level, self._before.level), (self.tip.plain, self._before.plain))
        undone = any(now.mean < before.mean - allowed for now, before in levels)
        known = [score for score in scores if score is not None]
        found = replace(
            led,
            verdict=Verdict.REJECT if undone else Verdict.KEEP,
            undone=undone,
            fresh_mean=sum(known) / len(known) if known else None,
            numbers=led.numbers + tuple(range(self.tip.base, self.tip.base + len(scores))),
        )
        if undone:
            self.tip = self._before
        self._end(found)

    def _end(self, found: Screened) -> None:
        self.verdicts.append(found)
        self._focus = None
        self._wanted = []

    def cut_short(self) -> Screened | None:
        """The verdict on a candidate whose race is given up where it stands, and that is out of it now."""
        found = self.standing()
        if found is None:
            return None
        self.tip = self._known_tip()
        self._end(found)
        return found

    def standing(self) -> Screened | None:
        """How the racing candidate stands, as the verdict that it has if it is left here; None where nothing races."""
        focus = self._focus
        if focus is None:
            return None
        tip = focus.against
        gain = self._gain(focus.scores, tip)[0] if focus.scores else 0.0
        keep, _ = self._lines(focus, max(len(focus.scores), self.rule.least_seeds))
        return Screened(
            candidate=focus.candidate,
            verdict=Verdict.INCONCLUSIVE,
            seeds=len(focus.scores),
            gain=gain,
            line=keep,
            noise=self.noise.spread,
            tip_mean=tip.level.mean,
            simpler=focus.simpler,
            numbers=tuple(range(tip.base, tip.base + len(focus.scores))),
        )

    def _overtaken(self, focus: _Focus) -> Screened:
        """The verdict on a candidate that waited while the tip moved on, by the tip that it was built on.

        One that is behind is rejected as ever. On any other nothing is decided: it can join no other tip than its own.
        """
        tip, seeds = focus.against, len(focus.scores)
        gain, (_, reject) = self._gain(focus.scores, tip)[0], self._lines(focus, seeds)
        lost, tip_lost = focus.scores.count(None), tip.scores[:seeds].count(None)
        self._unused = max(self._unused, tip.base + seeds)
        return Screened(
            candidate=focus.candidate,
            verdict=Verdict.REJECT if lost > tip_lost or gain < reject else Verdict.INCONCLUSIVE,
            seeds=seeds,
            gain=gain,
            line=reject,
            noise=self.noise.spread,
            tip_mean=tip.level.mean,
            lost=lost,
            tip_lost=tip_lost,
            simpler=focus.simpler,
            overtaken=True,
            numbers=tuple(range(tip.base, tip.base + seeds)),
        )

    def _known_tip(self) -> _Tip:
        """The tip without a candidate that leads and was not checked yet."""
        return self._before if self.leading is not None else self.tip

    def _attempted(self, event: Attempted) -> None:
        self._learn(event.scores)
        self._tried = self.tip
        if event.verdict is Verdict.CERTIFIED:  # a new reign has tuning seeds of its own
            self._unused = max(self._unused, self.tip.base + len(self.tip.scores))
            level, plain = self.tip.level, self.tip.plain
            self.tip = self.incumbent = self._tried = _Tip(self.tip.candidate, self._unused, level, plain)
        elif event.verdict is Verdict.REFUTED:
            self.tip = self.incumbent

    def _leave(self, candidate: str) -> None:
        """Go on without a candidate on which nothing was decided."""
        self._line = [one for one in self._line if one.candidate != candidate]
        if self._focus is None or self._focus.candidate != candidate:
            return
        self.tip = self._known_tip()
        self._focus, self._wanted = None, []

    def _follow(self, event: Moved) -> None:
        """Believe the record where it has another tip than the race came to, and guess that tip's level."""
        if event.incumbent != self.incumbent.candidate:
            known = self._before if self._before.candidate == event.incumbent else self.incumbent
            self.incumbent = _Tip(event.incumbent, self._unused, known.level, known.plain)
        if event.tip == self.incumbent.candidate and event.tip != self.tip.candidate:
            self.tip = self.incumbent
        elif event.tip != self.tip.candidate:
            self.tip = _Tip(event.tip, self._unused, Level(self.tip.level.mean, 1.0), Level(self.tip.plain.mean, 1.0))


def race(rule: RaceRule, root: str, events: Iterable[Event]) -> Race:
    """The race as it stands after these events, told in the ledger's order."""
    found = Race(rule, root)
    for event in events:
        found.tell(event)
    return found
