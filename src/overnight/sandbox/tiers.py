"""The tiers of isolation, and the one place where another tier or another operating system plugs in.

| tier | what holds the process |
|---|---|
| T1 | an environment of our own making, no capability, no descriptor but its own, death with its parent |
| T2 | T1, another user where we are root, Landlock, and a filter of system calls |
| T3 | T2 inside of bubblewrap: its own processes, files, shared memory and network |

A tier is one `Holder` in the table `HOLDERS`: what this machine lacks for it, and how a child is started at it. To
add one, such as a T4 inside of a virtual machine or a T2 for macOS, write those two functions and a line in the table.
Everything else follows from there: `probe` tries the new holder with a canary before anybody trusts it, `start` starts
with it, `isolation` explains it, and the gallery attacks it. What is not in the table is told as missing, never faked.
"""

import os
import platform
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from overnight.sandbox import landlock, seccomp
from overnight.sandbox.bounds import DEVICES, SYSTEM, Bounds, accelerators
from overnight.sandbox.landlock import LISTING, READING, Ruleset
from overnight.sandbox.passage import is_open, passage
from overnight.sandbox.rights import Filter, become, give_up_privileges
from overnight.sandbox.wrap import PRIVATE, bubblewrap, inner, is_above, namespaces, view

Tier = Literal["T1", "T2", "T3", "T4"]
Layer = Literal["capabilities", "user", "landlock", "seccomp", "namespaces"]
NOBODY = 65534
"""The user that a candidate becomes where the engine is root."""


class NotHeld(OSError):
    """A layer could not be applied, so nothing was started. The machine's fault, never the candidate's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Child:
    """What is to be started."""

    command: tuple[str, ...]
    cwd: str
    env: Mapping[str, str]
    stdout: int = subprocess.DEVNULL
    stderr: int = subprocess.DEVNULL
    pass_fds: tuple[int, ...] = ()
    first: Callable[[], None] = lambda: None
    """Called in the child before anything is taken from it, such as to set its limits."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How a child is started at its tier."""

    command: tuple[str, ...]
    hold: Callable[[], None]
    """Called in the child, as long as it may still do everything."""
    seal: Callable[[], None] = lambda: None
    """Called last in the child, when it has given up everything else."""
    fds: tuple[int, ...] = ()
    """What the command needs besides the child's own."""
    is_wrapped: bool = False
    """Whether the command starts the child's own, and tells on the report that it has come so far."""


class Asked(NamedTuple):
    """What a holder is asked for."""

    child: Child
    bounds: Bounds
    without: frozenset[Layer]
    """Layers that are left out, in tests that show what they are good for."""
    report: int
    """The descriptor on which a wrapped command tells that it has begun."""
    opened: ExitStack
    """Closes what a plan opens, once the child has begun."""


class Holder(NamedTuple):
    """How one tier is had."""

    lacks: Callable[[], str]
    """What this machine lacks for it, as a sentence; empty where it is worth trying."""
    plan: Callable[[Asked], Plan]
    """How a child is started at it."""


def user_for(tier: Tier) -> int | None:
    """The user that a child becomes: another one only where we are root. At T1 a child stays who it is."""
    return NOBODY if os.geteuid() == 0 and tier != "T1" else None


# T1


def _plain(asked: Asked) -> Plan:
    return Plan(asked.child.command, give_up_privileges if "capabilities" not in asked.without else _nothing)


# T2


def _held(asked: Asked) -> Plan:
    child, bounds, without = asked.child, asked.bounds, asked.without
    drop = give_up_privileges if "capabilities" not in without else _nothing
    change = _change_of_user(child, bounds, user_for("T2") if "user" not in without else None)
    rules = _rules(bounds, asked.opened) if "landlock" not in without else None
    calls = Filter(_calls(bounds)) if "seccomp" not in without else None

    def hold() -> None:
        drop()
        change()
        if rules is not None:
            rules.allow_listing(bounds.listable)  # in the view that it now has, where a folder may be another one
            rules.restrict()

    return Plan(child.command, hold, calls.install if calls is not None else _nothing)


def _kernel_lacks() -> str:
    if landlock.version() < 1:
        return "this kernel has no Landlock; Linux 5.13 or newer has it, unless it was left out at boot."
    if not seccomp.is_known():
        return "no filter of system calls is written for this processor; x86-64 and ARM64 have one."
    return ""


def _nothing() -> None:
    """What a layer does that was left out."""


def _change_of_user(child: Child, bounds: Bounds, user: int | None) -> Callable[[], None]:
    """What makes a child another user, who can reach everything that the child is given."""
    if user is None:
        return _nothing
    _give(bounds, user)
    for path in bounds.readable:
        if path not in SYSTEM and os.path.exists(path) and not is_open(path):
            raise NotHeld(f"{path} is closed to everybody but root, and a candidate never runs as root")
    way = passage((*(path for path in bounds.readable if os.path.exists(path)), *bounds.writable))

    def change() -> None:
        way.make()
        become(user)
        if child.cwd != "/":
            os.chdir(child.cwd)  # where it is now, seen from outside, is nowhere in a private view

    return change


