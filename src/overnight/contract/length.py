"""How long one training run is where nobody says it: as long as it is usually trained, or shorter in a short night."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from overnight.contract.trainers import base_name
from overnight.records import strict_json
from overnight.records.codec import decode
from overnight.records.limits import Name, Sentence

UNKNOWN_STEPS = 100_000
"""Steps of a run on an environment that the table does not know."""
LEAST_RUNS = 22
"""Runs that a night should hold: a calibrated baseline, a raced idea or two, and a certification of 4 against 4."""
LEAST_SHARE = 0.25
"""A run is never shortened below this share of what is usual: what it learns would say little about whole trainings."""
_TABLE = "lengths.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Length:
    """How long trainings of some environments usually are."""

    envs: tuple[Name, ...]
    """Their names, without the version."""
    steps: int
    """Environment steps of one training."""
    seconds: float
    """How long our PPO took for them with its default setting, on one core of an ordinary machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lengths:
    """The table."""

    source: Sentence
    lengths: tuple[Length, ...]


def steps(env: str, hours: float, slots: int) -> int:
    """Environment steps of one run of PPO, such that a night of these hours, so many runs at a time, holds enough."""
    found = _known().get(base_name(env.rpartition(":")[2]))
    if found is None:
        return UNKNOWN_STEPS
    fitting = hours * 3600 * slots / found.seconds
    share = min(max(fitting / LEAST_RUNS, LEAST_SHARE), 1.0)
    return max(_two_digits(found.steps * share), min(UNKNOWN_STEPS, found.steps))


def _two_digits(number: float) -> int:
    """A number that is easy to read, and not larger."""
    unit: int = 10 ** max(len(str(int(number))) - 2, 0)
    return int(number) // unit * unit


@cache
def _known() -> Mapping[str, Length]:
    table = strict_json.parse(files("overnight.contract").joinpath(_TABLE).read_bytes(), where=_TABLE)
    return {env: one for one in decode(Lengths, table, where=_TABLE).lengths for env in one.envs}
