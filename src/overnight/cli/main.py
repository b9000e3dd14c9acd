"""`overnight`: find the verb, import only that verb, and turn every ending into an exit code.

Exit 0: the command did its job, whatever the verdict. 1: our fault. 2: your input. 3: refused.
The list of verbs is data, so that `--help` answers at once and imports nothing.
"""

import errno
import sys
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from overnight import __version__
from overnight.errors import DiskTrouble, OvernightError, UserError, did_you_mean


class Verb(NamedTuple):
    """One verb: when it is used, where it lives, and one sentence."""

    moment: str
    module: str
    says: str
    hidden: bool = False


VERBS: dict[str, Verb] = {
    "init": Verb("Before", "init", "Draft a study for a Gymnasium environment or for your repository."),
    "contract": Verb("Before", "contract", "Show the terms of the study, or check what is missing in them."),
    "approve": Verb("Before", "approve", "Read the terms on one screen and approve them, all eight or some by name."),
    "plan": Verb("Before", "plan", "Say what fits into the budget, how small a gain can be shown, and when it ends."),
    "new": Verb("Before", "new", "Make a repository with one file to change, and draft a study of it."),
    "start": Verb("Tonight", "start", "Enter the loop. Refuses until everything is approved."),
    "run": Verb("Tonight", "start", "The same as `start`.", hidden=True),
    "loop": Verb("Tonight", "start", "The same as `start`.", hidden=True),
    "stop": Verb("Tonight", "stop", "Stop the night with everything that it started."),
    "live": Verb("Tonight", "live", "Watch the night in the terminal."),
    "attach": Verb("Tonight", "attach", "Sit down at a night that runs in the background."),
    "steer": Verb("Tonight", "steer", "Give proposers a word of direction, also while the night runs."),
    "propose": Verb("Tonight", "propose", "Propose a candidate: changed parameters, or an edited copy."),
    "status": Verb("Tonight", "status", "Say where the study stands and what comes next."),
    "extend": Verb("Tonight", "extend", "Give the study more hours, runs or candidates, and approve that anew."),
    "report": Verb("Morning", "report", "Write the morning report: what was gained, how sure that is, what it cost."),
    "candidates": Verb("Morning", "candidates", "List the candidates, each with its state."),
    "show": Verb("Morning", "show", "Show one candidate: idea, change, refusals, state."),
    "take": Verb("Morning", "take", "Bring a result home: the policy, the parameters, a patch or a branch."),
    "play": Verb("Morning", "play", "Play one episode by the referee, as a moving picture."),
    "reproduce": Verb("Morning", "reproduce", "Train a run again, and compare every episode with the record."),
    "transfer": Verb("Morning", "transfer", "Try a certified change in other environments and at longer budgets."),
    "audit": Verb("Morning", "audit", "Verify a claimed gain from local evidence alone, one line a check."),
    "compare": Verb("Morning", "compare", "Say whether the difference between two per-seed tables is real."),
    "check": Verb("Tools", "check", "Check one thing: a candidate, a contract, or any record's file."),
    "attack": Verb("Tools", "attack", "Attack your own evaluator in a throw-away copy, and name its holes."),
    "simulate": Verb("Tools", "simulate", "Replay a decision rule where truth is known: choose runs and error level."),
    "ledger": Verb("Tools", "ledger", "Verify, show or follow the ledger."),
    "clean": Verb("Tools", "clean", "Free disk without losing evidence."),
    "doctor": Verb("Tools", "doctor", "Say what this machine has, what is missing, and the command that installs it."),
}
MOMENTS = ("Before", "Tonight", "Morning", "Tools")

_DISK_ERRORS = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO, errno.ENAMETOOLONG}

_HELP = """Overnight improves reinforcement-learning training while you sleep, and proves it in the morning.

Usage: overnight [VERB] [OPTIONS]     overnight VERB --help     explains one verb
       overnight                      says where you are and what comes next

{verbs}

Options:
  --help       this page
  --version    the version

Every verb takes --json (data on stdout, everything else on stderr); those about a study take --dir, its folder.
Exit codes: 0 done, 1 our fault, 2 your input, 3 refused.

For example:
  overnight init CartPole-v1     draft a study here
  overnight approve              read it on one screen, and approve it
  overnight start                enter the loop
"""


