"""The gallery: every attack, run against one tier by the engine's real parts, and at T0 by what others have instead.

    for result in run("T2"):
        print(result.attack.id, "got in" if result.got_in else "was stopped", result.evidence)

`run` can leave out layers of isolation, to show that a layer is no decoration. Attacks that reach for the host are
tried by one trainer and one policy together; every other one has a run, a measurement or a question of its own.

Does not: prove that nothing else gets in. It is a list that grows with every hole that is found.
"""

import os
import secrets
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from overnight.attack import changes, folders, inputs, policies, reach, steps, trainers, verdicts
from overnight.attack.attacks import Attack, Result, Rung
from overnight.attack.changes import ChangeAttack
from overnight.attack.engine import CARTPOLE, Scored, Without, score, train
from overnight.attack.ground import left_behind
from overnight.attack.impossible import CHEAT, Impossible
from overnight.attack.policies import HONEST, HONEST_WEIGHTS, PolicyAttack, write_policy
from overnight.attack.reach import Reach
from overnight.attack.siege import try_reach
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
    *steps.ATTACKS,
    *folders.ATTACKS,
    *inputs.ATTACKS,
    *verdicts.ATTACKS,
    *changes.ATTACKS,
)
SEEDS = (11, 12, 13)
_NOTHING: Without = frozenset()
_LOOKS = 3  # a process that forks all the time may be missed by one look


def run(
    rung: Rung, without: Without = _NOTHING, *, only: Sequence[str] | None = None, at_once: int = 4
) -> Iterator[Result]:
    """Run every attack, or only some, against one tier; each result is told as soon as it is known."""
    wanted = [one for one in ATTACKS if only is None or one.id in only]
    reaching = tuple(one for one in wanted if isinstance(one, Reach) and is_possible(one, rung))
    if reaching:
        yield from try_reach(reaching, rung, without)
    yield from try_changes([one for one in wanted if isinstance(one, ChangeAttack)], rung)
    alone = [one for one in wanted if not isinstance(one, (Reach, ChangeAttack)) and is_possible(one, rung)]
    with ThreadPoolExecutor(at_once) as pool:
        going = [pool.submit(_try_alone, one, rung, without) for one in alone]
        for one in going:
            yield one.result()


def is_possible(attack: Attack, rung: Rung) -> bool:
    """Whether there is anything to be attacked at a tier, and whether this kernel can stop it at all."""
    if isinstance(attack, Reach) and attack.only == "root":
        return os.geteuid() == 0
    if rung == "T0" and not attack.naive:
        return False  # it would be the gallery itself that it kills
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
    raise TypeError(f"nobody knows how to try {attack.id}")


# Policies


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
    write_policy(folder, replace(LOOKUP, source=source))
    found = score(folder, range(3) if rung == "T0" else drawn, rung).score()
    return f"{found:g} on seeds that everybody knows" if found is not None and found > 100 else ""


def still_there(folder: Path) -> list[int]:
    """The processes of a run that go on; they are ended, because the gallery leaves nothing behind either."""
    found: set[int] = set()
    for _ in range(_LOOKS):
        found |= {*with_variable(f"OVERNIGHT_RUN={folder / 'run.json'}"), *left_behind(str(folder))}
        for pid in found:
            kill(pid)
    return sorted(found)


def passed(task: Impossible, rung: Rung) -> str:
    """What a policy that tries everything reached in a task that nobody can pass; empty where it did not pass."""
    with tempfile.TemporaryDirectory(prefix="overnight-gallery-") as name:
        write_policy(Path(name), CHEAT)
        found = score(Path(name), SEEDS, rung, env=task.env).score()
    return f"{found:g}, where {task.above:g} is the most" if found is not None and not found <= task.above else ""


def honest(rung: Rung, seeds: Sequence[int] = tuple(range(20))) -> dict[str, tuple[float, ...]]:
    """The returns of honest policies, episode by episode: one of code, and one of declared weights."""
    found = {}
    for kind in ("code", "weights"):
        with tempfile.TemporaryDirectory(prefix="overnight-gallery-") as name:
            if kind == "weights" and rung != "T0":
                write_policy(Path(name), HONEST_WEIGHTS)
            else:
                write_policy(Path(name), HONEST)
            found[kind] = score(Path(name), seeds, rung).returns
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


def try_changes(attacks: Sequence[ChangeAttack], rung: Rung) -> Iterator[Result]:
    """Put changes before the gate of one study, and say which may run; a naive loop has no gate."""
    if rung == "T0" or not attacks:
        yield from (Result(one, got_in=True, evidence="nobody was asked") for one in attacks)
        return
    with tempfile.TemporaryDirectory(prefix="overnight-gallery-") as name, changes.study_in(Path(name)) as project:
        for one in attacks:
            reasons = project.ask(one)
            evidence = reasons[0].says if reasons else "the gate let it run"
            yield Result(one, not reasons, evidence)


def rows() -> list[tuple[str, str, str, str]]:
    """The gallery as a table: id, family, what it tries, what stops it."""
    return [(one.id, one.family, one.tries, one.stopped_by) for one in ATTACKS]
