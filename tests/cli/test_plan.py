"""A plan says what fits, launches nothing, and says plainly when a night could claim nothing."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from overnight import curves
from overnight.forecast import Forecast, forecast, page
from overnight.machine import RealMachine
from overnight.records.contract import Contract
from overnight.records.ladder import Rung
from overnight.records.run import Outcome
from overnight.study.state import RunState, StudyState
from scenes import Said, Scene, digest_of

Verb = Callable[..., Said]


def planned(contract: Contract, state: StudyState | None = None, **budget: Any) -> Forecast:
    """A forecast on two slots, with some values of the budget changed."""
    changed = replace(contract, budget=replace(contract.budget, **budget)) if budget else contract
    return forecast(state or StudyState(), changed, run_bytes=None, side_by_side=2)


def seeds(contract: Contract, **how: Any) -> Contract:
    return replace(contract, evaluation=replace(contract.evaluation, **how))


def ended(candidate: str, number: int, *, score: float | None = None) -> RunState:
    """A run of 100 seconds."""
    return RunState(
        candidate=candidate,
        tree="0" * 40,
        comparability="0" * 64,
        train_seed=number,
        phase="screen",
        round=0,
        number=number,
        outcome=Outcome.COMPLETED,
        evidence=1,
        score=score,
        wall_seconds=100.0,
    )


@pytest.mark.feature("R51")
def test_a_plan_names_command_seeds_budget_and_artefacts_and_launches_nothing(cartpole: Scene, verb: Verb) -> None:
    before = digest_of(cartpole.project)
    done = verb("plan", "--dir", str(cartpole.project))
    assert done.code == 0
    for told in (
        "python -m overnight.rl.trainers.ppo on CartPole-v1",
        "The baseline is calibrated on 8 train seeds, 20 episodes each",
        "a certification looks at 6 and 12 and 20 fresh ones for each side, 100 episodes each",
        "1,000 of 1,000 runs and 8 of 8 hours are left",
        "out/metrics.jsonl, policy/ and exit.json for each run",
    ):
        assert told in done.stdout
    assert digest_of(cartpole.project) == before
    assert list(cartpole.at.runs.iterdir()) == []


@pytest.mark.feature("Z34")
def test_a_budget_in_seconds_tells_how_many_runs_fit_before_the_first_one(cartpole: Scene) -> None:
    contract = cartpole.contract()
    night: dict[str, Any] = {
        "stop_unit": "wall_seconds",
        "stop_amount": 720,
        "run_wall_seconds": 1200,
        "max_wall_hours": 8,
    }
    found = planned(contract, **night)
    assert found.runs_in_time == 66, "33 in each of two slots: 720 seconds, and room for the measurement"
    assert "The hours hold about 66 runs." in dict(page(contract, found, now="06:00"))["Budget"]
    assert found.limit == "hours" and found.seconds == pytest.approx(8 * 3600, rel=0.02)
    assert planned(contract).runs_in_time is None, "how long steps take, nobody knows before"


def test_before_the_first_run_times_and_noise_are_called_unknown(cartpole: Scene, verb: Verb) -> None:
    told = verb("plan", "--dir", str(cartpole.project)).stdout
    assert "1.06 times the noise between train seeds" in told
    assert "Unknown until the first run has ended; at the latest after 8 hours" in told


def test_an_incomplete_contract_cannot_be_planned(unsaid: Scene, verb: Verb) -> None:
    done = verb("plan", "--dir", str(unsaid.project))
    assert (done.code, "is not complete" in done.stderr) == (2, True)


@pytest.mark.parametrize(
    ("max_runs", "looks", "candidates"),
    [
        pytest.param(3, (), 1, id="search without a claim"),
        pytest.param(16, (4,), 2, id="four of the baseline, eight of a certification, four to race"),
        pytest.param(48, (5, 8), 19, id="two looks"),
        pytest.param(1000, (6, 12, 20), 200, id="the stop rule comes first"),
    ],
)
def test_what_fits_into_the_runs(cartpole: Scene, max_runs: int, looks: tuple[int, ...], candidates: int) -> None:
    found = planned(cartpole.contract(), max_runs=max_runs)
    assert (found.looks, found.candidates) == (looks, candidates)
    assert found.limit == ("runs" if max_runs < 1000 else "candidates")
    assert bool(found.nothing) is (not looks)


def test_too_few_runs_are_said_to_claim_nothing(cartpole: Scene, verb: Verb) -> None:
    cartpole.edit("max_runs: 1000", "max_runs: 15")
    told = verb("plan", "--dir", str(cartpole.project)).stdout
    assert "Tonight can claim nothing: Fewer than 16 runs fit into this study" in told
    assert "what is kept stays uncertified" in told


def test_fewer_than_four_fresh_seeds_are_said_to_claim_nothing(cartpole: Scene) -> None:
    found = planned(seeds(cartpole.contract(), confirm_train_seeds=3))
    assert found.gain is None
    assert found.nothing == "3 against 3 fresh train seeds are too few to certify any gain, however large."
    assert planned(seeds(cartpole.contract(), confirm_train_seeds=4)).nothing == ""


def test_attempts_that_are_spent_leave_nothing_to_claim(cartpole: Scene) -> None:
    spent = StudyState(attempts=1, attempts_certified=[False])
    found = planned(seeds(cartpole.contract(), confirm_train_seeds=4), spent)
    assert found.nothing == "4 against 4 fresh train seeds are too few to certify after 1 attempts."


def test_runs_that_have_ended_tell_the_time_and_the_hours_can_come_first(cartpole: Scene) -> None:
    state = StudyState(baseline="c-0001", runs={"r-0001": ended("c-0001", 0)}, wall_seconds=100.0)
    found = planned(cartpole.contract(), state, max_wall_hours=1.0)
    assert found.run_seconds == pytest.approx(121.0)
    runs_in_time = int((3600 - 50) * 2 / 121)
    assert (found.looks, found.baseline_seeds) == ((5, 8), 4)
    assert (found.limit, found.candidates) == ("hours", int((runs_in_time - 4 - 10) / 1.7))
    assert found.seconds is not None and found.seconds <= 3550


def test_the_spread_of_the_baseline_gives_the_gain_its_unit(cartpole: Scene) -> None:
    runs = {f"r-000{n + 1}": ended("c-0001", n, score=score) for n, score in enumerate((90.0, 100.0, 110.0))}
    found = planned(cartpole.contract(), StudyState(baseline="c-0001", runs=runs))
    assert (found.noise_sd, found.noise_seeds) == (10.0, 3)
    assert found.gain == pytest.approx(10.6, abs=0.3)
    told = dict(page(cartpole.contract(), found, now="Mon 07:00"))
    assert told["Smallest gain"].startswith("11 return, found with a chance of 80 %")
    assert told["Finish"].startswith("About Mon 07:00")


def test_a_baseline_that_does_not_scatter_leaves_the_smallest_gain_unknown(cartpole: Scene) -> None:
    runs = {f"r-000{n + 1}": ended("c-0001", n, score=100.0) for n in range(3)}
    found = planned(cartpole.contract(), StudyState(baseline="c-0001", runs=runs))
    told = dict(page(cartpole.contract(), found, now="Mon 07:00"))
    assert told["Smallest gain"].startswith("Unknown: the baseline scored the same on 3 seeds")


def test_on_a_ladder_the_plan_is_for_the_present_rung(cartpole: Scene) -> None:
    contract = cartpole.contract()
    rungs = tuple(Rung(amount=amount, episodes=5, candidates=3) for amount in (1000, contract.budget.stop_amount))
    on_ladder = replace(contract, budget=replace(contract.budget, ladder=rungs))
    low, high = StudyState(), StudyState()
    high.rung = 1
    high.runs["r-0001"] = replace(ended("c-0001", 1), wall_seconds=10.0)
    high.runs["r-0002"] = replace(ended("c-0001", 2), wall_seconds=100.0, rung=1)
    told = [dict(page(on_ladder, planned(on_ladder, state), now="")) for state in (low, high)]
    assert "1,000 env steps each" in told[0]["Budget"] and "100,000 env steps each" in told[1]["Budget"]
    assert told[0]["Ladder"].startswith("Rung 1 of 2 (1,000, 100,000); after 3 candidates here")
    assert told[1]["Ladder"] == "Rung 2 of 2 (1,000, 100,000); it is the last one."
    assert planned(on_ladder, high).run_seconds == pytest.approx(100 * 1.2 + 1)
    assert "Ladder" not in dict(page(contract, planned(contract), now=""))


@pytest.mark.parametrize(("hours", "slots", "seeds"), [(0.4, 2, 4), (0.4, 1, 2), (0.2, 8, 8), (1.0, 3, 6)])
def test_where_time_is_the_limit_no_slot_stands_idle_beside_the_last_seed_of_the_baseline(
    cartpole: Scene, hours: float, slots: int, seeds: int
) -> None:
    state = StudyState(baseline="c-0001", runs={f"r-{n:04}": ended("c-0001", n, score=1.0) for n in range(3)})
    contract = replace(cartpole.contract(), budget=replace(cartpole.contract().budget, max_wall_hours=hours))
    found = forecast(state, contract, run_bytes=None, side_by_side=slots)
    runs = int(hours * 3600 * slots / (100 * 1.2 + 1))
    assert found.baseline_seeds == seeds <= runs / 4


def learned(scene: Scene, early: list[float]) -> StudyState:
    """A ledger of candidates that end at 1, 2, 3 and so on, and showed these returns while they trained."""
    state, key = StudyState(), scene.contract().comparability()
    for place, value in enumerate(early, 1):
        name, out = f"r-{place:04}", scene.at.runs / f"r-{place:04}" / "out"
        state.runs[name] = replace(ended(f"c-{place:04}", 0, score=float(place)), comparability=key)
        out.mkdir(parents=True)
        rows = (f'{{"env_steps": {steps}, "episodic_return": {value}}}' for steps in range(100, 1001, 100))
        (out / "metrics.jsonl").write_text("no line of a trainer\n" + "\n".join(rows) + "\n")
    return state


@pytest.mark.parametrize(
    ("early", "tau"),
    [([1, 2, 3, 4, 5, 6], 1.0), ([6, 5, 4, 3, 2, 1], -1.0), ([2, 1, 3, 4, 5, 6], 13 / 15), ([1, 1, 1, 1, 1, 1], 0.0)],
)
def test_the_curves_of_six_candidates_tell_whether_shorter_training_ranks_alike(
    cartpole: Scene, early: list[float], tau: float
) -> None:
    state = learned(cartpole, early)
    found = curves.agreements(RealMachine(), cartpole.at, state, cartpole.contract())
    assert [one.share for one in found] == [0.25, 0.5] and all(one.candidates == 6 for one in found)
    assert all(one.tau == pytest.approx(tau) for one in found)
    assert f"an agreement of {tau:.2f} after 25 % of it" in curves.says(found)


def test_the_curves_of_five_candidates_tell_nothing(cartpole: Scene) -> None:
    state = learned(cartpole, [1, 2, 3, 4, 5])
    found = curves.agreements(RealMachine(), cartpole.at, state, cartpole.contract())
    assert found == () and curves.says(found) == ""
