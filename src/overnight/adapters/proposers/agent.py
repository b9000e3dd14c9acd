"""A coding agent as a proposer: asked anew for each idea, never waited for, and never trusted.

Each question starts a process in a folder of its own and is answered with `Wait` until it ends. What comes back is
the difference of its copy and one hypothesis; everything else is classified and written down:

| outcome | what it means | what follows |
|---|---|---|
| proposal | a changed copy and one hypothesis | the gate decides |
| empty, unclear, refusal, leak | no idea in its answer | it is told why, and asked again; five in a row are enough |
| limited | its service takes no more questions | wait until it does; waiting is not failure |
| stalled, timeout, broken | no answer | wait longer each time; six in a row are enough |
| lost | its engine was killed | it is asked again; its price counts |
| spent | a ceiling was reached | no further question, where it was the contract's |
| stopped | the night ended | nothing |

None of these counts as a candidate or a run. Everything that it must remember is in the view.
"""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from overnight.adapters.proposers import claude, codex, plain
from overnight.adapters.proposers.events import Told
from overnight.errors import UserError
from overnight.ports import Caller, Clock, Desk
from overnight.records import strict_json
from overnight.records.agent import ANSWERS, Answered, Ask, AskOutcome, Operator, Returned, Spoken
from overnight.records.codec import decode
from overnight.records.proposal import Edited, Exhausted, Proposal, View, Wait
from overnight.records.text import line, sentence

READERS: dict[Spoken, Callable[[Iterable[bytes], float], Told]] = {
    "claude": claude.read,
    "codex": codex.read,
    "plain": plain.read,
}
LOOK_SECONDS = 1.0
MOST_BROKEN = 6
"""So many breakdowns in a row are no accident."""
MOST_EMPTY = 5
"""So many answers in a row without an idea mean that there is none."""
REMEMBERED_SECONDS = 6 * 3600.0
"""A breakdown of last night says nothing about this one."""
FIRST_WAIT_SECONDS, LONGEST_WAIT_SECONDS = 30.0, 3600.0
LONGEST_RESET_SECONDS = 8 * 24 * 3600.0
"""A service that names a later moment is not believed."""
_MOST_ANSWER = 100_000


