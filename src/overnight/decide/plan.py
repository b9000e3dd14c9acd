"""How a study of so many runs is laid out: baseline, race, looks, the last check. Frozen with the eighth approval.

A plan is for the whole study. Nights only cut it into sittings, so three nights of 16 runs decide as one of 48.
"""

from dataclasses import asdict, dataclass, replace

from overnight.decide.race import Race
from overnight.decide.screened import RaceRule
from overnight.decide.spending import LookPlan, Mode, error_for_next
from overnight.records.calibration import FrozenPlan
from overnight.records.schedule import STRETCH

LEAST_FOR_A_CLAIM = 16
"""Below this many runs in the study, four fresh seeds a side do not fit beside a baseline and a search."""
_EARLY_POWER = 0.8
"""During the search an attempt is made when its first look would certify this often."""
_LAST_POWER = 0.2
"""At the end one is made when its last look would: a long shot costs false claims of merely noisier candidates."""
_PATIENCE = 4
"""During the search one is made only where the runs left hold this many whole attempts: a study that can afford few
attempts makes them late, for the best tip it finds and over the baseline, where a gain is largest and shown soonest."""
_PAIRED_FROM = 0.5
"""From this much shared luck on, an attempt compares seed by seed."""
_FEW = 8
"""Below this many runs nothing is spent on fresh seeds or on the tip's level."""
_MANY = 64
"""Below this many runs few ideas are tried, so the one that leads is less likely to be the luckiest of many."""
_ONE_CANDIDATE = 4
"""About what the race of one candidate costs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyPlan:
    """Where the runs of a study go."""

    rule: RaceRule
    """The race."""
    looks: LookPlan | None
    """The looks of an attempt to certify; None where the study can claim nothing."""
    audit_seeds: int
    """Fresh seeds of the last incumbent, from which the final gain over the baseline is told; 0 for none."""
    total_error: float = 0.05
    """The chance that the study claims a gain that is not there."""
    mode: Mode = "family"
    """What that chance is about: any false claim, or the share of false ones."""
    ideas: int | None = None
    """The most candidates that the contract lets in; None where nothing limits them."""

    def is_ending(self, race: Race, past: tuple[bool, ...], runs_left: float) -> bool:
        """Whether the runs left must now go into a last attempt, because the next candidate could use them up.

        Only where there is something to certify: otherwise the race goes on to the last run.
        """
        if self.looks is None or not self.should_certify(race, past, ending=True):
            return False
        return runs_left < self.looks.runs() + self.audit_seeds + _ONE_CANDIDATE

    def is_in_the_way(self, race: Race, past: tuple[bool, ...], runs_left: float, runs: int) -> bool:
        """Whether the racing candidate is to be left: the `runs` that it wants next are ones that the tip needs.

        One that leads already may go on: it asks for its fresh seeds and no more, and is then the tip.
        """
        if self.looks is None or race.racing is None or race.leading is not None:
            return False
        return runs_left < runs + self.looks.runs() + self.audit_seeds and self.should_certify(race, past, ending=True)

    def has_room(self, race: Race, past: tuple[bool, ...], runs_left: float, waiting: int) -> bool:
        """Whether one more candidate may begin beside the racing one and so many that wait.

        Not where it is time for an attempt, or the runs that one needs would be touched.
        """
        if self.looks is None or not self.should_certify(race, past, ending=True):
            return runs_left > _ONE_CANDIDATE * (waiting + 1)
        kept_back = self.looks.runs() + self.audit_seeds
        return runs_left > kept_back + _ONE_CANDIDATE * (waiting + 1) and not self.is_time(race, past, runs_left)

    def attempt_plan(self, race: Race, *, runs_left: float | None = None) -> LookPlan | None:
        """The looks of an attempt that begins now; fixed before its first score. Paired where luck is much shared.

        `runs_left` is for the attempt after which nothing else is wanted: its last look takes the runs that are left.
        """
        looks = self._looks(runs_left)
        return looks if looks is None or race.luck.shared() < _PAIRED_FROM else looks.pairwise()

    def _looks(self, runs_left: float | None) -> LookPlan | None:
        if self.looks is None or runs_left is None:
            return self.looks
        most = min(int(runs_left - self.audit_seeds) // 2, STRETCH * self.looks.looks[-1])
        return self.looks.stretched(most)

    def alpha(self, past: tuple[bool, ...]) -> float:
        """The error that the next attempt may spend, after attempts that certified (True) or did not."""
        return error_for_next(past, self.total_error, self.mode)

    def is_time(self, race: Race, past: tuple[bool, ...], runs_left: float) -> bool:
        """Whether the search is to be interrupted for an attempt, or to end with one."""
        if self.is_ending(race, past, runs_left):
            return True
        early = self.looks is not None and runs_left >= _PATIENCE * self.looks.runs()
        return early and self.should_certify(race, past)

    def should_certify(
        self, race: Race, past: tuple[bool, ...], *, ending: bool = False, runs_left: float | None = None
    ) -> bool:
        """Whether an attempt to certify the tip is worth its runs; `ending` when the race cannot go on."""
        looks, alpha = self._looks(runs_left), self.alpha(past)
        if looks is None or not looks.can_certify(alpha):
            return False
        if ending:
            return race.is_worth_certifying(alpha * looks.shares[-1], looks.looks[-1], power=_LAST_POWER)
        return race.is_worth_certifying(alpha * looks.shares[0], looks.looks[0], power=_EARLY_POWER)

    def frozen(self) -> FrozenPlan:
        """The plan as a record."""
        return FrozenPlan(
            race=asdict(self.rule),
            looks=self.looks.looks if self.looks is not None else (),
            shares=self.looks.shares if self.looks is not None else (),
            audit_seeds=self.audit_seeds,
            total_error=self.total_error,
            mode=self.mode,
        )

    def within(self, baseline_seeds: int | None, fresh_seeds_a_side: int | None) -> "StudyPlan":
        """The same plan with as many baseline seeds, and with at most so many fresh seeds a side, as somebody says."""
        rule, looks = self.rule, self.looks
        if baseline_seeds is not None:
            rule = replace(rule, baseline_seeds=baseline_seeds)
        if fresh_seeds_a_side is not None and looks is not None:
            looks = looks.up_to(fresh_seeds_a_side)
        return replace(self, rule=rule, looks=looks)


def cost_of_an_idea(plan: StudyPlan, runs: float, ideas: int) -> float:
    """What one idea is worth in runs where only so many are allowed: the runs there are for each, between 1 and 20.

    Where ideas are many, one that is behind after a seed is left; where they are few, each is given more seeds.
    """
    last = 0 if plan.looks is None else 2 * plan.looks.looks[-1]
    each = (runs - plan.rule.baseline_seeds - last) / max(ideas, 1)
    return min(max(each - 1.0, 1.0), 20.0)


def thawed(plan: FrozenPlan) -> StudyPlan:
    """The plan that a record holds."""
    rule = RaceRule(**plan.race)  # type: ignore[arg-type] # a record of another version does not fit, and says so
    looks = LookPlan(looks=plan.looks, shares=plan.shares) if plan.looks else None
    return StudyPlan(rule=rule, looks=looks, audit_seeds=plan.audit_seeds, total_error=plan.total_error, mode=plan.mode)


def plan_study(runs: float, *, idea_cost: float = 1.0, total_error: float = 0.05, mode: Mode = "family") -> StudyPlan:
    """The plan for a study of so many runs in all. Calibration takes at most a quarter of them, one run at least."""
    baseline, fresh, looks, audit = _layout(runs)
    rule = RaceRule(
        idea_cost=idea_cost,
        baseline_seeds=baseline,
        fresh_seeds=fresh,
        watches_tip=runs >= _FEW,
        prior_spread=0.5 if runs >= _MANY else 1.0,
    )
    return StudyPlan(rule=rule, looks=looks, audit_seeds=audit, total_error=total_error, mode=mode)


def _layout(runs: float) -> tuple[int, int, LookPlan | None, int]:
    if runs >= 300:
        return 8, 5, LookPlan(looks=(6, 12, 20), shares=(0.4, 0.3, 0.3)), 8
    if runs >= 150:
        return 8, 5, LookPlan(looks=(6, 12, 20), shares=(0.4, 0.3, 0.3)), 4
    if runs >= _MANY:
        return 5, 1, LookPlan(looks=(6, 12), shares=(0.6, 0.4)), 0
    if runs >= 28:
        return 4, 1, LookPlan(looks=(5, 8), shares=(0.5, 0.5)), 0
    if runs >= 22:
        return 3, 1, LookPlan(looks=(4, 6), shares=(0.75, 0.25)), 0
    if runs >= LEAST_FOR_A_CLAIM:
        return 4, 1, LookPlan(looks=(4,), shares=(1.0,)), 0
    return max(1, int(runs // 4)), 1 if runs >= _FEW else 0, None, 0
