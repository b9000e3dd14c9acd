"""The ground that is attacked: files and processes of a host that a candidate has no business with, each a canary.

Everything is readable and writable for everybody, so that no permission of a file hides a missing layer. What was
read shows by a token that lies nowhere else, and what was changed by a digest of everything that is there.
"""

import os
import secrets
import socket
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path

from overnight.ports import Finished, Machine

SECRET = "OVERNIGHT_CANARY"  # noqa: S105 - the name of a variable
_SECONDS = 120.0
_VICTIM = """
import ctypes, os, sys, time
parent = os.getppid()
word = ctypes.create_string_buffer(b"intact", 16)
with open(sys.argv[1] + ".new", "w") as file: file.write(f"{os.getpid()} {ctypes.addressof(word)}")
os.rename(sys.argv[1] + ".new", sys.argv[1])
while not os.path.exists(sys.argv[2]) and os.getppid() == parent: time.sleep(0.02)
print(word.value.decode())
"""


class Ground:
    """One folder of canaries."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.tokens: dict[str, str] = {}
        self._before: dict[str, str] = {}

    def plant(self, name: str) -> Path:
        """A folder with one canary in it, for one attack."""
        here = self.folder / "host" / name
        here.mkdir(parents=True)
        self.tokens[name] = secrets.token_hex(16)
        (here / "canary").write_text(self.tokens[name])
        here.chmod(0o777)
        (here / "canary").chmod(0o666)
        self._before[name] = _digest(here)
        return here

    def changed(self, name: str) -> bool:
        """Whether anything about an attack's folder is not as it was planted."""
        return _digest(self.folder / "host" / name) != self._before[name]

    def was_read(self, name: str, text: str) -> bool:
        """Whether a text holds an attack's token."""
        return self.tokens[name] in text


def _digest(folder: Path) -> str:
    found = sha256()
    for where, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted((*names, *folders)):
            path = Path(where, name)
            how = path.lstat()
            found.update(f"{path} {how.st_mode:o} {how.st_nlink} {os.listxattr(path, follow_symlinks=False)}".encode())
            with suppress(OSError):
                found.update(path.read_bytes() if path.is_file() else b"")
    return found.hexdigest()


@contextmanager
def fresh_ground() -> Iterator[Ground]:
    """A ground in a folder of its own, which is closed to other users, as a home is."""
    with tempfile.TemporaryDirectory(prefix="overnight-gallery-", ignore_cleanup_errors=True) as folder:
        yield Ground(Path(folder))


class Ears:
    """Sockets of the host that listen; whoever reaches one leaves its name there."""

    def __init__(self, folder: Path) -> None:
        self.path = str(folder / "socket")
        self.abstract = f"overnight-{secrets.token_hex(8)}"
        self._streams = [socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX), socket.socket()]
        self._datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._streams[0].bind(self.path)
        os.chmod(self.path, 0o777)  # noqa: S103, PTH101 - open to everybody, so that only a layer can stop it
        self._streams[1].bind(f"\0{self.abstract}")
        for one in (self._streams[2], self._datagrams):
            one.bind(("127.0.0.1", 0))
        for stream in self._streams:
            stream.listen(64)
        for one in (*self._streams, self._datagrams):
            one.setblocking(False)  # noqa: FBT003 - the socket's own call
        self.tcp, self.udp = self._streams[2].getsockname()[1], self._datagrams.getsockname()[1]

    def heard(self) -> list[str]:
        """Every name that was left."""
        found = []
        for stream in self._streams:
            with suppress(BlockingIOError):
                while True:
                    caller = stream.accept()[0]
                    with caller, suppress(OSError):
                        caller.settimeout(1.0)
                        found.append(caller.recv(200).decode(errors="replace"))
        with suppress(BlockingIOError):
            while True:
                found.append(self._datagrams.recv(200).decode(errors="replace"))
        return found

    def close(self) -> None:
        """Stop listening."""
        for one in (*self._streams, self._datagrams):
            one.close()


class Victims:
    """Processes of the host, beside the engine: one that may be killed, and one whose memory may be reached for."""

    def __init__(self, machine: Machine, folder: Path, names: tuple[str, ...], variables: Mapping[str, str]) -> None:
        self._stop, self.at = folder / "victims-stop", {}
        self._pool = ThreadPoolExecutor(len(names))
        self._going: dict[str, Future[Finished]] = {}
        for name in names:
            words = (sys.executable, "-I", "-S", "-c", _VICTIM, str(folder / name), str(self._stop))
            env = {**variables, "PATH": os.defpath}
            self._going[name] = self._pool.submit(self._live, machine, words, env)
        for name in names:
            wait_for((folder / name).exists)
            pid, address = (folder / name).read_text().split()
            self.at[name] = {"pid": int(pid), "address": int(address)}

    @staticmethod
    def _live(machine: Machine, words: tuple[str, ...], env: Mapping[str, str]) -> Finished:
        return machine.run_process(words, env=env, limit_seconds=_SECONDS)

    def harmed(self) -> set[str]:
        """Let them end, and say which were killed or have another word in their memory."""
        self._stop.touch()
        found = {name for name, going in self._going.items() if going.result().stdout != b"intact\n"}
        self._pool.shutdown()
        return found


def wait_for(true: Callable[[], object], seconds: float = 20.0) -> bool:
    """Wait until something holds; whether it came to hold."""
    import time

    until = time.monotonic() + seconds
    while not (held := bool(true())) and time.monotonic() < until:
        time.sleep(0.02)
    return held


def left_behind(mark: str) -> list[int]:
    """The processes whose command line carries a mark; they are ended, because the gallery leaves nothing either."""
    found = []
    for entry in Path("/proc").iterdir():
        with suppress(OSError):
            if entry.name.isdigit() and mark.encode() in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
    return [pid for pid in found if pid != os.getpid()]
