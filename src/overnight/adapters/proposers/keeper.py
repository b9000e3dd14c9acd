"""One small trusted process for each time that a coding agent is asked: `python -m …keeper FOLDER ENGINE_PID`.

It gives the agent a private home, starts the approved command at the contract's tier, takes down what it says, holds
it to its limits, ends everything below it, and writes `returned.json` last. When the engine dies, so does everything
here: an answer that nobody waits for is not worth its price.

    brief.md  schema.json  errand.json     what the agent is asked, and what this process is told
    copy/     out/                          what it edits, and where it may leave `proposal.json`
    events.jsonl  errors.log                what it said, without the values of its credentials
    returned.json                           how it ended

The agent has the network and its own credentials, because it cannot work without them. It gets no other variable and no
other file of the person's. Whoever can read its key can also send it away: use a key of its own, with a limit.
"""

import os
import selectors
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from overnight.errors import UserError
from overnight.records import strict_json
from overnight.records.agent import EndedBy, Errand, Returned
from overnight.records.codec import dumps, loads
from overnight.sandbox.bounds import Bounds, bounds_for, command_paths
from overnight.sandbox.processes import die_with_parent, end_below, end_tree, inherit_orphans
from overnight.sandbox.start import exit_status, start
from overnight.sandbox.tiers import Child, NotHeld

_LOOK_SECONDS, _STOOD_STILL_SECONDS = 0.1, 5.0
_MOST_EVENTS, _MOST_ERRORS, _LONGEST_LINE = 50_000_000, 1_000_000, 4_000_000
_SHORTEST_SECRET = 8
_SEARCHED_BYTES = 20_000_000
REDACTED = b"[redacted]"


class Transcript:
    """A file of lines in which no secret stands, and which does not grow for ever."""

    def __init__(self, path: Path, secrets: tuple[bytes, ...], most: int) -> None:
        self.file = path.open("wb")
        self.secrets, self.left, self.rest = secrets, most, b""
        self.last = b""

    def write(self, data: bytes) -> None:
        """Take some bytes; whole lines are written, and a line without end is cut."""
        *lines, self.rest = (self.rest + data).split(b"\n")
        for line in lines:
            self._line(line)
        if len(self.rest) > _LONGEST_LINE:
            self.close()

    def close(self) -> None:
        """Write what is left, as a line of its own."""
        if self.rest:
            self._line(self.rest)
        self.rest = b""

    def _line(self, line: bytes) -> None:
        for secret in self.secrets:
            line = line.replace(secret, REDACTED)
        self.last = line.strip() or self.last
        if len(line) < self.left:
            self.left -= len(line) + 1
            self.file.write(line + b"\n")
            self.file.flush()


