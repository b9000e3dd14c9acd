"""Starting a process that nobody trusts, at one of the tiers. The supervisor, the referee and the probe all use it.

What holds a process at a tier is in `tiers`. A layer that cannot be applied is `NotHeld`, and nothing is started: there
is no weaker second try. That the command itself cannot begin, such as one that does not exist, is any other `OSError`.

Does not: protect against holes in the kernel, or bound memory; `meter` and `cgroup` do that.
"""

import os
import resource
import select
import signal
import subprocess
import time
from contextlib import ExitStack, suppress

from overnight.sandbox.bounds import Bounds
from overnight.sandbox.processes import die_with_parent
from overnight.sandbox.tiers import Asked, Child, Layer, NotHeld, Plan, Tier, planned

_OPEN_FILES = 4096
_BEGIN_SECONDS = 30.0
_MOST_SAID = 4096


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
            plan = planned(tier, Asked(child, bounds, without, reported, opened))
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


def exit_status(status: int, tier: Tier) -> int:
    """A child's own status: bubblewrap tells a signal as 128 and its number, as shells do."""
    return 128 - status if tier == "T3" and 128 < status < 128 + signal.NSIG else status


# Starting


def _popen(child: Child, plan: Plan, report: int) -> "subprocess.Popen[bytes]":
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
