"""More of what the contract allows already: hours, runs, candidates, dollars or tokens. Pure: a text in, a text out.

Only raises. What is not an amount is changed by editing the contract and approving it, where a person reads it.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass

from overnight.errors import UserError
from overnight.records.contract import Clause, Contract
from overnight.study import yaml


@dataclass(frozen=True, slots=True)
class More:
    """What is added to the present amounts; None where nothing is."""

    hours: float | None = None
    runs: int | None = None
    candidates: int | None = None
    dollars: float | None = None
    tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Raise:
    """One value of the contract that grows."""

    clause: Clause
    keys: tuple[str, ...]
    old: float
    new: float

    def told(self) -> str:
        """The key with the old and the new value."""
        return f"{self.clause}.{'.'.join(self.keys)}: {self.old:,.10g} → {self.new:,.10g}"


def raises(contract: Contract, more: More) -> tuple[Raise, ...]:
    """Every value that grows, in the order of the contract."""
    for name, added in asdict(more).items():
        if added is not None and not added > 0:
            raise UserError(
                f"--{name}",
                f"is {added:g}, but `extend` only adds to what is there",
                hint="to lower a limit, edit contract.yaml and approve it with `overnight approve`",
            )
    found = tuple(_raises(contract, more))
    if not found:
        raise UserError("overnight extend", "needs to know by how much", hint="for example `--hours 4`")
    return found


def _raises(contract: Contract, more: More) -> Iterator[Raise]:
    budget, experiments = contract.budget, contract.experiments
    if more.runs is not None:
        yield Raise(Clause.BUDGET, ("max_runs",), budget.max_runs, budget.max_runs + more.runs)
    if more.hours is not None:
        hours = float(f"{budget.max_wall_hours + more.hours:.10g}")  # without floating-point dust
        yield Raise(Clause.BUDGET, ("max_wall_hours",), budget.max_wall_hours, hours)
    if more.dollars is not None:
        dollars = float(f"{budget.max_dollars + more.dollars:.10g}")
        yield Raise(Clause.BUDGET, ("max_dollars",), budget.max_dollars, dollars)
    if more.tokens is not None:
        yield Raise(Clause.BUDGET, ("max_tokens",), budget.max_tokens, budget.max_tokens + more.tokens)
    if more.candidates is not None:
        covered, most = experiments.automation.max_candidates, experiments.stop.max_candidates
        if covered >= most:  # what ran without being asked about goes on doing so
            yield Raise(Clause.EXPERIMENTS, ("automation", "max_candidates"), covered, covered + more.candidates)
        yield Raise(Clause.EXPERIMENTS, ("stop", "max_candidates"), most, most + more.candidates)


def extended(text: str, found: tuple[Raise, ...], *, where: str) -> str:
    """The contract's text with these values raised, and every other byte as it was."""
    for one in found:
        text = yaml.with_value(text, (str(one.clause), *one.keys), one.new, where=where)
    return text