class AgentProposer:
    """See `ports.Proposer`. `close` ends what is still at work."""

    def __init__(self, desk: Desk, caller: Caller, clock: Clock) -> None:
        self.desk, self.caller, self.clock = desk, caller, clock

    def ask(self, view: View) -> Proposal | Edited | Wait | Exhausted:
        """Start a question, look after the one that is open, or say why there is none."""
        waiting = view.asks[-1] if view.asks and view.asks[-1].outcome is None else None
        if waiting is not None:
            return self._look(view, waiting)
        if view.asks and (left := self._left(view.asks[-1])) is not None:
            return left
        if why := self._why_over(view):
            return Exhausted(because=why)
        seconds, why = self._back_off(view)
        if seconds > 0:
            return Wait(until_seconds=seconds, because=why)
        operator: Operator = view.operator or ("tune" if view.tried else "draft")
        folder = self.desk.lay_out(view, operator, self._reserve(view))
        self.caller.call(folder)
        return Wait(until_seconds=LOOK_SECONDS, because="The agent is at work.")

    def _left(self, ask: Ask) -> Edited | None:
        """A proposal that an engine wrote down and did not live to take up: its copy is still there."""
        folder = self.desk.folder(ask.id)
        if ask.outcome != "proposal" or not (folder / "copy").is_dir():
            return None
        proposal = self._proposal(ask, folder, self._told(folder))
        return Edited(proposal=proposal, folder=str(folder / "copy"), base=ask.base)

    def close(self, view: View) -> None:
        """End what is still at work, and write that down; its price counts."""
        waiting = view.asks[-1] if view.asks and view.asks[-1].outcome is None else None
        if waiting is not None:
            folder = self.desk.folder(waiting.id)
            self.caller.stop(folder, "stopped")
            self._end(waiting, folder, self.caller.look(folder))

    # Before a question

    def _why_over(self, view: View) -> str:
        agent = self.desk.agent
        if len(view.asks) >= agent.max_asks:
            return f"The agent was asked {len(view.asks)} times, which is all that the contract allows."
        if agent.speaks != "plain" and view.tokens_left <= 0:
            return "The contract's tokens for agents are used up."
        if (agent.speaks == "claude" or agent.dollars_each) and view.dollars_left < max(0.1 * agent.dollars_each, 0.01):
            return "The contract's money for agents is used up."
        since = self.clock.now() - REMEMBERED_SECONDS
        ended = [ask for ask in view.asks if ask.outcome not in (None, "stopped", "limited") and ask.at >= since]
        if _in_a_row(ended, ("broken", "stalled", "timeout", "lost")) >= MOST_BROKEN:
            return f"The agent failed {MOST_BROKEN} times in a row; the last time: {ended[-1].because}"[:1900]
        if _in_a_row(ended, tuple(one for one in ANSWERS if one != "proposal")) >= MOST_EMPTY:
            return f"The agent had no idea {MOST_EMPTY} times in a row; the last time: {ended[-1].because}"[:1900]
        return ""

    def _back_off(self, view: View) -> tuple[float, str]:
        """How long to wait before the next question, and why: twice as long after each failure."""
        if not view.asks:
            return 0.0, ""
        last, now = view.asks[-1], self.clock.now()
        if last.outcome == "limited" and last.until is not None:
            left = min(last.until - now, LONGEST_RESET_SECONDS)
            return left, f"The agent's service takes questions again in {max(left, 0) / 60:.0f} min."
        for kinds in (("limited",), ("broken", "stalled", "timeout")):
            if again := _in_a_row(view.asks, kinds):
                pause = min(FIRST_WAIT_SECONDS * 2 ** (again - 1), LONGEST_WAIT_SECONDS)
                left = min(last.at + pause - now, pause)  # a clock that was set back makes nobody wait for ever
                return left, line(f"The agent gave no answer {again} times in a row: {last.because}", 300)
        return 0.0, ""

    def _reserve(self, view: View) -> float:
        return round(min(self.desk.agent.dollars_each, view.dollars_left), 4)

    # After a question

    def _look(self, view: View, ask: Ask) -> Edited | Wait:
        folder = self.desk.folder(ask.id)
        returned = self.caller.look(folder)
        if returned is None and 0 < view.tokens_left < self._told(folder).tokens:
            self.caller.stop(folder, "spent")
            returned = self.caller.look(folder)
        if returned is None:
            return Wait(until_seconds=LOOK_SECONDS, because=f"{ask.id}: the agent is at work.")
        proposal = self._end(ask, folder, returned)
        if proposal is None:
            return Wait(until_seconds=0.0, because=f"{ask.id} brought no idea.")
        return Edited(proposal=proposal, folder=str(folder / "copy"), base=ask.base)

    def _end(self, ask: Ask, folder: Path, returned: Returned | None) -> Proposal | None:
        """Classify and write down how a question ended; the proposal, where it is one."""
        found = returned or Returned(why="lost", status=-9, wall_seconds=0.0, said="It did not end.")
        told = self._told(folder)
        verdict = self._verdict(ask, folder, found, told)
        free = found.why == "unstarted" or (found.why == "ended" and found.status != 0 and told.tokens == 0)
        self.desk.write_down(
            Answered(
                ask=ask.id,
                outcome=verdict.outcome,
                because=sentence(verdict.because),
                wall_seconds=found.wall_seconds,
                tokens=told.tokens,
                dollars=told.dollars,
                counted_dollars=_counted(ask, told, free=free),
                until=told.until if verdict.outcome == "limited" else None,
                at=self.clock.now(),
            )
        )
        return verdict.proposal

    def _told(self, folder: Path) -> Told:
        try:
            with (folder / "events.jsonl").open("rb") as file:
                return READERS[self.desk.agent.speaks](file, self.clock.now())
        except FileNotFoundError:
            return Told()

    def _verdict(self, ask: Ask, folder: Path, found: Returned, told: Told) -> "_Verdict":
        if found.why != "ended":
            return _Verdict(*_ENDED_BY_LIMIT[found.why](self.desk, found))
        if found.leaked:
            return _Verdict("leak", f"It wrote one of its own credentials into {', '.join(found.leaked[:5])}.")
        if told.trouble is not None:
            said = line(told.because or told.said or "It said nothing.", 600)
            return _Verdict(told.trouble, f"{_TROUBLE[told.trouble]} {said}")
        if found.status != 0:
            said = found.said or told.said or "it said nothing"
            return _Verdict("broken", f"It ended with status {found.status}: {line(said, 600)}")
        if not self.desk.is_changed(ask.id):
            return _Verdict("empty", f"It changed nothing. It said: {line(told.said or 'nothing', 600)}")
        try:
            proposal = self._proposal(ask, folder, told)
        except UserError as error:
            return _Verdict("unclear", f"It changed something and did not say why as it was asked to: {error.what}.")
        return _Verdict("proposal", f"It proposes: {proposal.hypothesis}", proposal)

    def _proposal(self, ask: Ask, folder: Path, told: Told) -> Proposal:
        """One hypothesis with its predicted effect, from its answer or from the file that it left."""
        answer = told.answer
        if not isinstance(answer, dict):
            answer = _left_in(folder / "out" / "proposal.json") or _left_in(folder / "out" / "last.txt")
        if not isinstance(answer, dict):
            raise UserError("answer", "there is no JSON object in it")
        known = {key: _plain(answer[key]) for key in ("hypothesis", "predicted_effect", "kind") if key in answer}
        listed = {key: [_plain(one) for one in _list(answer.get(key))] for key in ("bundle", "parents")}
        whole = {"proposer": "agent", **known, **listed, "operator": ask.operator}
        return decode(Proposal, whole, where="answer")


