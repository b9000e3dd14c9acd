"""What was proven about isolation here, kept for the user in a small file, so that a night does not prove it each time.

It is bound to everything that it rests on: this start of the machine, the kernel, the user, bubblewrap, the sources of
this package and the interpreter. Whoever can write the file has the user's rights already; a false proof in it only
leads to a start that fails, because nothing is ever started more weakly than it was asked for.
"""

import json
import os
import platform
import sys
from contextlib import suppress
from functools import cache
from hashlib import sha256
from pathlib import Path

from overnight.sandbox.tiers import Tier
from overnight.sandbox.wrap import bubblewrap

_MOST_BYTES = 4096


def recall(tier: Tier) -> tuple[str, ...] | None:
    """The gaps of a tier that was proven under the same conditions; None where it was not."""
    gaps = _known().get(tier)
    return tuple(map(str, gaps)) if isinstance(gaps, list) else None


def remember(tier: Tier, gaps: tuple[str, ...]) -> None:
    """Keep a proof; that it cannot be kept is no error."""
    known = {**_known(), tier: list(gaps)}
    with suppress(OSError):
        place().parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        beside = place().with_name(f".{place().name}.{os.getpid()}")
        beside.write_text(json.dumps({"rests on": conditions(), "proven": known}))
        beside.replace(place())


def place() -> Path:
    """Where it is kept."""
    state = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(state) / "overnight" / f"isolation-{os.geteuid()}.json"


@cache
def conditions() -> str:
    """A digest of everything that a proof rests on."""
    found = [platform.platform(), str(os.getresuid()), str(os.getgroups()), sys.executable, sys.version]
    with suppress(OSError):
        found.append(Path("/proc/sys/kernel/random/boot_id").read_text())
    for path in (bubblewrap(), os.path.realpath(sys.executable)):
        with suppress(OSError):
            how = os.stat(path or "")
            found.append(f"{path} {how.st_size} {how.st_mtime_ns} {how.st_mode}")
    sources = sorted(Path(__file__).parent.glob("*.p[yl]"))
    return sha256("\n".join(found).encode() + b"".join(path.read_bytes() for path in sources)).hexdigest()


def _known() -> dict[str, object]:
    with suppress(OSError, ValueError, KeyError, TypeError):
        with place().open("rb") as file:
            told = json.loads(file.read(_MOST_BYTES))
        if told["rests on"] == conditions() and isinstance(told["proven"], dict):
            return told["proven"]
    return {}
