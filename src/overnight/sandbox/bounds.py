"""What a process that nobody trusts may reach: the folders and files, and whether there is a network.

Everything that is not named is out of reach. A folder that holds something hidden is never named as a whole: what
lies beside the hidden part is named instead.
"""

import os
import shutil
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_SYSTEM = ("/usr", "/lib", "/lib32", "/lib64", "/bin", "/sbin", "/opt", "/nix/store", "/sys")
_SETTINGS = (
    *("ld.so.cache", "ld.so.conf", "ld.so.conf.d", "ld.so.preload", "localtime", "timezone", "passwd", "group"),
    *("nsswitch.conf", "hosts", "resolv.conf", "ssl", "ca-certificates", "fonts", "alternatives", "mime.types"),
    *("OpenCL", "vulkan", "glvnd", "python3", "python3.11", "locale.alias", "os-release", "protocols", "services"),
)
SYSTEM = (*_SYSTEM, *(f"/etc/{name}" for name in _SETTINGS))
"""Programs, libraries and the settings that they read. Passwords and keys of the machine are not among them."""
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
_ACCELERATORS = ("nvidia*", "nvidia-caps/*", "kfd", "dri/render*")
_PACKAGE = Path(__file__).parents[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """The reach of one process and of everything that it starts."""

    readable: tuple[str, ...]
    """What may be read and executed."""
    writable: tuple[str, ...] = ()
    """Folders in which everything may be done."""
    listable: tuple[str, ...] = ()
    """Folders whose names may be seen, and no more."""
    network: bool = False
    """Whether it may speak to other machines."""
    local_sockets: bool = False
    """Whether it may connect to a socket of this machine; without a private view of the files that reaches daemons."""


def bounds_for(
    paths: Iterable[str], *, writable: Iterable[str] = (), hidden: Iterable[str] = (), network: bool = False
) -> Bounds:
    """The system, our own interpreter and these paths, with everything hidden left out."""
    kept = tuple(os.path.realpath(path) for path in hidden)
    readable: dict[str, None] = {}
    listable: dict[str, None] = {}
    for path in dict.fromkeys((*SYSTEM, *own_paths(), *paths)):
        if Path(path).exists() and os.path.realpath(path) not in kept:
            beside = tuple(_beside(path, kept))
            readable |= dict.fromkeys(beside)
            listable |= {} if beside == (path,) else {path: None}
    outer = tuple(path for path in readable if not any(str(one) in readable for one in Path(path).parents))
    return Bounds(readable=outer, writable=tuple(writable), listable=tuple(listable), network=network)


def own_paths() -> tuple[str, ...]:
    """What our own interpreter needs."""
    found = (sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix, str(_PACKAGE.parent))
    return tuple(dict.fromkeys((*found, *_interpreter(Path(sys.executable)))))  # `sys.path` may name any folder


def command_paths(command: tuple[str, ...], path: str) -> tuple[str, ...]:
    """What an approved command names: its program, the interpreter around it, and absolute paths among its words."""
    found = [word for word in command[1:] if word.startswith("/") and word != "/"]
    program = shutil.which(command[0], path=path)
    if program is not None:
        found += [program, os.path.realpath(program), *_interpreter(Path(program))]
    return tuple(found)


def simulators(paths: Iterable[str], env_id: str) -> tuple[str, ...]:
    """Where environments are written, in the interpreters among these paths and in our own: Gymnasium's, EnvPool, and
    the module that an id names. A metered trainer has a broker instead, and what it does not reach it cannot make.
    """
    module = env_id.partition(":")[0].replace(".", "/") if ":" in env_id else ""
    names = ("gymnasium/envs/*/", "envpool", *((module, f"{module}.py") if module else ()))
    found: dict[str, None] = {}
    for prefix in dict.fromkeys((*own_paths(), *paths)):
        for packages in (Path(prefix), *Path(prefix).glob("lib/python3*/*-packages")):
            found |= {str(path): None for name in names for path in packages.glob(name) if path.name != "__pycache__"}
    return tuple(found)


def accelerators() -> tuple[str, ...]:
    """The devices of graphics cards and the like."""
    return tuple(sorted(str(path) for pattern in _ACCELERATORS for path in Path("/dev").glob(pattern)))


def _interpreter(program: Path) -> Iterator[str]:
    """The folders of the Python that a program belongs to, with the packages that its `.pth` files name."""
    for prefix in (program.parent.parent, Path(os.path.realpath(program)).parent.parent):
        if prefix != Path("/") and any(prefix.glob("lib/python3*")):  # a program in /bin does not name the whole disk
            yield str(prefix)
            yield from _named(prefix)
        with suppress(OSError):
            lines = (prefix / "pyvenv.cfg").read_text().splitlines()
            yield from (str(Path(line.partition("=")[2].strip()).parent) for line in lines if line.startswith("home"))


def _named(prefix: Path) -> Iterator[str]:
    for file in prefix.glob("lib/python3*/site-packages/*.pth"):
        with suppress(OSError, UnicodeDecodeError):
            yield from (line for line in file.read_text().splitlines() if line.startswith("/"))


def _beside(path: str, hidden: tuple[str, ...]) -> Iterator[str]:
    """A path itself, or where it holds something hidden, what lies beside that."""
    if not _holds(path, hidden):
        yield path
        return
    with suppress(OSError):
        for one in sorted(Path(os.path.realpath(path)).iterdir()):
            if str(one) not in hidden and not (one.is_symlink() and _holds(str(one), hidden)):
                yield from _beside(str(one), hidden)


def _holds(path: str, hidden: tuple[str, ...]) -> bool:
    """Whether something hidden is this path or lies inside of it."""
    whole = os.path.realpath(path).rstrip("/")
    return any(one == whole or one.startswith(whole + "/") for one in hidden)
