"""Which isolation tier is used, and why not a stronger one. Chosen by what was proven here, never by what is hoped."""

import os
import re

from overnight.errors import Refused
from overnight.records.tier import Tier, is_weaker
from overnight.sandbox.probe import Proof, prove, strongest
from overnight.sandbox.tiers import HOLDERS, NOBODY, NotHeld

__all__ = ["DEFAULT", "drafted", "explain", "proven", "raising", "strongest", "tier_for"]
DEFAULT: Tier = "T2"
"""What a draft asks for where the machine can do it."""
INSTALL = "sudo apt-get install bubblewrap"
ELSEWHERE = "runs and measurements need Linux, such as a container or a virtual machine; all other verbs work here"


def tier_for(least: Tier) -> Tier:
    """The strongest tier that holds here; refused where that is weaker than the contract's own."""
    try:
        found = strongest()
    except NotHeld as error:
        raise Refused("isolation", (f"Nothing holds a candidate here: {error}",), hint=ELSEWHERE) from error
    if is_weaker(found, least):
        says = (
            f"The contract wants isolation {least} or stronger, and this machine proved {found}.",
            f"{least} does not hold: {prove(least).why}",
        )
        raise Refused("isolation", says, hint=raising() or "`overnight doctor` says what this machine can do")
    return found


def proven() -> str:
    """What this machine was seen to hold a process to, tier by tier, as a sentence for the record."""
    held = [one for one in HOLDERS if prove(one).holds()]
    gaps = [f"{one} does not stop: {', '.join(prove(one).gaps)}" for one in held if prove(one).gaps]
    missing = [f"{one}: {prove(one).why.rstrip('.')}" for one in HOLDERS if one not in held]
    told = f"Isolation {held[-1]} is used; a canary proved {', '.join(held[1:]) or 'nothing stronger than T1'} here"
    return "; ".join([told, *gaps, *missing]) + "."


def drafted() -> tuple[Tier, tuple[str, ...]]:
    """The tier that a draft asks for, and a note where it is less than usual."""
    proof = prove(DEFAULT)
    if proof.holds() or not HOLDERS:  # where no night can run, the draft is for another machine
        return DEFAULT, () if HOLDERS else (f"No night can run here: {proof.why}",)
    return "T1", (f"The draft asks for isolation T1 and not {DEFAULT}: {proof.why}",)


def explain() -> str:
    """What the tier in use keeps a hostile trainer from, what it does not, and why there is no stronger one."""
    try:
        tier = strongest()
    except NotHeld as error:
        return f"nothing holds a candidate here: {str(error).rstrip('.')}"
    words = [f"tier {tier}: {_MEANS[tier]}"]
    words += [f"before Linux 6.12 it can still signal your processes{'' if tier == 'T3' else '; T3 stops that'}"] * (
        "signal parent" in prove(tier).gaps
    )
    if os.geteuid() == 0:
        words.append("you are root, and it " + (f"is user {NOBODY}" if tier != "T1" else "is root too, without powers"))
    stronger: Proof | None = next((prove(one) for one in HOLDERS if not prove(one).holds()), None)
    if stronger is not None:
        words.append(f"no {stronger.tier}, because {stronger.why.rstrip('.')}")
    return "; ".join(words)


def raising() -> str:
    """The command that would raise the tier; empty where there is none."""
    if not HOLDERS:
        return ELSEWHERE
    if "not installed" in prove("T3").why:
        return INSTALL
    closed = re.search(r"applied: (/\S+) is closed to everybody but root", prove("T2").why)
    return f"chmod -R o+rX {closed[1]}" if closed else ""


_MEANS: dict[Tier, str] = {
    "T1": "private folders, an environment of our own making, and a kill that reaches every process of a run; a "
    "hostile trainer could still read and change what you can",
    "T2": "a trainer reads its own folder, programs and libraries, writes its own folder, and has no network",
    "T3": "a trainer has its own files, processes and shared memory, writes its own folder, and has no network",
}
