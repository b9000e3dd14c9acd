"""Starting a process that nobody trusts, at one of three tiers. The supervisor, the referee and the probe all use it.

| tier | what holds the process |
|---|---|
| T1 | an environment of our own making, no capability, no descriptor but its own, death with its parent |
| T2 | T1, another user where we are root, Landlock, and a filter of system calls |
| T3 | T2 inside of bubblewrap: its own processes, files, shared memory and network |

A layer that cannot be applied is `NotHeld`, and nothing is started: there is no weaker second try. That the command
itself cannot begin, such as one that does not exist, is any other `OSError`. A fourth tier, or another operating
system, would be one more branch in `_plan`.

Does not: protect against holes in the kernel, or bound memory; `meter` and `cgroup` do that.
"""

import os
import resource
import select
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from typing import Literal

from overnight.sandbox.bounds import DEVICES, SYSTEM, Bounds, accelerators
from overnight.sandbox.landlock import LISTING, READING, Ruleset
from overnight.sandbox.passage import is_open, passage
from overnight.sandbox.processes import die_with_parent
from overnight.sandbox.rights import Filter, become, give_up_privileges
from overnight.sandbox.seccomp import assemble
from overnight.sandbox.wrap import PRIVATE, bubblewrap, inner, is_above, namespaces, view

Tier = Literal["T1", "T2", "T3", "T4"]
TIERS: tuple[Tier, ...] = ("T1", "T2", "T3")
Layer = Literal["capabilities", "user", "landlock", "seccomp", "namespaces"]
NOBODY = 65534
"""The user that a candidate becomes where the engine is root."""
_OPEN_FILES = 4096
_BEGIN_SECONDS = 30.0
_MOST_SAID = 4096


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
class _Plan:
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


def start(
    child: Child, bounds: Bounds, tier: Tier, without: frozenset[Layer] = frozenset()
) -> "subprocess.Popen[bytes]":
    """Start a child within its bounds. The calling process must have one thread, and dies before the child does.

    Comes back when every layer holds. `without` leaves a layer out; it is for tests that show what the layer is good
    for.
    """
    with ExitStack() as opened:
        report, reported = os.pipe()
        opened.callback(os.close, report)
        closing = opened.enter_context(ExitStack())
        closing.callback(os.close, reported)
        try:
            plan = _plan(child, bounds, tier, without, reported, opened)
        except NotHeld:
            raise
        except OSError as error:
            raise NotHeld(str(error)) from error
        try:
            process = _popen(child, plan, reported)
        except subprocess.SubprocessError as error:
            closing.close()
            raise NotHeld(_said(report) or str(error)) from error
        except OSError as error:
            if plan.is_wrapped:
                raise NotHeld(f"bubblewrap cannot be started: {error}") from error
            raise
        closing.close()
        if plan.is_wrapped:
            _wait_until_begun(process, report, child.command[0])
        return process


def user_for(tier: Tier) -> int | None:
    """The user that a child becomes: another one only where we are root. At T1 a child stays who it is."""
    return NOBODY if os.geteuid() == 0 and tier != "T1" else None


def exit_status(status: int, tier: Tier) -> int:
    """A child's own status: bubblewrap tells a signal as 128 and its number, as shells do."""
    return 128 - status if tier == "T3" and 128 < status < 128 + signal.NSIG else status


# What is done at each tier


def _plan(
    child: Child,
    bounds: Bounds,
    tier: Tier,
    without: frozenset[Layer],
    report: int,
    opened: ExitStack,
) -> _Plan:
    if tier not in TIERS:
        raise NotHeld(f"there is no tier {tier} on this machine")
    change = _change_of_user(child, bounds, user_for(tier) if "user" not in without else None)
    drop = give_up_privileges if "capabilities" not in without else _nothing
    if tier == "T1":
        return _Plan(child.command, drop)
    rules = _rules(bounds, opened) if "landlock" not in without else None
    if tier == "T3":
        return _wrapped(child, bounds, change, rules, without, report, opened)
    calls = Filter(_calls(bounds)) if "seccomp" not in without else None

    def hold() -> None:
        drop()
        change()
        if rules is not None:
            rules.allow_listing(bounds.listable)  # in the view that it now has, where a folder may be another one
            rules.restrict()

    return _Plan(child.command, hold, calls.install if calls is not None else _nothing)


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
    return assemble(network=bounds.network, local_sockets=bounds.local_sockets)


def _wrapped(  # noqa: PLR0913 - as `_plan`
    child: Child,
    bounds: Bounds,
    change: Callable[[], None],
    rules: Ruleset | None,
    without: frozenset[Layer],
    report: int,
    opened: ExitStack,
) -> _Plan:
    """Bubblewrap around the command, and between the two the program that applies Landlock inside."""
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
        return _Plan(
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

    return _Plan(tuple(words), leave, fds=tuple(fds), is_wrapped=True)


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


# Starting


def _popen(child: Child, plan: _Plan, report: int) -> "subprocess.Popen[bytes]":
    parent = os.getpid()

    def in_child() -> None:  # the parent has one thread, so nothing is held between fork and exec
        try:
            _limit()
            child.first()
            plan.hold()
            die_with_parent(parent)  # after a change of user, which would undo it
            plan.seal()
        except OSError as error:
            os.write(report, str(error).encode())
            raise

    return subprocess.Popen(
        plan.command,
        cwd=child.cwd if not plan.is_wrapped else "/",
        env=dict(child.env),
        stdin=subprocess.DEVNULL,
        stdout=child.stdout,
        stderr=child.stderr,
        pass_fds=(*child.pass_fds, *plan.fds),
        start_new_session=True,
        preexec_fn=in_child,
    )


def _limit() -> None:
    """No core files, no queues, not too many files; and where memory ends, the child ends before anybody else."""
    for limit in (resource.RLIMIT_CORE, resource.RLIMIT_MSGQUEUE):
        resource.setrlimit(limit, (0, 0))
    most = min(_OPEN_FILES, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    with suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:  # not every machine lets it be said
        file.write("1000")


def _wait_until_begun(process: "subprocess.Popen[bytes]", report: int, program: str) -> None:
    """Wait for the word that every layer holds, or say why it does not; then nothing is left."""
    said = _said(report)
    if said == "+":
        return
    process.kill()
    process.wait()
    if said.startswith("+"):
        number = int(said[1:])
        raise OSError(number, os.strerror(number), program)
    raise NotHeld(said or _last_words(process) or f"bubblewrap ended with status {process.returncode}")


def _said(report: int) -> str:
    """Everything on the report until its other end is closed."""
    said, until = b"", time.monotonic() + _BEGIN_SECONDS
    while len(said) < _MOST_SAID:
        if not select.select([report], [], [], max(until - time.monotonic(), 0))[0]:
            return f"it took more than {_BEGIN_SECONDS:g} s to begin"
        data = os.read(report, _MOST_SAID)
        if not data:
            break
        said += data
    return said.decode(errors="replace")


def _last_words(process: "subprocess.Popen[bytes]") -> str:
    """What bubblewrap printed before it gave up, where we can read it."""
    for stream in (process.stderr, process.stdout):
        if stream is not None:
            os.set_blocking(stream.fileno(), False)
            lines = (stream.read() or b"").decode(errors="replace").strip().splitlines()
            stream.close()
            if lines:
                return lines[-1][:300]
    return ""
