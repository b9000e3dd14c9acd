"""`overnight reproduce`: train it again, and compare every episode."""

from contextlib import closing
from typing import Annotated

import typer

from overnight.cli.options import HERE, Dir, Json, active, verb_app
from overnight.cli.output import data, say

app = verb_app("Train it again, and compare.")


@app.command()
def reproduce(
    name: Annotated[
        str | None, typer.Argument(metavar="[ID]", help="A candidate's or a run's id; by default the incumbent.")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Every run that the certified claim rests on.")] = False,
    folder: Dir = HERE,
    as_json: Json = False,
) -> int:
    """Train a run again from the same tree, with the same seed and budget, and compare each episode's return.

    Of a candidate the median run is trained again; of several runs, as many go side by side as in a night. The result
    is noted in the ledger and decides nothing. Exits with 1 when an episode differs. Ctrl-C stops the training.

    Examples: `overnight reproduce`, `overnight reproduce r-0007`, `overnight reproduce c-0004 --all`
    """
    from overnight.adapters.launchers.local import LocalLauncher
    from overnight.admission import read_terms, slots
    from overnight.again import reproduce as train_again
    from overnight.again import runs_behind
    from overnight.candidate.tree import Store
    from overnight.claims import incumbent
    from overnight.errors import UserError
    from overnight.evaluate.seeds import Seeds, load_key
    from overnight.study.study import Study
    from overnight.trials import Bench

    machine, at = active(folder)
    with Study.open(machine, at, doing="overnight reproduce") as study:
        contract = read_terms(machine, at).contract()
        if contract is None or not study.state.baseline:
            raise UserError(f"{at.task.name}/{at.name}", "has not trained anything yet", hint="`overnight start` does")
        seeds = Seeds(load_key(study.state.seed_commitment or ""), f"{at.task.name}/{at.name}")
        bench = Bench(study, Store(machine, at.task.root.store), contract, LocalLauncher(), seeds, slots(contract), say)
        names, found = runs_behind(bench, name or incumbent(study.state), everything=everything), []
        with closing(train_again(bench, names, say)) as compared:
            for one in compared:
                found.append(one)
                if everything:
                    say(f"{one.run}: {one.says()}")
    found.sort(key=lambda one: names.index(one.run))
    same = all(one.is_identical() for one in found)
    told = [
        {
            "run": one.run,
            "candidate": one.candidate,
            "identical": one.is_identical(),
            "says": one.says(),
            "before": list(one.before),
            "after": list(one.after),
            "seconds": round(one.seconds, 1),
        }
        for one in found
    ]
    text = "\n".join(f"{one.run} ({one.candidate}): {one.says()}" for one in found)
    data({"identical": same, "runs": told}, text, as_json=as_json)
    return 0 if same else 1
