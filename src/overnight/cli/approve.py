"""`overnight approve`: read the terms on one screen, and give one word for all of them."""

import os
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from overnight.cli.options import HERE, Dir, Json, Key, Sign, active, login, verb_app
from overnight.cli.output import data, say

if TYPE_CHECKING:
    from overnight.admission import Who
    from overnight.contract.read import Reading
    from overnight.ports import Machine
    from overnight.records.approval import Strength
    from overnight.records.contract import Clause
    from overnight.study.layout import StudyFolder
    from overnight.study.state import StudyState

app = verb_app("Approve the terms.")


@app.command()
def approve(
    names: Annotated[
        list[str] | None, typer.Argument(help="Clauses to approve (by default all that can be), or one candidate's id.")
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", help="Approve unattended: only for a built-in trainer on plain parameters.")
    ] = False,
    sign: Sign = False,
    key: Key = None,
    folder: Dir = HERE,
    as_json: Json = False,
) -> None:
    """Read the terms on one screen and approve them: all clauses, some by name, or one candidate.

    The eighth clause, the class of experiments, is asked when the baseline is calibrated: `overnight start` runs it
    on a few seeds after the first seven approvals, and the page then says what the budget can prove and how many
    experiments fit. `overnight approve experiments` approves it earlier, without figures.

    It asks on the controlling terminal for a word that is shown only there, and refuses inside a coding
    agent. `--yes` asks nobody; it is recorded as unattended, and is refused for anything that brings code
    or uses the network. Editing an approved clause later voids exactly that approval.

    `--sign` asks the same, and then signs what was shown with your SSH key, so that the approval proves who gave
    it. Every gate checks the signature against the allowed signers of your own configuration.

    Examples: `overnight approve`, `overnight approve budget metric`, `overnight approve c-0007`,
    `overnight approve --sign --key ~/.ssh/id_ed25519`
    """
    from overnight.admission import approve_clauses, permit, read_terms
    from overnight.study.study import Study, read_state

    machine, at = active(folder)
    reading, how = read_terms(machine, at), How(yes, sign or key is not None, key)
    if names and len(names) == 1 and names[0].startswith("c-"):
        who = word_for(reading, _candidate_page(machine, at, names[0]), how)
        with Study.open(machine, at, doing="overnight approve") as study:
            given = permit(study, names[0], who)
        data(
            {"permitted": given.candidate, "strength": str(who.strength)},
            f"{given.candidate} is approved.",
            as_json=as_json,
        )
        return
    state = read_state(machine, at)
    clauses, left = _askable(_clauses(names), reading, state, named=bool(names))
    _check_sound(at, reading, _clauses(names))
    who = word_for(reading, _page(at, reading, state, clauses), how)
    with Study.open(machine, at, doing="overnight approve") as study:
        _check_unchanged(reading, read_terms(machine, at))
        approvals = approve_clauses(study, reading, clauses, who)
    told = [str(one.clause) for one in approvals]
    text = f"Approved ({who.strength}): {', '.join(told)}." if told else "Everything was approved already."
    text += f"\n{_LATER}" if left else ""
    data({"approved": told, "left": left, "strength": str(who.strength)}, text, as_json=as_json)


def _check_sound(at: "StudyFolder", reading: "Reading", clauses: list["Clause"]) -> None:
    for clause in clauses:
        if (problem := reading.problem(clause)) is not None:
            wrong = reading.wrong.get(clause)
            _stop(str(at.contract), problem, hint=wrong.hint if wrong is not None else "")


def _page(at: "StudyFolder", reading: "Reading", state: "StudyState", clauses: list["Clause"]) -> str:
    """The terms on one screen, and what is known about the budget."""
    from overnight.awake import risks
    from overnight.contract.screen import screen

    contract = reading.contract()
    lines = [f"{at.task.name}/{at.name}", ""]
    lines += [f"{heading}\n    {sentence}" for heading, sentence in screen(contract)] if contract is not None else []
    lines += _calibration_page(state, clauses)
    if seen := risks():
        lines += ["What may end the night", *(f"    {one.says} ({one.command})" for one in seen)]
    return "\n".join([*lines, "", f"Approving: {', '.join(clauses)}"])


_LATER = "The eighth clause, `experiments`, is asked when the baseline is calibrated: `overnight start` does both."


def _askable(
    clauses: list["Clause"], reading: "Reading", state: "StudyState", *, named: bool
) -> tuple[list["Clause"], list[str]]:
    """The clauses that are asked now, and those that wait for the calibration."""
    from overnight.records.contract import Clause, Evaluation

    how = reading.clauses.get(Clause.EVALUATION)
    calibrates = not (isinstance(how, Evaluation) and how.policy == "greedy")  # that rule has nothing to calibrate
    waits = calibrates and not named and state.calibration is None and Clause.EXPERIMENTS not in state.approvals
    if not waits:
        return clauses, []
    return [clause for clause in clauses if clause is not Clause.EXPERIMENTS], [str(Clause.EXPERIMENTS)]


def _calibration_page(state: "StudyState", clauses: list["Clause"]) -> list[str]:
    """What is known about the budget, beside the clause that spends it."""
    from overnight.records.contract import Clause

    if Clause.EXPERIMENTS not in clauses:
        return []
    found = state.calibration
    if found is None:
        return ["What tonight can prove", "    Nobody knows yet: the baseline is not calibrated."]
    return ["What tonight can prove", *(f"    {says}" for says in found["sentences"])]


