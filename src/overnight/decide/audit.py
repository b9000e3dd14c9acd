"""Whether a claim stands on its evidence: one check after the other, each a sentence. Pure.

A dossier holds everything that the ledger, the store and the disk say about one certified gain. Nothing in it is
believed because the engine wrote it: scores are taken anew from the stored episodes, seeds are derived anew from the
key, and the gain is computed anew. Somebody with the user's own rights can write a ledger anew as a whole; these
checks are what such a forgery still has to get past.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isclose, isfinite
from statistics import fmean

from overnight.decide.certify import Certification
from overnight.decide.plausible import is_possible
from overnight.records.decision import Verdict
from overnight.records.metric import MetricSpec
from overnight.records.run import Outcome
from overnight.records.schedule import LookSchedule

Episodes = tuple[tuple[int, float, int], ...]
"""Seed, return and length of each episode."""
_CHANCE = 20
"""Two lists of hidden seeds may share one in so many by chance; seeds that were used twice share nearly all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditedRun:
    """One run behind a claim, with what can be found out about it."""

    id: str
    """Its id."""
    candidate: str
    """What was trained."""
    tree: str
    """The tree that was launched."""
    drafted_tree: str
    """The tree that the candidate was drafted with."""
    stored_tree: str | None
    """The tree that the store has for the candidate now; None where it has none."""
    gated: bool
    """Whether the gate had let that tree in when the run was launched."""
    phase: str
    """What it was for."""
    round: int
    """Which attempt its seeds belong to."""
    number: int
    """Which of the round's seeds it has."""
    train_seed: int
    """The seed it was given."""
    comparability: str
    """The key that its results carry."""
    outcome: Outcome | None
    """How it ended."""
    score: float | None
    """The score in the ledger; None where there is none."""
    guardrails: Mapping[str, float]
    """The guarded measures in the ledger."""
    measured: int
    """How many measurements of it the ledger holds."""
    episodes: Episodes | None
    """The stored episodes; None where there are none that can be believed."""
    flaw: str = ""
    """Why stored episodes that the ledger names cannot be believed; empty where they can."""
    again: Mapping[str, float] | None = None
    """The guarded measures, taken anew from the stored episodes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditedLooks:
    """When the attempt behind a claim was to look, as it was written down and as it follows from the entries before."""

    written: LookSchedule
    """The schedule that the ledger has, from before the attempt's first run."""
    follows: LookSchedule | None
    """The schedule that follows from the entries before it; None where they allow no attempt."""
    runs_then: int
    """The runs that the budget still held at that moment."""
    total_error: float
    """What the frozen plan gives to the whole study."""
    allowed_error: float
    """What the contract allows."""
    told_error: float | None
    """What the claim says that its attempt was given."""
    replayed: Certification | None
    """What these looks say about the stored episodes; None where they say nothing yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dossier:
    """Everything that is known about one claim."""

    candidate: str
    """Whose claim."""
    metric: MetricSpec
    """What is measured, by the contract as it stands."""
    comparability: str
    """The key of the contract as it stands."""
    metric_digests: tuple[str, ...]
    """The digest of the metric: as the contract has it, and at each approval since the first run of the study."""
    allowed: float
    """The chance of a false claim that the study may spend."""
    claimed: tuple[float | None, float | None, float | None]
    """The gain with its interval, as the ledger claims it."""
    guardrails: Mapping[str, float]
    """How much worse each guarded measure is, as the ledger claims it."""
    runs: tuple[AuditedRun, ...]
    """The runs that the claim names."""
    missing: tuple[str, ...]
    """Runs that the claim names and that were never launched."""
    round_mates: tuple[AuditedRun, ...]
    """Every run of the same attempt, named or not."""
    other_train_seeds: frozenset[int]
    """The train seeds of every other run of the study."""
    other_episode_seeds: frozenset[int]
    """The episode seeds of every other measurement of the study."""
    derive: Callable[[AuditedRun], tuple[int, tuple[int, ...], tuple[int, ...]]] | None
    """From the key: a run's train seed, its episode seeds, and those of a second measurement; None without the key."""
    unkeyed: str
    """Why there is no key; empty where there is one."""
    recomputed: Certification | None
    """The gain as it comes out of the stored episodes; None where they certify none."""
    looks: AuditedLooks | None
    """The looks of the attempt; None where none were written down before its first run."""
    first_audit: str
    """What the audit before the claim said: `passed`, `failed`, or why it cannot be read."""


