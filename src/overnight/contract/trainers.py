"""The built-in trainers, as data: their declared spaces, read without importing any of them."""

from importlib.resources import files

from overnight.errors import UserError, did_you_mean
from overnight.records.codec import loads
from overnight.records.space import Space

BUILT_IN = ("ppo",)


def command(trainer: str) -> tuple[str, ...]:
    """The command that runs a built-in trainer."""
    return ("python", "-m", f"overnight.rl.trainers.{trainer}")


def space(trainer: str) -> Space:
    """The declared space of a built-in trainer."""
    if trainer not in BUILT_IN:
        raise UserError("trainer", f"is {trainer[:80]!r}, which is not built in", hint=did_you_mean(trainer, BUILT_IN))
    name = f"{trainer}.space.json"
    return loads(Space, files("overnight.rl.trainers").joinpath(name).read_bytes(), where=name)


def trainer_of(command_words: tuple[str, ...]) -> str | None:
    """The built-in trainer that a command runs, or None."""
    return next((name for name in BUILT_IN if command_words == command(name)), None)
