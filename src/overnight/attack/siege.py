"""Reaching for the host: one trainer and one policy try everything, and the host sees what came of it."""

import json
import os
import platform
import secrets
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path

from overnight.attack import reach, trainers
from overnight.attack.attacks import Result, Rung
from overnight.attack.engine import MACHINE, Limits, Ran, Without, score, train
from overnight.attack.ground import SECRET, Ears, Ground, Victims, fresh_ground
from overnight.attack.policies import HONEST, write_policy
from overnight.attack.reach import Reach

_NOTHING: Without = frozenset()


@dataclass(frozen=True, slots=True)
class _Camp:
    """What one side, a trainer or a policy, is told and leaves."""

    ground: Ground
    side: str
    settings: dict[str, object]
    drops: dict[str, Path]


def try_reach(attacks: tuple[Reach, ...], rung: Rung, without: Without = _NOTHING) -> Iterator[Result]:
    """Let a trainer and a policy try everything, and see what of it the host notices."""
    with fresh_ground() as ground:
        variables = {SECRET: secrets.token_hex(16), "HOME": str(ground.folder / "host")}
        ears = Ears(ground.folder)
        names = ("trainer-killed", "trainer-reached", "policy-killed", "policy-reached")
        victims = Victims(MACHINE, ground.folder, names, variables)
        try:
            camps = {side: _camp(ground, side, attacks, ears, victims, variables) for side in ("trainer", "policy")}
            said = {"trainer": _by_trainer(camps["trainer"], attacks, rung, without, variables)}
            said["policy"] = _by_policy(camps["policy"], attacks, rung, without, variables)
        finally:
            heard, harmed = ears.heard(), victims.harmed()
            ears.close()
        for attack in attacks:
            found = [_seen(attack, camp, said[side], heard, harmed) for side, camp in camps.items()]
            evidence = "; ".join(one for one in found if one)
            yield Result(attack, bool(evidence), evidence or "stopped")
        for camp in camps.values():
            for path in camp.drops.values():
                path.unlink(missing_ok=True)


def _camp(
    ground: Ground, side: str, attacks: tuple[Reach, ...], ears: Ears, victims: Victims, variables: dict[str, str]
) -> _Camp:
    mark = secrets.token_hex(8)
    drops = {
        "tmp-drop": Path(tempfile.gettempdir()) / f"overnight-{mark}",
        "shm-drop": Path("/dev/shm") / f"overnight-{mark}",  # noqa: S108 - where it must not get
        "poison-packages": Path(sys.prefix) / f"overnight-{mark}",
    }
    here = {one.id: str(ground.plant(f"{side}-{one.id}")) for one in attacks}
    if "poison-the-cache" in here:
        ground.tokens[f"{side}-poison-the-cache"] = ""
    for name in ("read-its-environment", "read-its-environment-there"):
        ground.tokens[f"{side}-{name}"] = variables[SECRET]
    arm = platform.machine() == "aarch64"
    settings: dict[str, object] = {"from": side, "here": here, "udp": ears.udp, "tcp": ears.tcp}
    settings |= {"socket": ears.path, "abstract": ears.abstract, "run": str(ground.folder / side)}
    settings |= {"killed": victims.at[f"{side}-killed"], "reached": victims.at[f"{side}-reached"]}
    settings |= {
        "tmp": str(drops["tmp-drop"]),
        "shm": str(drops["shm-drop"]),
        "packages": str(drops["poison-packages"]),
    }
    settings |= {"add_key": 217 if arm else 248, "perf": 241 if arm else 298}
    notes = [Path(tempfile.gettempdir()) / f"note-{mark}", Path("/dev/shm") / f"note-{mark}"]  # noqa: S108
    notes.append(ground.folder / side / "policy" / f"note-{mark}")
    settings |= {"notes": [str(path) for path in notes]}
    drops |= {f"note-{number}": path for number, path in enumerate(notes)}
    return _Camp(ground, side, settings, drops)


def _by_trainer(
    camp: _Camp, attacks: tuple[Reach, ...], rung: Rung, without: Without, variables: dict[str, str]
) -> dict[str, str]:
    folder = camp.ground.folder / "trainer"
    settings = json.dumps({**camp.settings, "own": str(folder / "source" / "train.py")})
    source = reach.program(settings, attacks) + trainers.POLICY + "(out / 'loot.json').write_text(json.dumps(SAID))\n"
    ran: Ran = train(folder, source, rung, without, Limits(), variables)
    said = ran.said()
    if not said:
        raise OSError(f"the trainer tried nothing: {ran.because} {ran.log[-500:]!r}")
    return {name: text for name, text in said.items() if name != "remember-the-last-time"}


_LANES = """
import hashlib
KNOWN = {known!r}
def load(folder):
    def found(name):
        words = SAID[name].replace(chr(0), " ").split()
        told = [word.partition("=")[2] or word for word in words]
        if not KNOWN[name]: return SAID[name]
        return any(hashlib.sha256(word.encode()).hexdigest() == KNOWN[name] for word in told)
    got = np.array([bool(found(name)) for name in KNOWN])
    return lambda obs, reset: np.where(got, (3 * obs[:, 2] + obs[:, 3] > 0), 0).astype(int)
"""
"""A policy can write nowhere, but it can act: where an attack got in, its own lane is played well."""


def _by_policy(
    camp: _Camp, attacks: tuple[Reach, ...], rung: Rung, without: Without, variables: dict[str, str]
) -> dict[str, str]:
    ground, folder = camp.ground, camp.ground.folder / "policy"
    folder.mkdir()
    (folder / "job.json").write_text("{}")
    settings = json.dumps({**camp.settings, "own": str(folder / "policy" / "cheat.py")})
    tokens = {one.id: ground.tokens[f"policy-{one.id}"] if one.proof == "token" else "" for one in attacks}
    known = {name: sha256(token.encode()).hexdigest() if token else "" for name, token in tokens.items()}
    source = reach.program(settings, attacks) + _LANES.format(known=known)
    write_policy(folder, replace(HONEST, source=source))
    seeds = range(1, len(attacks) + 1)
    with _having(variables):
        found = [score(folder, seeds, rung, without) for _ in range(2)]  # twice, for what it may remember
    if not all(one.returns for one in found):
        raise OSError(f"the policy tried nothing: {found[-1].says[:500]}")
    well = [max(returns) > 100 for returns in zip(*(one.returns for one in found), strict=True)]
    return {
        one.id: tokens[one.id] or "its lane was played well"
        for one, played in zip(attacks, well, strict=True)
        if played
    }


@contextmanager
def _having(variables: dict[str, str]) -> Iterator[None]:
    """Let the engine's own environment hold some variables for a while."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name)
            os.environ.update({name: value} if value is not None else {})


def _seen(attack: Reach, camp: _Camp, said: dict[str, str], heard: list[str], harmed: set[str]) -> str:
    """What the host noticed of one attack by one side."""
    name, words = f"{camp.side}-{attack.id}", said.get(attack.id, "")
    if attack.proof == "token":
        got = camp.ground.was_read(name, words)
    elif attack.proof == "changed":
        home = camp.ground.folder / "host" / "canary"
        got = home.exists() if attack.id == "poison-the-cache" else camp.ground.changed(name)
    elif attack.proof == "heard":
        got = f"{camp.side}:{attack.id}" in heard
    elif attack.proof == "harmed":
        got = f"{camp.side}-{'killed' if attack.id == 'kill-a-process' else 'reached'}" in harmed
    elif attack.proof == "dropped":
        got = camp.drops[attack.id].exists()
    else:
        got = bool(words)
    return f"by a {camp.side}: {attack.seen}" if got else ""