@dataclass(frozen=True, slots=True)
class Check:
    """One question that was asked about a claim."""

    name: str
    """What was asked, in a word or two."""
    passed: bool
    """Whether the claim stands."""
    because: str
    """The full sentence."""


Question = Callable[[Dossier], tuple[str, str]]
"""Gives what is wrong, empty where nothing is, and the sentence for when nothing is."""


def check_claim(dossier: Dossier) -> tuple[Check, ...]:
    """Ask every question; none is skipped."""
    found = []
    for name, question in QUESTIONS:
        wrong, right = question(dossier)
        found.append(Check(name, not wrong, wrong or right))
    return tuple(found)


def _provenance(case: Dossier) -> tuple[str, str]:
    ungated = [run.id for run in case.runs if not run.gated]
    silent = [run.id for run in case.runs if run.outcome is None]
    wrong = ""
    if case.missing or not case.runs:
        wrong = f"The claim rests on runs that were never launched: {_few(case.missing) or 'it names none'}."
    elif ungated:
        wrong = f"The gate had not let in what was launched as {_few(ungated)}."
    elif silent:
        wrong = f"{_few(silent)} never ended by its supervisor's word."
    elif {run.phase for run in case.runs} != {"confirm"}:
        wrong = "The claim rests on screening runs, and only fresh seeds certify."
    elif not any(run.candidate == case.candidate for run in case.runs):
        wrong = f"No run of {case.candidate} itself stands behind the claim."
    elif len({run.candidate for run in case.runs}) != 2:
        wrong = "A claim compares two arms, but its runs belong to " + _few({run.candidate for run in case.runs}) + "."
    return wrong, f"All {len(case.runs)} runs were launched by the runner after the gate had let them in."


def _trees(case: Dossier) -> tuple[str, str]:
    other = [run.id for run in case.runs if run.tree != run.drafted_tree]
    moved = sorted({run.candidate for run in case.runs if run.stored_tree != run.drafted_tree})
    wrong = ""
    if other:
        wrong = f"{_few(other)} ran another tree than its candidate was drafted with."
    elif moved:
        wrong = f"The store has another tree under {_few(moved)} than the ledger."
    return wrong, "Every run trained the tree that its candidate was drafted with, and the store still has it."


def _digests(case: Dossier) -> tuple[str, str]:
    flawed = [f"{run.id}: {run.flaw}" for run in case.runs if run.flaw]
    wrong = f"Stored episodes cannot be believed; {flawed[0]}" if flawed else ""
    kept = sum(run.episodes is not None for run in case.runs)
    return wrong, f"The stored episodes of {kept} runs have the digests that the ledger names."


def _comparable(case: Dossier) -> tuple[str, str]:
    keys = {run.comparability for run in case.runs}
    wrong = ""
    if len(keys) > 1:
        wrong = "The runs carry different comparability keys: budget, hardware, protocol or environment changed."
    elif keys and keys != {case.comparability}:
        wrong = "The runs were made at another budget, hardware, protocol or environment than the contract has now."
    return wrong, "Budget, hardware, protocol and environment are the same for every run."


def _same_metric(case: Dossier) -> tuple[str, str]:
    if len(set(case.metric_digests)) > 1:
        return "The metric or a guardrail was changed after the first run of the study.", ""
    for run in case.runs:
        if run.episodes and run.score is not None and not _close(run.score, fmean(one[1] for one in run.episodes)):
            mean = fmean(one[1] for one in run.episodes)
            return f"{run.id} is scored {run.score:.6g}, but the mean of its stored episodes is {mean:.6g}.", ""
        for name, value in (run.again or {}).items():
            if name in run.guardrails and not _close(run.guardrails[name], value):
                told = run.guardrails[name]
                return f"{run.id} says {told:.6g} for {name}, but its stored episodes give {value:.6g}.", ""
    return "", f"{case.metric.name} was the metric from the first run on, and every score comes out of its episodes."


