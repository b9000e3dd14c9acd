"""A realistic morning: a night on CartPole-v1 with fourteen candidates, two of them planted.

Run `python tests/report/sample.py FOLDER` to write the report and look at it.
"""

import math
import sys
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from overnight.records.contract import Plant
from overnight.records.lifecycle import State
from overnight.records.metric import Direction
from overnight.report.facts import (
    Arm,
    Baseline,
    CandidateLine,
    Claim,
    Curve,
    EvidenceFile,
    Facts,
    Metric,
    NextCommand,
    Night,
    Reference,
    Replay,
)
from overnight.report.png import encode_png
from overnight.report.text import signed

FIXED_LINE = (
    "This is about the stack as a whole and not about each change in it, and holds only for what is named below. "
    "The chance that this study ever certifies something that is no improvement is at most 5 %."
)


def night() -> Facts:
    """The whole night."""
    return Facts(
        study="first-night",
        task="cartpole",
        environment="CartPole-v1",
        metric=Metric(name="mean return", unit="return", direction=Direction.HIGHER, solved=475.0),
        budget="40,000 env_steps for each train seed, and at most 5 minutes of wall time",
        hardware="2 cores of an AMD EPYC 7B13, no accelerator",
        isolation="T2: bubblewrap without network, Landlock and seccomp",
        baseline=Baseline(
            name="ppo",
            source="the built-in trainer overnight.rl.trainers.ppo",
            command="overnight reproduce baseline --seed 0",
            commit="5f1c0aa90b7e4a6d8e3c2b1a0f9e8d7c6b5a4938",
            score=265.1,
        ),
        night=Night(
            started="2026-11-14 22:04 UTC",
            ended="2026-11-15 06:02 UTC",
            hours=7.97,
            runs=96,
            candidates=14,
            wall_seconds=49_320.0,
            cpu_seconds=96_480.0,
        ),
        claims=(claim(),),
        shortfall=None,
        candidates=candidates(),
        curves=(curve("baseline"), curve("winner")),
        replays=(episode("baseline"), episode("winner")),
        references=(Reference(name="random", score=22.3), Reference(name="no-op", score=9.4)),
        versions=(
            ("overnight", "0.3.0"),
            ("gymnasium", "1.2.0"),
            ("jax", "0.7.1"),
            ("numpy", "2.4.6"),
            ("Python", "3.11.7"),
        ),
        next_commands=(
            NextCommand(says="Bring the certified change home.", command="overnight take --branch better"),
            NextCommand(says="Watch both policies play on new seeds.", command="overnight play --against baseline"),
            NextCommand(says="Go on from here tonight.", command="overnight extend --hours 8"),
        ),
        ledger_head=sha256(b"the last entry").hexdigest(),
        ledger_entries=611,
    )


def claim() -> Claim:
    """The night's one certified gain."""
    return Claim(
        sentence="The stack of c-0003, c-0004 and c-0009 gains 213 return over the baseline, 12 against 12 fresh train "
        "seeds of 100 hidden episodes each; p = 0.0004, and 0.0078 was needed.",
        fixed_line=FIXED_LINE,
        before=265.1,
        after=478.4,
        gain=213.3,
        low=171.2,
        high=255.4,
        seeds_each=12,
        candidates=("c-0003", "c-0004", "c-0009"),
        evidence=tuple(
            EvidenceFile(path=path, digest=sha256(path.encode()).hexdigest())
            for path in ("audits/a-0001.json", "objects/confirm-baseline.json", "objects/confirm-tip.json")
        ),
        command="overnight reproduce c-0009 --against baseline --seeds 12",
    )


def candidates() -> tuple[CandidateLine, ...]:
    """Fourteen candidates, in order."""
    return tuple(_line(place, idea) for place, idea in enumerate(IDEAS, start=1))


def _line(place: int, idea: "Idea") -> CandidateLine:
    tip = 265.1 if place <= 3 else 331.6 if place == 4 else 406.5 if place <= 9 else 464.5
    measured = f"The estimate is {signed(idea.gain, 0)} return after {idea.seeds} seeds; the line was +{idea.line}."
    return CandidateLine(
        id=f"c-{place:04}",
        commit=sha256(f"commit {place}".encode()).hexdigest()[:40],
        hypothesis=idea.hypothesis,
        proposer="engine" if idea.plant else "search" if place % 3 else "agent",
        state=idea.state,
        kept=idea.state is State.ACCEPTED,
        verdict=idea.says if idea.says is not None else measured,
        gain=idea.gain,
        score=idea.score if idea.gain is None else tip + idea.gain,
        luckiest=idea.lucky,
        tip_mean=tip,
        crashed=idea.crashed,
        plant=idea.plant,
        refusals=idea.refusals,
    )


@dataclass(frozen=True)
class Idea:
    """What the sample makes a candidate of."""

    hypothesis: str
    gain: float | None = None
    lucky: float | None = None
    seeds: int = 3
    line: int = 21
    state: State = State.REJECTED
    says: str | None = None
    score: float | None = None
    crashed: bool = False
    plant: Plant | None = None
    refusals: tuple[str, ...] = ()


