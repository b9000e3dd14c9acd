"""Who proposes tonight, as the contract names them: search, a coding agent, or both under one budget."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from overnight.ports import Proposer
    from overnight.trials import Bench


@contextmanager
def proposing(bench: "Bench") -> "Iterator[Proposer]":
    """The proposer of one sitting; what an agent still does at its end is ended."""
    from overnight.adapters.proposers.agent import AgentProposer
    from overnight.adapters.proposers.caller import LocalCaller
    from overnight.adapters.proposers.mix import MixProposer
    from overnight.adapters.proposers.search import SearchProposer
    from overnight.desk import StudyDesk
    from overnight.prospect import view_of

    named, agent = bench.contract.experiments.proposers, bench.contract.experiments.agent
    search: dict[str, Proposer] = {"search": SearchProposer()} if "search" in named else {}
    if agent is None:
        yield MixProposer(search)
        return
    asked = AgentProposer(StudyDesk(bench.study, bench.store, bench.contract), LocalCaller(), bench.study.machine)
    try:
        yield MixProposer({"agent": asked, **search}, agent_share=agent.share)
    finally:
        asked.close(view_of(bench))
