"""The real machine: time, disk and processes by the operating system's own calls.

The only module that talks to the kernel about them, so that everything above can
be run on a simulated machine that crashes at any moment.
"""

import fcntl
import os
import subprocess
import threading
import time
from collections.abc import Mapping

from overnight.ports import Finished
from overnight.sandbox.standstill import Standstill

NOWHERE = "/proc" if os.path.isdir("/proc") else "/"
"""Where helpers stand: even root can leave no file there, such as the log that MuJoCo writes wherever it stands."""
_FULL_SYNC = getattr(fcntl, "F_FULLFSYNC", None)  # macOS: fsync alone stops at the drive's cache


_LOOK_SECONDS = 0.5
_LATE_SECONDS = 4 * _LOOK_SECONDS


class RealMachine:
    """See `ports.Machine` for what each call promises."""

    def __init__(self) -> None:
        self._watch: Standstill | None = None

    def now(self) -> float:
        """See the port."""
        return time.time()

    def monotonic(self) -> float:
        """See the port."""
        return time.monotonic()

    def running(self) -> float:
        """See the port."""
        return self._standstill().running()

    def stood_still(self) -> float:
        """See the port."""
        return self._standstill().total

    def sleep(self, seconds: float) -> None:
        """See the port."""
        time.sleep(seconds)

    def _standstill(self) -> Standstill:
        """A thread that does nothing but look: whoever asks may have waited for a child of its own for an hour."""
        if self._watch is None:
            began = threading.Event()
            threading.Thread(target=self._keep_looking, args=(began,), daemon=True).start()
            began.wait()
        if self._watch is None:
            raise RuntimeError("the thread that looks did not begin")
        while self._watch.age() > _LATE_SECONDS:  # right after a stop: wait until it has seen it
            time.sleep(_LOOK_SECONDS / 10)
        return self._watch

    def _keep_looking(self, began: threading.Event) -> None:
        watch = self._watch = Standstill()  # made here: it counts the processor time of its own thread
        began.set()
        while True:
            time.sleep(_LOOK_SECONDS)
            watch.look()

    def open(self, path: str, flags: int, mode: int = 0o644) -> int:
        """See the port."""
        return os.open(path, flags | os.O_CLOEXEC, mode)

    def close(self, fd: int) -> None:
        """See the port."""
        os.close(fd)

    def read(self, path: str) -> bytes | None:
        """See the port."""
        try:
            with open(path, "rb") as file:
                return file.read()
        except FileNotFoundError:
            return None

    def write(self, fd: int, data: bytes) -> int:
        """See the port."""
        return os.write(fd, data)

    def pwrite(self, fd: int, data: bytes, offset: int) -> int:
        """See the port."""
        return os.pwrite(fd, data, offset)

    def size(self, fd: int) -> int:
        """See the port."""
        return os.fstat(fd).st_size

    def truncate(self, fd: int, size: int) -> None:
        """See the port."""
        os.ftruncate(fd, size)

    def sync(self, fd: int) -> None:
        """See the port."""
        if _FULL_SYNC is not None:
            fcntl.fcntl(fd, _FULL_SYNC)
        else:
            os.fdatasync(fd)

    def sync_folder(self, path: str) -> None:
        """See the port."""
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def replace(self, source: str, target: str) -> None:
        """See the port."""
        os.replace(source, target)

    def unlink(self, path: str) -> None:
        """See the port."""
        try:
            os.unlink(path)
        except FileNotFoundError:
            return

    def make_folder(self, path: str) -> None:
        """See the port."""
        os.makedirs(path, exist_ok=True)

    def lock(self, fd: int) -> bool:
        """Take the file's `flock`; it ends with the descriptor, so a killed holder blocks nobody."""
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def run_process(
        self, argv: tuple[str, ...], *, env: Mapping[str, str], stdin: bytes = b"", limit_seconds: float
    ) -> Finished:
        """See the port."""
        try:
            done = subprocess.run(
                argv,
                input=stdin,
                capture_output=True,
                env=dict(env),
                cwd=NOWHERE,
                timeout=limit_seconds,
                check=False,
            )
        except subprocess.TimeoutExpired as late:
            raise TimeoutError(f"{argv[0]} did not end within {limit_seconds:g} s") from late
        return Finished(done.returncode, done.stdout, done.stderr)