IDEAS = (
    Idea("A larger rollout gives less noisy advantages.", -18.2, 259.4),
    Idea(
        "Shuffling the minibatches with a second stream decorrelates the updates.",
        4.1,
        312.0,
        plant="placebo",
        says="Its gain of 4 return over 6 seeds stays below the line of 21, and its scores spread from 198 to 312.",
    ),
    Idea("A learning rate of 1e-3 suits this short budget.", 66.9, 388.0, 4, 30, State.ACCEPTED),
    Idea("Four times the epochs use each step better.", 74.9, 470.2, 4, 28, State.ACCEPTED),
    Idea("An entropy bonus of 0.05 keeps exploration alive.", -41.0, 371.5, 2),
    Idea(
        "A policy that ends its own episodes early keeps the best of its scores.",
        plant="cheat",
        score=9.4,
        says="The referee counts every episode to its end; measured so, the policy scores 9.4, like doing nothing.",
    ),
    Idea("A network of 256 units has more room.", 6.3, 455.0, 5),
    Idea(
        "Normalised observations make the loss easier.",
        19.8,
        476.1,
        state=State.INCONCLUSIVE,
        says="After 6 seeds the estimate is +20 return, between the lines of +12 and +24; about 9 more would decide.",
    ),
    Idea("Gradient clipping at 0.5 steadies the late updates.", 58.0, 500.0, 4, 26, State.ACCEPTED),
    Idea(
        "Train on a longer horizon than the contract allows.",
        state=State.DRAFT,
        says="",
        refusals=(
            "The change sets `max_episode_steps`, a key outside the approved surface.",
            "The change asks for 80,000 env_steps, but the budget holds 40,000.",
        ),
    ),
    Idea("A discount of 0.9 shortens the credit.", -112.7, 402.3, 2),
    Idea(
        "bfloat16 makes room for a wider batch.",
        crashed=True,
        says="All 3 runs crashed: ValueError: minibatch of 0 rows at update 1.",
    ),
    Idea("A linear decay of the learning rate helps the end.", 8.8, 500.0, 6),
    Idea("A generalised advantage λ of 0.8 lowers variance.", -22.9, 492.0),
)


def curve(arm: Arm) -> Curve:
    """Six seeds that learn along a logistic curve, each a little earlier or later."""
    noise = np.random.default_rng(7 if arm == "baseline" else 11)
    top, middle, width = (290.0, 21_000.0, 6_000.0) if arm == "baseline" else (486.0, 13_000.0, 3_400.0)
    seeds = []
    for _ in range(6):
        late, reach = noise.normal(0, 1_900), top * (1 + noise.normal(0, 0.07 if arm == "baseline" else 0.012))
        steps = np.arange(1_000, 40_001, 1_000)
        values = 20 + (reach - 20) / (1 + np.exp(-(steps - middle - late) / width)) + noise.normal(0, 6, len(steps))
        seeds.append(tuple((float(x), float(min(500.0, y))) for x, y in zip(steps, values, strict=True)))
    return Curve(arm=arm, seeds=tuple(seeds))


@cache
def episode(arm: Arm) -> Replay:
    """The baseline drifts off and falls, the winner stands for sixty frames."""
    falls = arm == "baseline"
    return Replay(
        title="Baseline, median episode" if falls else "Winner, median episode",
        seed=4 if falls else 9,
        score=261.0 if falls else 500.0,
        frames=tuple(encode_png(drawn(*_pose(step, falls=falls))) for step in range(34 if falls else 60)),
        seconds_per_frame=0.05,
    )


def _pose(step: int, *, falls: bool) -> tuple[float, float]:
    if falls:
        return 0.12 * math.sin(step / 6) + 0.0006 * step**2, 0.03 * math.sin(step / 3) + 0.00035 * step**2
    return 0.10 * math.sin(step / 9.55), 0.035 * math.sin(step / 4.77 + 1)


def drawn(place: float, angle: float) -> NDArray[np.uint8]:
    """One picture of a cart at a place (−1 to 1) with its pole at an angle."""
    y, x = np.mgrid[0:240, 0:400].astype(np.float32)
    picture = np.full((240, 400, 3), 250, np.float32)
    picture[180:182] = (190, 190, 186)
    x -= 200 + 160 * place
    y -= 160
    along, across = x * math.sin(angle) - y * math.cos(angle), x * math.cos(angle) + y * math.sin(angle)
    cart = np.maximum(np.abs(x) - 30, np.abs(y - 12) - 15)
    pole = np.maximum(np.abs(along - 56) - 56, np.abs(across) - 4.5)
    axle = np.hypot(x, y) - 6
    for beyond_edge, colour in ((cart, (43, 52, 69)), (pole, (202, 152, 101)), (axle, (129, 132, 203))):
        share = np.clip(0.5 - beyond_edge, 0, 1)[..., None]
        picture += share * (np.array(colour, np.float32) - picture)
    return picture.astype(np.uint8)


def main() -> None:
    """Write the sample's three files into a folder."""
    from overnight.report.exports import results_tsv
    from overnight.report.html import render_html
    from overnight.report.markdown import render_markdown

    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "report.html").write_text(render_html(night()), "utf-8")
    (folder / "report.md").write_text(render_markdown(night()), "utf-8")
    (folder / "results.tsv").write_text(results_tsv(night()), "utf-8")


if __name__ == "__main__":
    main()
