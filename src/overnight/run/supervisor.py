"""One small trusted process for each run: `python -m overnight.run.supervisor RUN_FOLDER`.

It holds `run.lock`, starts the trainer, drains its output, holds it to its limits (`limits`),
ends the whole process tree, takes the policy out of the trainer's folder, and writes
`exit.json` last. It never touches the
ledger. The engine may die at any moment: the supervisor goes on to the run's end, and the
next engine finds `exit.json`, or a free lock without one, which means that the run was lost.

Two processes share that work. A keeper does nothing but wait, and inherits every orphan; the
supervisor proper is its child. Killing either one ends the whole run at once: whichever is left
ends everything below it, a daemon that hides where it comes from included.

The trainer has a private home and temporary folder, an environment of our own making and a
read-only export without `.git`, and a kill reaches every descendant. From tier T2 on it may write
nowhere else, and read only its own folder, programs and libraries. The job says the tier; where it
cannot be applied, the run never begins, and that is the machine's fault.
"""

import fcntl
import json
import os
import resource
import selectors
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

from overnight.errors import OvernightError
from overnight.records.codec import dumps, loads
from overnight.records.job import LIBRARY, Exit, Job
from overnight.records.order import RunOrder
from overnight.records.run import Outcome
from overnight.records.text import sentence
from overnight.run.broker import Broker
from overnight.run.harvest import harvest
from overnight.run.limits import TOLERANCE, Ending, Limits
from overnight.run.log import CappedLog
from overnight.sandbox.bounds import Bounds, bounds_for, command_paths, simulators
from overnight.sandbox.cgroup import group_for, remove_group
from overnight.sandbox.meter import Meter, cap_tasks, most_tasks, out_of_memory_kills, tasks_for
from overnight.sandbox.processes import die_with_parent, end_below, end_tree, inherit_orphans
from overnight.sandbox.start import exit_status, start
from overnight.sandbox.tiers import Child, NotHeld, user_for

_GRACE_SECONDS = 5.0
_LOOK_SECONDS = 0.1
_REPORT_BYTES = 1 << 16
_LOCK_TRIES, _LOCK_SECONDS = 6, 0.02


