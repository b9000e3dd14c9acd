"""`overnight simulate`: replay a decision rule where truth is known."""

from pathlib import Path
from typing import Annotated

import typer

from overnight.cli.options import HERE, Dir, Json, verb_app
from overnight.cli.output import data, table

app = verb_app("Replay a decision rule on candidates whose truth is known.")
_KINDS = ("null", "volatile", "harmful", "mixed")


@app.command()
def simulate(
    rule: Annotated[
        str, typer.Option(help="`race-certify`, `race-certify-fdr`, `greedy` or `greedy-3`.")
    ] = "race-certify",
    kind: Annotated[str, typer.Option(help="What the ideas are: `null`, `volatile`, `harmful` or `mixed`.")] = "mixed",
    runs: Annotated[int, typer.Option(help="Training runs of the whole study.")] = 100,
    ideas: Annotated[int | None, typer.Option(help="How many ideas come; as many as runs when left out.")] = None,
    family: Annotated[str, typer.Option(help="How scores scatter: a family, or `all` five.")] = "all",
    scores: Annotated[Path | None, typer.Option(help="Take the scatter from this per-seed table instead.")] = None,
    shared_luck: Annotated[float, typer.Option(help="The correlation between arms on one seed, 0 to 0.95.")] = 0.2,
    error: Annotated[float, typer.Option(help="The chance of a false claim that the study is allowed.")] = 0.05,
    studies: Annotated[int, typer.Option(help="Simulated studies of each family.")] = 20,
    seed: Annotated[int, typer.Option(help="Everything that is drawn follows from it.")] = 1,
    folder: Dir = HERE,
    as_json: Json = False,
) -> None:
    """Replay a rule on simulated studies, so that you can choose runs and error level before you spend them.

    Figures are in standard deviations of the baseline's scores over train seeds, and simulated: what is promised is
    the error level alone.

    Example: `overnight simulate --runs 32 --scores baseline.csv`
    """
    from overnight.simulate.cells import Setting, play
    from overnight.simulate.families import FAMILIES, Family, from_scores
    from overnight.simulate.families import family as by_name
    from overnight.simulate.rules import rule as rule_named

    _check(kind, runs, shared_luck, error, studies)
    if scores is not None:
        from overnight.cli.compare import read_scores

        listed = [one for found in read_scores(folder / scores).values() for one in found]
        families: list[Family] = [from_scores(scores.name, listed)]
    else:
        families = list(FAMILIES.values()) if family == "all" else [by_name(family)]
    setting = Setting(kind=kind, ideas=ideas or runs, runs=runs, shared_luck=shared_luck, seed=seed)
    found = play(rule_named(rule, total_error=error), setting, families, studies)
    told = {
        "rule": rule,
        "kind": kind,
        "runs": runs,
        "studies": len(found.all()),
        "gain": found.gain(),
        "gain_by_family": found.gains(),
        "kept_gain": found.tip_gain(),
        "claiming": found.claiming(),
        "false_claims": found.false()[0] / found.false()[1],
        "false_claims_at_most": found.false_bound(),
        "claimed_over_true": found.inflation(),
        "coverage": found.coverage(),
    }
    data(told, _text(told), as_json=as_json)


def _check(kind: str, runs: int, shared_luck: float, error: float, studies: int) -> None:
    from overnight.errors import UserError, did_you_mean

    if kind not in _KINDS:
        raise UserError("--kind", f"`{kind[:60]}` is not a kind of stream", hint=did_you_mean(kind, _KINDS))
    if not 1 <= runs <= 100_000:
        raise UserError("--runs", f"is {runs}, but a simulated study has 1 to 100,000 runs")
    if not 0 <= shared_luck <= 0.95:
        raise UserError("--shared-luck", f"is {shared_luck:g}, but it lies between 0 and 0.95")
    if not 0 < error <= 0.5:
        raise UserError("--error", f"is {error:g}, but it lies above 0 and is at most 0.5")
    if not 1 <= studies <= 100_000:
        raise UserError("--studies", f"is {studies}, but 1 to 100,000 are simulated")


def _text(told: dict[str, object]) -> str:
    def shown(value: object, pattern: str) -> str:
        return format(value, pattern) if isinstance(value, float) else "none told"

    gains = told["gain_by_family"]
    by_family = ", ".join(f"{name} {gain:+.2f}" for name, gain in gains.items()) if isinstance(gains, dict) else ""
    rows = [
        ("studies that claim a gain", shown(told["claiming"], ".1%")),
        (
            "studies with a false claim",
            f"{shown(told['false_claims'], '.1%')}, at most {shown(told['false_claims_at_most'], '.1%')}",
        ),
        ("true gain of what is claimed", f"{shown(told['gain'], '+.2f')} ({by_family})"),
        ("true gain of what is kept", shown(told["kept_gain"], "+.2f")),
        ("claimed over true gain", shown(told["claimed_over_true"], ".2f")),
        ("intervals that hold the truth", shown(told["coverage"], ".1%")),
    ]
    head = f"{told['rule']} on {told['studies']} simulated studies of {told['runs']} runs, {told['kind']} ideas"
    return table(rows, header=(head, ""))
