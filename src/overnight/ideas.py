"""Where the loop's candidates come from: the baseline, drafts that nobody judged, people, and whoever proposes.

Whatever is heard is drafted and put before the gate at once. Nothing here starts a run.
"""

from overnight.admission import Drafting, admit_candidate, draft_candidate
from overnight.errors import Refused
from overnight.intake import carry_over, hear_inbox, take_up
from overnight.ports import Proposer
from overnight.prospect import view_of
from overnight.records.handed import Heard
from overnight.records.lifecycle import Actor, State
from overnight.records.proposal import Exhausted, Proposal, Wait
from overnight.trials import Bench


def draft_baseline(bench: Bench) -> None:
    """The baseline is a candidate with an empty change, so that it is run and measured like any other."""
    study = bench.study
    if study.state.baseline:
        return
    proposal = Proposal(
        proposer=bench.contract.experiments.proposers[0],
        kind=bench.contract.experiments.kinds[0],
        hypothesis="The baseline as it is.",
        predicted_effect="This is what everything else is compared with.",
    )
    how = Drafting(bench.whole, Actor.ENGINE)
    draft_candidate(study, bench.store, proposal, study.state.tree, how)


def hear_drafts(bench: Bench) -> None:
    """Put drafts before the gate that it was never asked about: an engine may die between the two."""
    for found in list(bench.study.state.candidates.values()):
        if found.state is State.DRAFT and (found.id == bench.study.state.baseline or not found.refused):
            reasons = admit_candidate(bench.study, bench.store, found.id)
            if reasons and found.id == bench.study.state.baseline:
                raise Refused(found.id, (reason.says for reason in reasons))


def hear_people(bench: Bench) -> bool:
    """Take up what people handed in while the night runs, and what the tip overtook; True when there was something."""
    handed = [("handed in", *one) for one in hear_inbox(bench.study, bench.store)]
    again = [("again, on the new tip", *one) for one in carry_over(bench.study, bench.store)]
    for how, proposal, heard in (*handed, *again):
        said = f"refused: {heard.refused[0]}" if heard.refused else f"{how}: {proposal.hypothesis}"
        bench.say(f"{heard.candidate or 'a proposal'}  {said}")
    return bool(handed or again)


def ask(bench: Bench, proposer: Proposer) -> Heard | Wait | Exhausted:
    """Ask for one idea, and put it before the gate if there is one."""
    answer = proposer.ask(view_of(bench))
    if isinstance(answer, Wait | Exhausted):
        return answer
    heard = take_up(bench.study, bench.store, answer)
    if heard.refused:
        bench.say(f"{heard.candidate or 'a copy'}  refused: {heard.refused[0]}")
    return heard
