"""The attacks, one text file each: what it does, which line lets it in, what stops it, and the code itself."""

from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from overnight.errors import UserError, did_you_mean

FIRST = (
    *("exit-early", "env-step", "print", "mean", "frame-list", "evaluator-function", "overwrite-evaluator"),
    *("known-seeds", "own-reward", "atexit", "stdout", "frame-number", "pickle", "registry", "gym-make"),
)
"""The order in which attacks are tried where the time may not suffice for all; the others follow by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attack:
    """One way to a score that was not earned."""

    name: str
    says: str
    fix: str
    doors: tuple[str, ...]
    """The kinds of line that let it in, the most telling first."""
    needs: str
    """What the evaluator must have for it to make sense; empty where nothing."""
    runs: int
    """1, or 2 where the first run only leaves something behind."""
    stays: bool
    """Whether the attack is still in the candidate's file at the second run."""
    variants: int
    code: str


@cache
def catalogue() -> tuple[Attack, ...]:
    """Every attack, in the order in which they are tried."""
    folder = files("overnight.attack.foreign") / "attacks"
    found = [_parse(one.name.removesuffix(".txt"), one.read_text()) for one in folder.iterdir()]
    place = {name: at for at, name in enumerate(FIRST)}
    return tuple(sorted(found, key=lambda one: (place.get(one.name, len(FIRST)), one.name)))


def chosen(names: str | None) -> tuple[Attack, ...]:
    """The attacks that the person named, or all of them."""
    if names is None:
        return catalogue()
    known = {one.name: one for one in catalogue()}
    wanted = [name.strip() for name in names.split(",") if name.strip()]
    for name in wanted:
        if name not in known:
            hint = did_you_mean(name, known) or "`overnight attack --list` lists them"
            raise UserError("--attacks", f"{name!r} is not an attack", hint=hint)
    if not wanted:
        raise UserError("--attacks", "names no attack", hint="`overnight attack --list` lists them")
    return tuple(known[name] for name in dict.fromkeys(wanted))


def prelude() -> str:
    """The code that every attack has at hand."""
    return (files("overnight.attack.foreign") / "prelude.txt").read_text()


def scout() -> str:
    """The code that only looks around."""
    return (files("overnight.attack.foreign") / "scout.txt").read_text()


def _parse(name: str, text: str) -> Attack:
    head: dict[str, str] = {}
    for line in text.splitlines():
        if not line.startswith("# "):
            break
        key, _, value = line[2:].partition(": ")
        head[key] = value
    return Attack(
        name=name,
        says=head["says"],
        fix=head["fix"],
        doors=tuple(head["door"].split()),
        needs=head.get("needs", ""),
        runs=int(head.get("runs", "1")),
        stays=head.get("stays") == "yes",
        variants=int(head.get("variants", "1")),
        code=text,
    )