def main(argv: list[str] | None = None) -> int:
    """Run one command line."""
    words = sys.argv[1:] if argv is None else argv
    try:
        return _run(words)
    except OvernightError as error:
        _tell(error, as_json="--json" in words)
        return error.exit_code
    except OSError as error:
        if error.errno not in _DISK_ERRORS:
            raise
        where = str(error.filename or "disk")
        _tell(DiskTrouble(where, f"{error.strerror}; nothing acknowledged is lost"), as_json="--json" in words)
        return DiskTrouble.exit_code
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        return 130


def _run(words: list[str]) -> int:
    if words and words[0] in ("--help", "-h", "help") and len(words) == 1:
        sys.stdout.write(help_page())
        return 0
    if words == ["--version"]:
        sys.stdout.write(f"overnight {__version__}\n")
        return 0
    if not words:
        _help_the_newcomer()
    if not words or words[0] in ("--json", "--dir"):
        return _call("status", words)
    if words[0] == "help":
        words = [*words[1:], "--help"]
    verb = words[0]
    if verb not in VERBS:
        what = f"`{verb[:60]}` is not an option" if verb.startswith("-") else f"`{verb[:60]}` is not a verb"
        raise UserError("overnight", what, hint=did_you_mean(verb[:60], VERBS) or "`overnight --help` lists them")
    return _call(verb, words[1:])


def _help_the_newcomer() -> None:
    """Where there is no study yet, whoever types the bare name wants to know what it can do."""
    from overnight.study.layout import find_root

    if find_root(Path.cwd()) is None:
        sys.stdout.write(f"{help_page()}\n")


def _call(verb: str, words: list[str]) -> int:
    """Hand the rest of the line to typer, for this one verb alone."""
    import typer
    from typer.main import get_command

    module = import_module(f"overnight.cli.{VERBS[verb].module}")
    app: typer.Typer = module.app
    command = get_command(app)
    try:
        code = command.main(args=words, prog_name=f"overnight {verb}", standalone_mode=False)
    except typer.Exit as ended:
        return int(ended.exit_code)
    except typer.Abort:
        return 130
    except Exception as error:
        if (message := getattr(error, "format_message", None)) is None:
            raise
        raise UserError(
            f"overnight {verb}", message().rstrip("."), hint=f"`overnight {verb} --help` explains it"
        ) from None
    return code if isinstance(code, int) else 0


def help_page() -> str:
    """The list of verbs, by the moment at which they are used."""
    lines = []
    for moment in MOMENTS:
        lines.append(f"{moment}:")
        lines += [
            f"  {name:<12} {verb.says}" for name, verb in VERBS.items() if verb.moment == moment and not verb.hidden
        ]
    return _HELP.format(verbs="\n".join(lines))


def _tell(error: OvernightError, *, as_json: bool) -> None:
    from overnight.cli.output import shown
    from overnight.records.text import line, lines

    says = getattr(error, "says", None)
    if as_json:
        import json

        told = {"where": error.where, "what": error.what, "hint": error.hint, "exit_code": error.exit_code}
        if says is not None:
            told["reasons"] = list(says)
        sys.stdout.write(json.dumps({"error": shown(told)}) + "\n")
    word = "refused" if error.exit_code == 3 else "error"
    if says is not None and len(says) > 1:
        reasons = "\n".join(f"  - {line(one)}" for one in says)
        sys.stderr.write(f"{word}: {line(error.where)}:\n{lines(reasons)}\n")
    else:
        sys.stderr.write(f"{word}: {lines(str(error))}\n")
    if error.hint:
        sys.stderr.write(f"\nhint: {line(error.hint)}\n")


if __name__ == "__main__":
    sys.exit(main())
