"""Where a study stands and what is safe to do next, from its files alone: nobody has to remember anything."""

from typing import NamedTuple

from overnight.admission import next_action, opening
from overnight.background import Engine, engine_of
from overnight.contract.read import Reading
from overnight.gate.opening import may_launch, may_open
from overnight.ports import Launcher, Machine
from overnight.records.lifecycle import State
from overnight.study.layout import StudyFolder
from overnight.study.state import StudyState

START, WATCH, MORE = "overnight start", "overnight live", "overnight extend --hours 1 --candidates 20"
TAKE = "overnight take --policy policy"
_UNDECIDED = (State.VALIDATED, State.LAUNCHED, State.COMPLETED, State.DEBUG)


class Around(NamedTuple):
    """What the files beside the ledger and the locks on them tell."""

    engine: Engine | None = None
    """Who holds the study."""
    alive: tuple[str, ...] = ()
    """Runs whose supervisor lives."""
    asked: bool = False
    """Whether the word to stop lies there."""


class Step(NamedTuple):
    """One sentence on where the study stands, and the command that leads on."""

    says: str
    command: str


def around(machine: Machine, at: StudyFolder, state: StudyState, launcher: Launcher) -> Around:
    """Look at the locks of the study and of its runs. Reads only."""
    going = [name for name, run in state.runs.items() if run.outcome is None]
    alive = tuple(name for name in going if launcher.is_alive(at.runs / name))
    return Around(engine_of(machine, at), alive, at.stop_word.exists())


def next_step(state: StudyState, reading: Reading, now: Around) -> Step:
    """What is safe to do next. The same files give the same answer, whoever asks, and nothing is launched."""
    if now.engine is not None:
        return _held(state, now, now.engine)
    case = opening(state, reading)
    before_the_loop = any(one.standing != "in force" for one in case.standings)
    if before_the_loop or state.entered is None:
        return Step(*next_action(state, reading))
    if lost := [name for name, run in state.runs.items() if run.outcome is None]:
        return Step(_interrupted(lost, now.alive), START)
    reasons = may_open(case)
    if spent := next((one.says for one in reasons if one.rule == "budget"), ""):
        return Step(spent, TAKE if _has_gain(state) else MORE)
    if reasons:
        return Step(reasons[0].says, "overnight status")
    if any(one.rule == "loop-entry" for one in may_launch(case)):
        return Step("The contract changed since the loop was entered.", START)
    return _between_sittings(state)


def _held(state: StudyState, now: Around, engine: Engine) -> Step:
    if not engine.is_night():
        return Step(f"{engine.doing} (pid {engine.pid} on {engine.host}) holds the study.", "overnight status")
    asked = ", was asked to stop, and finishes what is running" if now.asked else ""
    going = sum(run.outcome is None for run in state.runs.values())
    says = f"The night goes on (pid {engine.pid} on {engine.host}){asked}; {going} of {len(state.runs)} runs are going."
    return Step(says, WATCH)


def _interrupted(going: list[str], alive: tuple[str, ...]) -> str:
    lost = [name for name in going if name not in alive]
    parts = []
    if alive:
        parts.append(f"the next start takes up what goes on without it ({', '.join(alive)})")
    if lost:
        parts.append(f"the next start settles or repeats what has nobody any more ({', '.join(lost)})")
    return f"The engine is gone; {'; '.join(parts)}."


def _between_sittings(state: StudyState) -> Step:
    """Nothing is running and nothing was lost: what the ledger itself wants next."""
    undecided = [one.id for one in state.candidates.values() if _is_undecided(state, one.id)]
    if state.handed_off and not undecided:
        return Step(f"The last sitting ended: {state.handed_off}", state.leads_on)
    if undecided:
        return Step(f"{undecided[0]} is next: it passed the gate and nobody has decided on it.", START)
    if state.stack:
        return Step(f"{', '.join(state.stack)} is kept and not certified yet.", START)
    return Step("The loop is entered, and the next idea is to be asked for.", START)


def _is_undecided(state: StudyState, name: str) -> bool:
    one = state.candidates[name]
    return name != state.baseline and not one.kept and not one.ablates and one.state in _UNDECIDED


def _has_gain(state: StudyState) -> bool:
    return bool(state.incumbents)


def leads_on(state: StudyState, reading: Reading) -> str:
    """The command that a handoff names when a sitting has just ended."""
    case = opening(state, reading)
    if any(one.standing != "in force" for one in case.standings):
        return "overnight approve"
    going = any(run.outcome is None for run in state.runs.values())
    if going or any(_is_undecided(state, name) for name in state.candidates):
        return START
    contract = case.contract
    most = contract.experiments.stop.max_candidates if contract is not None else 0
    if _has_gain(state):
        return TAKE
    return MORE if may_open(case) or len(case.admitted) >= most else START