class Supervisor:
    """The life of one run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.job = loads(Job, (folder / "job.json").read_bytes(), where=str(folder / "job.json"))
        self.out = folder / "out"
        self.order = loads(RunOrder, (folder / "run.json").read_bytes(), where=str(folder / "run.json"))
        self.budget = self.order.budget
        self.log = CappedLog(folder / "log")
        self.group = group_for(folder)
        self.meter = Meter(self.group)
        self.limits = Limits(folder, self.job, self.budget, self.meter)
        self.killed_before = out_of_memory_kills()
        self.broker: Broker | None = None
        self.most_tasks = most_tasks(user_for(self.job.tier) or os.getuid(), self.job.processes)

    def run(self) -> Exit:
        """Start the trainer, wait for its end or bring it about, and say how it went."""
        try:
            return self._run()
        finally:
            if self.group is not None:
                self.group.remove()

    def _run(self) -> Exit:
        try:
            child = self._start()
        except NotHeld as error:
            says = f"It could not be held at {self.job.tier}, so it never began: {error}."
            return self._never_began(Outcome.INFRASTRUCTURE, says)
        except OSError as error:
            says = f"{self.job.command[0]} could not be started: {error.strerror or error}."
            return self._never_began(Outcome.CRASHED, says)
        ending = self._watch(child)
        if ending is not None and not ending.at_once:
            self._ask_to_finish(child)
        if self.group is not None:
            self.group.kill()
        end_tree(child.pid)
        status = exit_status(child.wait(), self.job.tier)
        self._drain(child, seconds=0.5)
        return self._tell(status, ending)

    def _never_began(self, outcome: Outcome, says: str) -> Exit:
        self.log.close()
        return Exit(
            outcome=outcome,
            because=sentence(says),
            exit_status=127,
            wall_seconds=self.limits.seconds(),
            cpu_seconds=0.0,
            policy=None,
            log_bytes=0,
        )

    def _start(self) -> "subprocess.Popen[bytes]":
        for name in ("home", "tmp", "out"):
            (self.folder / name).mkdir(exist_ok=True)
        inherit_orphans()
        if self.group is not None:
            self.group.cap(memory_bytes=self.limits.memory_cap, tasks=tasks_for(self.job.processes))
        self.broker = Broker(self.folder, self.job, self._in_child) if self.job.metered else None
        child = Child(
            command=self.job.command,
            cwd=str(self.folder / "source"),
            env={**dict(self.job.env), **self._own_variables()},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            pass_fds=self.broker.fds if self.broker is not None else (),
            first=self._in_child,
        )
        try:
            return start(child, self._bounds(), self.job.tier)
        finally:
            if self.broker is not None:
                self.broker.leave_to_trainer()

    def _bounds(self) -> Bounds:
        """What the trainer may reach. The compile cache is named only where no code of a candidate's runs."""
        job, writable = self.job, [self.out, self.folder / "home", self.folder / "tmp"]
        if self.order.compile_cache is not None:
            Path(self.order.compile_cache).mkdir(exist_ok=True)
            writable.append(Path(self.order.compile_cache))
        own = (self.folder / "source", self.folder / LIBRARY, self.folder / "run.json")
        named = command_paths(job.command, dict(job.env).get("PATH", os.defpath))
        hidden = (*job.hidden, *(simulators(named, self.order.env.id) if job.metered and job.fresh_bytecode else ()))
        paths = (*map(str, own), *named)
        return bounds_for(paths, writable=map(str, writable), hidden=hidden, network=job.network)

    def _own_variables(self) -> dict[str, str]:
        threads = str(max(len(self.job.cores), 1))
        bytecode = (
            {"PYTHONPYCACHEPREFIX": str(self.folder / "tmp" / "pycache")}
            if self.job.fresh_bytecode
            else {"PYTHONDONTWRITEBYTECODE": "1"}
        )
        return {
            **bytecode,
            **(self.broker.variables() if self.broker is not None else {}),
            "OVERNIGHT_RUN": str(self.folder / "run.json"),
            "OVERNIGHT_OUT": str(self.out),
            "PYTHONPATH": str(self.folder / LIBRARY),
            "HOME": str(self.folder / "home"),
            "TMPDIR": str(self.folder / "tmp"),
            "XDG_CACHE_HOME": str(self.folder / "home"),
            "MPLCONFIGDIR": str(self.folder / "tmp"),
            "PYTHONUNBUFFERED": "1",
            "PYTHONNOUSERSITE": "1",
            "OMP_NUM_THREADS": threads,
            "OPENBLAS_NUM_THREADS": threads,
            "MKL_NUM_THREADS": threads,
        }

    def _in_child(self) -> None:
        os.umask(0o077)
        cap_tasks(self.most_tasks)
        resource.setrlimit(resource.RLIMIT_FSIZE, (self.job.disk_bytes, self.job.disk_bytes))
        if self.job.cores:
            os.sched_setaffinity(0, self.job.cores)
        if self.group is not None:
            self.group.enter()

    def _watch(self, child: "subprocess.Popen[bytes]") -> Ending | None:
        """Drain output until the trainer ends, or until a limit ends it."""
        selector = selectors.DefaultSelector()
        stream = child.stdout
        if stream is not None:
            os.set_blocking(stream.fileno(), False)
            selector.register(stream, selectors.EVENT_READ)
        while child.poll() is None:
            for key, _ in selector.select(_LOOK_SECONDS):
                if not self._read(key.fd):
                    selector.unregister(key.fileobj)
            if not selector.get_map():
                time.sleep(_LOOK_SECONDS)
            ending = self.limits.over()
            if ending is not None:
                return ending
            if self.broker is not None and self.broker.is_lost():
                return Ending(Outcome.LOST, "The broker that held its environments is gone.")
        return self.limits.stood_still()

    def _read(self, fd: int) -> bool:
        """Take one piece of output; False at its end."""
        try:
            data = os.read(fd, 1 << 16)
        except BlockingIOError:
            return True
        if data:
            self.log.write(data)
            self.limits.sign()
        return bool(data)

    def _ask_to_finish(self, child: "subprocess.Popen[bytes]") -> None:
        """SIGTERM means finish; whoever does not within the grace time is killed with everything below."""
        try:
            os.killpg(child.pid, signal.SIGTERM)
        except ProcessLookupError:
            return
        self._drain(child, seconds=_GRACE_SECONDS)

    def _drain(self, child: "subprocess.Popen[bytes]", *, seconds: float) -> None:
        """Take output until the trainer has ended and said everything, or the time is over."""
        until, stream = time.monotonic() + seconds, child.stdout
        while time.monotonic() < until:
            try:
                data = os.read(stream.fileno(), 1 << 16) if stream is not None else b""
            except BlockingIOError:
                data = b""
            if data:
                self.log.write(data)
            elif child.poll() is not None:
                return
            else:
                time.sleep(0.02)

    def _tell(self, status: int, ending: Ending | None) -> Exit:
        try:
            policy, why = harvest(self.out / "policy", self.folder / "policy"), ""
        except OvernightError as error:
            policy, why = None, error.what
        except OSError as error:
            policy, why = None, f"it cannot be taken: {error.strerror}"
        outcome, because = self._outcome(status, ending, policy=policy, why=why)
        self.log.close()
        return Exit(
            outcome=outcome,
            because=sentence(because),
            exit_status=status,
            wall_seconds=self.limits.seconds(),
            cpu_seconds=self.meter.cpu_seconds(),
            policy=policy,
            log_bytes=self.log.total,
            tier=self.job.tier,
            env_steps=self.broker.env_steps() if self.broker is not None else None,
        )

    def _outcome(self, status: int, ending: Ending | None, *, policy: str | None, why: str) -> tuple[Outcome, str]:
        if ending is not None:
            return ending.outcome, ending.because
        if status != 0 and self.group is not None and self.group.ran_out_of_memory():
            return Outcome.CRASHED, f"It went beyond its cap of {self.limits.memory_cap / 1e6:,.0f} MB of memory."
        if status != 0 and out_of_memory_kills() > self.killed_before:
            return Outcome.INFRASTRUCTURE, "The machine ran out of memory while it ran, and the kernel ended processes."
        if status == -signal.SIGKILL:
            return Outcome.LOST, "It was killed, and by nothing that watches over it."
        if status == -signal.SIGXFSZ:
            return Outcome.CRASHED, f"It wrote a file of more than {self.job.disk_bytes:,} bytes."
        if status < 0:
            return Outcome.CRASHED, f"It was ended by {_signal_name(-status)}: {self.log.last_line()}"[:1900]
        if status != 0:
            return Outcome.CRASHED, f"It ended with status {status}: {self.log.last_line()}"[:1900]
        steps = self.broker.env_steps() if self.broker is not None else self._reported_steps()
        if self.budget.unit == "env_steps" and steps > self.budget.amount * TOLERANCE:
            return Outcome.OVER_BUDGET, f"It reported {steps:,.0f} steps, and its budget was {self.budget.amount:,.0f}."
        if policy is None:
            return Outcome.CRASHED, f"It ended without a usable policy: {why}"[:1900]
        return Outcome.COMPLETED, "It ended with a policy."

    def _reported_steps(self) -> float:
        """The steps that the trainer owned up to in its last report; 0 where there is none to be read."""
        try:
            fd = os.open(self.out / "metrics.jsonl", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return 0.0
        with os.fdopen(fd, "rb") as file, suppress(OSError, ValueError, TypeError, LookupError, RecursionError):
            file.seek(max(os.fstat(fd).st_size - _REPORT_BYTES, 0))
            return float(json.loads(file.read(_REPORT_BYTES).splitlines()[-1])["env_steps"])
        return 0.0


def _signal_name(number: int) -> str:
    with suppress(ValueError):
        return signal.Signals(number).name
    return f"signal {number}"


def main(argv: list[str]) -> int:
    """Hold the run's lock, and keep whoever supervises the run until nothing of it is left."""
    folder = Path(argv[1])
    lock = os.open(folder / "run.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC)
    if not _lock_soon(lock):
        return 3
    if (folder / "exit.json").exists():
        return 0
    inherit_orphans()
    keeper = os.getpid()
    pid = os.fork()
    if pid == 0:
        signal.signal(signal.SIGTERM, _end_all)
        die_with_parent(keeper, by=signal.SIGTERM)
        os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)  # for people; whether the run is alive is told by the lock
        supervise(folder)
        return 0
    status = os.waitpid(pid, 0)[1]
    end_below()
    remove_group(folder)
    return os.waitstatus_to_exitcode(status)


def _lock_soon(lock: int) -> bool:
    """Take the lock, or find it held several times in a row: whoever only looks has it for a moment, too."""
    for _ in range(_LOCK_TRIES):
        with suppress(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        time.sleep(_LOCK_SECONDS)
    return False


def _end_all(*_: object) -> None:
    """The keeper is gone: leave nothing behind, and no word either, so that the run counts as lost."""
    end_below()
    os._exit(1)  # the group is left to whoever gives the run up


def supervise(folder: Path) -> None:
    """Run it, and write `exit.json` as the very last thing."""
    ended = Supervisor(folder).run()
    for name in ("home", "tmp", "broker"):
        with suppress(RecursionError):  # a trainer can nest folders deeper than they can be removed
            shutil.rmtree(folder / name, ignore_errors=True)
    beside = folder / ".exit.json.new"
    with beside.open("wb") as file:
        file.write(dumps(ended))
        file.flush()
        os.fsync(file.fileno())
    beside.replace(folder / "exit.json")


if __name__ == "__main__":
    sys.exit(main(sys.argv))
