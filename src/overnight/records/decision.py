"""What the engine concluded about one candidate or one stack, and what the loop does next."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, ClassVar

from overnight.records.codec import Misfit
from overnight.records.limits import AtLeast, AtMost, CandidateId, Items, Length, OneLine, RunId, Sentence, Slug


class Verdict(StrEnum):
    """Screening says keep, reject or inconclusive; certification says certified, refuted or inconclusive."""

    KEEP = "keep"
    REJECT = "reject"
    INCONCLUSIVE = "inconclusive"
    CERTIFIED = "certified"
    REFUTED = "refuted"


class LoopDecision(StrEnum):
    """The five things the loop can do after a verdict."""

    CONTINUE = "continue"
    STOP = "stop"
    ROLLBACK = "rollback"
    NARROW = "narrow"
    ESCALATE = "escalate"


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardrailFinding:
    """How one guarded measure fared."""

    name: str
    """The measure."""
    worse_by: float
    """How much worse than the incumbent it is on average; negative is better."""
    margin: Annotated[float, AtLeast(0)]
    """What the contract allows."""

    def holds(self) -> bool:
        """Whether the guardrail holds."""
        return self.worse_by <= self.margin


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """One verdict on one candidate, or, for a certification, on the stack that ends in it."""

    SCHEMA: ClassVar[str] = "overnight/decision/1"

    candidate: CandidateId
    """Who is judged; for a certification, the tip."""
    verdict: Verdict
    """What the evidence says."""
    because: Sentence
    """A full sentence with the numbers in it; reports print it unchanged."""
    loop: LoopDecision
    """What the loop does next."""
    rule: Sentence
    """The rule that was applied, with its bar."""
    gain: float | None = None
    """The estimated gain, higher is better always; null where nothing could be measured."""
    gain_low: float | None = None
    """The low end of the gain's interval."""
    gain_high: float | None = None
    """The high end of the gain's interval."""
    guardrails: tuple[GuardrailFinding, ...] = ()
    """How the guarded measures fared."""
    evidence: Annotated[tuple[RunId, ...], Items(0, 10_000)] = ()
    """The runs behind the verdict."""
    audit: Slug | None = None
    """The audit that a certification passed."""
    provisional: bool = False
    """Whether it is kept only until fresh tuning seeds have spoken."""
    seeds: Annotated[int, AtLeast(0)] | None = None
    """How many train seeds of the candidate were looked at; null in records from before that was told."""
    paired: bool = False
    """Whether a certification compared seed by seed."""
    improvement: Annotated[float, AtLeast(0), AtMost(1)] | None = None
    """The chance that a seed of the candidate beats one of the incumbent; null when screening."""
    error_spent: Annotated[float, AtLeast(0), AtMost(0.5)] | None = None
    """The chance of a false claim that a certification was given; null when screening, which claims nothing."""
    seeds_wanted: Annotated[int, AtLeast(1)] | None = None
    """About how many fresh seeds each side would decide; null when decided, or when far too many."""
    details: Annotated[str, Length(2000), OneLine()] = ""
    """What a statistician asks for and nobody else: p-value, bar, error spent."""

    def __post_init__(self) -> None:
        """The incumbent rule: no claim without gain, evidence, audit and guardrails that hold."""
        if self.verdict is not Verdict.CERTIFIED:
            return
        if self.gain_low is None or self.gain_low <= 0:
            raise Misfit(("gain_low",), f"is {self.gain_low}, but a certified gain lies above 0 as a whole")
        if not self.evidence:
            raise Misfit(("evidence",), "is empty, but a certified gain has evidence")
        if self.audit is None:
            raise Misfit(("audit",), "is null, but a certified gain has passed an audit")
        broken = [finding.name for finding in self.guardrails if not finding.holds()]
        if broken:
            raise Misfit(("guardrails",), f"says that {', '.join(broken)} got worse, so nothing can be certified")


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """What the loop does next where no verdict on a candidate says it: it stops, narrows down, or asks a person."""

    SCHEMA: ClassVar[str] = "overnight/turn/1"

    loop: LoopDecision
    """What it does."""
    because: Sentence
    """Why, as a full sentence."""
