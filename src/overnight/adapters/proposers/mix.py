"""Several proposers under one budget: shares, a switch on a plateau, and typed operators.

Who is asked next follows from the view alone, so a resumed night goes on exactly where it stopped:

    shares      the agent has a minority share, search the rest; whoever is furthest behind its share is asked
    plateau     when a row of ideas brought nothing, the agent's share doubles and the operators move on
    bandit      only where two proposers have certified gains, shares follow what an idea of each brought so far
    never idle  a proposer that has to wait, or is exhausted, gives its turn to the next

A proposer that is not asked for long keeps a tenth of the turns, so that none is written off by bad luck.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from overnight.adapters.proposers.operators import CYCLE, agents_operator, on_plateau, operated, operator_for
from overnight.ports import Proposer
from overnight.records.proposal import Edited, Exhausted, Proposal, View, Wait

LEAST_SHARE = 0.1


@dataclass(frozen=True, slots=True)
class MixProposer:
    """See `ports.Proposer`."""

    parts: Mapping[str, Proposer]
    """Who proposes, by the name that stands in their proposals."""
    agent_share: float = 0.25
    """The agent's part of all ideas while nothing speaks for more."""
    operates: bool = True
    """Whether plain parameters are operated on where search stands on a plateau."""

    def ask(self, view: View) -> Proposal | Edited | Wait | Exhausted:
        """Ask whoever is furthest behind their share; whoever cannot answer now gives the turn away."""
        if not self.parts:
            return Exhausted(because="The contract names nobody who proposes by itself; people may, at any time.")
        waits: list[Wait] = []
        reasons: list[str] = []
        for name in self._turns(view):
            answer = self._ask(name, view)
            if isinstance(answer, Wait):
                waits.append(answer)
            elif isinstance(answer, Exhausted):
                reasons.append(f"{name}: {answer.because}")
            else:
                return answer
        if waits:
            return min(waits, key=lambda wait: wait.until_seconds)
        return Exhausted(because=" ".join(reasons)[:2000])

    def _ask(self, name: str, view: View) -> Proposal | Edited | Wait | Exhausted:
        """Ask one proposer for the sort of idea that is wanted; when search has nothing left, every sort is tried."""
        if name != "search":
            return self.parts[name].ask(replace(view, operator=view.operator or agents_operator(view)))
        if not self.operates:
            return self.parts[name].ask(view)
        wanted = replace(view, operator=view.operator or operator_for(view))
        answer = operated(wanted) or self.parts[name].ask(wanted)
        for operator in CYCLE if isinstance(answer, Exhausted) and view.candidates_left and view.runs_left else ():
            answer = operated(replace(view, operator=operator)) or answer
            if not isinstance(answer, Exhausted):
                break
        named = isinstance(answer, Proposal) and answer.operator is not None
        return answer if named or not isinstance(answer, Proposal) else replace(answer, operator="tune")

    def _turns(self, view: View) -> list[str]:
        """Everybody, whoever is furthest behind first; a question that is open is looked after before anything else."""
        open_ask = bool(view.asks) and view.asks[-1].outcome is None
        share = shares(view, tuple(self.parts), self.agent_share)
        had = {name: sum(one.proposal.proposer == name for one in view.tried) for name in self.parts}
        whole = sum(had.values())

        def behind(name: str) -> float:
            return share[name] * (whole + 1) - had[name]

        order = sorted(self.parts, key=lambda name: (-behind(name), name))
        return sorted(order, key=lambda name: name != "agent") if open_ask else order


def shares(view: View, names: tuple[str, ...], agent_share: float) -> dict[str, float]:
    """What part of the next ideas each proposer has."""
    if len(names) == 1:
        return {names[0]: 1.0}
    brought = {name: _brought(view, name) for name in names}
    if sum(certified > 0 for certified, _ in brought.values()) > 1:
        rates = {name: (certified + 1.0) / (asked + 2.0) for name, (certified, asked) in brought.items()}
        whole = sum(rates.values())
        return _kept_alive({name: rate / whole for name, rate in rates.items()})
    agent = min(2 * agent_share, max(agent_share, 0.5)) if on_plateau(view) else agent_share
    others = [name for name in names if name != "agent"]
    return {name: agent if name == "agent" else (1.0 - agent) / len(others) for name in names}


def _brought(view: View, name: str) -> tuple[int, int]:
    """How many of a proposer's measured ideas were certified, and how many there are."""
    own = [one for one in view.tried if one.proposal.proposer == name and one.outcome not in ("pending", "refused")]
    return sum(one.outcome == "certified" for one in own), len(own)


def _kept_alive(found: dict[str, float]) -> dict[str, float]:
    raised = {name: max(share, LEAST_SHARE) for name, share in found.items()}
    whole = sum(raised.values())
    return {name: share / whole for name, share in raised.items()}
