"""`overnight report`: what was gained, how sure that is, what was tried, and what it cost."""

from overnight.cli.options import HERE, Dir, Json, active, verb_app
from overnight.cli.output import data

app = verb_app("Write the morning report.")


@app.command()
def report(folder: Dir = HERE, as_json: Json = False) -> None:
    """Write the morning report from the ledger, as a page and as Markdown. It can be written again at any time.

    Example: `overnight report`
    """
    from overnight.admission import read_terms
    from overnight.errors import UserError
    from overnight.evaluate.seeds import Seeds, load_key
    from overnight.morning import Morning
    from overnight.study.study import read_state

    machine, at = active(folder)
    state, contract = read_state(machine, at, quickly=False), read_terms(machine, at).contract()
    if contract is None or not state.baseline:
        raise UserError(f"{at.task.name}/{at.name}", "has not trained anything yet", hint="`overnight start` does")
    seeds = Seeds(load_key(state.seed_commitment or ""), f"{at.task.name}/{at.name}")
    morning = Morning(machine, at, state, contract, seeds)
    page = morning.write()
    lead = (at.report / "report.md").read_text().split("\n\n")[:2]
    told = {"report": str(page), "markdown": str(page.with_suffix(".md")), "results": str(at.results)}
    data(told, "\n".join([*lead, "", f"report: {page}"]), as_json=as_json)