def _fresh_seeds(case: Dossier) -> tuple[str, str]:
    arms = _arms(case.runs)
    seeds = [tuple(run.train_seed for run in sorted(arm, key=lambda run: run.number)) for arm in arms.values()]
    used = sorted({run.id for run in case.runs if run.train_seed in case.other_train_seeds})
    wrong = ""
    if any(len(set(arm)) < len(arm) for arm in seeds):
        wrong = "One train seed counts more than once in an arm."
    elif used:
        wrong = f"{_few(used)} had a train seed that the study had used before."
    elif any(arm != seeds[0][: len(arm)] and seeds[0] != arm[: len(seeds[0])] for arm in seeds[1:]):
        wrong = "The two arms were not trained on the same seeds."
    elif reused := [run.id for run in case.runs if _overlaps(run.episodes, case.other_episode_seeds)]:
        wrong = f"{_few(reused)} was measured on episode seeds that other measurements had used before."
    return (
        wrong,
        f"{len(seeds[0]) if seeds else 0} train seeds an arm and their episode seeds were used for nothing else.",
    )


def _revealed(case: Dossier) -> tuple[str, str]:
    if case.derive is None:
        return f"The seeds cannot be derived: {case.unkeyed}.", ""
    for run in case.runs:
        train, first, second = case.derive(run)
        if run.train_seed != train:
            return f"{run.id} was trained on seed {run.train_seed}, but the committed key gives {train}.", ""
        played = tuple(one[0] for one in run.episodes or ())
        if played and played not in (first, second):
            return f"{run.id} was measured on episode seeds that do not follow from the committed key.", ""
    return (
        "",
        "Every train seed and episode seed follows from the key that the ledger was committed to at its beginning.",
    )


def _complete(case: Dossier) -> tuple[str, str]:
    named = {run.id for run in case.runs}
    mates = [run for run in case.round_mates if run.outcome is None or not run.outcome.is_repeated()]
    dropped = [run for run in mates if run.id not in named]
    if dropped:
        one = dropped[0]
        how = (
            "crashed" if one.outcome is Outcome.CRASHED else f"scored {one.score:.6g}" if one.score is not None else ""
        )
        return f"{one.id} of {one.candidate} belongs to the attempt and was left out{f'; it {how}' if how else ''}.", ""
    for candidate, arm in _arms(case.runs).items():
        numbers = sorted(run.number for run in arm)
        if numbers != list(range(len(numbers))):
            gap = next((n for n in range(len(numbers)) if n not in numbers), numbers[-1])
            return f"Seed {gap + 1} of {candidate} is missing or counted twice.", ""
        if repeats := [run.id for run in arm if run.measured > 1]:
            return f"{_few(repeats)} was measured more than once, so the better one could have been chosen.", ""
    counts = sorted(len(arm) for arm in _arms(case.runs).values())
    if len(set(counts)) > 1:
        return f"The arms have {counts[0]} and {counts[-1]} seeds; a failing seed may have been left out.", ""
    lost = sum(run.score is None for run in case.runs)
    return "", f"No seed was left out; {lost} of {len(case.runs)} brought no score and count as lost."


def _in_range(case: Dossier) -> tuple[str, str]:
    for run in case.runs:
        values = [run.score] if run.score is not None else []
        values += [one[1] for one in run.episodes or ()]
        for value in values:
            if not isfinite(value) or not is_possible(case.metric, value):
                low, high = ("any" if end is None else f"{end:g}" for end in (case.metric.lowest, case.metric.highest))
                return f"{run.id} holds {value:.6g}, but the contract says {low} to {high}.", ""
        if any(steps < 1 for _, _, steps in run.episodes or ()):
            return f"{run.id} holds an episode without a step.", ""
    return "", "Every score and every episode lies in the range that the contract calls possible."


def _recomputed(case: Dossier) -> tuple[str, str]:
    again, told = case.recomputed, case.claimed
    if again is None:
        return "The stored episodes certify no gain.", ""
    found = (again.gain.estimate, again.gain.low, again.gain.high)
    if any(one is None or not _close(one, other) for one, other in zip(told, found, strict=True)):
        return f"{_span(told)} is claimed, but the stored episodes give {_span(found)}.", ""
    if not again.gain.low > case.metric.least_gain:
        return f"The interval {_span(found)} does not lie above {case.metric.least_gain:g}.", ""
    if again.p_value > case.allowed:
        return f"Chance alone gives such a gain with probability {again.p_value:.2g}, above {case.allowed:g}.", ""
    return "", f"{_span(found)} comes out again from the stored episodes."


