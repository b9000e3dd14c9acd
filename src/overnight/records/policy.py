"""What a trained policy says about itself: the file `policy.json`."""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from overnight.records.codec import Misfit
from overnight.records.limits import Above, AtLeast, AtMost, Items, Shape

Width = Annotated[int, AtLeast(1), AtMost(65_536)]
Entry = Annotated[str, Shape(r"[A-Za-z_][A-Za-z0-9_]{0,99}:[A-Za-z_][A-Za-z0-9_]{0,99}", "`module:function`")]
_OF_WEIGHTS = ("architecture", "activation", "head", "observation_size", "action_size")


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicySpec:
    """One policy: weights of a registered architecture, or code that is loaded in the guest's process."""

    SCHEMA: ClassVar[str] = "overnight/policy/1"

    kind: Literal["weights", "code"]
    """`weights` needs no code of the candidate's; `code` is loaded by its `entry`."""
    architecture: Literal["mlp"] | None = None
    """The registered architecture of the weights."""
    activation: Literal["tanh", "relu"] | None = None
    """The non-linearity after every hidden layer."""
    head: Literal["categorical", "gaussian", "squashed"] | None = None
    """What the last layer gives: one score for each action, the mean of a continuous action, or that mean before
    `tanh`, which is multiplied by `action_scale` and shifted by `action_shift`."""
    observation_size: Width | None = None
    """Numbers in one flattened observation."""
    action_size: Width | None = None
    """Actions to choose from, or numbers in one flattened continuous action."""
    hidden: Annotated[tuple[Width, ...], Items(0, 16)] = ()
    """The width of each hidden layer."""
    lists: Annotated[tuple[Width, ...], Items(0, 64)] = ()
    """For a categorical action that is chosen from several lists: their lengths, which add up to `action_size`."""
    firsts: Annotated[tuple[int, ...], Items(0, 64)] = ()
    """For a categorical action: the number of the first action of each list; 0 where nothing is said."""
    normalizer: bool = False
    """Whether observations are shifted by `obs_mean` and multiplied by `obs_scale`, both frozen."""
    normalizer_clip: Annotated[float, Above(0)] = 10.0
    """The greatest size of a normalised number."""
    entry: Entry | None = None
    """For code: `module:function`, where `function(folder)` returns the acting function."""

    def __post_init__(self) -> None:
        """Ask of each kind what it needs, and refuse what belongs to the other."""
        if self.lists and (self.head != "categorical" or sum(self.lists) != self.action_size):
            needed = f"they must add up to the {self.action_size} scores of a categorical head"
            raise Misfit(("lists",), f"are {list(self.lists)}, but {needed}")
        if self.firsts and (self.head != "categorical" or len(self.firsts) != max(len(self.lists), 1)):
            raise Misfit(("firsts",), f"are {list(self.firsts)}, but one is needed for each list of a categorical head")
        if self.kind == "code":
            if self.entry is None:
                raise Misfit(("entry",), "is missing, but a policy of kind `code` needs it")
            for key in _OF_WEIGHTS:
                if getattr(self, key) is not None:
                    raise Misfit((key,), "is given, but a policy of kind `code` has none")
            return
        if self.entry is not None:
            raise Misfit(("entry",), "is given, but a policy of kind `weights` has none")
        for key in _OF_WEIGHTS:
            if getattr(self, key) is None:
                raise Misfit((key,), "is missing, but a policy of kind `weights` needs it")
