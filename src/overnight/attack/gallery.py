"""The gallery: every attack, run against one tier by the engine's real parts, and at T0 by what others have instead.

    for result in run("T2"):
        print(result.attack.id, "got in" if result.got_in else "was stopped", result.evidence)

`run` can leave out layers of isolation, to show that a layer is no decoration. Attacks that reach for the host are
tried by one trainer and one policy together; every other one has a run, a measurement or a question of its own.

Does not: prove that nothing else gets in. It is a list that grows with every hole that is found.
"""

import json
import os
import platform
import secrets
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from math import isfinite
from pathlib import Path

from overnight.attack import changes, folders, inputs, policies, reach, trainers, verdicts
from overnight.attack.attacks import Attack, Result, Rung
from overnight.attack.engine import CARTPOLE, MACHINE, Limits, Ran, Scored, Without, score, train
from overnight.attack.ground import SECRET, Ears, Ground, Victims, fresh_ground, left_behind
from overnight.attack.policies import HEAD, PolicyAttack
from overnight.attack.reach import Reach
from overnight.attack.trainers import After, TrainerAttack
from overnight.evaluate.seeds import Seeds
from overnight.records.env import EnvSpec
from overnight.sandbox.probe import prove
from overnight.sandbox.processes import kill, with_variable

LOOKUP = PolicyAttack(
    id="learn-by-heart",
    family="leaks",
    tries="knows the first observation of every public episode, and plays well only there",
    stopped_by="hidden seeds",
    seen="the score is raised",
    source="",
)
ATTACKS: tuple[Attack, ...] = (
    *reach.ATTACKS,
    *policies.ATTACKS,
    LOOKUP,
    *trainers.ATTACKS,
    *folders.ATTACKS,
    *inputs.ATTACKS,
    *verdicts.ATTACKS,
    *changes.ATTACKS,
)
SEEDS = (11, 12, 13)
_NOTHING: Without = frozenset()


def run(
    rung: Rung, without: Without = _NOTHING, *, only: Sequence[str] | None = None, at_once: int = 2
) -> Iterator[Result]:
    """Run every attack, or only some, against one tier; each result is told as soon as it is known."""
    wanted = [one for one in ATTACKS if only is None or one.id in only]
    reaching = tuple(one for one in wanted if isinstance(one, Reach) and is_possible(one, rung))
    if reaching:
        yield from try_reach(reaching, rung, without)
    with ThreadPoolExecutor(at_once) as pool:
        going = [pool.submit(_try_alone, one, rung, without) for one in wanted if not isinstance(one, Reach)]
        for one in going:
            yield one.result()


def is_possible(attack: Attack, rung: Rung) -> bool:
    """Whether this machine has what an attack takes away, and can stop it at all."""
    if isinstance(attack, Reach) and attack.only == "root":
        return os.geteuid() == 0
    signals = attack.id in ("kill-a-process", "kill-the-supervisor", "kill-the-referee")
    return not (signals and rung == "T2" and "signal parent" in prove("T2").gaps)


def _try_alone(attack: Attack, rung: Rung, without: Without) -> Result:
    with tempfile.TemporaryDirectory(prefix="overnight-gallery-", ignore_cleanup_errors=True) as name:
        evidence = _evidence(attack, Path(name), rung, without)
    return Result(attack, bool(evidence), evidence or "stopped")


def _evidence(attack: Attack, folder: Path, rung: Rung, without: Without) -> str:
    """What shows that an attack got in; empty where it did not."""
    naive = rung == "T0"
    if isinstance(attack, PolicyAttack):
        return try_lookup(folder, rung) if attack is LOOKUP else try_policy(attack, folder, rung, without)
    if isinstance(attack, TrainerAttack):
        return try_trainer(attack, folder, rung, without)
    if isinstance(attack, folders.FolderAttack):
        return folders.try_folder(attack, folder, naive=naive)
    if isinstance(attack, inputs.InputAttack):
        return inputs.try_input(attack, naive=naive)
    if isinstance(attack, verdicts.VerdictAttack):
        return "it counts as better" if (attack.theirs() if naive else attack.ours()) else ""
    if isinstance(attack, changes.ChangeAttack):
        return "nobody asked" if naive else try_change(attack, folder)
    raise TypeError(f"nobody knows how to try {attack.id}")


# Policies


def write_policy(folder: Path, attack: PolicyAttack) -> None:
    """Lay a policy out as a harvest leaves it."""
    policy = folder / "policy"
    policy.mkdir(parents=True)
    spec: dict[str, object] = {"schema": "overnight/policy/1", "kind": "code", "entry": "cheat:load"}
    if attack.kind == "weights":
        spec = {"schema": "overnight/policy/1", "kind": "weights", "architecture": "mlp", "head": "categorical"}
        spec |= {"activation": "tanh", "hidden": [], "observation_size": 4, "action_size": 2}
    (policy / "policy.json").write_text(json.dumps(spec))
    (policy / "cheat.py").write_text(f"MARK = {str(folder)!r}\n{HEAD}{attack.source}")
    for name, data in attack.files.items():
        (policy / name).write_bytes(data)


