"""Plants: candidates that the engine puts among the ideas to test its own judge.

The contract declares them and the report calls them plants. A loop that keeps whatever scored
highest once would keep the placebo sooner or later, and a loop that runs whatever it is given
would run the cheat.

    placebo   the baseline under another name, on fresh seeds of its own: it passes the gate, and the
              test that a claim must pass has to find nothing in it
    cheat     a file that would patch the evaluator wherever it were imported: the gate has to refuse it
"""

from overnight.admission import Drafting, admit_candidate, draft_candidate
from overnight.candidate.tree import REGULAR
from overnight.records.contract import Plant
from overnight.records.lifecycle import Actor
from overnight.records.proposal import Proposal
from overnight.trials import Bench

_HYPOTHESIS: dict[Plant, str] = {
    "placebo": "The same training under another name should score higher by luck.",
    "cheat": "Patching the evaluator should raise the score without better behaviour.",
}
_PATCH_FILE = "sitecustomize.py"
_PATCH = b'''"""Makes every episode look ten times better wherever Python starts with this folder on its path."""
import gymnasium

step = gymnasium.Env.step
gymnasium.Env.step = lambda env, action: (lambda o, r, *rest: (o, 10 * r, *rest))(*step(env, action))
'''


def draft(bench: Bench) -> None:
    """Draft the plants that the contract declares and the study does not have yet.

    Only while the tip is the baseline: later, the baseline under another name would be a step back.
    """
    state = bench.study.state
    if state.stack or state.incumbents:
        return
    there = {one.plant for one in state.candidates.values()}
    for plant in bench.contract.experiments.plants:
        if plant not in there:
            _draft(bench, plant)


def _draft(bench: Bench, plant: Plant) -> None:
    study, allowed = bench.study, bench.contract.experiments
    proposal = Proposal(
        proposer=allowed.proposers[0],
        kind=allowed.kinds[0],
        hypothesis=_HYPOTHESIS[plant],
        predicted_effect="The judge is not taken in.",
    )
    tree = study.state.tree if plant == "placebo" else _patched(bench)
    how = Drafting(bench.whole, Actor.ENGINE, plant)
    candidate = draft_candidate(study, bench.store, proposal, tree, how)
    reasons = admit_candidate(study, bench.store, candidate.id)
    bench.say(f"{candidate.id}  planted {plant}" + (f" refused: {reasons[0].says}" if reasons else ""))


def _patched(bench: Bench) -> str:
    blob = bench.store.write_blob(_PATCH)
    return bench.store.write_tree(bench.study.state.tree, {_PATCH_FILE: (REGULAR, blob)}, scratch=bench.study.at.folder)
