"""How strongly a process that nobody trusts is held: the isolation tiers, weakest first."""

from typing import Literal

Tier = Literal["T1", "T2", "T3", "T4"]


def is_weaker(one: Tier, other: Tier) -> bool:
    """Whether the first tier holds less than the second."""
    return one < other
