"""Approvals that prove who gave them: SSH signatures, made and checked by the real `ssh-keygen`.

One signature covers one sitting. The signed text names the study, the whole contract, and each
clause (or candidate) with its digest, so a signature for another study or another text is seen
to be one. It is kept with each approval, and checked at every gate against the allowed signers
of the user's own configuration, which no study, repository or candidate holds.

Does not protect against a program with the user's rights: it can change that configuration, or
use a key that needs neither a passphrase nor a touch.
"""

import os
import shutil
import subprocess
import tempfile
import time
from base64 import b64decode, b64encode
from binascii import Error as NotBase64
from collections.abc import Iterable, Mapping
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from overnight.errors import Refused, UserError
from overnight.records.approval import Strength
from overnight.records.codec import decode, digest
from overnight.records.contract import Clause
from overnight.records.settings import Settings
from overnight.records.text import printable
from overnight.study import yaml
from overnight.study.state import CandidateState, StudyState

NAMESPACE = "overnight-approval"
_LEAD = "overnight approval 1"
_USUAL_KEYS = ("id_ed25519_sk", "id_ed25519", "id_ecdsa_sk", "id_ecdsa", "id_rsa")
_SIGN_SECONDS, _CHECK_SECONDS = 300.0, 20.0
_SIGN_NEEDS = ("HOME", "SSH_AUTH_SOCK", "SSH_ASKPASS", "SSH_ASKPASS_REQUIRE", "SSH_SK_PROVIDER", "DISPLAY", "TERM")


# What the user has set


def config_folder() -> Path:
    """Where a user's own configuration of Overnight lies."""
    home = os.environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    return Path(home) / "overnight"


def settings() -> Settings:
    """What the user has set, read anew each time, so that a change counts at the next gate."""
    path = config_folder() / "config.yaml"
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        return Settings()
    except OSError as error:
        raise UserError(str(path), f"cannot be read: {error.strerror}") from error
    return decode(Settings, yaml.load(text, where=str(path)) or {}, where=str(path))


def _path(text: str | None, usual: str) -> Path:
    """A path of the configuration: absolute, or from the home folder; never from where somebody stands."""
    path = Path(text).expanduser() if text is not None else config_folder() / usual
    if not path.is_absolute():
        where = config_folder() / "config.yaml"
        raise UserError(str(where), f"names {text}, but a path from the root or from `~` is needed")
    return path


# What is signed


def study_id(state: StudyState) -> str:
    """What no other study has, even of the same name: the digest of what its ledger begins with."""
    return digest((state.task, state.study, state.tree, state.seed_commitment))


def text_for(state: StudyState, contract: str | None, lines: Iterable[str]) -> str:
    """The text that is signed: the study, its contract, and one line for each thing that is approved."""
    study = f"study {state.task}/{state.study} {study_id(state)}"
    return "\n".join((_LEAD, study, f"contract {contract or 'incomplete'}", *lines)) + "\n"


def clause_line(clause: Clause, of: str) -> str:
    """How the signed text names an approved clause."""
    return f"approves {clause} {of}"


def calibration_line(of: str) -> str:
    """How the signed text names the calibration that the eighth clause was approved with."""
    return f"calibration {of}"


def permit_line(candidate: str, tree: str) -> str:
    """How the signed text names an approved candidate."""
    return f"permits {candidate} {tree}"


# Signing


def key_for(named: str | None) -> Path:
    """The key to sign with: the one that is named, the configured one, or the first of the usual ones."""
    chosen = named or settings().signing_key
    if chosen is not None:
        path = Path(chosen).expanduser().absolute()
        if not path.is_file():
            raise UserError(str(path), "is not a key file", hint="`ssh-keygen -t ed25519` makes one")
        return path
    folder = Path.home() / ".ssh"
    for name in _USUAL_KEYS:
        if (folder / name).is_file():
            return folder / name
    raise UserError(
        str(folder),
        "holds none of the usual keys",
        hint="name one with `--key FILE`; `ssh-keygen -t ed25519` makes one",
    )


def sign(text: str, key: Path) -> str:
    """Sign a text; the agent, a passphrase or a touch is asked for by ssh-keygen itself."""
    env = {"PATH": os.environ.get("PATH", os.defpath)} | {n: os.environ[n] for n in _SIGN_NEEDS if n in os.environ}
    command = (_ssh_keygen(), "-q", "-Y", "sign", "-f", str(key), "-n", NAMESPACE)
    try:
        done = subprocess.run(
            command, input=text.encode(), stdout=subprocess.PIPE, env=env, timeout=_SIGN_SECONDS, check=False
        )
    except subprocess.TimeoutExpired as late:
        raise Refused("overnight approve", (f"ssh-keygen did not sign within {_SIGN_SECONDS:g} s.",)) from late
    if done.returncode != 0 or not done.stdout:
        raise Refused("overnight approve", (f"ssh-keygen did not sign with {key}, so nothing is approved.",))
    found = done.stdout.decode(errors="replace")
    if problem := flaw(text, found):
        raise Refused("overnight approve", (f"Nothing is approved: {problem}",), hint=_how_to_allow(key))
    return found


def _how_to_allow(key: Path) -> str:
    public = key if key.suffix == ".pub" else key.with_name(f"{key.name}.pub")
    signers = _path(settings().allowed_signers, "allowed_signers")
    return f'`mkdir -p {signers.parent} && echo "$USER $(cat {public})" >> {signers}` allows this key'


