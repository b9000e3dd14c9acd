"""The journal of experiments, `results.md`: one section for each, with the same six parts, rebuilt from the ledger."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean

from overnight.records.contract import Contract
from overnight.records.proposal import Proposal
from overnight.report.facts import Facts
from overnight.report.text import markdown, number
from overnight.study.ledger import RawEntry
from overnight.study.state import CandidateState, StudyState


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """One experiment as the journal tells it."""

    name: str
    """The candidate."""
    at: str
    """When it was decided."""
    commit: str
    """What was run."""
    budget: str
    """What a run of it was given."""
    max_steps: int | None
    """Where an episode is cut."""
    idea: str
    rationale: str
    worked: str
    failed: str
    decision: str
    next: str
    score: float | None
    """The mean over its screening runs; null where it has none."""
    kept: bool


def experiments(
    state: StudyState,
    contract: Contract,
    entries: Sequence[RawEntry],
    proposal: Callable[[CandidateState], Proposal],
) -> Iterator[Experiment]:
    """The baseline, and every candidate in the order in which it was first decided."""
    decided: dict[str, RawEntry] = {}
    for entry in entries:
        if entry["kind"] == "decided":
            decided.setdefault(entry["data"]["candidate"], entry)
    names = [state.baseline, *(name for name in decided if name != state.baseline)] if state.baseline else []
    for place, name in enumerate(names):
        one, verdict = state.candidates[name], decided.get(name)
        after = names[place + 1] if place + 1 < len(names) else None
        following = state.candidates[after].hypothesis if after is not None else "None was tried after it."
        yield _experiment(state, contract, one, verdict, (proposal(one), following))


def _experiment(
    state: StudyState,
    contract: Contract,
    one: CandidateState,
    entry: RawEntry | None,
    words: tuple[Proposal, str],
) -> Experiment:
    runs = [run for run in state.runs.values() if run.candidate == one.id and run.phase == "screen"]
    scores = [run.score for run in runs if run.score is not None]
    rung = runs[-1].rung if runs else 0
    unit = contract.budget.stop_unit.replace("_", " ")
    is_baseline, gain = one.id == state.baseline, entry["data"]["gain"] if entry is not None else None
    worked = f"It scored {number(fmean(scores))} {contract.metric.unit} on average." if scores else "Nothing."
    if gain is not None and gain > 0:
        worked += f" That is {number(gain)} more than the tip."
    failed = one.failure or (f"It lost {number(-gain)} to the tip." if gain is not None and gain < 0 else "Nothing.")
    return Experiment(
        name="baseline" if is_baseline else one.id,
        at=str(entry["at"])[:16].replace("T", " ") if entry is not None else "",
        commit=one.commit[:7],
        budget=f"{contract.budget.amount(rung):,.0f} {unit}",
        max_steps=contract.task.env.max_episode_steps,
        idea=one.hypothesis,
        rationale=words[0].predicted_effect,
        worked=worked,
        failed=failed,
        decision=one.verdict or ("Everything is compared with it." if is_baseline else "None yet."),
        next=words[1],
        score=fmean(scores) if scores else None,
        kept=one.kept or is_baseline,
    )


def render_journal(facts: Facts, found: Sequence[Experiment]) -> str:
    """The whole journal as Markdown; every text that somebody else wrote is made plain."""
    parts = [f"# {markdown(facts.task)}/{markdown(facts.study)}: experiments"]
    for one in found:
        steps = f"{one.max_steps:,}" if one.max_steps is not None else "no limit"
        parts.append(f"## {markdown(one.at) or 'not decided'} · {one.commit} · {one.budget} · max_steps {steps}")
        told = {
            "Idea": one.idea,
            "Rationale": one.rationale,
            "What worked": one.worked,
            "What did not work": one.failed,
            "Decision": one.decision,
            "Next experiment": one.next,
        }
        parts.append("\n".join(f"- **{name}:** {markdown(text)}" for name, text in told.items()))
    return "\n\n".join(parts) + "\n"
