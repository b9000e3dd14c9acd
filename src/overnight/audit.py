"""A second look at a gain before it is claimed: every score is computed again from the stored episodes.

The ledger holds one number for each run. The audit does not believe it: it reads every episode
that the referee stored, under the digest that the evidence names, takes the mean and the guarded
measures anew, and puts them through the same test. A gain that does not come out the same is not claimed.
"""

import json
from math import isclose

from overnight.attempts import Attempt
from overnight.decide.certify import Arm, Certification
from overnight.decide.looks import SeedsWanted, attempt
from overnight.evaluate.measure import Measured
from overnight.records.audit import ResultAudit
from overnight.records.codec import dumps
from overnight.records.contract import Contract
from overnight.study.artifacts import read_bytes
from overnight.study.durable import make_folder, write_file
from overnight.study.ledger import RawEntry, read_sound
from overnight.study.study import Study


def audit(
    study: Study, contract: Contract, one: Attempt, claimed: Certification, evidence: tuple[str, ...]
) -> ResultAudit:
    """Compute a claimed gain again from the episodes of the runs it names, and leave a file that says so."""
    candidate = one.tip
    artefacts = _artefacts(study)
    again = [_measured(study, artefacts.get(run)) for run in evidence]
    ours = [got for run, got in zip(evidence, again, strict=True) if study.state.runs[run].candidate == candidate]
    theirs = [got for run, got in zip(evidence, again, strict=True) if study.state.runs[run].candidate != candidate]
    names = [rail.name for rail in contract.metric.guardrails]
    found = attempt(
        contract.metric, one.looks, _arm(ours, names), _arm(theirs, names), alpha=one.alpha, next_alpha=one.next_alpha
    )
    same = not isinstance(found, SeedsWanted) and _same(claimed, found)
    gain = None if isinstance(found, SeedsWanted) else found.gain.estimate
    result = ResultAudit(
        candidate=candidate,
        claimed_gain=claimed.gain.estimate,
        recomputed_gain=gain,
        verdict="passed" if same else "failed",
        because=_sentence(len(again), claimed.gain.estimate, gain, same=same),
        evidence_paths=tuple(f"objects/{artefacts[run]}" for run in evidence if run in artefacts),
    )
    make_folder(study.machine, study.at.audits)
    write_file(study.machine, study.at.audits / f"attempt-{study.state.attempts + 1}.json", dumps(result))
    return result


def _artefacts(study: Study) -> dict[str, str]:
    """The digest of the stored episodes of each measured run."""
    found: dict[str, str] = {}

    def take(entry: RawEntry, _: int) -> None:
        if entry["kind"] == "measured":
            found[entry["data"]["run"]] = entry["data"]["artefact"]

    read_sound(study.machine, study.at.folder, take)
    return found


def _measured(study: Study, artefact: str | None) -> Measured | None:
    """The stored episodes of one run; None for a run that brought no policy, or whose policy broke."""
    if artefact is None:
        return None
    episodes = json.loads(read_bytes(study.machine, study.at.objects, artefact))["episodes"]
    return Measured(tuple((seed, total, steps) for seed, total, steps in episodes), "") if episodes else None


def _arm(measured: list[Measured | None], guardrails: list[str]) -> Arm:
    rails = [{} if one is None else one.guardrails() for one in measured]
    return Arm(
        scores=tuple(None if one is None else one.score() for one in measured),
        guardrails={name: tuple(rail.get(name) for rail in rails) for name in guardrails},
    )


def _same(claimed: Certification, found: Certification) -> bool:
    ours, theirs = (
        (one.gain.estimate, one.gain.low, one.gain.high, *(rail.worse_by for rail in one.guardrails))
        for one in (claimed, found)
    )
    return (
        claimed.verdict is found.verdict
        and len(ours) == len(theirs)
        and all(isclose(one, other, rel_tol=1e-9, abs_tol=1e-9) for one, other in zip(ours, theirs, strict=True))
    )


def _sentence(runs: int, claimed: float, found: float | None, *, same: bool) -> str:
    if same:
        return f"The gain of {claimed:g} comes out again from the stored episodes of {runs} runs."
    other = "no verdict" if found is None else f"{found:g}, or another verdict"
    return f"A gain of {claimed:g} was computed, but the stored episodes of {runs} runs give {other}."