def _ssh_keygen() -> str:
    found = shutil.which("ssh-keygen")
    if found is None:
        raise UserError(
            "ssh-keygen", "is not installed, so nothing can be signed or checked", hint="install OpenSSH's client"
        )
    return found


# Checking


def flaws(state: StudyState) -> dict[Clause, str]:
    """For each approved clause what keeps its approval from counting, where it is to be signed and is not."""
    required = settings().require_signature
    found = {clause: _approval_flaw(state, clause, data, required=required) for clause, data in state.approvals.items()}
    return {clause: says for clause, says in found.items() if says}


def _approval_flaw(state: StudyState, clause: Clause, data: Mapping[str, Any], *, required: bool) -> str:
    if data["strength"] != Strength.SIGNED:
        return f"It is not signed ({data['strength']}), and your configuration asks for that." if required else ""
    shown = data.get("calibration")
    lines = [clause_line(clause, data["digest"]), *([calibration_line(shown)] if shown is not None else [])]
    return _signed_flaw(state, data, *lines)


def permit_flaw(state: StudyState, one: CandidateState) -> str:
    """What keeps the permit of one candidate from counting; empty where nothing does."""
    if one.permit is None:
        return ""
    if one.permit["strength"] != Strength.SIGNED:
        return "It is not signed, and your configuration asks for that." if settings().require_signature else ""
    return _signed_flaw(state, one.permit, permit_line(one.id, one.tree), f"contract {one.permitted_under}")


def _signed_flaw(state: StudyState, data: Mapping[str, Any], *lines: str) -> str:
    """What is wrong with a signed word: another study, another text, or a signature that does not hold."""
    text, signature = data.get("signed"), data.get("signature")
    if not isinstance(text, str) or not isinstance(signature, str):
        return "It says that it is signed, and there is no signature."
    said = text.split("\n")
    study = f"study {state.task}/{state.study} {study_id(state)}"
    if said[0] != _LEAD or study not in said[1:2]:
        return "Its signature was given for another study."
    if not set(lines) <= set(said[2:]):
        return "Its signature was given for another text."
    return flaw(text, signature)


def flaw(text: str, signature: str) -> str:
    """Why a signature does not prove that an allowed signer signed this text; empty where it does.

    ssh-keygen is asked once for each text, signature and state of the configuration, and again
    every hour, because an allowed signer may be allowed until some moment only.
    """
    now = settings()
    signers = _path(now.allowed_signers, "allowed_signers")
    revoked = None if now.revoked_keys is None else _path(now.revoked_keys, "")
    try:
        files = Files(str(signers), signers.read_bytes(), str(revoked or ""), revoked.read_bytes() if revoked else b"")
    except OSError as error:
        return f"It is signed, but {error.filename} cannot be read, so nobody is an allowed signer."
    return _asked(text, signature, files, int(time.time() // 3600))


class Files(NamedTuple):
    """The files that decide whose signature counts, with their bytes."""

    signers: str
    signers_bytes: bytes
    revoked: str
    revoked_bytes: bytes


@lru_cache(maxsize=256)
def _asked(text: str, signature: str, files: Files, _hour: int) -> str:
    key = fingerprint(signature)
    if not key:
        return "What stands there as its signature is none."
    with tempfile.TemporaryDirectory(prefix="overnight-signature-") as folder:
        copies = {name: f"{folder}/{name}" for name in ("signature", "signers", "revoked")}
        for name, data in (
            ("signature", signature.encode()),
            ("signers", files.signers_bytes),
            ("revoked", files.revoked_bytes),
        ):
            Path(copies[name]).write_bytes(data)
        about = ("-s", copies["signature"], "-f", copies["signers"])
        done, principals = _ask(("find-principals", *about))
        if not done or not principals.strip():
            return f"It is signed with {key}, which is not among the allowed signers in {files.signers}."
        verify = ("verify", "-n", NAMESPACE, "-I", principals.splitlines()[0], *about)
        if not _ask(verify, text)[0]:
            return f"Its signature does not fit: {key} did not sign this text as an approval."
        if files.revoked and not _ask((*verify, "-r", copies["revoked"]), text)[0]:
            return f"It is signed with {key}, which {files.revoked} revokes."
    return ""


def _ask(words: tuple[str, ...], text: str = "") -> tuple[bool, str]:
    """Ask ssh-keygen one question about a signature: whether it says yes, and what it prints."""
    try:
        done = subprocess.run(
            (_ssh_keygen(), "-Y", *words),
            input=text.encode(),
            capture_output=True,
            env={"PATH": os.environ.get("PATH", os.defpath)},
            timeout=_CHECK_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as late:
        raise Refused("ssh-keygen", ("It did not check a signature in time, so nothing is believed.",)) from late
    return done.returncode == 0, done.stdout.decode(errors="replace")


def fingerprint(signature: str) -> str:
    """The key that a signature names, as ssh-keygen prints it; empty for what is no signature."""
    body = [line for line in signature.strip().splitlines() if not line.startswith("-----")]
    try:
        data = b64decode("".join(body), validate=True)
    except (NotBase64, ValueError):
        return ""
    size = int.from_bytes(data[10:14], "big")
    if data[:6] != b"SSHSIG" or not 0 < size <= len(data) - 14:
        return ""
    return printable("SHA256:" + b64encode(sha256(data[14 : 14 + size]).digest()).decode().rstrip("="))
