"""What a proposer sees of a study at one moment: what is open to change, the tip, what was tried, and what is left."""

from collections.abc import Mapping

from overnight.admission import drafted
from overnight.candidate.build import params_of
from overnight.contract import trainers
from overnight.errors import UserError
from overnight.propose.diagnostics import diagnostics
from overnight.propose.view import Sources, view
from overnight.records.limits import Scalar
from overnight.records.proposal import Proposal, View
from overnight.study.state import CandidateState
from overnight.trials import Bench

_DIAGNOSED = 4
"""How many of a candidate's newest trainings are asked how they went."""


def view_of(bench: Bench) -> View:
    """What a proposer may see at this moment."""
    trainer = trainers.trainer_of(bench.contract.baseline.command)
    study = bench.study
    sources = Sources(
        program=(study.machine.read(str(study.at.program)) or b"").decode(errors="replace"),
        space=trainers.space(trainer) if trainer is not None else None,
        params=lambda tree: _params(bench, tree),
        proposal=lambda found: _idea(bench, found),
        starting=trainers.starting_points(trainer, bench.contract) if trainer is not None else (),
        diagnostics=lambda found: _diagnostics(bench, found) if trainer is not None else {},
    )
    return view(study.state, bench.contract, sources)


def _idea(bench: Bench, found: CandidateState) -> Proposal:
    if found.id not in bench.ideas:
        bench.ideas[found.id] = drafted(bench.study.machine, bench.study.at, found).proposal
    return bench.ideas[found.id]


def _diagnostics(bench: Bench, found: CandidateState) -> dict[str, float]:
    """What the newest trainings of a candidate reported about themselves, where no code of a candidate's ran."""
    if bench.contract.runs_candidate_code():
        return {}
    told = [bench.study.at.runs / name / "out" / "metrics.jsonl" for name in found.runs[-_DIAGNOSED:]]
    return diagnostics(bench.study.machine.read(str(path)) or b"" for path in told)


def _params(bench: Bench, tree: str) -> Mapping[str, Scalar]:
    if bench.contract.scope.preset != "params":
        return {}
    if tree not in bench.params:
        try:
            bench.params[tree] = params_of(bench.store, tree)
        except UserError:  # what the gate refused may hold anything
            bench.params[tree] = {}
    return bench.params[tree]
