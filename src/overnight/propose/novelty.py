"""Whether an idea was had before: memory of refuted ideas, so that duplicates cost nothing."""

from collections.abc import Mapping

from overnight.records.alike import DIGITS, fingerprint
from overnight.records.limits import Scalar
from overnight.records.proposal import Ending, Tried
from overnight.records.space import Space

_ENDED: dict[Ending, str] = {
    "kept": "was kept",
    "rejected": "was rejected",
    "inconclusive": "was left undecided",
    "crashed": "was broken by its own fault",
    "refused": "was refused by the gate",
    "pending": "is not decided yet",
    "certified": "was certified",
    "reverted": "was undone",
}


def is_duplicate(params: Mapping[str, Scalar], tried: tuple[Tried, ...], space: Space | None) -> str | None:
    """Say which earlier idea these parameters repeat, or return None when they are new.

    `params` is the whole parameter set, not only the changed keys. Two sets are the same
    when every value is equal after rounding to three digits in its own scale (see
    `overnight.records.alike`). The latest earlier idea that matches is named.

    Does not: compare code. Ideas that changed no parameter are passed over, because their
    parameters say nothing about them.
    """
    wanted = fingerprint(params, space)
    for one in reversed(tried):
        if not one.proposal.params or fingerprint(one.params, space) != wanted:
            continue
        if dict(one.params) == dict(params):
            return f"The same parameters were tried as {one.candidate}, which {_ENDED[one.outcome]}."
        near = ", ".join(
            f"{key} {params[key]} and {one.params[key]}" for key in params if params[key] != one.params[key]
        )
        return (
            f"Nearly the same parameters were tried as {one.candidate}, which {_ENDED[one.outcome]}: "
            f"{near} do not differ in the first {DIGITS} digits."
        )
    return None
