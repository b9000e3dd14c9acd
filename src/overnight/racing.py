"""The race as the ledger tells it: every plan, candidate, result and verdict, each told once and in order.

The engine keeps one `Follower` for a night and tells it what is new; whoever comes later folds the same
moments from the first one on and finds the same race. So a night that was killed goes on exactly where it was.
"""

from dataclasses import dataclass, field

from overnight.decide.events import Attempted, Entered, Left, Moved, Planned, Ran, Settled
from overnight.decide.plan import StudyPlan, thawed
from overnight.decide.race import Race
from overnight.records.calibration import Calibration
from overnight.records.codec import decode
from overnight.records.contract import Contract
from overnight.records.decision import Verdict
from overnight.records.metric import Direction
from overnight.study.state import Moment, RunState, StudyState

ABLATION_ROUND = 1_000_000
"""From this round on, tuning seeds belong to ablations: they move no tip, and the race never hears of them."""
LAST_ROUND = 2_000_000
"""The tuning seeds of this round tell what a long study gained in all; they move nothing either."""


def calibration_of(state: StudyState, contract: Contract) -> Calibration | None:
    """The calibration that is in force; None where there is none for these terms."""
    data = state.calibration
    if data is None or data["comparability"] != contract.comparability():
        return None
    return decode(Calibration, data, where="ledger calibration")


def plan_of(state: StudyState, contract: Contract) -> StudyPlan | None:
    """The frozen plan of a study; None while it is not calibrated."""
    found = calibration_of(state, contract)
    return None if found is None else thawed(found.plan)


def better_is_higher(contract: Contract, run: RunState) -> float | None:
    """What a run scored, with the sign turned where lower is better; None for a seed lost by its own fault."""
    if run.score is None:
        return None
    return run.score if contract.metric.direction is Direction.HIGHER else -run.score


@dataclass(slots=True)
class Follower:
    """Follows one study: `race` takes in what is new and gives the race as it stands."""

    told: int = 0
    """How many moments it has taken in."""
    found: Race | None = None
    """The race; None while nothing is calibrated."""
    key: str = ""
    """The comparability key of its results."""
    calibration: Calibration | None = None
    """The calibration in force; None while there is none for these terms."""
    plan: StudyPlan | None = None
    """Its frozen plan."""
    early: list[Ran] = field(default_factory=list)
    """Results from before the plan: the baseline's, on which it was calibrated."""

    def race(self, state: StudyState, contract: Contract) -> Race | None:
        """The race after everything that the ledger has so far; None while nothing is calibrated."""
        if self.key != contract.comparability():
            self.told, self.found, self.key, self.early = 0, None, contract.comparability(), []
            self.calibration = self.plan = None
        names = {one.commit: one.id for one in state.candidates.values()} if self.told < len(state.moments) else {}
        while self.told < len(state.moments):
            self._tell(state, contract, state.moments[self.told], names)
            self.told += 1
        return self.found

    def _tell(self, state: StudyState, contract: Contract, one: Moment, names: dict[str, str]) -> None:
        if one.kind == "ran":
            self._ran(contract, state.runs[one.about])
        elif one.kind == "planned":
            self._planned(state, one)
        elif self.found is None:
            return
        elif one.kind == "entered":
            self.found.tell(Entered(one.about, simpler=state.candidates[one.about].lines < 0))
        elif one.kind == "left":
            self.found.tell(Left(one.about))
            self.found.tell(Settled())
        else:
            if one.kind == "attempted":
                self.found.tell(self._attempted(state, contract, one))
            elif self.found.racing == one.about and one.verdict != Verdict.KEEP:
                self.found.tell(Left(one.about))
            tip, incumbent = (names.get(commit, state.baseline) for commit in (one.tip, one.incumbent))
            self.found.tell(Moved(tip, incumbent))
            self.found.tell(Settled())

    def _ran(self, contract: Contract, run: RunState) -> None:
        if run.phase != "screen" or run.comparability != self.key or run.round >= ABLATION_ROUND:
            return
        ran = Ran(run.candidate, run.number, better_is_higher(contract, run))
        if self.found is None:
            self.early.append(ran)
        else:
            self.found.tell(ran)

    def _planned(self, state: StudyState, one: Moment) -> None:
        """The first plan begins the race with what was measured for it; a later one only changes its lines."""
        if one.about != self.key:
            return
        self.calibration = decode(Calibration, state.calibrations[int(one.verdict)], where="ledger calibration")
        self.plan = plan = thawed(self.calibration.plan)
        if self.found is not None:
            self.found.tell(Planned(plan.rule))
            return
        root = self.early[0].candidate if self.early else state.baseline
        self.found = Race(plan.rule, root)
        for ran in self.early:
            self.found.tell(ran)
        self.early = []

    def _attempted(self, state: StudyState, contract: Contract, one: Moment) -> Attempted:
        number = 1 + sum(before.kind == "attempted" for before in state.moments[: self.told])
        runs = sorted(
            (
                run
                for run in state.runs.values()
                if (run.candidate, run.phase, run.round) == (one.about, "confirm", number) and has_result(run)
            ),
            key=lambda run: run.number,
        )
        return Attempted(Verdict(one.verdict), tuple(better_is_higher(contract, run) for run in runs))


def has_result(run: RunState) -> bool:
    """Whether a run has brought what it can bring: a measurement, or a loss by its own fault."""
    return run.outcome is not None and (run.outcome.is_candidates_fault() or run.evidence > 0)
