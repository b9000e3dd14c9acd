"""A certified change tried somewhere else: another environment, or a longer training. Never part of a claim."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from overnight.records.codec import Misfit
from overnight.records.env import EnvSpec
from overnight.records.limits import Above, CandidateId, Items, Name, ObjectId, Sentence
from overnight.records.order import RunBudget


@dataclass(frozen=True, slots=True, kw_only=True)
class Transfer:
    """The certified tree and the baseline's, unmodified, on the same seeds and the same machine, in one setting."""

    SCHEMA: ClassVar[str] = "overnight/transfer/1"

    candidate: CandidateId
    """What was certified."""
    tree: ObjectId
    """Its tree."""
    baseline: ObjectId
    """The baseline's tree."""
    env: EnvSpec
    """Where both were trained and measured."""
    budget: RunBudget
    """What each training got."""
    times: Annotated[float, Above(0)]
    """How many times the study's own budget that is."""
    hardware: Name
    """The machine, the device and the cores of each run."""
    train_seeds: Annotated[tuple[int, ...], Items(1, 1000)]
    """The train seeds, shared by both arms."""
    ours: Annotated[tuple[float | None, ...], Items(1, 1000)]
    """The candidate's score on each of them; null where the run brought none, by its own fault."""
    theirs: Annotated[tuple[float | None, ...], Items(1, 1000)]
    """The baseline's."""
    gain: float | None = None
    """How much better the candidate's mean is; null where a side has fewer than two scores."""
    gain_low: float | None = None
    """The low end of its 95 % interval."""
    gain_high: float | None = None
    """The high end of its 95 % interval."""
    says: Sentence
    """The result in one sentence."""

    def __post_init__(self) -> None:
        """Both arms have every seed."""
        if not len(self.train_seeds) == len(self.ours) == len(self.theirs):
            counts = f"{len(self.ours)} and {len(self.theirs)}"
            raise Misfit(("ours",), f"has {counts} scores, but there are {len(self.train_seeds)} train seeds")
