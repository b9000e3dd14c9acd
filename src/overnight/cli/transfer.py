"""`overnight transfer [ID] --env … --budget 4x`: does a certified change hold elsewhere?"""

from typing import Annotated

import typer

from overnight.cli.options import HERE, Dir, Json, active, verb_app
from overnight.cli.output import data, say

app = verb_app("Try a certified change in other environments and at longer budgets.")
_MOST_SEEDS, _MOST_TIMES = 100, 1_000.0


@app.command()
def transfer(
    name: Annotated[
        str | None, typer.Argument(metavar="[ID]", help="A certified candidate's id; by default the incumbent.")
    ] = None,
    env: Annotated[list[str] | None, typer.Option(help="Another environment; may be given several times.")] = None,
    budget: Annotated[
        list[str] | None, typer.Option(help="How many times the training, such as `4x`; may be given several times.")
    ] = None,
    seeds: Annotated[int, typer.Option(help="Train seeds of each side.")] = 5,
    folder: Dir = HERE,
    as_json: Json = False,
) -> int:
    """Train the certified change and the baseline, both unmodified, somewhere else, and compare them.

    Same train seeds, same machine, arms taking turns, side by side as in a night, every environment at every budget.
    The result is a table and a bar chart in the study's folder `transfers`, and a note in the ledger; the claim stays
    what it was. What is on file is not trained again, so a journey that was interrupted goes on. Ctrl-C stops the
    training.

    Examples: `overnight transfer --env Acrobot-v1`, `overnight transfer c-0007 --budget 4x --seeds 8`
    """
    from overnight.adapters.launchers.local import LocalLauncher
    from overnight.admission import read_terms, slots
    from overnight.candidate.tree import Store
    from overnight.errors import UserError
    from overnight.evaluate.seeds import Seeds, load_key
    from overnight.records.codec import encode
    from overnight.study.study import Study
    from overnight.transfer import Journey, certified, leave_pages, settings
    from overnight.transfer import transfer as travel
    from overnight.trials import Bench

    if not 2 <= seeds <= _MOST_SEEDS:
        raise UserError("--seeds", f"is {seeds}, but 2 to {_MOST_SEEDS} are possible: noise shows only from two on")
    times = [_times(one) for one in budget or []]
    machine, at = active(folder)
    with Study.open(machine, at, doing="overnight transfer") as study:
        contract = read_terms(machine, at).contract()
        if contract is None or not study.state.baseline:
            raise UserError(f"{at.task.name}/{at.name}", "has not trained anything yet", hint="`overnight start` does")
        key = Seeds(load_key(study.state.seed_commitment or ""), f"{at.task.name}/{at.name}")
        bench = Bench(study, Store(machine, at.task.root.store), contract, LocalLauncher(), key, slots(contract), say)
        found = certified(bench, name)
        wanted = settings(machine, contract, env or [], times)
        say(f"{found} and the baseline, {seeds} seeds each in {len(wanted)} settings: {2 * seeds * len(wanted)} runs.")
        journey = Journey(bench=bench, candidate=found, seeds=seeds, tell=say)
        results = list(travel(journey, wanted))
        page, chart = leave_pages(journey)
    text = "\n".join([*(one.says for one in results), "", f"table {page}", f"chart {chart}"])
    told = {
        "candidate": found,
        "transfers": [encode(one) for one in results],
        "table": str(page),
        "chart": str(chart),
        "part_of_a_claim": False,
    }
    data(told, text, as_json=as_json)
    return 0


def _times(text: str) -> float:
    from math import isfinite

    from overnight.errors import UserError

    try:
        found = float(text.removesuffix("x"))
    except ValueError:
        found = float("nan")
    if not isfinite(found) or not 0 < found <= _MOST_TIMES:
        raise UserError("--budget", f"is `{text[:40]}`, but it is a number of times such as `4x`, up to 1000x")
    return found
