"""Simplicity as a tie-break: of two that cannot be told apart, the one with less code is kept. Pure."""

from dataclasses import replace

from overnight.records.decision import Decision, Verdict


def balance(diff: str) -> int:
    """Lines of code that a difference adds, minus those that it takes away; blank lines and comments count nothing."""
    total = 0
    for line in diff.splitlines():
        if line.startswith(("+++", "---")) or not line.startswith(("+", "-")):
            continue
        if (code := line[1:].strip()) and not code.startswith("#"):
            total += 1 if line[0] == "+" else -1
    return total


def prefer_simpler(found: Decision, lines: int) -> Decision:
    """Turn a verdict that is within the noise into a keep where the candidate has less code than the tip.

    Within the noise means that the interval on the gain was measured on several seeds and holds 0. A candidate that is
    clearly worse stays rejected, however short it is; one seed shows no noise, so it breaks no tie.
    """
    if lines >= 0 or found.verdict not in (Verdict.REJECT, Verdict.INCONCLUSIVE):
        return found
    low, high = found.gain_low, found.gain_high
    if low is None or high is None or not low <= 0 <= high:
        return found
    says = (
        f"{found.candidate} cannot be told apart from the tip (gain {low:.4g} to {high:.4g}) and has {-lines} "
        f"line{'s' if lines < -1 else ''} of code less, so the simpler one is kept."
    )
    return replace(found, verdict=Verdict.KEEP, because=f"{says} {found.because}"[:1990])
