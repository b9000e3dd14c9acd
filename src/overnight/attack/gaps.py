"""What is not stopped, and where. Each is tried like an attack, so that the page that tells it stays true."""

from dataclasses import dataclass

from overnight.attack.attacks import Rung
from overnight.attack.reach import Reach


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """One attack that gets in."""

    attack: Reach
    at: tuple[Rung, ...]
    """The tiers at which it does."""
    instead: str
    """What holds all the same, or what would close it."""


def _reach(name: str, tries: str, body: str) -> Reach:
    return Reach(
        id=name, family="host", tries=tries, stopped_by="nothing", seen="a right is gained", body=body, proof="said"
    )


GAPS: tuple[Gap, ...] = (
    Gap(
        attack=_reach(
            "see-that-a-file-exists",
            "sees that a file exists, and how large it is",
            "return f'{os.stat(here + \"/canary\").st_size} bytes'",
        ),
        at=("T1", "T2"),
        instead="T3 has a view of its own files. Nothing can be read at T2.",
    ),
    Gap(
        attack=_reach(
            "touch-the-times",
            "changes the times of a file that belongs to the same user",
            "os.utime(here + '/canary', (1, 1)); return os.stat(here + '/canary').st_mtime == 1 and 'touched'",
        ),
        at=("T1", "T2"),
        instead="T3 has a view of its own files. Nothing is ever decided by a file's times.",
    ),
    Gap(
        attack=_reach(
            "take-more-cores",
            "takes more cores than it was given",
            "os.sched_setaffinity(0, [min(os.sched_getaffinity(0))]); os.sched_setaffinity(0, range(os.cpu_count()))\n"
            "    return len(os.sched_getaffinity(0)) > 1 and 'more cores'",
        ),
        at=("T1", "T2", "T3"),
        instead="Processor time is measured for the whole family; a budget of `cpu_seconds` is not gained by it.",
    ),
)
