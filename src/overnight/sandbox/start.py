"""Starting a process that nobody trusts, at one of three tiers. The supervisor, the referee and the probe all use it.

| tier | what holds the process |
|---|---|
| T1 | an environment of our own making, no capability, no descriptor but its own, death with its parent |
| T2 | T1, and Landlock, and a filter of system calls |
| T3 | T2 inside of bubblewrap: its own processes, files, shared memory and network |

A layer that cannot be applied is an `OSError`, and nothing is started: there is no weaker second try. A fourth tier,
or another operating system, would be one more branch in `start`.

Does not: protect against holes in the kernel, or bound memory.
"""

import os
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from overnight.sandbox.bounds import DEVICES, Bounds, accelerators
from overnight.sandbox.landlock import Ruleset
from overnight.sandbox.processes import die_with_parent
from overnight.sandbox.rights import Filter, become, give_up_privileges
from overnight.sandbox.seccomp import assemble

Tier = Literal["T1", "T2", "T3", "T4"]
TIERS: tuple[Tier, ...] = ("T1", "T2", "T3")
Layer = Literal["capabilities", "landlock", "seccomp", "namespaces"]
NOBODY = 65534
"""The user that a candidate becomes where the engine is root."""
_DROP_SIZE = 1 << 30
_OPEN_FILES = 4096
_INSIDE = (
    "import sys; sys.path.insert(0, sys.argv.pop(1)); from overnight.sandbox.inside import main; main(sys.argv[1:])"
)
_PACKAGES = str(Path(__file__).parents[2])


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


def start(
    child: Child, bounds: Bounds, tier: Tier, without: frozenset[Layer] = frozenset()
) -> "subprocess.Popen[bytes]":
    """Start a child within its bounds. The calling process must have one thread, and dies before the child does.

    `without` leaves a layer out; it is for tests that show what the layer is good for.
    """
    if tier not in TIERS:
        raise OSError(f"there is no tier {tier} on this machine")
    user = user_for(bounds, tier)
    if user is not None:
        _give(bounds, user)
    if tier == "T3":
        return _popen(child, _wrapped(child, bounds, user, without), _ignore_term)
    rules = _rules(bounds) if tier == "T2" and "landlock" not in without else None
    calls = Filter(_calls(bounds)) if tier == "T2" and "seccomp" not in without else None

    def hold() -> None:
        if "capabilities" not in without:
            give_up_privileges()
            become(user)
        if rules is not None:
            rules.restrict()

    try:
        return _popen(child, child.command, hold, calls)
    finally:
        if rules is not None:
            rules.close()


def user_for(bounds: Bounds, tier: Tier) -> int | None:
    """The user that a child becomes: another one only where we are root, and where that one can reach what it needs.

    At T3 every folder on the way is made anew, so only what is bound itself must be open to others. At T1 a child
    stays who it is, as before, without a capability.
    """
    if os.geteuid() != 0 or tier == "T1":
        return None
    wanted = [*bounds.readable, *bounds.listable]
    needed = [path for path in wanted if Path(path).exists() and not path.startswith(("/sys", "/etc"))]
    ways = [*needed, *(str(Path(path).parent) for path in bounds.writable)]
    if tier == "T3":
        return NOBODY if all(_is_open(Path(path)) for path in needed) else None
    return NOBODY if all(_is_open(one) for path in ways for one in _way(path)) else None


def _way(path: str) -> tuple[Path, ...]:
    real = Path(os.path.realpath(path))
    return (real, *real.parents)


def _is_open(path: Path) -> bool:
    """Whether others may read a file, or enter a folder."""
    with suppress(OSError):
        mode = path.stat().st_mode
        return bool(mode & 0o001) if path.is_dir() else bool(mode & 0o004)
    return False


def _give(bounds: Bounds, user: int) -> None:
    """Make the writable folders, and what lies in them, the user's own."""
    for folder in bounds.writable:
        for where, _, names in os.walk(folder):
            for path in (where, *(f"{where}/{name}" for name in names)):
                os.chown(path, user, user, follow_symlinks=False)


def _rules(bounds: Bounds) -> Ruleset:
    """The list that Landlock keeps; `/proc` as a whole, because the rule of one process's folder would not last."""
    rules = Ruleset(network=bounds.network)
    rules.allow_reading((*bounds.readable, "/proc"))
    rules.allow_listing(bounds.listable)
    rules.allow_everything(bounds.writable)
    rules.allow_devices((*DEVICES, *accelerators()))
    return rules