def _look_schedule(case: Dossier) -> tuple[str, str]:
    one = case.looks
    if one is None:
        return "No schedule of looks was written down before the attempt's first run.", ""
    written, seeds = one.written, len(case.runs) // 2
    at = " and ".join(map(str, written.looks))
    wrong = ""
    if written.runs_left is not None and written.runs_left > one.runs_then:
        wrong = f"The last look was stretched by {written.runs_left:g} runs, but the budget held {one.runs_then:,}."
    elif one.follows != written:
        wrong = f"The looks at {at} seeds a side do not follow from what the ledger had before them."
    elif one.total_error > one.allowed_error or one.told_error != written.error:
        wrong = "The attempt was given another error than the contract and the attempts before it leave."
    elif seeds not in written.looks:
        wrong = f"The claim looks at {seeds} seeds a side, but the looks were fixed at {at}."
    elif one.replayed is None or one.replayed.verdict is not Verdict.CERTIFIED:
        wrong = f"The fixed looks at {at} seeds a side do not certify the stored episodes."
    elif len(one.replayed.candidate.scores) != seeds:
        wrong = f"The looks had decided at {len(one.replayed.candidate.scores)} seeds a side, not at {seeds}."
    return wrong, f"The looks at {at} seeds a side were fixed before the first run, and follow from the ledger."


def _guardrails(case: Dossier) -> tuple[str, str]:
    if case.recomputed is None:
        return "The stored episodes certify no gain, so nothing is known about the guardrails.", ""
    again = {one.name: one for one in case.recomputed.guardrails}
    for rail in case.metric.guardrails:
        found = again.get(rail.name)
        if found is None or rail.name not in case.guardrails:
            return f"Nothing is known about the guardrail {rail.name}.", ""
        if not _close(found.worse_by, case.guardrails[rail.name]):
            told = case.guardrails[rail.name]
            return f"{rail.name} is told to be worse by {told:.6g}, but its episodes give {found.worse_by:.6g}.", ""
        if found.worse_by > rail.margin:
            return f"{rail.name} is worse by {found.worse_by:.6g}, above its margin of {rail.margin:g}.", ""
    return "", f"{len(case.metric.guardrails)} guardrails hold within the margins of the contract."


def _first_audit(case: Dossier) -> tuple[str, str]:
    wrong = "" if case.first_audit == "passed" else f"The audit before the claim: {case.first_audit}."
    return wrong, "The audit that was made before the claim is on file, and passed."


QUESTIONS: tuple[tuple[str, Question], ...] = (
    ("provenance", _provenance),
    ("trees", _trees),
    ("digests", _digests),
    ("comparability", _comparable),
    ("metric", _same_metric),
    ("fresh seeds", _fresh_seeds),
    ("revealed seeds", _revealed),
    ("no seed dropped", _complete),
    ("range", _in_range),
    ("look schedule", _look_schedule),
    ("interval", _recomputed),
    ("guardrails", _guardrails),
    ("first audit", _first_audit),
)
"""Every question, in the order in which it is asked."""


def _arms(runs: Sequence[AuditedRun]) -> dict[str, list[AuditedRun]]:
    found: dict[str, list[AuditedRun]] = {}
    for run in runs:
        found.setdefault(run.candidate, []).append(run)
    return found


def _overlaps(episodes: Episodes | None, others: frozenset[int]) -> bool:
    shared = sum(seed in others for seed, _, _ in episodes or ())
    return shared * _CHANCE > len(episodes or ())


def _close(one: float, other: float) -> bool:
    return isclose(one, other, rel_tol=1e-9, abs_tol=1e-9)


def _span(gain: Sequence[float | None]) -> str:
    estimate, low, high = ("nothing" if one is None else f"{one:.6g}" for one in gain)
    return f"A gain of {estimate}, {low} to {high},"


def _few(names: Iterable[str]) -> str:
    listed = sorted(Counter(names))
    more = f" and {len(listed) - 3} more" if len(listed) > 3 else ""
    return ", ".join(listed[:3]) + more
