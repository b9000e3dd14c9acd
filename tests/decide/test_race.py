"""The race decides the same from the same measurements, and asks for no run that it does not need."""

from time import process_time

import pytest

from overnight.decide.belief import Level
from overnight.decide.events import Attempted, Entered, Event, Left, Moved, Ran, Settled, Want
from overnight.decide.plan import StudyPlan, plan_study
from overnight.decide.race import Race, race
from overnight.decide.screened import RaceRule
from overnight.records.decision import LoopDecision, Verdict
from overnight.records.metric import Direction, Guardrail, MetricSpec
from overnight.simulate.families import FAMILIES
from overnight.simulate.lab import Lab, stream

BASELINE = (210.0, 196.0, 228.0, 206.0, 218.0, 214.0, 202.0, 222.0)
RULE = RaceRule(idea_cost=1.0)


def metric(direction: Direction = Direction.HIGHER) -> MetricSpec:
    return MetricSpec(
        name="episode_return",
        unit="return",
        direction=direction,
        source="episode_return",
        lowest=None,
        highest=None,
        least_gain=0.0,
        guardrails=(Guardrail(name="worst", direction=Direction.HIGHER, margin=5.0),),
        rollback_drop=0.0,
    )


def started(rule: RaceRule = RULE) -> Race:
    return race(rule, "c-0001", [Ran("c-0001", number, score) for number, score in enumerate(BASELINE)])


def told(found: Race, *scores: float | None) -> Race:
    """Give the candidate in focus these scores, and the tip its mean wherever it is asked again."""
    left = list(scores)
    while left and (wants := found.wants()):
        want = wants[0]
        found.tell(Ran(want.candidate, want.number, left.pop(0) if want.candidate == found.racing else 212.0))
    return found


def test_the_baseline_is_measured_first() -> None:
    assert race(RULE, "c-0001", []).wants() == tuple(Want("c-0001", number) for number in range(8))


def test_a_candidate_that_is_behind_costs_one_run() -> None:
    found = started()
    found.tell(Entered("c-0002"))
    assert found.wants() == (Want("c-0002", 0),)
    told(found, 190.0)
    (one,) = found.verdicts
    assert (one.verdict, one.seeds, found.racing, found.tip.candidate) == (Verdict.REJECT, 1, None, "c-0001")
    assert one.because(metric()) == (
        "c-0002 was stopped after 1 tuning seed: −22 return against the tip's 212, "
        "and less than +2 is not worth another run."
    )


def test_a_candidate_that_leads_is_checked_on_fresh_seeds_and_joins() -> None:
    found = started()
    found.tell(Entered("c-0002"))
    told(found, 260.0, 255.0)
    assert found.wants() == tuple(Want("c-0002", number) for number in (8, 9, 10))
    told(found, 250.0, 262.0, 251.0)
    (one,) = found.verdicts
    assert (one.verdict, one.undone, found.tip.candidate) == (Verdict.KEEP, False, "c-0002")
    assert one.numbers == (0, 1, 8, 9, 10)
    assert "3 fresh seeds (mean 254) agreed" in one.because(metric())


def test_a_lucky_lead_is_undone_on_fresh_seeds() -> None:
    found = started()
    found.tell(Entered("c-0002"))
    told(found, 240.0, 238.0, 190.0, 185.0, 192.0)
    (one,) = found.verdicts
    assert (one.verdict, one.undone, found.tip.candidate) == (Verdict.REJECT, True, "c-0001")
    decision = one.decision(metric(), RULE, evidence=("r-0001",))
    assert (decision.verdict, decision.loop) == (Verdict.REJECT, LoopDecision.ROLLBACK)
    assert decision.because.endswith("so it was undone.")


def test_a_fresh_seed_far_below_the_tip_undoes_a_lead_although_far_out_scores_are_pulled_in() -> None:
    rule = RaceRule(idea_cost=1.0, baseline_seeds=4, fresh_seeds=1, prior_spread=1.0)
    scores = (221.0, 213.0, 267.0, 196.0)
    found = race(rule, "c-0001", [Ran("c-0001", number, score) for number, score in enumerate(scores)])
    found.tell(Entered("c-0002"))
    told(found, 291.0, 236.0, 69.0)
    (one,) = found.verdicts
    assert (one.verdict, one.undone, found.tip.candidate) == (Verdict.REJECT, True, "c-0001")


def test_a_candidate_that_crashes_where_the_tip_does_not_is_rejected() -> None:
    found = started()
    found.tell(Entered("c-0002"))
    told(found, 280.0, None)
    (one,) = found.verdicts
    assert one.verdict is Verdict.REJECT
    assert one.because(metric()).startswith("c-0002 lost 1 of 2 tuning seeds by its own fault where the tip lost 0")


