"""Two kinds of seed, both ours: train seeds go to the trainer, episode seeds stay with the referee.

Every seed is an HMAC of a key that never leaves the user's state folder, over the study, the
kind, the phase, the reign or attempt, and a number. The candidate is not part of it, so both
arms of a comparison share their seeds. The ledger holds the key's commitment from the first
entry on; who is shown the key later can compute every seed again.
"""

import hmac
import os
import secrets
from hashlib import sha256
from pathlib import Path
from typing import Literal

from overnight.errors import UserError

Phase = Literal["dev", "screen", "confirm"]
Kind = Literal["train", "episode"]


def keys_folder() -> Path:
    """Where keys lie: outside every project, so that no candidate's tree or export can hold one."""
    state = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(state) / "overnight" / "keys"


def commitment(key: bytes) -> str:
    """What the ledger says about a key."""
    return sha256(b"overnight seed key\0" + key).hexdigest()


def new_key() -> tuple[bytes, str]:
    """Make a key, store it where only the user can read it, and return it with its commitment."""
    key = secrets.token_bytes(32)
    folder = keys_folder()
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    path = folder / f"{commitment(key)[:32]}.key"
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(fd, "wb") as file:
        file.write(key.hex().encode() + b"\n")
        file.flush()
        os.fsync(fd)
    return key, commitment(key)


def load_key(committed: str) -> bytes:
    """The key that a ledger is committed to, or a sentence that says where it should be."""
    path = keys_folder() / f"{committed[:32]}.key"
    try:
        key = bytes.fromhex(path.read_text().strip())
    except (OSError, ValueError) as error:
        raise UserError(
            str(path), "the study's seed key cannot be read", hint="it was made by `overnight init`; restore it"
        ) from error
    if commitment(key) != committed:
        raise UserError(str(path), "is not the key that the ledger is committed to")
    return key


class Seeds:
    """The seeds of one study."""

    def __init__(self, key: bytes, study: str) -> None:
        self._key = key
        self._study = study

    def seed(self, kind: Kind, phase: Phase, reign: int, number: int) -> int:
        """One seed: a whole number below 2**31, the same whenever it is asked for."""
        words = "\0".join((self._study, kind, phase, str(reign), str(number)))
        return _whole(hmac.digest(self._key, words.encode(), "sha256"))

    def train(self, phase: Phase, reign: int, number: int) -> int:
        """The seed of one training run."""
        return self.seed("train", phase, reign, number)

    def episodes(self, phase: Phase, reign: int, count: int) -> tuple[int, ...]:
        """The seeds of the episodes behind one score."""
        return tuple(self.seed("episode", phase, reign, number) for number in range(count))

    def other_episodes(self, phase: Phase, run: str, count: int) -> tuple[int, ...]:
        """The seeds of a second measurement: fresh, and of one run alone."""
        words = (f"{self._study}\0{run}\0second\0{phase}\0{number}" for number in range(count))
        return tuple(_whole(hmac.digest(self._key, one.encode(), "sha256")) for one in words)


def _whole(data: bytes) -> int:
    return int.from_bytes(data[:4], "big") & 0x7FFFFFFF
