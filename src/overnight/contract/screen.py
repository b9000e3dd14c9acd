"""The one screen on which a contract is approved: what may change, what is measured, what it
may cost, what it can prove, and when it stops, in plain words."""

from overnight.contract.trainers import what_search_knows
from overnight.records.contract import Contract
from overnight.records.metric import Direction, Guardrail


def screen(contract: Contract) -> tuple[tuple[str, str], ...]:
    """Heading and sentence, in the order in which they are read."""
    return (
        ("Task", _task(contract)),
        ("What may change", _change(contract)),
        ("What is measured", _measure(contract)),
        ("What it may cost", _cost(contract)),
        ("Where it runs", _where(contract)),
        ("Compared with", _baseline(contract)),
        ("What it can prove", _proof(contract)),
        ("When it stops", _stop(contract)),
    )


def _task(contract: Contract) -> str:
    task = contract.task
    return f"{task.mission} Environment: {task.env.id}. Not a goal: {'; '.join(task.non_goals)}"


def _change(contract: Contract) -> str:
    scope, experiments = contract.scope, contract.experiments
    where = ", ".join(scope.paths)
    keys = f" (only the keys {_few(scope.keys)})" if scope.keys else ""
    code = "Candidates bring code of their own." if contract.runs_candidate_code() else "No candidate brings code."
    who = ", ".join(experiments.proposers)
    class_of = f"Proposed by {who}: {_few(experiments.kinds)}."
    knows = f" {says}" if (says := what_search_knows(contract)) else ""
    return f"{where}{keys}; everything else is protected. {class_of} {code}{knows}{_agent(contract)}"


def _measure(contract: Contract) -> str:
    metric = contract.metric
    better = "higher" if metric.direction is Direction.HIGHER else "lower"
    guards = ", ".join(f"{rail.name} ({_margin(rail)})" for rail in metric.guardrails)
    return (
        f"{metric.name} in {metric.unit}, {better} is better, by more than {metric.least_gain:g}. "
        f"May not get worse: {guards}."
    )


def _margin(rail: Guardrail) -> str:
    return f"by more than {rail.margin:g}" if rail.margin else "at all: a claim needs it shown to be better too"


def _cost(contract: Contract) -> str:
    budget = contract.budget
    money = f" Coding agents: {_agent_cost(contract)}." if contract.experiments.agent is not None else " No money."
    unit, counted = budget.stop_unit.replace("_", " "), ", counted by a broker" if budget.metered else ""
    return (
        f"At most {budget.max_runs:,} training runs of {budget.stop_amount:,.0f} {unit}{counted} "
        f"(never over {budget.run_wall_seconds:,.0f} s each), {_hours(contract)} in all, "
        f"{budget.disk_gigabytes:g} GB of disk.{money}{_ladder(contract)}"
    )


def _agent_cost(contract: Contract) -> str:
    """What a coding agent may cost; a command that tells neither money nor tokens is bounded by its answers alone."""
    budget, agent = contract.budget, contract.experiments.agent
    words = [f"at most ${budget.max_dollars:g}"] * bool(budget.max_dollars)
    words += [f"{budget.max_tokens:,} tokens"] * bool(budget.max_tokens)
    words += [f"{agent.max_asks:,} answers of up to {agent.wall_seconds:,.0f} s"] if agent is not None else []
    return ", ".join(words)


def _agent(contract: Contract) -> str:
    """What the coding agent is, what it gets, and where it is held."""
    agent = contract.experiments.agent
    if agent is None:
        return ""
    named = ", ".join((*agent.variables, *(f"~/{file}" for file in agent.files)))
    given = f"{named}, where that exists" if named else "nothing"
    return (
        f" A coding agent proposes: `{' '.join(agent.command)[:160]}`, in a plain copy, isolation {agent.tier}, "
        f"with the network; of yours it gets {given}."
    )


def _ladder(contract: Contract) -> str:
    ladder = contract.budget.ladder
    if not ladder:
        return ""
    return f" Runs begin with {ladder[0].amount:,.0f}, and get more only when the tip is clearly learning."


def _where(contract: Contract) -> str:
    hardware, may = contract.hardware, contract.experiments.permissions
    network = "with" if may.network else "without"
    return (
        f"Host {hardware.host}, device {hardware.device}, cores a run: {hardware.cores_per_run}, "
        f"{network} network, isolation {contract.evaluation.min_tier} or stronger."
    )


def _baseline(contract: Contract) -> str:
    baseline = contract.baseline
    return f"{' '.join(baseline.command)} from tree {baseline.tree[:12]}. {baseline.source}"


def _proof(contract: Contract) -> str:
    how = contract.evaluation
    if how.policy == "greedy":
        return "Nothing: the greedy rule keeps whatever beat the tip in one run, and is there for comparison only."
    most = "" if how.confirm_train_seeds is None else f", {how.confirm_train_seeds} at most"
    return (
        f"A gain is claimed only if it holds on fresh train seeds, as many of the baseline as of the candidate{most}, "
        f"{how.confirm_episodes} hidden episodes each; the chance that the study claims a gain that is not there is "
        f"below {how.max_false_claims:.0%}. How many seeds that takes is measured on the baseline before the last "
        "approval."
    )


def _stop(contract: Contract) -> str:
    stop, automation = contract.experiments.stop, contract.experiments.automation
    rules = [f"after {stop.max_candidates:,} candidates", f"after {_hours(contract)}"]
    if stop.plateau_candidates is not None:
        rules.append(f"after {stop.plateau_candidates} in a row without a kept one")
    if stop.target_score is not None:
        rules.append(f"at a certified score of {stop.target_score:g}")
    asked = (
        f"The first {automation.max_candidates:,} candidates of this class run without being asked about."
        if automation.max_candidates
        else "Every candidate is asked about."
    )
    return f"{'; '.join(rules)}; whichever comes first. {asked}"


def _few(names: tuple[str, ...]) -> str:
    return ", ".join(names) if len(names) <= 6 else f"{', '.join(names[:5])} and {len(names) - 5} more"


def _hours(contract: Contract) -> str:
    hours = contract.budget.max_wall_hours
    return "1 hour" if hours == 1 else f"{hours:g} hours"