@pytest.mark.feature("Z31")
def test_a_simplification_inside_the_noise_may_join() -> None:
    found = started()
    found.tell(Entered("c-0002", simpler=True))
    told(found, 210.0, 213.0, 211.0, 212.0, 210.0, 214.0)
    assert [(one.verdict, one.simpler) for one in found.verdicts] == [(Verdict.KEEP, True)]
    plain = started()
    plain.tell(Entered("c-0002"))
    while plain.racing is not None:
        for want in plain.wants():
            plain.tell(Ran(want.candidate, want.number, 211.0))
    assert plain.verdicts[0].verdict is Verdict.REJECT, "the same inside the noise, without being simpler, is not kept"


def test_lower_is_better_is_told_in_the_metrics_own_direction() -> None:
    found = race(RULE, "c-0001", [Ran("c-0001", number, -score) for number, score in enumerate(BASELINE)])
    found.tell(Entered("c-0002"))
    told(found, -240.0)
    assert "against the tip's 212" in found.verdicts[0].because(metric(Direction.LOWER))


def test_one_run_of_the_baseline_lets_only_a_candidate_ahead_on_two_seeds_join() -> None:
    rule = RaceRule(baseline_seeds=1, fresh_seeds=0, watches_tip=False)
    found = race(rule, "c-0001", [Ran("c-0001", 0, 10.0), Entered("c-0002")])
    told(found, 12.0, 11.0)
    assert found.verdicts[0].verdict is Verdict.KEEP


def test_a_race_cut_short_is_inconclusive_and_leaves_the_tip_alone() -> None:
    found = started()
    found.tell(Entered("c-0002"))
    told(found, 260.0, 255.0, 250.0)
    one = found.cut_short()
    assert one is not None
    assert (one.verdict, found.tip.candidate, found.wants()) == (Verdict.INCONCLUSIVE, "c-0001", ())
    assert "was left there" in one.because(metric())


def test_a_refuted_tip_gives_way_to_the_incumbent() -> None:
    found = started()
    found.tell(Entered("c-0002"))
    told(found, 260.0, 255.0, 250.0, 262.0, 251.0)
    found.tell(Attempted(Verdict.REFUTED, (200.0,) * 6))
    assert found.tip.candidate == "c-0001"


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_a_race_folded_anew_at_any_moment_wants_the_same_and_has_decided_the_same(family: str) -> None:
    events = _events(family, candidates=40)
    whole = Race(RULE, "0")
    for place, event in enumerate(events):
        if place % 17 == 0:
            again = race(RULE, "0", events[:place])
            assert (again.wants(), again.verdicts, again.tip.candidate) == (
                whole.wants(),
                whole.verdicts,
                whole.tip.candidate,
            )
        whole.tell(event)


def test_runs_that_come_in_another_order_decide_the_same() -> None:
    found = race(RULE, "c-0001", [Ran("c-0001", number, BASELINE[number]) for number in reversed(range(8))])
    assert found.tip.level == started().tip.level


def test_a_decision_after_a_thousand_candidates_takes_less_than_50_milliseconds() -> None:
    events = _events("gaussian", candidates=1000)
    best = min(_seconds(events) for _ in range(3))
    assert best < 0.05, f"{1000 * best:.0f} ms for {len(events)} events"


def _seconds(events: list[Event]) -> float:
    began = process_time()
    race(RULE, "0", events).wants()
    return process_time() - began


def _events(family: str, *, candidates: int) -> list[Event]:
    lab, found, events = Lab(FAMILIES[family], 7, 0.2, 1e9), Race(RULE, "0"), list[Event]()
    arms = {"0": lab.root()}

    def tell(event: Event) -> None:
        events.append(event)
        found.tell(event)

    def run() -> None:
        while wants := found.wants():
            for want in wants:
                tell(Ran(want.candidate, want.number, lab.run(arms[want.candidate], 0, want.number)))

    run()
    for number, idea in enumerate(stream("mixed", candidates, 7), start=1):
        arms[str(number)] = lab.child(number, arms[found.tip.candidate], idea)
        tell(Entered(str(number)))
        run()
    return events


# Candidates that wait in the line


def lined_up(*names: str) -> Race:
    """A race that some candidates have entered, one behind the other."""
    found = started()
    for name in names:
        found.tell(Entered(name))
    return found