class _Verdict(NamedTuple):
    """How a question ended, and the idea where there is one."""

    outcome: AskOutcome
    because: str
    proposal: Proposal | None = None


_TROUBLE = {
    "refusal": "It declined:",
    "limited": "Its service takes no more questions:",
    "broken": "It failed:",
    "spent": "It reached the ceiling of one answer:",
    "unclear": "It came to no end:",
}
_ENDED_BY_LIMIT: dict[str, Callable[[Desk, Returned], tuple[AskOutcome, str]]] = {
    "stalled": lambda desk, _: ("stalled", f"It said nothing for {desk.agent.silence_seconds:g} s and was ended."),
    "timeout": lambda desk, _: ("timeout", f"It took more than {desk.agent.wall_seconds:g} s and was ended."),
    "stopped": lambda *_: ("stopped", "The night ended while it was at work."),
    "spent": lambda *_: ("spent", "It used more tokens than the contract has left, and was ended."),
    "unstarted": lambda _, found: ("broken", f"It could not be started: {line(found.said, 600)}"),
    "lost": lambda _, found: ("lost", found.said or "Its keeper is gone and left no word."),
}


def _counted(ask: Ask, told: Told, *, free: bool) -> float:
    """What counts against the ceiling: what it told; all that it might have cost where it did not, and did begin."""
    if told.dollars is not None:
        return told.dollars
    return 0.0 if free else ask.reserved_dollars


def _in_a_row(asks: Iterable[Ask], outcomes: tuple[str, ...]) -> int:
    """How many of the last questions ended in one of these ways."""
    count = 0
    for ask in reversed(tuple(asks)):
        if ask.outcome not in outcomes:
            break
        count += 1
    return count


def _plain(value: object) -> object:
    return sentence(value) if isinstance(value, str) else value


def _list(value: object) -> list[object]:
    return value[:20] if isinstance(value, list) else []


def _left_in(path: Path) -> object:
    """What an agent left in a file: read without following a link, and only as far as an answer may be long."""
    try:
        if path.is_symlink() or not path.is_file():
            return None
        with path.open("rb") as file:
            return strict_json.parse(file.read(_MOST_ANSWER), where=path.name)
    except (OSError, UserError):
        return None
