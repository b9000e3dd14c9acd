"""Where a training's time goes: to its environments, to its learner, to its own code, or to nobody."""

import time
from collections.abc import Iterator
from contextlib import contextmanager


class Stopwatch:
    """Measures one lap after another; each is read once, at its end."""

    def __init__(self, cores: int) -> None:
        self._cores = cores
        self._restart()

    @contextmanager
    def learning(self) -> Iterator[None]:
        """Count what happens inside as the learner's."""
        began = time.perf_counter()
        yield
        self.learner += time.perf_counter() - began

    def lap(self, env_steps: int) -> tuple[float, float, float, float]:
        """Steps a second of this lap, and the shares of environments, learner and idling; then begin the next one.

        A process idles while none of its threads has a core: it waits for a disk, or another
        program has the core. The first two shares are of wall time, and may hold such waiting.
        """
        wall = max(time.perf_counter() - self._began, 1e-9)
        busy = (time.process_time() - self._cpu) / (wall * self._cores)
        found = (env_steps / wall, self.environment / wall, self.learner / wall, max(0.0, 1.0 - busy))
        self._restart()
        return found

    def _restart(self) -> None:
        self._began, self._cpu = time.perf_counter(), time.process_time()
        self.environment = self.learner = 0.0


METRICS = ("steps_per_second", "environment_share", "learner_share", "idle_share")
"""The names of what `lap` returns."""
