"""Every error that a person may see, drawn as a tree.

    OvernightError           one sentence, no traceback                      exit 1
    ├── UserError            a mistake the person at the keyboard can mend   exit 2
    ├── DiskTrouble          the disk is full, or refuses to keep our word   exit 1
    └── Refused              a rule said no; the reasons are full sentences  exit 3
        ├── LedgerDamaged    the ledger is not the one that was written
        └── StudyHeld        another engine has the study

Anything else that reaches the top is our own fault and is shown as a traceback.
"""

from collections.abc import Iterable
from difflib import get_close_matches


class OvernightError(Exception):
    """An outcome that is told in one sentence: `where`, `what`, and a `hint` for the next step."""

    exit_code = 1

    def __init__(self, where: str, what: str, *, hint: str = "") -> None:
        super().__init__(f"{where}: {what}" if where else what)
        self.where = where
        self.what = what
        self.hint = hint


class UserError(OvernightError):
    """A mistake the person at the keyboard can put right; shown without a traceback.

    `where` is a file they can open, `what` says what was found and what was
    needed, and `hint` is the next thing to try.
    """

    exit_code = 2


class DiskTrouble(OvernightError):
    """The disk did not keep what it was given. Nothing that was acknowledged is lost."""


class Refused(OvernightError):
    """A rule said no. `says` holds one full sentence for each reason."""

    exit_code = 3

    def __init__(self, where: str, says: Iterable[str], *, hint: str = "") -> None:
        self.says = tuple(says)
        super().__init__(where, " ".join(self.says), hint=hint)


class LedgerDamaged(Refused):
    """The ledger on disk is not the one that was written; nothing may be built on it."""

    def __init__(self, where: str, what: str, *, hint: str = "") -> None:
        super().__init__(where, (what,), hint=hint)


class StudyHeld(Refused):
    """Another engine holds the study."""

    def __init__(self, where: str, what: str, *, hint: str = "") -> None:
        super().__init__(where, (what,), hint=hint)


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Name the known word nearest to a misspelt one, or all of them when they are few."""
    choices = sorted(known)
    near = get_close_matches(word, choices, n=1, cutoff=0.6)
    if near:
        return f"did you mean `{near[0]}`?"
    if choices and len(choices) <= 12:
        return "choose from " + ", ".join(f"`{choice}`" for choice in choices)
    return ""
