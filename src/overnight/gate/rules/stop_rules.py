"""Refuse to go on when a stop rule has fired."""

from overnight.gate.case import Opening
from overnight.records.refusal import Reason


def refuse(case: Opening) -> tuple[Reason, ...]:
    """The greatest number of candidates ends the loop whatever the last verdict was."""
    if case.contract is None or case.candidates <= case.contract.experiments.stop.max_candidates:
        return ()
    most = case.contract.experiments.stop.max_candidates
    return (
        Reason(
            rule="stop-rules",
            says=f"The stop rule of {most:,} candidates has fired: this study has {case.candidates:,}.",
        ),
    )
