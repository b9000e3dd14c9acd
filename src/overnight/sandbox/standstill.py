"""Seeing that a process stood still: a closed laptop, a paused virtual machine, or a SIGSTOP.

Between two looks a process works, waits for a processor, sleeps for the moment it asked for, or stands still. The first
two are counted by the kernel, the third is short, so what is left beyond a few seconds is the fourth. A busy machine is
therefore not mistaken for one that was closed, as far as the kernel tells how long a thread waited.

Does not see: a stop that is shorter than `LEAST_SECONDS`, nor one of other processes alone.
"""

import time
from contextlib import suppress

LEAST_SECONDS = 5.0
"""How long nothing may be known of a thread that looks several times a second, before it counts as standing still."""
_ASK_SECONDS = 0.5
_EVERYTHING = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)  # a clock that goes on in a machine that sleeps


class Standstill:
    """Looks again and again in one thread, and adds up how long that thread stood still."""

    def __init__(self, least_seconds: float = LEAST_SECONDS) -> None:
        self.total = 0.0
        """How long it stood still so far, in seconds."""
        self._least = least_seconds
        self._last = self._asked = _elapsed()
        self._used = _used()
        self._zero = time.monotonic() - self._last

    def look(self) -> float:
        """How long this thread stood still since the last look; 0 where it did not."""
        now = _elapsed()
        away = now - self._last
        if away <= self._least and now - self._asked < _ASK_SECONDS:
            self._last = now
            return 0.0  # the usual case, and a cheap one
        before, self._used, self._asked = self._used, _used(), now
        idle = away - (self._used - before)
        gap = idle if idle > self._least else 0.0
        self.total += gap
        self._last = now  # only now: other threads take a look for done by its age
        return gap

    def running(self) -> float:
        """Seconds by a clock that began as the monotonic one, without what stood still up to the last look."""
        return self._zero + _elapsed() - self.total

    def age(self) -> float:
        """Seconds since the last look."""
        return _elapsed() - self._last


def _elapsed() -> float:
    return time.clock_gettime(_EVERYTHING)


def _used() -> float:
    """Seconds for which this thread had a processor or waited for one."""
    with suppress(OSError, ValueError), open("/proc/thread-self/schedstat") as file:
        worked, waited = file.read().split()[:2]
        return (int(worked) + int(waited)) / 1e9
    return time.thread_time()