class Keeper:
    """The life of one asking."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.errand = loads(Errand, (folder / "errand.json").read_bytes(), where=str(folder / "errand.json"))
        self.began = self.heard = self.looked = time.monotonic()
        for name in ("home", "tmp", "out"):
            (folder / name).mkdir(exist_ok=True)
        self.secrets = tuple(dict.fromkeys((*self._values(), *self._copied())))
        self.events = Transcript(folder / "events.jsonl", self.secrets, _MOST_EVENTS)
        self.errors = Transcript(folder / "errors.log", self.secrets, _MOST_ERRORS)

    def _values(self) -> Iterator[bytes]:
        for name in self.errand.secrets:
            value = os.environ.get(name, "").encode()
            if len(value) >= _SHORTEST_SECRET:
                yield value

    def _copied(self) -> Iterator[bytes]:
        """Copy the person's files into the private home, and tell every long text that stands in them."""
        home = Path(os.environ.get("OVERNIGHT_HOME", "/nonexistent"))
        for name in self.errand.files:
            with suppress(OSError):
                data = (home / name).read_bytes()
                target = self.folder / "home" / name
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(data)
                with suppress(UserError):
                    yield from _long_texts(strict_json.parse(data, where=name))

    def run(self) -> Returned:
        """Start the agent, wait for its end or bring it about, and say how it went."""
        try:
            child = start(self._child(), self._bounds(), self.errand.tier)
        except NotHeld as error:
            return self._never_began(f"It could not be held at {self.errand.tier}: {error}.")
        except OSError as error:
            return self._never_began(f"{self.errand.command[0]} could not be started: {error.strerror or error}.")
        why = self._watch(child)
        end_tree(child.pid)
        status = exit_status(child.wait(), self.errand.tier)
        self._take(child)
        for transcript in (self.events, self.errors):
            transcript.close()
        return Returned(
            why=why,
            status=status,
            wall_seconds=time.monotonic() - self.began,
            said=self.errors.last.decode(errors="replace")[-500:],
            leaked=self._leaked(),
        )

    def _never_began(self, says: str) -> Returned:
        return Returned(why="unstarted", status=127, wall_seconds=time.monotonic() - self.began, said=says[:500])

    def _child(self) -> Child:
        home, tmp = self.folder / "home", self.folder / "tmp"
        passed = {name: os.environ[name] for name in self.errand.variables if name in os.environ}
        own = {
            "PATH": _path(),
            "LANG": "C.UTF-8",
            "TERM": "dumb",
            "HOME": str(home),
            "TMPDIR": str(tmp),
            "XDG_CONFIG_HOME": str(home / ".config"),
            "XDG_CACHE_HOME": str(home / ".cache"),
            "XDG_STATE_HOME": str(home / ".state"),
            "XDG_DATA_HOME": str(home / ".data"),
            "CLAUDE_CONFIG_DIR": str(home / ".claude"),
            "CODEX_HOME": str(home / ".codex"),
            "OVERNIGHT_ASK": str(self.folder),
            "OVERNIGHT_BRIEF": str(self.folder / "brief.md"),
            "OVERNIGHT_PROPOSAL": str(self.folder / "out" / "proposal.json"),
        }
        (home / ".codex").mkdir(exist_ok=True)
        return Child(
            command=self.errand.command,
            cwd=str(self.folder / "copy"),
            env={**passed, **own},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def _bounds(self) -> Bounds:
        """Its copy, its home and a place for its answer to write; the brief, programs and libraries to read."""
        path = _path()
        named = (*command_paths(self.errand.command, path), *_packages(self.errand.command[0], path))
        own = (str(self.folder / name) for name in ("brief.md", "schema.json"))
        writable = (str(self.folder / name) for name in ("copy", "home", "tmp", "out"))
        return bounds_for(
            (*own, *named, *self.errand.readable), writable=writable, hidden=self.errand.hidden, network=True
        )

    def _watch(self, child: "subprocess.Popen[bytes]") -> EndedBy:
        """Take down what it says until it ends, or until a limit ends it."""
        with selectors.DefaultSelector() as selector:
            for stream, transcript in ((child.stdout, self.events), (child.stderr, self.errors)):
                if stream is not None:
                    os.set_blocking(stream.fileno(), False)
                    selector.register(stream, selectors.EVENT_READ, transcript)
            while child.poll() is None:
                for key, _ in selector.select(_LOOK_SECONDS):
                    if not self._read(key.fd, key.data):
                        selector.unregister(key.fileobj)
                if not selector.get_map():
                    time.sleep(_LOOK_SECONDS)
                if why := self._over():
                    return why
        return "ended"

    def _over(self) -> EndedBy | None:
        now, stop = time.monotonic(), self.folder / "stop"
        still = now - self.looked
        if still > _STOOD_STILL_SECONDS:  # the machine slept, or somebody stopped us: that is not the agent's silence
            self.began, self.heard = self.began + still, self.heard + still
        self.looked = now
        if stop.exists():
            return "spent" if stop.read_text() == "spent" else "stopped"
        if now - self.began > self.errand.wall_seconds:
            return "timeout"
        return "stalled" if now - self.heard > self.errand.silence_seconds else None

    def _read(self, fd: int, transcript: Transcript) -> bool:
        """Take one piece; False at the end."""
        try:
            data = os.read(fd, 1 << 16)
        except BlockingIOError:
            return True
        self.heard = time.monotonic()
        transcript.write(data)
        return bool(data)

    def _take(self, child: "subprocess.Popen[bytes]") -> None:
        """Take what was said and not read yet."""
        for stream, transcript in ((child.stdout, self.events), (child.stderr, self.errors)):
            while stream is not None:
                try:
                    data = os.read(stream.fileno(), 1 << 16)
                except BlockingIOError:
                    break
                if not data:
                    break
                transcript.write(data)

    def _leaked(self) -> tuple[str, ...]:
        """Files that hold one of its own credentials; they are emptied, so that no secret stays."""
        found = []
        for name in ("copy", "out"):
            for where, _, files in os.walk(self.folder / name):
                for path in (Path(where, file) for file in files):
                    if self._holds_secret(path):
                        path.write_bytes(b"")
                        found.append(path.relative_to(self.folder / name).as_posix())
        return tuple(found[:100])

    def _holds_secret(self, path: Path) -> bool:
        with suppress(OSError):
            if self.secrets and path.is_file() and not path.is_symlink() and path.stat().st_size <= _SEARCHED_BYTES:
                data = path.read_bytes()
                return any(secret in data for secret in self.secrets)
        return False


def _path() -> str:
    """Where programs are looked for: first beside our own interpreter, as for trainers."""
    return f"{Path(sys.executable).parent}:{os.environ.get('PATH', os.defpath)}"


def _long_texts(found: object) -> Iterator[bytes]:
    """Every text in a file of credentials that is long enough to be one."""
    if isinstance(found, str) and len(found) >= 2 * _SHORTEST_SECRET:
        yield found.encode()
    elif isinstance(found, dict):
        for value in found.values():
            yield from _long_texts(value)
    elif isinstance(found, list):
        for value in found:
            yield from _long_texts(value)


def _packages(command: str, path: str) -> Iterator[str]:
    """The package of a program that Node runs, and the interpreter beside it."""
    program = shutil.which(command, path=path)
    if program is None:
        return
    real = Path(os.path.realpath(program))
    tops = [one for one in real.parents if one.name == "node_modules"]
    if tops:
        yield str(tops[-1])
    beside = Path(program).parent / "node"
    for node in (str(beside) if beside.exists() else None, shutil.which("node", path=path)):
        if tops and node is not None:
            yield from (node, os.path.realpath(node))


def main(argv: list[str]) -> int:
    """Keep one asking, and leave nothing of it but its words."""
    folder, engine = Path(argv[1]), int(argv[2])
    signal.signal(signal.SIGTERM, lambda *_: _end_all(folder))
    die_with_parent(engine, by=signal.SIGTERM)
    inherit_orphans()
    os.umask(0o077)
    returned = Keeper(folder).run()
    end_below()
    _clear(folder)
    beside = folder / ".returned.json.new"
    beside.write_bytes(dumps(returned))
    beside.replace(folder / "returned.json")
    return 0


def _clear(folder: Path) -> None:
    """Remove what only the agent needed, its credentials first of all."""
    for name in ("home", "tmp"):
        with suppress(RecursionError):  # an agent can nest folders deeper than they can be removed
            shutil.rmtree(folder / name, ignore_errors=True)


def _end_all(folder: Path) -> None:
    """The engine is gone, and nobody waits for the answer: leave no process behind, and no word either."""
    end_below()
    _clear(folder)
    os._exit(1)


if __name__ == "__main__":
    sys.exit(main(sys.argv))
