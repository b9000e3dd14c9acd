"""A trainer's declared parameters: data that search and the gate read without importing the trainer."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from overnight.records.codec import Misfit, show
from overnight.records.limits import Items, Name, Scalar, Sentence


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One parameter: its type, its range, its default, and one sentence."""

    name: Name
    """The key in `params.json`."""
    type: Literal["int", "float", "bool", "choice"]
    """What its values are."""
    default: Scalar
    """The baseline's value."""
    says: Sentence
    """What it does."""
    low: float | None = None
    """The least value of a number."""
    high: float | None = None
    """The greatest value of a number."""
    log: bool = False
    """Whether it is searched on a logarithmic scale."""
    choices: tuple[Scalar, ...] = ()
    """The values of a choice."""
    algorithms: tuple[Name, ...] = ()
    """The values of the parameter `algorithm` under which it is read; empty where it always is."""

    def __post_init__(self) -> None:
        """Refuse a default outside the parameter's own range."""
        wrong = self.why_not(self.default)
        if wrong is not None:
            raise Misfit(("default",), wrong)

    def why_not(self, value: object) -> str | None:
        """Say why a value does not fit, or return None."""
        if self.type == "choice":
            fits = any(value == choice and type(value) is type(choice) for choice in self.choices)
            return None if fits else f"is {show(value)}, but one of {', '.join(map(show, self.choices))} is needed"
        if self.type == "bool":
            return None if isinstance(value, bool) else f"is {show(value)}, but true or false is needed"
        if isinstance(value, bool) or not isinstance(value, int if self.type == "int" else (int, float)):
            needed = "a whole number" if self.type == "int" else "a number"
            return f"is {show(value)}, but {needed} is needed"
        if (self.low is not None and value < self.low) or (self.high is not None and value > self.high):
            low, high = (show(one) if one is not None else "anything" for one in (self.low, self.high))
            return f"is {show(value)}, but {low} to {high} is allowed"
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Space:
    """Everything that a trainer lets a proposer change."""

    SCHEMA: ClassVar[str] = "overnight/space/1"

    trainer: Name
    """The trainer's name."""
    source: Sentence
    """Where the defaults come from."""
    parameters: Annotated[tuple[Parameter, ...], Items(1, 200)]
    """The parameters."""

    def find(self, name: str) -> Parameter | None:
        """One parameter by name."""
        return next((one for one in self.parameters if one.name == name), None)

    def is_read(self, name: str, params: Mapping[str, Scalar]) -> bool:
        """Whether a parameter makes a difference beside these others; one that is not declared may."""
        one = self.find(name)
        return one is None or not one.algorithms or params.get("algorithm") in one.algorithms

    def defaults(self) -> dict[str, Scalar]:
        """The baseline's parameters."""
        return {one.name: one.default for one in self.parameters}


@dataclass(frozen=True, slots=True, kw_only=True)
class StartingPoint:
    """A setting that is known to do well somewhere, in a trainer's own parameter names."""

    called: Name
    """What it is for."""
    family: Name
    """The family of environments that it belongs to; a cold night withholds what is known of its own family."""
    source: Sentence
    """Where it stands or how it was found, and what could not be carried over."""
    params: Mapping[str, Scalar]
    """The setting."""
    near: bool = False
    """Whether it is known for the very environment of the study, and not only for others of its family."""
