"""When an attempt to certify looks at its scores: written down before its first run, and never changed."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from overnight.records.codec import Misfit
from overnight.records.limits import Above, AtLeast, AtMost, CandidateId, Items

STRETCH = 3
"""The last attempt of a study may look at this many times the seeds of the last look, where runs are left over."""
PAIRED_LOOK = 8
"""A comparison seed by seed looks at this many seeds at least: fewer cannot reach a small enough p-value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LookSchedule:
    """The looks of one attempt, and what it may spend."""

    SCHEMA: ClassVar[str] = "overnight/look-schedule/1"

    attempt: Annotated[int, AtLeast(1)]
    """Which attempt of the study; also the round of its fresh seeds."""
    tip: CandidateId
    """What is to be certified."""
    incumbent: CandidateId
    """What it is compared with."""
    looks: Annotated[tuple[Annotated[int, AtLeast(1)], ...], Items(1, 20)]
    """Fresh seeds a side at each look, rising."""
    shares: Annotated[tuple[Annotated[float, Above(0), AtMost(1)], ...], Items(1, 20)]
    """The part of the attempt's error that each look may spend."""
    paired: bool
    """Whether both sides are compared seed by seed."""
    error: Annotated[float, Above(0), AtMost(0.5)]
    """The chance of a false claim that the attempt may spend."""
    runs_left: Annotated[float, AtLeast(0)] | None = None
    """The runs that were left for a last attempt, which stretch its last look; null where the search may go on."""

    def __post_init__(self) -> None:
        """Refuse looks that cannot be followed, or that spend more than there is."""
        if len(self.looks) != len(self.shares):
            raise Misfit(("shares",), f"has {len(self.shares)} parts for {len(self.looks)} looks")
        if list(self.looks) != sorted(set(self.looks)):
            raise Misfit(("looks",), "come at a rising number of seeds")
        if sum(self.shares) > 1 + 1e-9:
            raise Misfit(("shares",), "spend more than the attempt has")
