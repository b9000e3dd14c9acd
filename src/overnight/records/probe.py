"""A plan that varies one randomization parameter at a time around the nominal environment."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar

from overnight.records.codec import Misfit
from overnight.records.limits import Items, Name


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbePoint:
    """One environment to try: the nominal values with at most one of them changed."""

    name: Name
    """What the point is called in reports."""
    values: Mapping[str, float]
    """The value of each parameter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomizationProbe:
    """A one-at-a-time probe of feasible randomization ranges."""

    SCHEMA: ClassVar[str] = "overnight/randomization-probe/1"

    nominal: Mapping[str, float]
    """The value of each parameter in the unchanged environment."""
    points: Annotated[tuple[ProbePoint, ...], Items(1, 10_000)]
    """The environments to try."""

    def __post_init__(self) -> None:
        """Refuse a point that varies two parameters, or other parameters than the nominal ones."""
        for index, point in enumerate(self.points):
            if point.values.keys() != self.nominal.keys():
                raise Misfit(("points", str(index)), "does not give a value for exactly the nominal parameters")
            varied = [name for name, value in point.values.items() if value != self.nominal[name]]
            if len(varied) > 1:
                raise Misfit(("points", str(index)), f"varies {' and '.join(varied)}, but a probe varies one at a time")
