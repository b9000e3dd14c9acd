"""`overnight audit CLAIM`: does a claim stand on its evidence?"""

from typing import Annotated

import typer

from overnight.cli.options import HERE, Dir, Json, active, verb_app
from overnight.cli.output import data

app = verb_app("Say whether a claimed gain stands on its evidence.")


@app.command()
def audit(
    claim: Annotated[
        str | None, typer.Argument(metavar="[CLAIM]", help="The certified candidate's id; by default the newest claim.")
    ] = None,
    folder: Dir = HERE,
    as_json: Json = False,
) -> int:
    """Verify a claimed gain from local evidence alone: nothing is trained, nothing is written.

    The ledger is folded anew, every score is taken anew from the stored episodes, every seed is derived anew from the
    committed key, and the gain is computed anew. One line a check, PASS or FAIL with its reason. Exits with 3 when one
    fails. For results from elsewhere there is `overnight compare`.

    Examples: `overnight audit`, `overnight audit c-0007 --json`
    """
    from dataclasses import asdict

    from overnight.decide.audit import Check, check_claim
    from overnight.dossier import gather
    from overnight.errors import LedgerDamaged
    from overnight.study.layout import check_id

    machine, at = active(folder)
    if claim is not None:
        check_id(claim, letter="c", called="candidate")
    found: tuple[Check, ...]
    name = claim
    try:
        case = gather(machine, at, claim)
    except LedgerDamaged as damaged:
        found = (Check("ledger", passed=False, because=str(damaged)),)
    else:
        sound = Check("ledger", passed=True, because="The chain is unbroken, and its anchor vouches for all of it.")
        name, found = case.candidate, (sound, *check_claim(case))
    passed = all(one.passed for one in found)
    rows = [("PASS" if one.passed else "FAIL", one.name, one.because) for one in found]
    failed = sum(not one.passed for one in found)
    says = (
        f"The claim of {name} stands: {len(found)} of {len(found)} checks passed."
        if passed
        else f"The claim{f' of {name}' if name else ''} does not stand: {failed} of {len(found)} checks failed."
    )
    text = "\n".join(f"{how}  {what:<16}  {because}" for how, what, because in rows) + f"\n{says}"
    told = {"claim": name, "stands": passed, "says": says, "checks": [asdict(one) for one in found]}
    data(told, text, as_json=as_json)
    return 0 if passed else 3