def test_a_candidate_in_the_line_is_looked_at_when_the_one_before_it_is_on_record() -> None:
    found = lined_up("c-0002", "c-0003")
    found.tell(Ran("c-0003", 0, 180.0))
    assert (found.racing, found.verdicts) == ("c-0002", []), "what has run for it selects nothing yet"
    told(found, 190.0)
    assert [one.candidate for one in found.verdicts] == ["c-0002"]
    found.tell(Moved("c-0001", "c-0001"))
    assert [one.candidate for one in found.verdicts] == ["c-0002"], "the first verdict is not on record yet"
    found.tell(Settled())
    assert [(one.candidate, one.verdict, one.seeds) for one in found.verdicts] == [
        ("c-0002", Verdict.REJECT, 1),
        ("c-0003", Verdict.REJECT, 1),
    ]


def joined(*names: str) -> Race:
    """A race in which the first candidate has joined the tip before the others had their turn."""
    found = lined_up("c-0002", *names)
    told(found, 260.0, 255.0, 250.0, 262.0, 251.0)
    assert found.tip.candidate == "c-0002"
    found.tell(Moved("c-0002", "c-0001"))
    return found


def test_a_candidate_that_the_tip_overtook_is_rejected_where_it_was_behind_and_undecided_where_it_was_ahead() -> None:
    found = joined("c-0003", "c-0004")
    found.tell(Ran("c-0003", 0, 190.0))
    found.tell(Ran("c-0004", 0, 290.0))
    for _ in range(2):
        found.tell(Settled())
    behind, ahead = found.verdicts[1:]
    assert (behind.verdict, ahead.verdict) == (Verdict.REJECT, Verdict.INCONCLUSIVE)
    assert behind.numbers == ahead.numbers == (0,), "both ran on the seeds of the tip that they were built on"
    assert ahead.because(metric()) == (
        "c-0004 was at +78 return against the tip's 212 after 1 tuning seed when another candidate joined the tip "
        "before it."
    )
    assert (found.tip.candidate, found.racing, found.wants()) == ("c-0002", None, ())


def test_a_candidate_that_the_tip_overtook_waits_for_no_more_than_the_run_that_it_has_begun() -> None:
    found = joined("c-0003")
    found.tell(Settled())
    assert found.wants() == (Want("c-0003", 0),)
    assert found.likely(3) == ()


def test_a_lead_that_is_undone_leaves_the_line_where_it_was() -> None:
    found = lined_up("c-0002", "c-0003")
    told(found, 240.0, 238.0, 190.0, 185.0, 192.0)
    assert found.verdicts[0].undone
    found.tell(Moved("c-0001", "c-0001"))
    found.tell(Settled())
    told(found, 260.0, 255.0, 250.0, 262.0, 251.0)
    assert (found.verdicts[1].verdict, found.tip.candidate) == (Verdict.KEEP, "c-0003")


def test_a_candidate_that_left_the_line_is_passed_over() -> None:
    found = lined_up("c-0002", "c-0003", "c-0004")
    found.tell(Left("c-0003"))
    assert found.racing == "c-0002"
    told(found, 190.0)
    found.tell(Settled())
    assert found.racing == "c-0004"


def test_a_second_seed_is_expected_until_most_candidates_did_not_need_one() -> None:
    found = started()
    expected = []
    for name in ("c-0002", "c-0003", "c-0004"):
        found.tell(Entered(name))
        expected.append(found.expects_a_second_seed())
        told(found, 190.0)
    assert expected == [True, False, False]


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_a_race_with_a_line_folded_anew_at_any_moment_is_the_same(family: str) -> None:
    events = _with_a_line(family, candidates=60)
    assert sum(isinstance(event, Entered) for event in events) == 60
    whole = Race(RULE, "0")
    for place, event in enumerate(events):
        if place % 13 == 0:
            again = race(RULE, "0", events[:place])
            assert (again.wants(), again.verdicts, again.racing) == (whole.wants(), whole.verdicts, whole.racing)
        whole.tell(event)
    assert any(one.overtaken for one in whole.verdicts), "some were overtaken, or this shows little"
    assert [one.candidate for one in whole.verdicts] == [str(number) for number in range(1, 61)]


