"""The gallery of attacks: nothing gets in at T2 and T3, nearly everything does where a layer is missing."""

import os
import re
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from overnight.attack import changes, gallery, gaps, reach, siege
from overnight.attack.attacks import Attack, Result, Rung
from overnight.attack.changes import ChangeAttack
from overnight.attack.gallery import ATTACKS
from overnight.attack.impossible import TASKS, Impossible
from overnight.attack.trainers import TrainerAttack
from overnight.gate import admit
from overnight.sandbox.tiers import Layer
from runs import need

SOAK = bool(os.environ.get("OVERNIGHT_SOAK"))
HELD: tuple[Rung, ...] = ("T2", "T3")
ALL: tuple[Rung, ...] = ("T0", "T1", "T2", "T3")


def left_over() -> set[str]:
    """Files that attacks drop, wherever they might."""
    places = (Path(tempfile.gettempdir()), Path("/dev/shm"), Path(sys.prefix))
    dropped = re.compile(r"(overnight|note)-[0-9a-f]{16}")
    return {str(path) for place in places for path in place.iterdir() if dropped.fullmatch(path.name)}


@pytest.fixture(scope="module", autouse=True)
def _nothing_is_left() -> Iterator[None]:
    """Whatever the attacks do, the gallery itself leaves nothing on this machine."""
    before = left_over()
    yield
    assert left_over() <= before


def needed(rung: Rung) -> None:
    if rung != "T0":
        need(rung)


def is_quick(attack: Attack, rung: Rung) -> bool:
    """What is tried in every test run. At T3, what does not depend on the tier and what plays on time is left out."""
    depends = not isinstance(attack, ChangeAttack) and not (isinstance(attack, TrainerAttack) and attack.slow)
    return SOAK or rung == "T2" or depends


@cache
def results(rung: Rung) -> dict[str, Result]:
    """What came of the gallery at one tier; it is run once."""
    wanted = [one.id for one in ATTACKS if is_quick(one, rung)]
    return {result.attack.id: result for result in gallery.run(rung, only=wanted)}


def got_in(results_of: dict[str, Result]) -> dict[str, str]:
    return {name: result.evidence for name, result in results_of.items() if result.got_in}


# The gallery


def test_there_are_at_least_sixty_attacks_each_with_its_own_name_and_every_family_has_some() -> None:
    assert len({one.id for one in ATTACKS}) == len(ATTACKS) >= 60
    assert len({one.family for one in ATTACKS}) == 7
    assert not [one.id for one in ATTACKS if not (one.tries and one.stopped_by)]


@pytest.mark.timeout(900)
@pytest.mark.parametrize("rung", HELD)
def test_no_attack_gets_in(rung: Rung) -> None:
    needed(rung)
    found = results(rung)
    assert got_in(found) == {}
    tried = {one.id for one in ATTACKS if is_quick(one, rung) and gallery.is_possible(one, rung)}
    assert found.keys() == tried


@pytest.mark.timeout(900)
def test_every_attack_that_a_naive_evaluator_can_suffer_gets_in_there_so_the_gallery_can_fail() -> None:
    found = results("T0")
    stopped = {name for name, result in found.items() if not result.got_in}
    assert stopped == set()
    assert len(found) >= 60


@pytest.mark.skipif(not SOAK, reason="OVERNIGHT_SOAK=1 tries T1 as well")
@pytest.mark.timeout(900)
def test_at_t1_scores_and_verdicts_are_safe_and_the_host_is_not() -> None:
    found = {one.attack.seen for one in results("T1").values() if one.got_in}
    assert not found & {"a verdict is bought", "a parser is fooled", "a change gets past the gate"}
    raised = {name for name, one in results("T1").items() if one.got_in and one.attack.seen == "the score is raised"}
    assert raised == {"remember-the-last-time"}, "which needs a place to write"
    assert {"a host file is read", "a host file is changed", "a process is harmed"} <= found


# Planted weaknesses

AS_A_USER: frozenset[Layer] = frozenset({"user"})
"""Where the engine is root, candidates are another user, which stops much of it once more; elsewhere they are not."""


def alone(rung: Rung, layer: Layer) -> list[Attack]:
    found = [one for one in ATTACKS if one.alone.get(rung) == layer and gallery.is_possible(one, rung)]
    assert found
    return found


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("rung", "layer"), [("T1", "capabilities"), ("T2", "landlock"), ("T2", "seccomp"), ("T3", "namespaces")]
)
def test_without_the_one_layer_that_stops_it_an_attack_gets_in(rung: Rung, layer: Layer) -> None:
    needed(rung)
    attacks = [one.id for one in alone(rung, layer)]
    stopped = [one.attack.id for one in gallery.run(rung, AS_A_USER | {layer}, only=attacks) if not one.got_in]
    assert stopped == []


SEVERAL = tuple(
    one for one in reach.ATTACKS if not one.alone and one.id not in ("poison-the-cache", "read-its-environment")
)
"""What more than one layer stops."""


@pytest.mark.timeout(600)
def test_what_several_layers_stop_gets_in_when_all_of_them_are_left_out() -> None:
    need("T2")
    layers: frozenset[Layer] = frozenset({"capabilities", "user", "landlock", "seccomp"})
    stopped = {one.attack.id for one in siege.try_reach(SEVERAL, "T2", layers) if not one.got_in}
    assert stopped == {"queue-of-messages"}, "of which there may be none at all, by a limit"


RULES = {one.rule for one in changes.ATTACKS if one.rule}


@pytest.mark.timeout(300)
def test_a_change_that_one_rule_refuses_gets_past_the_gate_without_that_rule(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = admit.RULES
    with changes.study_in(tmp_path) as project:
        for rule in sorted(RULES):
            module = f"overnight.gate.rules.{rule.replace('-', '_')}"
            monkeypatch.setattr(admit, "RULES", tuple(one for one in whole if one.__module__ != module))
            assert len(admit.RULES) == len(whole) - 1
            let_in = [one.id for one in changes.ATTACKS if one.rule == rule and not project.ask(one)]
            assert let_in == [one.id for one in changes.ATTACKS if one.rule == rule]


# What nobody can pass, and what everybody earns


@pytest.mark.timeout(300)
@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.id)
def test_a_contract_that_nobody_can_pass_is_passed_by_a_cheat_at_t0_and_at_no_tier(task: Impossible) -> None:
    assert gallery.passed(task, "T0"), "the cheat works where it can"
    for rung in HELD:
        needed(rung)
        assert gallery.passed(task, rung) == ""


@pytest.mark.timeout(300)
def test_honest_policies_earn_the_same_in_every_episode_at_every_tier() -> None:
    for rung in ALL:
        needed(rung)
    found = [gallery.honest(rung) for rung in ALL]
    assert len(found[0]["code"]) == len(found[0]["weights"]) == 20
    assert len(set(found[0]["code"])) > 10, "the episodes differ, so that equal returns prove something"
    assert all(one == found[0] for one in found)


# What is not stopped


@pytest.mark.timeout(300)
@pytest.mark.parametrize("rung", HELD)
def test_what_the_page_says_is_not_stopped_is_not_stopped_there(rung: Rung) -> None:
    needed(rung)
    reaching = tuple(gap.attack for gap in gaps.GAPS)
    found = {one.attack.id for one in siege.try_reach(reaching, rung, AS_A_USER) if one.got_in}
    assert found == {gap.attack.id for gap in gaps.GAPS if rung in gap.at}
