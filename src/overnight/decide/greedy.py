"""The greedy rule, for comparison: one run against one run, and whatever is strictly better is kept. It claims nothing.

This is what loops do that look at one number. It keeps lucky seeds, and its scores only rise, whether anything became
better or not. A study under it certifies nothing, and says so.
"""

from overnight.records.decision import Decision, LoopDecision, Verdict
from overnight.records.metric import Direction, MetricSpec

RULE = (
    "Greedy, for comparison only: one run against one run on the same train seed; strictly better is kept, equal or "
    "worse is not. Nothing is certified under this rule."
)


def judge_greedily(
    metric: MetricSpec, ours: float | None, tips: float | None, *, candidate: str, runs: tuple[str, str]
) -> Decision:
    """Keep what is strictly better than the tip. A crash is never better; any score is better than a tip's crash."""
    sign = 1.0 if metric.direction is Direction.HIGHER else -1.0
    gain = sign * (ours - tips) if ours is not None and tips is not None else None
    keep = ours is not None and (gain is None or gain > 0)
    if ours is None:
        says = f"{candidate} crashed, so the greedy rule does not keep it."
    elif tips is None:
        says = f"{candidate} scored {ours:.6g} where the tip crashed, so the greedy rule keeps it."
    else:
        word = "keeps" if keep else "does not keep"
        says = f"{candidate} scored {ours:.6g} in one run and the tip {tips:.6g}, so the greedy rule {word} it."
    return Decision(
        candidate=candidate,
        verdict=Verdict.KEEP if keep else Verdict.REJECT,
        because=says,
        loop=LoopDecision.CONTINUE,
        rule=RULE,
        gain=gain,
        evidence=runs,
    )
