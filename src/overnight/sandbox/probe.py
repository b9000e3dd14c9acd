"""What this machine can really hold a process to: each tier is tried with a canary that must be denied.

Nothing is inferred from versions. The canary is started by the very function that starts trainers and policies, and a
tier counts only when it could do its own work and none of the forbidden things. What was proven is remembered until
the machine starts anew, or anything that it rests on changes; what was not is tried again.
"""

import json
import os
import socket
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from overnight.sandbox import memory
from overnight.sandbox.bounds import bounds_for
from overnight.sandbox.start import start
from overnight.sandbox.tiers import HOLDERS, Child, Layer, NotHeld, Tier, lacks

ROOT = "be root"
FORBIDDEN = (
    *("read outside", "write outside", "change modes outside", "network socket", "local socket", "trace parent"),
    ROOT,
)
"""What no tier from T2 on lets a canary do."""
SIGNAL = "signal parent"
"""What T2 lets it do before Linux 6.12; it is told as a gap, and a referee that was killed gives no result."""
_SECONDS = 10.0
_CANARY = """
import ctypes, json, os, socket, sys
outside, own, parent, listener = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
libc, done = ctypes.CDLL(None, use_errno=True), []
def tried(name, what):
    try: what()
    except OSError: return
    done.append(name)
def refused(result):
    if result != 0: raise OSError(ctypes.get_errno())
def write(path):
    with open(path, "w") as file: file.write("x")
def mode():
    os.chmod(outside + "/canary", 0o604)
    if os.stat(outside + "/canary").st_mode & 0o777 != 0o604: raise OSError
def local():
    with socket.socket(socket.AF_UNIX) as one: one.connect(listener)
tried("own work", lambda: write(own + "/word"))
tried("read outside", lambda: open(outside + "/canary").read())
tried("write outside", lambda: write(outside + "/new"))
tried("change modes outside", mode)
for family in (socket.AF_INET, socket.AF_INET6):
    tried("network socket", lambda: socket.socket(family, socket.SOCK_DGRAM).close())
tried("local socket", local)
tried("trace parent", lambda: refused(libc.ptrace(0x4206, parent, 0, 0)))
tried("signal parent", lambda: os.kill(parent, 0))
if 0 in os.getresuid() + os.getresgid() + tuple(os.getgroups()): done.append("be root")
print(json.dumps(done))
"""


@dataclass(frozen=True, slots=True)
class Proof:
    """What one tier turned out to be worth here."""

    tier: Tier
    why: str
    """Why it cannot be used; empty where it can."""
    gaps: tuple[str, ...] = ()
    """What it does not stop here, although it does on a newer kernel or for another user."""

    def holds(self) -> bool:
        """Whether the tier can be used."""
        return not self.why


@cache
def prove(tier: Tier) -> Proof:
    """What one tier is worth here: as it was remembered, or tried once for each process."""
    if missing := lacks(tier):
        return Proof(tier, missing)
    if tier == "T1":
        return Proof(tier, "")
    known = memory.recall(tier)
    if known is not None:
        return Proof(tier, "", known)
    proof = tried(tier)
    if proof.holds():
        memory.remember(tier, proof.gaps)
    return proof


def tried(tier: Tier) -> Proof:
    """Try one tier now."""
    try:
        done = canary(tier)
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        return Proof(tier, f"{tier} cannot be applied: {error}.")
    if "own work" not in done:
        return Proof(tier, f"a process at {tier} could not even write into its own folder.")
    if broken := [name for name in FORBIDDEN if name in done]:
        return Proof(tier, f"a canary at {tier} was not stopped: {', '.join(broken)}.")
    return Proof(tier, "", tuple(name for name in (SIGNAL,) if name in done))


def strongest() -> Tier:
    """The strongest tier that holds on this machine; `NotHeld` where none does."""
    found = next((tier for tier in reversed(HOLDERS) if prove(tier).holds()), None)
    if found is None:
        raise NotHeld(prove("T1").why)
    return found


def canary(tier: Tier, without: frozenset[Layer] = frozenset()) -> list[str]:
    """Everything that a canary could do at a tier, or at what is left of it without some layers."""
    with tempfile.TemporaryDirectory(prefix="overnight-probe-") as folder:
        outside, own = Path(folder) / "outside", Path(folder) / "own"
        for one in (outside, own):
            one.mkdir()
        (outside / "canary").write_text("secret")
        Path(folder).chmod(0o755)
        outside.chmod(0o777)  # so that no mode of a file stops what a layer ought to stop
        (outside / "canary").chmod(0o666)
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(outside / "socket"))
            (outside / "socket").chmod(0o777)
            listener.listen(1)
            return _sing(tier, outside, own, without)


def _sing(tier: Tier, outside: Path, own: Path, without: frozenset[Layer]) -> list[str]:
    words = (str(outside), str(own), str(os.getpid()), str(outside / "socket"))
    child = Child(
        command=(sys.executable, "-I", "-S", "-B", "-c", _CANARY, *words),
        cwd="/",
        env={"PATH": os.defpath, "LC_ALL": "C"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    process = start(child, bounds_for((), writable=(str(own),)), tier, without)
    try:
        said, wrong = process.communicate(timeout=_SECONDS)
    finally:
        process.kill()
        process.wait()
    if process.returncode != 0:
        raise OSError((wrong.decode(errors="replace").strip().splitlines() or ["the canary said nothing"])[-1])
    return [str(name) for name in json.loads(said)]
