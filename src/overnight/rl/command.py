"""A trainer as a command of its own: `python -m overnight.rl.trainers.ppo --env CartPole-v1 --seconds 10`.

Started by Overnight, a trainer reads its order. Started by a person, it makes one from the command line: every declared
parameter is an option, with its sentence as help. This module imports nothing heavy, because the number of threads must
be known before JAX and NumPy are imported.
"""

import argparse
import json
import math
import os
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from overnight.guest.train import Budget, Env, Order, Training, limit_threads, load

_UNITS = {"steps": "env_steps", "seconds": "wall_seconds", "cpu_seconds": "cpu_seconds"}
_TOLD_SECONDS = 2.0
_SWITCH = {"true": True, "yes": True, "false": False, "no": False}
_EXAMPLES = {
    "ppo": "--env BipedalWalker-v3 --recipe --seconds 300 --seed 1",
    "sac": "--env Pendulum-v1 --seconds 60 --seed 1",
    "dqn": "--env CartPole-v1 --seconds 30 --seed 1",
    "any": "--env Pendulum-v1 --seconds 60 --seed 1 --algorithm sac",
}


class Spoken(Training):
    """A training that somebody watches: it tells every few seconds how far it is."""

    _last_told = 0.0

    def report(self, env_steps: int, **numbers: float) -> None:
        """Write the metrics, and tell the most telling of them."""
        super().report(env_steps, **numbers)
        now = self.wall_seconds()
        if "rehearsal_return" in numbers:
            sys.stderr.write(
                f"{self.share(env_steps):4.0%}  {now:6.0f} s  rehearsed  return {numbers['rehearsal_return']:9.1f}\n"
            )
            return
        if now - self._last_told < _TOLD_SECONDS and self.share(env_steps) < 1:
            return
        self._last_told = now
        found, speed = numbers.get("episodic_return", math.nan), numbers.get("steps_per_second", math.nan)
        done = f"{self.share(env_steps):4.0%}  {now:6.0f} s  {env_steps:11,} steps"
        sys.stderr.write(f"{done}  {speed:8,.0f} steps/s  return {found:9.1f}\n")


def begin(trainer: str) -> Training:
    """The training that Overnight or the command line asks for; from here on numbers are computed on its cores."""
    training = Training(load()) if os.environ.get("OVERNIGHT_RUN") else from_words(Path(trainer), sys.argv[1:])
    limit_threads(training.order.cores)
    # Updates of small networks are slower in two threads than in one; decision 0014 has what was measured.
    os.environ["PJRT_NPROC"] = "1"
    if training.order.device == "cpu":
        os.environ["JAX_PLATFORMS"] = "cpu"
    return training


def from_words(trainer: Path, words: Sequence[str]) -> Training:
    """Make an order of the words on a command line, or end the process with one sentence."""
    declared = json.loads(trainer.with_suffix(".space.json").read_bytes())["parameters"]
    parser = _parser(trainer.stem, declared)
    said = parser.parse_args(words)
    params = _recipe(trainer, said.env) if said.recipe else {}
    params |= {one["name"]: value for one in declared if (value := getattr(said, one["name"])) is not None}
    unit = next(name for name in _UNITS if getattr(said, name) is not None)
    amount = getattr(said, unit)
    if not 0 < amount < math.inf:
        parser.error(f"--{unit.replace('_', '-')} is {amount:g}, but a training needs more than 0, and an end")
    if said.seed < 0:
        parser.error(f"--seed is {said.seed}, but 0 or more is needed")
    if said.cores < 1:
        parser.error(f"--cores is {said.cores}, but 1 or more is needed")
    out = said.out or Path("runs") / f"{trainer.stem}-{re.sub(r'[^A-Za-z0-9.-]', '-', said.env)}-{said.seed}"
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        parser.error(f"--out {out}: {error.strerror}")
    for name in ("metrics.jsonl", "ready"):
        if not (out / "checkpoint").is_dir():  # a training that goes on keeps what it told
            (out / name).unlink(missing_ok=True)
    order = Order(
        run=out.name,
        env=Env(backend="gymnasium", id=said.env, kwargs={}, max_episode_steps=None, clip_actions=True),
        train_seed=said.seed,
        budget=Budget(unit=_UNITS[unit], amount=amount),
        params=params,
        cores=said.cores,
        device=said.device,
        compile_cache=None,
    )
    sys.stderr.write(f"policy/ and metrics.jsonl go to {out}\n")
    return Spoken(order, out)


