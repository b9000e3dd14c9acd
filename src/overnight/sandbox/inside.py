"""The last step inside of bubblewrap: what the private view alone has joins the list, Landlock is applied, and the
command begins.

Every start at T3 waits for this program, so it is given to a bare interpreter as text and imports three modules that
are part of it. The list was made outside; only the folders that bubblewrap itself makes are added here. A byte on the
report says that everything holds, and what follows it is why the command could not begin.

    inside.py REPORT LIST [RIGHTS FOLDER]... -- COMMAND...
"""

import posix
import sys
from _signal import SIG_DFL, SIGTERM, signal  # type: ignore[import-not-found]

_ADD, _RESTRICT = 445, 446
_PATH_ONLY = 0o12000000  # O_PATH | O_CLOEXEC


def main(words: list[str]) -> None:
    """Apply the list, and become the command."""
    end = words.index("--")
    report, rules = int(words[1]), int(words[2])
    posix.set_inheritable(report, False)  # noqa: FBT003 - it takes no names
    try:
        if rules >= 0:
            hold(rules, words[3:end])
    except OSError as error:
        posix.write(report, str(error).encode())
        raise SystemExit(125) from None
    signal(SIGTERM, SIG_DFL)
    posix.write(report, b"+")
    try:
        run(words[end + 1 :])
    except OSError as error:
        posix.write(report, str(error.errno).encode())
        raise SystemExit(127) from None


def hold(rules: int, allowed: list[str]) -> None:
    """Add folders to the list, and hold this process to it for good."""
    import _ctypes  # takes as long as the rest, and is not needed where the list is left out

    call = _ctypes.dlsym(_ctypes.dlopen(None, 2), "syscall")  # type: ignore[arg-type] # None is this program itself
    for place in range(0, len(allowed), 2):
        folder = posix.open(allowed[place + 1], _PATH_ONLY)
        rule = int(allowed[place]).to_bytes(8, sys.byteorder) + folder.to_bytes(4, sys.byteorder)
        if _ctypes.call_function(call, (_ADD, rules, 1, rule, 0)) != 0:
            raise OSError(f"Landlock: {allowed[place + 1]} cannot be added to the list")
        posix.close(folder)
    if _ctypes.call_function(call, (_RESTRICT, rules, 0)) != 0:
        raise OSError("Landlock: this process cannot be held to the list")
    posix.close(rules)


def run(command: list[str]) -> None:
    """Become a command; one without a slash is looked for where `PATH` says."""
    folders = posix.environ.get(b"PATH", b"/bin:/usr/bin").decode().split(":") if "/" not in command[0] else [""]
    missing = None
    for folder in folders:
        try:
            posix.execv(f"{folder}/{command[0]}" if folder else command[0], command)
        except FileNotFoundError as error:
            missing = error
    raise missing or OSError(2, "there is no folder to look in")


if __name__ == "__main__":
    main(sys.argv)