def _with_a_line(family: str, *, candidates: int) -> list[Event]:
    """A race in which up to three candidates run at a time, as an engine with as many slots tells it."""
    lab, found, events = Lab(FAMILIES[family], 7, 0.2, 1e9), Race(RULE, "0"), list[Event]()
    arms, tip, waiting, decided = {"0": lab.root()}, "0", list[tuple[str, int]](), 0

    def tell(event: Event) -> None:
        events.append(event)
        found.tell(event)

    def run(name: str, number: int) -> None:
        tell(Ran(name, number, lab.run(arms[name], 0, number)))

    while found.wants():
        for want in found.wants():
            run(want.candidate, want.number)
    for number, idea in enumerate(stream("mixed", candidates, 7), start=1):
        arms[str(number)] = lab.child(number, arms[tip], idea)
        waiting.append((str(number), found.tip.base))
        tell(Entered(str(number)))
        while len(waiting) == 3 or (number == candidates and waiting):
            if found.racing != waiting[-1][0] and waiting[-1][1] >= 0:
                run(*waiting[-1])  # the last in the line has its first seed before its turn
                waiting[-1] = (waiting[-1][0], -1)
            for want in found.wants():
                run(want.candidate, want.number)
            while len(found.verdicts) > decided:
                decided += 1
                waiting.pop(0)
                tip = found.tip.candidate if found.leading is None else tip
                tell(Moved(tip, "0"))
                tell(Settled())
    return events


# When an attempt is made


def _led(runs: int, lead: float) -> tuple[StudyPlan, Race]:
    """A race whose tip leads the baseline by so many noises."""
    plan = plan_study(runs)
    found = Race(plan.rule, "0")
    for number in range(plan.rule.baseline_seeds):
        found.tell(Ran("0", number, float(number % 2)))
    found.tell(Entered("1"))
    while found.racing is not None:
        for want in found.wants():
            found.tell(
                Ran(want.candidate, want.number, float(want.number % 2) + (lead if want.candidate == "1" else 0))
            )
    return plan, found


def test_a_study_of_few_runs_keeps_its_attempt_for_the_end_and_one_of_many_does_not_wait() -> None:
    plan, few = _led(40, 10.0)
    assert plan.should_certify(few, ())
    assert not plan.is_time(few, (), 30)
    assert plan.is_time(few, (), 15)
    plan, many = _led(400, 10.0)
    assert plan.is_time(many, (), 380)


def test_a_tip_that_was_seen_to_scatter_less_is_tried_at_a_smaller_lead() -> None:
    plan = plan_study(24)

    def led(*scores: float) -> Race:
        found = race(plan.rule, "0", [Ran("0", 0, 230.0), Ran("0", 1, 40.0), Ran("0", 2, -100.0), Entered("1")])
        pending = list(scores)
        while found.racing is not None:
            for want in found.wants():
                found.tell(Ran(want.candidate, want.number, pending.pop(0) if want.candidate == "1" else 57.0))
        assert found.tip.candidate == "1"
        return found

    steady, scattered = led(313.0, 312.0, 314.0), led(463.0, 163.0, 313.0)
    assert steady.lead() == pytest.approx(scattered.lead(), rel=0.05)
    bar = next(power / 100 for power in range(99, 0, -1) if scattered.is_worth_certifying(0.0375, 4, power=power / 100))
    assert steady.is_worth_certifying(0.0375, 4, power=bar + 0.05)
    assert not scattered.is_worth_certifying(0.0375, 4, power=bar + 0.05)


def test_a_racing_candidate_is_in_the_way_only_where_a_tip_is_worth_the_runs_that_it_wants() -> None:
    plan, found = _led(40, 10.0)
    assert plan.looks is not None
    reserve = plan.looks.runs()
    assert not plan.is_in_the_way(found, (), 0, 1), "nothing races"
    found.tell(Entered("2"))
    assert plan.is_in_the_way(found, (), reserve, 1) and not plan.is_in_the_way(found, (), reserve + 1, 1)
    first = Race(plan.rule, "0")
    for number in range(plan.rule.baseline_seeds):
        first.tell(Ran("0", number, float(number % 2)))
    first.tell(Entered("1"))
    assert not plan.is_in_the_way(first, (), 1, 1), "there is no tip to certify, so the race goes on to the last run"


def test_one_lucky_seed_is_pulled_in_and_an_arm_that_moved_as_a_whole_is_not() -> None:
    noise = started().noise
    assert noise.highest < 100
    assert noise.shifted([211.0, 1000.0], 211.0) == [0.0, noise.highest]
    assert noise.shifted([1011.0, 1012.0], 211.0) == [800.0, 801.0]
    assert noise.shifted([1011.0, None], 211.0)[1] == noise.lowest, "a lost seed is as low as ever"


def test_a_gain_that_the_prior_could_not_foresee_is_hardly_drawn_towards_it() -> None:
    level, prior = Level(0.0, 0.25), (-0.5, 0.5)
    assert level.shrunk(1.0, 2, 1.0, prior).mean < 0.5
    assert level.shrunk(100.0, 2, 1.0, prior).mean > 99
