"""One episode of a run's policy, played by the referee and kept as a moving picture."""

from pathlib import Path
from typing import Any, NamedTuple

from overnight.errors import Refused, UserError
from overnight.evaluate.measure import RefereeFailed, measure, record
from overnight.home import Source
from overnight.ports import Machine
from overnight.report.png import SIGNATURE, assemble_apng, encode_png
from overnight.study.durable import write_file

MOST_FRAMES = 400
SECONDS_PER_FRAME = 0.04


class Played(NamedTuple):
    """One episode, and where its picture is."""

    total: float
    steps: int
    picture: Path | None
    missing: str
    """Why there is no picture; empty where there is one."""


def play(source: Source, run: str, seed: int, out: Path) -> Played:
    """Let the referee play one episode, and keep it as a moving picture where the environment draws itself."""
    if out.suffix.lower() != ".png":
        raise UserError("--out", f"is {out.name[:80]!r}, but a name that ends in `.png` is needed")
    if out.exists() and not (source.machine.read(str(out)) or b"").startswith(SIGNATURE):
        raise UserError(str(out), "is there already, and not a picture", hint="name another file")
    env, folder = source.contract.task.env, source.at.runs / run
    frames = out.absolute().with_name(f".{out.stem}.npy")
    try:
        found = record(source.machine, env, folder, seed, frames)
        missing = "" if found.error else _write_picture(source.machine, frames, out)
    except RefereeFailed as failed:
        found = measure(source.machine, env, folder, (seed,), lanes=1)
        missing = failed.what
    finally:
        frames.unlink(missing_ok=True)
    if found.error:
        raise Refused(run, (found.error,))
    _, total, steps = found.episodes[0]
    return Played(total, steps, None if missing else out, missing)


def _write_picture(machine: Machine, frames: Path, out: Path) -> str:
    """Write the picture; where that fails, return why."""
    import numpy as np

    pictures: Any = np.load(frames, mmap_mode="r", allow_pickle=False)
    step = -(-len(pictures) // MOST_FRAMES)
    try:
        encoded = tuple(encode_png(np.asarray(one)) for one in pictures[::step])
        data = assemble_apng(encoded, seconds_per_frame=SECONDS_PER_FRAME * step)
    except ValueError as error:
        return str(error)
    write_file(machine, out, data)
    return ""
