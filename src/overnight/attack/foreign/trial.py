"""One run of somebody's evaluator in the throw-away copy, held at a tier, with a time limit and capped output.

The evaluator reads the copy, programs and libraries, writes the copy and a private home, and has no network. Whatever
it started is ended with it.

Does not: hold the memory that a run takes; at tier T1 the files of the user stay in reach.
"""

import os
import resource
import selectors
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from overnight.records.tier import Tier
from overnight.sandbox.bounds import bounds_for, command_paths
from overnight.sandbox.processes import end_tree, inherit_orphans
from overnight.sandbox.start import exit_status, start
from overnight.sandbox.tiers import Child, user_for

_MOST_OUTPUT = 2_000_000
_MOST_FILE = 500_000_000
_LOOK_SECONDS = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a run ended, and what it printed."""

    status: int | None
    """None where the time was over."""
    output: str
    errors: str
    seconds: float

    def why(self) -> str:
        """One sentence about a run that brought no score."""
        if self.status is None:
            return f"It did not end within {self.seconds:.0f} s."
        last = next((line.strip() for line in reversed(self.errors.splitlines()) if line.strip()), "")
        if self.status != 0:
            return f"It ended with status {self.status}{': ' + last[:200] if last else ''}."
        return "It ended well and printed no score."


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """Where runs take place: a copy that may be spoilt, and folders beside it."""

    folder: Path
    """Holds `pristine`, `work` and `home`."""
    tier: Tier
    python: str
    """The interpreter that stands for `python`."""

    @property
    def pristine(self) -> Path:
        """The copy that nothing may write."""
        return self.folder / "pristine"

    @property
    def work(self) -> Path:
        """The copy in which everything happens."""
        return self.folder / "work"

    @property
    def home(self) -> Path:
        """The private home, with a temporary folder in it."""
        return self.folder / "home"


def run(ground: Ground, command: tuple[str, ...], *, cwd: str, seconds: float) -> Ended:
    """Run a command in the copy to its end, or end it."""
    (ground.home / "tmp").mkdir(parents=True, exist_ok=True)
    environment = _environment(ground)
    program = ground.python if command[0] in ("python", "python3") else command[0]
    words = (shutil.which(program, path=environment["PATH"]) or program, *command[1:])
    named = command_paths(words, environment["PATH"])
    bounds = bounds_for(named, writable=(str(ground.work), str(ground.home)), hidden=())
    began = time.monotonic()
    inherit_orphans()
    (out, out_end), (err, err_end) = os.pipe(), os.pipe()
    if (user := user_for(ground.tier)) is not None:
        for end in (out_end, err_end):  # as for anybody's own evaluator, its output belongs to who runs it
            os.fchown(end, user, user)
    child = Child(
        command=words,
        cwd=os.path.normpath(ground.work / cwd),
        env=environment,
        stdout=out_end,
        stderr=err_end,
        first=_limit,
    )
    try:
        try:
            process = start(child, bounds, ground.tier)
        finally:
            os.close(out_end)
            os.close(err_end)
        texts, timely = _listen(process, (out, err), began + seconds)
        end_tree(process.pid)
        status = exit_status(process.wait(), ground.tier)
    finally:
        os.close(out)
        os.close(err)
    return Ended(
        status=status if timely else None,
        output=texts[0],
        errors=texts[1],
        seconds=time.monotonic() - began,
    )


def interpreter(root: Path) -> str:
    """The Python that a project uses: its own environment, the active one, or ours."""
    active = os.environ.get("VIRTUAL_ENV", "")
    for folder in (root / ".venv", root / "venv", *((Path(active),) if active else ())):
        if (folder / "bin" / "python").exists():
            return str(folder / "bin" / "python")
    return sys.executable


def _limit() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (_MOST_FILE, _MOST_FILE))


def _environment(ground: Ground) -> dict[str, str]:
    """The variables of a run: nothing of the user's, so that no key and no token is in reach."""
    return {
        "PATH": f"{Path(ground.python).parent}:{os.defpath}",
        "HOME": str(ground.home),
        "TMPDIR": str(ground.home / "tmp"),
        "XDG_CACHE_HOME": str(ground.home / "tmp"),
        "MPLCONFIGDIR": str(ground.home / "tmp"),
        "LC_ALL": "C.UTF-8",
        "PYTHONDONTWRITEBYTECODE": "1",
        "SDL_VIDEODRIVER": "dummy",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }


def _listen(process: "subprocess.Popen[bytes]", ends: tuple[int, int], until: float) -> tuple[tuple[str, str], bool]:
    """Take what is printed until the run ends; False where the time was over first."""
    taken: dict[int, bytearray] = {end: bytearray() for end in ends}
    timely = True
    with selectors.DefaultSelector() as selector:
        for end in ends:
            os.set_blocking(end, False)
            selector.register(end, selectors.EVENT_READ)
        while selector.get_map():
            ended = process.poll() is not None  # asked before the last look, so that nothing printed is missed
            ready = selector.select(0 if ended else _LOOK_SECONDS)
            for key, _ in ready:
                if not _take(key.fd, taken[key.fd]):
                    selector.unregister(key.fd)
            if ended and not ready:
                break
            if time.monotonic() > until:
                timely = ended
                break
    first, second = (bytes(taken[end]).decode(errors="replace") for end in ends)
    return (first, second), timely


def _take(end: int, taken: bytearray) -> bool:
    """Take one piece of output, forgetting the middle of what is too long; False at its end."""
    data = os.read(end, 1 << 16)
    taken += data
    if len(taken) > _MOST_OUTPUT:
        del taken[_MOST_OUTPUT // 4 : -_MOST_OUTPUT // 4]
    return bool(data)