def _parser(trainer: str, declared: list[dict[str, Any]]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=f"python -m overnight.rl.trainers.{trainer}",
        usage="%(prog)s --env ID (--seconds N | --steps N | --cpu-seconds N) [options] [parameters]",
        description=f"{_what(trainer)}, and leave policy/ and metrics.jsonl in a folder.",
        epilog=f"Example: {_EXAMPLES[trainer]}",
        allow_abbrev=False,
    )
    parser.add_argument("--env", required=True, help="the environment's id in Gymnasium, or package.module:Id")
    budget = parser.add_mutually_exclusive_group(required=True)
    budget.add_argument("--steps", type=float, help="the budget in environment steps")
    budget.add_argument("--seconds", type=float, help="the budget in seconds of the clock")
    budget.add_argument(
        "--cpu-seconds", type=float, help="the budget in processor seconds, which others cannot disturb"
    )
    parser.add_argument("--seed", type=int, default=1, help="the train seed (1)")
    parser.add_argument(
        "--recipe", action="store_true", help="begin from Overnight's own setting for such environments; ppo has some"
    )
    parser.add_argument("--cores", type=int, default=len(os.sched_getaffinity(0)), help="cores to use (all)")
    parser.add_argument(
        "--device", default="cpu", help="what updates are computed on: cpu; gpu or cuda:1, or no training; auto (cpu)"
    )
    parser.add_argument(
        "--out", type=Path, help="where results go; from a checkpoint/ there it goes on (runs/TRAINER-ENV-SEED)"
    )
    group = parser.add_argument_group("parameters")
    for one in declared:
        names = {f"--{one['name'].replace('_', '-')}", f"--{one['name']}"}
        says = f"{one['says']} ({json.dumps(one['default'])})".replace("%", "%%")
        group.add_argument(*sorted(names), dest=one["name"], type=_reader(one), metavar="VALUE", help=says)
    return parser


def _what(trainer: str) -> str:
    if trainer != "any":
        return f"Train {trainer.upper()} once"
    return (
        "Train once with what --algorithm names (the defaults shown are those of ppo; sac and dqn have their own, and "
        "what the chosen one does not read is ignored)"
    )


def _reader(one: dict[str, Any]) -> Callable[[str], Any]:
    """What reads one parameter's word, and refuses one outside of its declared range."""

    def read(word: str) -> Any:  # noqa: ANN401 - the kinds of value that a parameter may have
        if one["type"] == "bool":
            if word.lower() not in _SWITCH:
                raise argparse.ArgumentTypeError(f"is {word!r}, but true or false is needed")
            return _SWITCH[word.lower()]
        if one["type"] == "choice":
            if word not in one["choices"]:
                raise argparse.ArgumentTypeError(f"is {word!r}, but one of {', '.join(one['choices'])} is needed")
            return word
        try:
            value = (int if one["type"] == "int" else float)(word)
        except ValueError:
            kind = "a whole number in digits" if one["type"] == "int" else "a number"
            raise argparse.ArgumentTypeError(f"is {word!r}, but {kind} is needed") from None
        if "low" in one and not one["low"] <= value <= one["high"]:
            raise argparse.ArgumentTypeError(f"is {word}, but {one['low']:g} to {one['high']:g} is declared")
        if "low" not in one and value < 0:
            raise argparse.ArgumentTypeError(f"is {word}, but 0 or more is needed")
        return value

    return read


def _recipe(trainer: Path, env: str) -> dict[str, Any]:
    """Overnight's setting for the family of an environment, or the process ends with one sentence."""
    known = json.loads((trainer.parent / "recipes.json").read_bytes()).get(trainer.stem, [])
    base = re.sub(r"-v[0-9]+$", "", env)
    for one in known:
        if base in one["envs"]:
            return dict(one["params"])
    if not known:
        sys.exit(f"--recipe: {trainer.stem} has none; ppo has")
    names = ", ".join(name for one in known for name in one["envs"])
    sys.exit(f"--recipe: there is none of {trainer.stem} for {env}, only for {names}")