def approve_unattended(machine: "Machine", at: "StudyFolder", names: list[str] | None = None) -> list[str]:
    """Approve what can be without asking or showing, as `--yes` does, and return the clauses that needed it."""
    from overnight.admission import Who, approve_clauses, read_terms
    from overnight.study.study import Study

    reading = read_terms(machine, at)
    strength = _unattended(reading)
    with Study.open(machine, at, doing="overnight approve") as study:
        clauses, _ = _askable(_clauses(names), reading, study.state, named=bool(names))
        given = approve_clauses(study, reading, clauses, Who(login(), strength))
    return [str(one.clause) for one in given]


def approve_experiments(machine: "Machine", at: "StudyFolder", *, yes: bool) -> None:
    """Ask for the eighth approval, with what the calibration found; refuse where nobody can be asked."""
    from overnight.admission import approve_clauses, read_terms
    from overnight.records.contract import Clause
    from overnight.study.study import Study, read_state

    if yes:
        approve_unattended(machine, at, [str(Clause.EXPERIMENTS)])
        return
    reading, state = read_terms(machine, at), read_state(machine, at)
    page = "\n".join(
        (f"{at.task.name}/{at.name}", *_calibration_page(state, [Clause.EXPERIMENTS]), "", "Approving: experiments")
    )
    who = word_for(reading, page, How(yes=False))
    with Study.open(machine, at, doing="overnight approve") as study:
        _check_unchanged(reading, read_terms(machine, at))
        approve_clauses(study, reading, [Clause.EXPERIMENTS], who)


def _candidate_page(machine: "Machine", at: "StudyFolder", name: str) -> str:
    """One candidate as it is approved by itself: its idea and its whole change."""
    from overnight.admission import drafted, find_candidate
    from overnight.candidate.tree import Store
    from overnight.study.study import read_state

    one = find_candidate(read_state(machine, at, quickly=False), name)
    store, proposal = Store(machine, at.task.root.store), drafted(machine, at, one).proposal
    diff = store.diff(store.tree_of(one.base), one.tree).decode(errors="replace")
    return f"{at.task.name}/{at.name} {name}: {proposal.hypothesis}\nPredicted: {proposal.predicted_effect}\n\n{diff}"


def _check_unchanged(shown: "Reading", now: "Reading") -> None:
    """What is approved is what was shown, whatever happened to the file in the meantime."""
    from overnight.contract.read import digests
    from overnight.errors import Refused

    if digests(shown) != digests(now):
        raise Refused(
            "overnight approve",
            ("The contract changed while it was being read, so nothing is approved.",),
            hint="read it again",
        )


def _clauses(names: list[str] | None) -> list["Clause"]:
    from overnight.errors import UserError, did_you_mean
    from overnight.records.contract import Clause

    known = [str(clause) for clause in Clause]
    for name in names or []:
        if name not in known:
            raise UserError("overnight approve", f"`{name[:60]}` is not a clause", hint=did_you_mean(name[:60], known))
    return [clause for clause in Clause if not names or clause in names]


def _stop(where: str, problem: str, *, hint: str) -> None:
    from overnight.errors import Refused

    raise Refused(where, (problem,), hint=hint or "`overnight contract check` lists what is missing")


class How(NamedTuple):
    """How the command line asks for the word to be given."""

    yes: bool
    """Unattended."""
    sign: bool = False
    """With a signature."""
    key: str | None = None
    """By this key."""


def word_for(reading: "Reading", page: str, how: How) -> "Who":
    """Get the word, in the way that the command line asks for, or refuse."""
    from overnight.admission import Who
    from overnight.cli.terminal import confirm_on_terminal
    from overnight.contract.approve import agent_host
    from overnight.errors import Refused, UserError
    from overnight.records.approval import Strength
    from overnight.signatures import key_for, settings

    if how.yes and how.sign:
        raise UserError(
            "overnight approve", "`--yes` asks nobody, so there is nobody to sign", hint="leave one of them out"
        )
    if how.yes:
        strength = _unattended(reading)
        say(page)
        return Who(login(), strength)
    host = agent_host(os.environ)
    if host is not None:
        raise Refused(
            "overnight approve",
            (f"This runs inside {host}, and an agent cannot approve; no signature was given.",),
            hint="run `overnight approve` in a terminal of your own",
        )
    if not how.sign and settings().require_signature:
        raise Refused(
            "overnight approve",
            ("Your configuration asks for signed approvals.",),
            hint="`overnight approve --sign` signs with your SSH key",
        )
    key = key_for(how.key) if how.sign else None
    if not confirm_on_terminal(page):
        raise Refused("overnight approve", ("The word was not typed, so nothing is approved.",))
    return Who(login(), Strength.SIGNED if key is not None else Strength.TERMINAL, key)


def _unattended(reading: "Reading") -> "Strength":
    """The strength of a word that nobody was asked for, or the refusal of terms that need a person."""
    from overnight.contract.approve import against_unattended
    from overnight.errors import Refused
    from overnight.records.approval import Strength

    contract = reading.contract()
    if contract is None:
        raise Refused("overnight approve --yes", ("The contract is not complete, so it needs a person.",))
    reasons = against_unattended(contract)
    if reasons:
        raise Refused(
            "overnight approve --yes",
            (one.says for one in reasons),
            hint="`overnight approve` in a terminal asks a person",
        )
    return Strength.UNATTENDED