def _calls(bounds: Bounds) -> bytes:
    return assemble(network=bounds.network, local_sockets=bounds.local_sockets)


def _popen(
    child: Child, command: tuple[str, ...], hold: Callable[[], None], calls: Filter | None = None
) -> "subprocess.Popen[bytes]":
    parent = os.getpid()

    def in_child() -> None:  # the parent has one thread, so nothing is held between fork and exec
        for limit in (resource.RLIMIT_CORE, resource.RLIMIT_MSGQUEUE):
            resource.setrlimit(limit, (0, 0))
        most = min(_OPEN_FILES, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
        child.first()
        hold()
        die_with_parent(parent)  # after a change of user, which would undo it
        if calls is not None:
            calls.install()

    return subprocess.Popen(
        command,
        cwd=child.cwd,
        env=dict(child.env),
        stdin=subprocess.DEVNULL,
        stdout=child.stdout,
        stderr=child.stderr,
        pass_fds=child.pass_fds,
        start_new_session=True,
        preexec_fn=in_child,
    )


# Tier T3


def bubblewrap() -> str | None:
    """Where bubblewrap is, or None."""
    return shutil.which("bwrap")


def _ignore_term() -> None:
    """The wrapper must outlive the signal that asks a trainer to finish; inside, the signal is given back."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)


def _wrapped(child: Child, bounds: Bounds, user: int | None, without: frozenset[Layer]) -> tuple[str, ...]:
    """The command around a command: bubblewrap, and in it the program that applies the layers of T2."""
    program = bubblewrap()
    if program is None:
        raise OSError("bubblewrap is not installed")
    words = tuple(word for pair in _told(bounds, user, without) for word in pair)
    inner = (sys.executable, "-I", "-S", "-B", "-c", _INSIDE, _PACKAGES, *words, "--", *child.command)
    if "namespaces" in without:
        return inner
    return (program, *_namespaces(bounds, user), *_view(bounds), "--chdir", child.cwd, "--", *inner)


def _told(bounds: Bounds, user: int | None, without: frozenset[Layer]) -> Iterator[tuple[str, str]]:
    """What `inside` is told, as pairs of words; sockets are harmless where only one's own can be found."""
    if user is not None:
        yield "user", str(user)
    if "seccomp" not in without:
        yield "calls", _calls(replace(bounds, local_sockets=True)).hex()
    if "landlock" not in without:
        yield "network", "yes" if bounds.network else "no"
        yield from (("read", path) for path in (*bounds.readable, "/proc"))
        yield from (("list", path) for path in bounds.listable)
        yield from (("write", path) for path in (*bounds.writable, "/tmp", "/dev/shm"))  # noqa: S108 - private ones
        yield from (("device", path) for path in (*DEVICES, *accelerators()))


def _namespaces(bounds: Bounds, user: int | None) -> tuple[str, ...]:
    """Root needs no namespace of users, and with one it could not become somebody else inside."""
    keep = ("--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID", "--cap-add", "CAP_SETPCAP")
    who = ("--cap-drop", "ALL", *keep) if user is not None else ("--unshare-user", "--cap-drop", "ALL")
    apart = ("--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try", "--die-with-parent")
    return (*who, *apart, *(() if bounds.network else ("--unshare-net",)))


def _view(bounds: Bounds) -> tuple[str, ...]:
    """The files that there are inside: folders of our own making first, what may be read and written over them."""
    size = ("--size", str(_DROP_SIZE))
    words = ["--proc", "/proc", "--dev", "/dev", *size, "--perms", "1777", "--tmpfs", "/dev/shm"]  # noqa: S108 - inside
    words += [*size, "--perms", "1777", "--tmpfs", "/tmp"]  # noqa: S108 - a private one
    for path in _ancestors((*bounds.readable, *bounds.writable)):
        words += ["--perms", "0755", "--dir", path]  # else only root could pass
    for path in bounds.readable:
        words += ["--ro-bind-try", path, path]
    for path in accelerators():
        words += ["--dev-bind-try", path, path]
    for path in bounds.writable:
        words += ["--bind", path, path]
    return tuple(words)


def _ancestors(paths: tuple[str, ...]) -> list[str]:
    made = {"/", "/tmp", "/dev", "/proc"}  # noqa: S108 - names of the view, not files
    return sorted({str(parent) for path in paths for parent in Path(path).parents} - made)


def exit_status(status: int, tier: Tier) -> int:
    """A child's own status: bubblewrap tells a signal as 128 and its number, as shells do."""
    return 128 - status if tier == "T3" and 128 < status < 128 + signal.NSIG else status