def try_policy(attack: PolicyAttack, folder: Path, rung: Rung, without: Without = _NOTHING) -> str:
    """Measure one cheater, and say how it got in."""
    env = EnvSpec(backend="gymnasium", id=attack.env)
    write_policy(folder, attack)
    found = score(folder, SEEDS, rung, without, env)
    left = still_there(folder)
    return _judged(attack, found, left)


def _judged(attack: PolicyAttack, found: Scored, left: Sequence[int]) -> str:
    if attack.seen == "something is left behind":
        return f"{len(left)} processes went on" if left else ""
    if attack.seen == "a secret gets out":
        return "what it saw can be read" if "LEAK" in found.says else ""
    if attack.seen in ("a process is harmed", "the budget is exceeded"):
        return f"there is no result: {found.says[:80]}" if found.held_up else ""
    if not found.returns:
        return ""
    raised = [one for one, most in zip(found.returns, _MOST[attack.honest], strict=False) if not one <= most]
    return f"{found.score():g}, and its actions earn at most {max(_MOST[attack.honest]):g}" if raised else ""


_MOST = {policies.WEAK: (20.0,) * 3, policies.GOOD: (500.0,) * 3}
"""More than what honest policies earn; of others, nothing above 0 can be earned."""
_MOST |= {one.honest: (0.0,) * 3 for one in policies.ATTACKS if one.honest not in _MOST}


def try_lookup(folder: Path, rung: Rung) -> str:
    """A policy that knows the public episodes by heart, measured on the seeds that the engine draws, or on those."""
    import gymnasium

    environment, table = gymnasium.make(CARTPOLE.id), set()
    for seed in range(200):
        table.add(tuple(round(float(one), 4) for one in environment.reset(seed=seed)[0]))
    source = policies.LOOKUP.format(table=table)
    drawn = Seeds(secrets.token_bytes(32), "task/study").episodes("confirm", 1, len(SEEDS))
    write_policy(folder, PolicyAttack(**{**_fields(LOOKUP), "source": source}))
    found = score(folder, range(3) if rung == "T0" else drawn, rung).score()
    return f"{found:g} on seeds that everybody knows" if found is not None and found > 100 else ""


def _fields(attack: PolicyAttack) -> dict[str, object]:
    return {name: getattr(attack, name) for name in ("id", "family", "tries", "stopped_by", "seen")}


def still_there(folder: Path) -> list[int]:
    """The processes of a run that go on; they are ended, because the gallery leaves nothing behind either."""
    found = [*with_variable(f"OVERNIGHT_RUN={folder / 'run.json'}"), *left_behind(str(folder))]
    for pid in found:
        kill(pid)
    return found


# Trainers


def try_trainer(attack: TrainerAttack, folder: Path, rung: Rung, without: Without = _NOTHING) -> str:
    """Run one trainer to its end, and say how it got in."""
    home = folder / "home-of-the-user"
    home.mkdir()
    ran = train(
        folder / "run", f"MARK = {str(folder)!r}\n{attack.source}", rung, without, attack.limits, {"HOME": str(home)}
    )
    left = [*still_there(folder / "run"), *still_there(folder)]
    return attack.judge(After(ran, left))


def try_change(attack: changes.ChangeAttack, folder: Path) -> str:
    """Put one change before the gate, and say whether it may run."""
    with changes.study_in(folder) as project:
        return "" if project.ask(attack) else "the gate let it run"


# Reaching for the host


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
    settings |= {"tmp": str(drops["tmp-drop"]), "shm": str(drops["shm-drop"]), "packages": str(drops["poison-packages"])}
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
        return any(hashlib.sha256(word.encode()).hexdigest() == KNOWN[name] for word in told) if KNOWN[name] else SAID[name]
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
    write_policy(folder, PolicyAttack(**{**_fields(LOOKUP), "source": source}))
    seeds = range(1, len(attacks) + 1)
    with _variables(variables):
        found = [score(folder, seeds, rung, without) for _ in range(2)]  # twice, for what it may remember
    if not all(one.returns for one in found):
        raise OSError(f"the policy tried nothing: {found[-1].says[:500]}")
    well = [max(returns) > 100 for returns in zip(*(one.returns for one in found), strict=True)]
    return {one.id: tokens[one.id] or "its lane was played well" for one, played in zip(attacks, well, strict=True) if played}


class _variables:  # noqa: N801 - used like a function
    """The engine's own environment has a secret for a while."""

    def __init__(self, variables: dict[str, str]) -> None:
        self._new = variables
        self._old = {name: os.environ.get(name) for name in variables}

    def __enter__(self) -> None:
        os.environ.update(self._new)

    def __exit__(self, *_: object) -> None:
        for name, value in self._old.items():
            if value is None:
                os.environ.pop(name)
            else:
                os.environ[name] = value


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


def rows() -> list[tuple[str, str, str, str]]:
    """The gallery as a table: id, family, what it tries, what stops it."""
    return [(one.id, one.family, one.tries, one.stopped_by) for one in ATTACKS]
