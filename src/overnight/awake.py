"""Keeping the machine awake through the night, and what may end a night all the same.

On Linux, `systemd-inhibit` holds sleep and the lid switch back for as long as a pipe from the engine is open, so that
the hold ends with the engine however that ends. On macOS, `caffeinate` waits for the engine's process.

Does not: keep a battery full, stop anybody from switching the machine off, or hold back what an administrator does.
"""

import os
import pwd
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

_ROOT = Path("/")
_SYSTEMD = Path("/run/systemd/system")
_WHAT = "sleep:idle:handle-lid-switch"


@dataclass(frozen=True, slots=True)
class Risk:
    """One thing that may end or delay a night, and the command that rules it out."""

    name: str
    says: str
    command: str = ""


@contextmanager
def kept_awake(*, wanted: bool = True) -> Iterator[str]:
    """Keep the machine awake inside of the context; yields a sentence on whether that works."""
    words = _command() if wanted else None
    if words is None:
        yield "" if not wanted else "Nothing keeps this machine awake: there is neither systemd-inhibit nor caffeinate."
        return
    with subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    ) as process:
        try:
            with suppress(subprocess.TimeoutExpired):
                process.wait(0.3)
            if process.poll() is None:
                yield f"{words[0]} keeps this machine awake."
            else:
                yield f"{words[0]} could not keep this machine awake; a machine that sleeps goes on when it wakes."
        finally:
            if process.stdin is not None:
                process.stdin.close()
            if process.poll() is None:
                process.terminate()


def _command() -> tuple[str, ...] | None:
    if shutil.which("systemd-inhibit") and _SYSTEMD.exists():
        why = "a night of training"
        return ("systemd-inhibit", f"--what={_WHAT}", "--who=overnight", f"--why={why}", "--mode=block", "cat")
    if sys.platform == "darwin" and shutil.which("caffeinate"):
        return ("caffeinate", "-i", "-s", "-w", str(os.getpid()))
    return None


# What may end a night all the same


def risks(root: Path = _ROOT) -> tuple[Risk, ...]:
    """What is seen on this machine that may end or delay a night; read from files, nothing is started."""
    return tuple(one for look in (_battery, _lid, _updates, _login, _nobody_keeps) for one in look(root))


def _battery(root: Path) -> Iterator[Risk]:
    for supply in sorted(root.glob("sys/class/power_supply/*")):
        if _read(supply / "type") == "Battery" and _read(supply / "status") == "Discharging":
            left = _read(supply / "capacity")
            says = f"The machine runs on its battery{f' ({left} %)' if left else ''}, which may not last a night."
            yield Risk("battery", says, "plug it in")
            return


def _lid(root: Path) -> Iterator[Risk]:
    if any(root.glob("proc/acpi/button/lid/*")) and not _kept(root):
        yield Risk("lid", "Closing the lid suspends the machine, and the night with it.", "leave the lid open")


def _updates(root: Path) -> Iterator[Risk]:
    for path in sorted(root.glob("etc/apt/apt.conf.d/*")):
        if re.search(r'^\s*Unattended-Upgrade::Automatic-Reboot\s+"true"', _read(path), re.MULTILINE):
            says = f"Updates may restart the machine by themselves ({path.name})."
            yield Risk("updates", says, 'set Unattended-Upgrade::Automatic-Reboot to "false"')
            return


def _login(root: Path) -> Iterator[Risk]:
    """Whether systemd ends what a user left running when the last session closes."""
    told = [root / "etc/systemd/logind.conf", *sorted(root.glob("etc/systemd/logind.conf.d/*.conf"))]
    found = [value for path in told for value in re.findall(r"(?m)^\s*KillUserProcesses\s*=\s*(\S+)", _read(path))]
    if not found or found[-1].lower() not in ("yes", "true", "1", "on"):
        return
    with suppress(KeyError):
        user = pwd.getpwuid(os.getuid()).pw_name
        if user != "root" and not (root / "var/lib/systemd/linger" / user).exists():
            says = "This system ends everything that you started when you log out."
            yield Risk("login", says, "loginctl enable-linger")


def _nobody_keeps(root: Path) -> Iterator[Risk]:
    if not _kept(root) and any(root.glob("sys/class/power_supply/*")):
        says = "Nothing keeps this machine awake; where it sleeps, the night goes on when it wakes."
        yield Risk("sleep", says, "sudo apt-get install systemd")


def _kept(root: Path) -> bool:
    return sys.platform == "darwin" or (
        (root / "run/systemd/system").exists() and shutil.which("systemd-inhibit") is not None
    )


def _read(path: Path) -> str:
    with suppress(OSError):
        return path.read_text(errors="replace").strip()
    return ""
