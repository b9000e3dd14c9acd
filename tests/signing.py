"""Real SSH keys and a user's configuration for tests of signed approvals."""

import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from overnight.admission import Who
from overnight.records.approval import Strength


@dataclass(frozen=True, slots=True)
class Desk:
    """One user's configuration folder and their keys."""

    folder: Path

    @property
    def config(self) -> Path:
        """The user's own configuration of Overnight."""
        return self.folder / "config" / "overnight"

    def key(self, name: str) -> Path:
        """A key of this name, made when it is first asked for."""
        path = self.folder / name
        if not path.exists():
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", path], check=True)
        return path

    def allow(self, *names: str, options: str = "") -> None:
        """Name the allowed signers, and nobody else."""
        lines = [f"{name}@example {options} {self.key(name).with_suffix('.pub').read_text()}" for name in names]
        (self.config / "allowed_signers").write_text("".join(lines))

    def set(self, text: str) -> None:
        """Write the configuration."""
        (self.config / "config.yaml").write_text(text)

    def who(self, name: str = "ada") -> Who:
        """Somebody who signs with their key."""
        return Who(name, Strength.SIGNED, self.key(name))


def desk_in(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    """A fresh configuration that asks for signatures, with ada as the one allowed signer."""
    desk = Desk(folder)
    desk.config.mkdir(parents=True)
    desk.allow("ada")
    desk.set("require_signature: true\n")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder / "config"))
    return desk
