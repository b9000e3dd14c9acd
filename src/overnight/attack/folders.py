"""Attacks by what a trainer leaves as its policy: only plain files of a bounded size may come out of its folder."""

import os
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from overnight.attack.attacks import Attack
from overnight.errors import OvernightError
from overnight.run.harvest import MAX_BYTES, MAX_FILES, harvest
from overnight.run.launch import facts_of

Leave = Callable[[Path, Path], object]
"""Fills a trainer's output folder, given a secret of the host's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderAttack(Attack):
    """One folder that a trainer leaves."""

    leave: Leave


def _policy(out: Path) -> Path:
    (out / "policy").mkdir()
    (out / "policy" / "policy.json").write_text("{}")
    return out / "policy"


def _nested(out: Path, _: Path) -> None:
    (_policy(out) / "__pycache__").mkdir()
    (out / "policy" / "__pycache__" / "act.cpython-311.pyc").write_bytes(b"code that nobody saw")


def _crowd(out: Path, _: Path) -> None:
    for number in range(MAX_FILES + 50):
        (_policy(out) if number == 0 else out / "policy").joinpath(str(number)).touch()


def _vast(out: Path, _: Path) -> None:
    with (_policy(out) / "model.safetensors").open("wb") as file:
        file.truncate(MAX_BYTES + 1)


def _one(name: str, tries: str, leave: Leave, stopped_by: str = "links are not followed") -> FolderAttack:
    return FolderAttack(
        id=name,
        family="files",
        tries=tries,
        stopped_by=stopped_by,
        seen="a host file is read",
        leave=leave,
    )


ATTACKS: tuple[FolderAttack, ...] = (
    _one(
        "policy-file-is-a-link",
        "leaves a link to a secret among its weights",
        lambda out, secret: (_policy(out) / "model").symlink_to(secret),
    ),
    _one(
        "policy-is-a-link",
        "leaves a link to a folder of the host's as its policy",
        lambda out, secret: (out / "policy").symlink_to(secret.parent),
    ),
    _one(
        "policy-file-has-two-names",
        "leaves a second name of a secret among its weights",
        lambda out, secret: os.link(secret, _policy(out) / "model"),
        "plain files with one name only",
    ),
    _one(
        "policy-file-is-a-pipe",
        "leaves a pipe on which the engine would wait for ever",
        lambda out, _: os.mkfifo(_policy(out) / "model"),
        "plain files with one name only",
    ),
    _one("policy-is-vast", "leaves weights larger than any memory", _vast, "a limit on what is taken"),
    _one("policy-is-a-crowd", "leaves more files than anybody could look at", _crowd, "a limit on what is taken"),
    _one("policy-hides-code", "leaves compiled code beside its source", _nested, "plain files with one name only"),
    _one(
        "facts-are-a-link",
        "tells facts about itself that are a link to a secret",
        lambda out, secret: (_policy(out).parent / "ready").symlink_to(secret),
    ),
)


def try_folder(attack: FolderAttack, folder: Path, *, naive: bool) -> str:
    """Let one folder be taken, and say what got in with it; empty where nothing did."""
    out, secret = folder / "out", folder / "host" / "policy.json"
    out.mkdir(parents=True)
    secret.parent.mkdir()
    secret.write_text('{"secret": "swordfish"}')
    attack.leave(out, secret)
    facts = "" if naive else " ".join(facts_of(folder).values())
    if naive:
        return _naively(out)
    try:
        harvest(out / "policy", folder / "taken")
    except OvernightError:
        return "its facts hold the secret" if "swordfish" in facts else ""
    taken = b"".join(path.read_bytes() for path in (folder / "taken").iterdir())
    return "the secret was taken" if b"swordfish" in taken or "swordfish" in facts else ""


def _naively(out: Path) -> str:
    """Read everything that is there, as `copytree` and `read_text` do."""
    found: list[str] = []

    def read() -> None:
        with suppress(OSError):
            paths = [*(out / "policy").rglob("*"), *out.glob("ready")]
            files = [path for path in paths if not path.is_dir()]
            data = [path.read_bytes()[:1000] if path.stat().st_size < MAX_BYTES else b"vast" for path in files]
            taken = b"".join(data)
            if len(files) > MAX_FILES or any(word in taken for word in (b"swordfish", b"vast", b"nobody saw")):
                found.append(f"{len(files)} files were taken, with what should not be among them")
                return
        found.append("")

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    reader.join(1.0)
    if reader.is_alive():
        with suppress(OSError):  # let the reader go
            os.close(os.open(out / "policy" / "model", os.O_WRONLY | os.O_NONBLOCK))
        reader.join(5.0)
        return "the reader waited for ever"
    return found[0]
