"""Attacks by a trainer on its limits and on whoever watches it, one supervised run each."""

import importlib.machinery
import importlib.util
import marshal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from overnight.attack.attacks import Attack, Seen
from overnight.attack.engine import Limits, Ran
from overnight.run.log import HEAD_BYTES, TAIL_BYTES

POLICY = """
import json, os, pathlib, signal, sys, time
out = pathlib.Path(os.environ["OVERNIGHT_OUT"])
(out / "policy").mkdir()
(out / "policy" / "policy.json").write_text("{}")
"""
_DAEMON = """
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.closerange(0, 3)
        os.execve(sys.executable, [MARK, "-S", "-c", {work!r}], {{}})
    os._exit(0)
"""


_USUAL = Limits()


class After(NamedTuple):
    """What a judge sees: the run, and the processes that are still there."""

    ran: Ran
    left: list[int]


Judge = Callable[[After], str]
"""What shows that the attack got in; empty where it did not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainerAttack(Attack):
    """One trainer, its limits, and who judges what came of it."""

    source: str
    judge: Judge
    limits: Limits = _USUAL
    slow: bool = False
    """Whether it takes seconds, because it plays on time."""


def _left(after: After) -> str:
    return f"{len(after.left)} processes went on" if after.left else ""


def _beating(after: After) -> str:
    """A process that is never the same one is seen by what it goes on writing."""
    beat = after.ran.folder / "out" / "beat"
    first = beat.read_bytes() if beat.exists() else b""
    time.sleep(0.3)
    goes_on = beat.exists() and beat.read_bytes() != first
    return _left(after) or ("it goes on writing" if goes_on else "")


def _believed(after: After) -> str:
    return "its run counts as completed" if after.ran.believed else ""


def _overstayed(after: After) -> str:
    return "" if after.ran.ended else "it was still running when nobody waited any longer"


def _unbilled(after: After) -> str:
    billed = after.ran.cpu_seconds
    return f"{billed:.2f} s of processor time were billed of more than 0.6" if billed < 0.6 else ""


def _untimed(after: After) -> str:
    told, took = after.ran.wall_seconds, after.ran.real_seconds
    return f"{told:.1f} s are believed, and it took {took:.1f}" if told < 0.5 else ""


def _flooded(after: After) -> str:
    size = len(after.ran.log)
    return f"{size:,} bytes of log were kept" if size > HEAD_BYTES + TAIL_BYTES + 1000 else ""


def _spoken(after: After) -> str:
    driven = [char for char in after.ran.because if not char.isprintable() and char != "\n"]
    return f"{len(driven)} control characters reach a terminal" if driven else ""


def _poisoned(after: After) -> str:
    return "compiled code that nobody saw was run" if b"POISONED" in after.ran.log else ""


def _bereft(after: After) -> str:
    return "its supervisor is gone" if after.ran.lost else ""


def poisoned_bytecode() -> bytes:
    """A compiled file that says that it belongs to a harmless source, and that Python does not check against it."""
    code = importlib.machinery.SourceFileLoader("harmless", "harmless.py").source_to_code(
        b"print('POISONED', flush=True)\nvalue = 2\n", "harmless.py"
    )
    return importlib.util.MAGIC_NUMBER + (1).to_bytes(4, "little") + bytes(8) + marshal.dumps(code)


_CACHE = f"__pycache__/harmless.{sys.implementation.cache_tag}.pyc"


def _one(name: str, tries: str, source: str, stopped_by: str, judge: Judge, **more: object) -> TrainerAttack:
    said: dict[str, object] = {"family": "budget", "seen": "the budget is exceeded", **more}
    return TrainerAttack(
        id=name,
        tries=tries,
        source=POLICY + source,
        stopped_by=stopped_by,
        judge=judge,
        **said,  # type: ignore[arg-type]
    )


_LEFT: Seen = "something is left behind"
_TREE = "the supervisor inherits every orphan and ends it; at T3 the end of its own processes"

ATTACKS: tuple[TrainerAttack, ...] = (
    _one(
        "hidden-daemon",
        "leaves a daemon that hides where it comes from",
        _DAEMON.format(work="import time; time.sleep(60)") + "time.sleep(0.3)\n",
        _TREE,
        _left,
        family="host",
        seen=_LEFT,
    ),
    _one(
        "many-processes",
        "starts sixty processes and leaves them",
        "for _ in range(60):\n    if os.fork() == 0:\n"
        "        os.setsid(); os.closerange(0, 3)\n"
        "        os.execve(sys.executable, [MARK, '-S', '-c', 'import time; time.sleep(60)'], {})\n"
        "time.sleep(0.2)\n",
        _TREE,
        _left,
        family="host",
        seen=_LEFT,
        slow=True,
    ),
    _one(
        "outrun-the-killer",
        "forks and ends without a pause, so that no list of processes is ever right",
        "until = time.monotonic() + 8\n"
        "if os.fork() == 0:\n    os.setsid(); os.closerange(0, 3)\n"
        "    while time.monotonic() < until:\n"
        "        if os.fork(): os._exit(0)\n"
        "        time.sleep(0.002)\n        (out / 'beat').write_text(str(time.monotonic()))\n    os._exit(0)\n"
        "time.sleep(0.2)\n",
        _TREE,
        _beating,
        family="host",
        seen=_LEFT,
    ),
    _one(
        "overstay",
        "ignores the word to finish and goes on",
        "signal.signal(15, signal.SIG_IGN)\nos.close(1); os.close(2)\ntime.sleep(600)\n",
        "the supervisor's own clock, and a kill of everything",
        _overstayed,
        limits=Limits(wall_seconds=1.0),
        slow=True,
    ),
    _one(
        "work-in-a-daemon",
        "does its work in a process that nobody counts",
        "def burn():\n    while time.process_time() < 0.7: pass\n"
        "if os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n        burn()\n        (out / 'burnt').touch()\n"
        "        os._exit(0)\n    os._exit(0)\n"
        "os.wait()\nwhile not (out / 'burnt').exists(): time.sleep(0.02)\ntime.sleep(0.1)\n"
        "(out / 'metrics.jsonl').write_text('{\"env_steps\": 1, \"cpu_seconds\": 0.01}\\n')\n",
        "the processor time of the whole family",
        _unbilled,
    ),
    _one(
        "turn-back-the-clock",
        "exchanges its clock and reports that no time has passed",
        "time.monotonic = time.time = time.perf_counter = lambda: 0.0\ntime.sleep(0.7)\n"
        "(out / 'metrics.jsonl').write_text('{\"env_steps\": 1, \"wall_seconds\": 0.0}\\n')\n",
        "the supervisor's own clock",
        _untimed,
    ),
    _one(
        "more-steps",
        "trains for more steps than it was given, and reports them",
        "(out / 'metrics.jsonl').write_text('{\"env_steps\": 5000}\\n')\n",
        "reported steps against the budget",
        _believed,
    ),
    _one(
        "one-endless-file",
        "fills the disk with one file",
        "with open(out / 'big', 'wb') as file: file.truncate(10**9)\n",
        "a limit on the size of a file",
        _believed,
        family="host",
    ),
    _one(
        "many-files",
        "fills the disk with many files",
        "for n in range(40):\n    (out / str(n)).write_bytes(bytes(1_000_000))\n    time.sleep(0.06)\n",
        "the supervisor counts what lies in its folders",
        _believed,
        family="host",
    ),
    _one(
        "fill-the-home",
        "fills the disk where it is not looked for, in its home",
        "for n in range(40):\n    (pathlib.Path(os.environ['HOME']) / f'fill-{n}').write_bytes(bytes(1_000_000))\n"
        "    time.sleep(0.06)\n",
        "the supervisor counts what lies in its folders",
        _believed,
        family="host",
    ),
    _one(
        "files-without-a-name",
        "fills the disk with files that it has deleted and keeps open",
        "kept = []\nfor n in range(40):\n    kept.append(open(out / 'gone', 'wb'))\n    os.unlink(out / 'gone')\n"
        "    kept[-1].write(bytes(1_000_000)); kept[-1].flush()\n    time.sleep(0.06)\n",
        "the supervisor counts deleted files that are still open",
        _believed,
        family="host",
    ),
    _one(
        "endless-output",
        "prints until the disk or the memory of whoever reads is full",
        "for _ in range(20): sys.stdout.write('y' * 1_000_000)\n",
        "a log of bounded size",
        _flooded,
        family="host",
    ),
    _one(
        "report-by-a-pipe",
        "reports through a pipe on which a reader would wait for ever",
        "os.mkfifo(out / 'metrics.jsonl')\n",
        "files are opened without waiting",
        lambda after: "" if after.ran.ended and after.ran.real_seconds < 15 else "the reader waits",
        naive=False,
    ),
    _one(
        "drive-the-terminal",
        "ends with words that drive the terminal of whoever reads them",
        "sys.exit('\\x1b]0;owned\\x07\\x1b[2J\\u202eevil')\n",
        "only what can be seen is told",
        _spoken,
        family="host",
        seen="a process is harmed",
    ),
    _one(
        "poisoned-bytecode",
        "hides code in a compiled file beside a harmless source",
        "sys.path.insert(0, '.')\nimport harmless\n",
        "compiled files are made anew and never believed",
        _poisoned,
        family="files",
        seen="a host file is changed",
        limits=Limits(files={"harmless.py": b"value = 1\n", _CACHE: poisoned_bytecode()}),
    ),
    _one(
        "kill-the-supervisor",
        "kills the process that watches it",
        "os.kill(os.getppid(), 9)\ntime.sleep(2)\n",
        "Landlock at T2, processes of its own at T3",
        _bereft,
        family="host",
        seen="a process is harmed",
        naive=False,
        alone={"T2": "landlock"},
    ),
)
