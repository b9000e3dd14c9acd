"""`overnight plan`: what a night can do within its contract, before it begins."""

from datetime import datetime, timedelta

from overnight.cli.options import HERE, Dir, Json, active, verb_app
from overnight.cli.output import data

app = verb_app("Say what fits into the budget.")


@app.command()
def plan(folder: Dir = HERE, as_json: Json = False) -> None:
    """Say what fits into the budget, how small a gain can be shown, and when it will be over. Launches nothing.

    Times and disk come from the runs that have ended; before the first one, only the contract's bounds are known.

    Example: `overnight plan`
    """
    from dataclasses import asdict

    from overnight.admission import next_action, read_terms
    from overnight.curves import agreements
    from overnight.curves import says as ranked
    from overnight.errors import UserError
    from overnight.forecast import of_study, page
    from overnight.room import disk_shortfall
    from overnight.study.study import read_state

    machine, at = active(folder)
    state, reading = read_state(machine, at), read_terms(machine, at)
    contract = reading.contract()
    if contract is None:
        raise UserError(
            str(at.contract), "is not complete, so nothing can be planned", hint="`overnight contract check`"
        )
    found = of_study(state, contract, at)
    over = datetime.fromtimestamp(machine.now()).astimezone() + timedelta(seconds=found.seconds or 0.0)
    lines = [f"{state.task}/{state.study}: a plan; nothing is launched"]
    lines += [f"{heading:<14} {says}" for heading, says in page(contract, found, now=f"{over:%a %H:%M}")]
    alike = agreements(machine, at, state, contract.at(state.rung))
    lines += [f"{'Shorter runs':<14} {ranked(alike)}"] if alike else []
    if found.nothing:
        lines.append(f"Tonight can claim nothing: {found.nothing}")
    if short := disk_shortfall(contract, at):
        lines.append(short)
    sentence, command = next_action(state, reading)
    lines += [sentence, f"next: {command}"]
    how = contract.evaluation
    told = {
        **asdict(found),
        "command": list(contract.baseline.command),
        "screen_episodes": how.screen_episodes,
        "confirm_episodes": how.confirm_episodes,
        "max_runs": contract.budget.max_runs,
        "max_wall_hours": contract.budget.max_wall_hours,
        "gain_unit": contract.metric.unit if found.noise_sd is not None else "noise",
        "finish": over.isoformat(timespec="minutes") if found.seconds is not None else None,
        "disk_shortfall": short,
        "rank_agreement": [asdict(one) for one in alike],
        "next": command,
    }
    data(told, "\n".join(lines), as_json=as_json)
