"""`overnight attack .`: what gets into your own evaluator."""

from typing import TYPE_CHECKING, Annotated

import typer

from overnight.cli.options import HERE, Dir, Json, verb_app
from overnight.cli.output import data, table

if TYPE_CHECKING:
    from overnight.attack.foreign.target import Siege

app = verb_app("Attack your own evaluator, in a throw-away copy.")
_INSTEAD = (
    "Overnight runs a candidate's policy in a process that the kernel holds, takes nothing from it but actions, and "
    "keeps environment, hidden seeds, reward and sum to itself."
)


@app.command()
def attack(
    project: Annotated[str, typer.Argument(metavar="[FOLDER]", help="The folder with the evaluator.")] = ".",
    evaluator: Annotated[str | None, typer.Option(help="The command that prints the score.")] = None,
    candidate: Annotated[str | None, typer.Option(help="The file that a candidate may edit.")] = None,
    shape: Annotated[str | None, typer.Option(help="in-process, function, sb3 or script.")] = None,
    metric: Annotated[str | None, typer.Option(help="The name of the score that is printed.")] = None,
    lower: Annotated[bool | None, typer.Option("--lower/--higher", help="Which scores are better.")] = None,
    attacks: Annotated[str | None, typer.Option(help="Only these, with commas between.")] = None,
    timeout: Annotated[float, typer.Option(help="Seconds for one run of the evaluator.")] = 30.0,
    seconds: Annotated[float, typer.Option(help="Seconds for everything.")] = 80.0,
    list_attacks: Annotated[bool, typer.Option("--list", help="List the attacks and run none.")] = False,
    folder: Dir = HERE,
    as_json: Json = False,
) -> None:
    """Run known attacks against your own evaluator, in a throw-away copy, and say which get in.

    Each attack is an edit of the candidate's file that leaves the policy as it is. It got in where your evaluator then
    reports a better score. The table names the fake score, the line that lets the attack in, and what stops it. Your
    folder is only read; the copy runs at the strongest isolation tier of this machine, without network. Exit 1 when
    something got in.

    Without options the evaluator is looked for: a script that prints a score, `evaluate(policy)`, `evaluate_policy` of
    Stable-Baselines3, or a file that imports the candidate's.

    Example: `overnight attack .`

    Example: `overnight attack . --evaluator "python score.py --fast" --candidate agent.py --metric eval_return`
    """
    from overnight.attack.foreign.catalogue import catalogue, chosen
    from overnight.attack.foreign.find import Wish, find
    from overnight.attack.foreign.siege import Limits, besiege
    from overnight.cli.progress import Progress
    from overnight.errors import UserError

    if list_attacks:
        rows = [(one.name, one.says) for one in catalogue()]
        data(
            {"attacks": [{"attack": name, "says": says} for name, says in rows]},
            table(rows, header=("attack", "what it does")),
            as_json=as_json,
        )
        return
    root = (folder / project).resolve()
    if not root.is_dir():
        raise UserError(str(project), "is not a folder", hint="name the folder that holds the evaluator")
    for name, value in (("--timeout", timeout), ("--seconds", seconds)):
        if not value >= 1:
            raise UserError(name, f"is {value:g}, but at least 1 second is needed")
    wish = Wish(shape=shape, evaluator=evaluator, candidate=candidate, metric=metric, lower=lower)
    progress, tried = Progress(), chosen(attacks)
    target = find(root, wish)
    progress.say(
        f"{' '.join(target.command)} in {root.name}, shape {target.shape}; candidates edit {target.candidates[0]}."
    )
    siege = besiege(target, tried, Limits(seconds=seconds, timeout=timeout), progress.passing)
    progress.clear()
    data(_as_data(siege), _text(siege), as_json=as_json)
    if siege.holes():
        raise typer.Exit(1)


def _text(siege: "Siege") -> str:
    honest = f"{siege.honest[0]:g}"
    rows = [
        (
            one.attack,
            "got in" if one.got_in else "no",
            f"{one.score:g} against {honest}" if one.score is not None else "none",
            (str(one.line) if one.line else "unknown") if one.got_in else "",
            one.fix if one.got_in else "",
        )
        for one in sorted(siege.outcomes, key=lambda one: not one.got_in)
    ]
    lines = [
        table(rows, header=("attack", "", f"{siege.metric}: fake against honest", "let in by", "what stops it")),
        "",
    ]
    got = len(siege.holes())
    lines.append(
        f"{got} of {len(rows)} attacks got in, at tier {siege.tier}, in {siege.seconds:.0f} s. "
        "Your folder was not changed."
    )
    if siege.not_applicable:
        lines.append(f"Not applicable here: {', '.join(siege.not_applicable)}.")
    if siege.left_out:
        lines.append(f"Left out, because the time was over: {', '.join(siege.left_out)}. `--seconds` gives more.")
    lines += siege.notes
    if siege.target.also:
        lines.append(f"Also found, and not attacked: {', '.join(siege.target.also)}.")
    return "\n".join([*lines, _INSTEAD])


def _as_data(siege: "Siege") -> dict[str, object]:
    import math

    def number(value: float | None) -> float | str | None:
        return value if value is None or math.isfinite(value) else str(value)

    target = siege.target
    return {
        "folder": str(target.root),
        "shape": target.shape,
        "command": list(target.command),
        "evaluators": list(target.evaluators),
        "candidates": list(target.candidates),
        "metric": siege.metric,
        "lower_is_better": target.lower,
        "tier": siege.tier,
        "honest": [number(one) for one in siege.honest],
        "seconds": round(siege.seconds, 1),
        "attacks": [
            {
                "attack": one.attack,
                "got_in": one.got_in,
                "score": number(one.score),
                "line": str(one.line) if one.line else None,
                "says": one.says,
                "fix": one.fix,
                "because": one.because,
            }
            for one in siege.outcomes
        ],
        "got_in": len(siege.holes()),
        "not_applicable": list(siege.not_applicable),
        "left_out": list(siege.left_out),
        "notes": list(siege.notes),
        "also_found": list(target.also),
        "folder_unchanged": True,
        "instead": _INSTEAD,
    }