def _give(bounds: Bounds, user: int) -> None:
    """Make the writable folders, and what lies in them, the user's own."""
    for folder in bounds.writable:
        for where, _, names in os.walk(folder):
            for path in (where, *(f"{where}/{name}" for name in names)):
                os.chown(path, user, user, follow_symlinks=False)


def _rules(bounds: Bounds, opened: ExitStack) -> Ruleset:
    """The list that Landlock keeps; `/proc` as a whole, because the rule of one process's folder would not last."""
    rules = Ruleset(network=bounds.network)
    opened.callback(rules.close)
    rules.allow_reading((*bounds.readable, "/proc"))
    rules.allow_everything(bounds.writable)
    rules.allow_devices((*DEVICES, *accelerators()))
    return rules


def _calls(bounds: Bounds) -> bytes:
    return seccomp.assemble(network=bounds.network, local_sockets=bounds.local_sockets)


# T3


def _wrapped(asked: Asked) -> Plan:
    """Bubblewrap around the command, and between the two the program that applies Landlock inside."""
    child, bounds, without, report, opened = asked
    change = _change_of_user(child, bounds, user_for("T3") if "user" not in without else None)
    rules = _rules(bounds, opened) if "landlock" not in without else None
    program = bubblewrap()
    if program is None:
        raise NotHeld("bubblewrap is not installed")
    fds = [report] if rules is None else [report, rules.fd]
    code = replace(bounds, local_sockets=True)  # a socket is harmless where only one's own can be found
    if "namespaces" in without:
        calls = Filter(_calls(code)) if "seccomp" not in without else None

        def hold() -> None:
            give_up_privileges()
            change()
            os.chdir(child.cwd)

        seal = calls.install if calls is not None else _nothing
        return Plan(
            inner(report, rules, child.command, _listed(bounds, rules)), hold, seal, tuple(fds), is_wrapped=True
        )
    words = [program, *namespaces(network=bounds.network), *view(bounds)]
    if "seccomp" not in without:
        fds.append(_in_memory(_calls(code), opened))
        words += ["--seccomp", str(fds[-1])]
    words += ["--chdir", child.cwd, "--", *inner(report, rules, child.command, _only_inside(bounds, rules))]

    def leave() -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # the wrapper outlives it; inside, it is heard again
        change()

    return Plan(tuple(words), leave, fds=tuple(fds), is_wrapped=True)


def _only_inside(bounds: Bounds, rules: Ruleset | None) -> dict[str, int]:
    """Folders that only the private view has, with the rights that they get there."""
    return {} if rules is None else {"/proc": READING, **dict.fromkeys(PRIVATE, rules.rights), **_listed(bounds, rules)}


def _listed(bounds: Bounds, rules: Ruleset | None) -> dict[str, int]:
    """Folders whose names alone may be seen, as far as anything in them may be reached."""
    reached = (*bounds.readable, *bounds.writable)
    return {} if rules is None else {path: LISTING for path in bounds.listable if is_above(path, reached)}


def _in_memory(data: bytes, opened: ExitStack) -> int:
    """A descriptor from which something can be read."""
    fd = os.memfd_create("overnight")
    opened.callback(os.close, fd)
    os.write(fd, data)
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


def _bubblewrap_lacks() -> str:
    return _kernel_lacks() or ("" if bubblewrap() is not None else "bubblewrap is not installed.")


# The table

HOLDERS_ON: dict[str, dict[Tier, Holder]] = {
    "linux": {
        "T1": Holder(lambda: "", _plain),
        "T2": Holder(_kernel_lacks, _held),
        "T3": Holder(_bubblewrap_lacks, _wrapped),
    },
}
"""What each operating system has, by the name that Python gives it, weakest tier first."""
HOLDERS = HOLDERS_ON.get(sys.platform, {})
"""What this one has."""


def lacks(tier: Tier) -> str:
    """What this machine lacks for a tier, as a sentence; empty where it is worth trying."""
    if not HOLDERS:
        system = {"Darwin": "macOS"}.get(platform.system(), platform.system())
        return f"candidates are held by means of Linux, and this is {system}."
    return HOLDERS[tier].lacks() if tier in HOLDERS else f"there is no tier {tier} yet."


def planned(tier: Tier, asked: Asked) -> Plan:
    """How a child is started at a tier of this machine."""
    if tier not in HOLDERS:
        raise NotHeld(lacks(tier).rstrip("."))
    return HOLDERS[tier].plan(asked)
