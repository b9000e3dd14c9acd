"""Where each of the eight approvals stands against the contract as it is now."""

from dataclasses import dataclass
from enum import StrEnum

from overnight.records.contract import Clause


class Standing(StrEnum):
    """Where one approval stands."""

    IN_FORCE = "in force"
    MISSING = "missing"
    VOID = "void"
    UNPROVEN = "unproven"


@dataclass(frozen=True, slots=True)
class ClauseStanding:
    """One clause and its approval, in one sentence."""

    clause: Clause
    standing: Standing
    says: str
