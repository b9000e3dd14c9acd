"""The options that every verb takes, and how a verb finds its study."""

import os
import pwd
from pathlib import Path
from typing import Annotated

import typer

from overnight.machine import RealMachine
from overnight.study.layout import StudyFolder
from overnight.study.study import active_study

Json = Annotated[bool, typer.Option("--json", help="Print the result as one JSON object on stdout.")]
Dir = Annotated[Path, typer.Option("--dir", help="The project's folder; studies are looked for here and above.")]
Hours = Annotated[float | None, typer.Option(help="How long the study may take in all.")]
EnvSteps = Annotated[
    int | None, typer.Option(help="Environment steps of one training run; by default, as many as are usual.")
]
Candidates = Annotated[int | None, typer.Option(help="How many candidates may be tried at most.")]
Plants = Annotated[
    bool, typer.Option("--plants", help="Plant a placebo and a cheat among the candidates, to test the judge.")
]
Trainer = Annotated[
    str | None,
    typer.Option(
        help="The built-in trainer: ppo (default); sac for continuous actions; dqn for a list; any to search that too."
    ),
]
FromRecipe = Annotated[
    bool, typer.Option("--recipe", help="Take Overnight's recipe for this family of environments as the baseline.")
]
Cold = Annotated[
    bool, typer.Option("--cold", help="Withhold every recipe and published setting of this family of environments.")
]
Runs = Annotated[int | None, typer.Option(help="How many training runs the study may make at most.")]
Setting = Annotated[
    list[str] | None, typer.Option("--set", help="A parameter of the baseline and its value: `key=value`.")
]
Agent = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="A coding agent that proposes too: claude, codex, or a command line in quotes."),
]
Sign = Annotated[bool, typer.Option("--sign", help="Sign with your SSH key, so that it is proved who approved.")]
Key = Annotated[str | None, typer.Option("--key", metavar="FILE", help="The SSH key to sign with; implies --sign.")]
HERE = Path()


def verb_app(help_text: str) -> typer.Typer:
    """A typer application for one verb."""
    return typer.Typer(help=help_text, add_completion=False, no_args_is_help=False, rich_markup_mode="markdown")


def settings(words: list[str] | None) -> dict[str, object]:
    """The parameters that `--set key=value` names, each read as YAML."""
    from overnight.errors import UserError
    from overnight.study import yaml

    found: dict[str, object] = {}
    for word in words or ():
        key, equals, value = word.partition("=")
        if not equals or not key:
            raise UserError("--set", f"`{word[:60]}` is not `key=value`")
        if key in found:
            raise UserError("--set", f"`{key[:60]}` is given twice")
        found[key] = yaml.load(value, where=f"--set {key[:60]}")
    return found


def active(folder: Path) -> tuple[RealMachine, StudyFolder]:
    """The real machine, and the study that is active in a folder."""
    machine = RealMachine()
    return machine, active_study(machine, folder.resolve())


def login() -> str:
    """The login name of whoever runs this, by the system's own account of it."""
    uid = os.getuid()
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"uid {uid}"
