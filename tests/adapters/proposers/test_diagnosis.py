"""What the tip's own training says is wrong becomes an idea, once for each tip, and never more than a hint."""

import json
from collections.abc import Mapping
from dataclasses import replace

import pytest

from overnight.adapters.proposers.diagnosis import LEAST_UPDATES, findings, shortened
from overnight.adapters.proposers.search import SearchProposer
from overnight.contract import trainers
from overnight.propose.diagnostics import diagnostics
from overnight.records.limits import Scalar
from overnight.records.proposal import Proposal, Tried, View
from overnight.records.space import StartingPoint

PPO = trainers.space("ppo")
WELL = {"updates": 100.0, "approx_kl": 0.01, "explained_variance": 0.9, "episodic_length": 100.0}
MENDED: dict[str, Scalar] = {"normalize_observations": True}


def view(told: Mapping[str, float], **params: Scalar) -> View:
    return View(
        task="any",
        study="first",
        program="",
        surface=("params.json",),
        keys=(),
        space=PPO,
        params={**PPO.defaults(), **MENDED, **params},
        tried=(),
        runs_left=100,
        candidates_left=100,
        seed=7,
        diagnostics=told,
    )


@pytest.mark.parametrize(
    ("told", "params", "key", "value"),
    [
        ({"updates": 4.0}, {"rollout_steps": 512}, "rollout_steps", 64),
        ({"updates": 16.0}, {"rollout_steps": 512}, "rollout_steps", 256),
        ({"approx_kl": 0.0001}, {}, "learning_rate", 0.0025),
        ({"approx_kl": 0.0025}, {}, "learning_rate", 0.0005),
        ({"approx_kl": 0.25}, {"learning_rate": 0.01}, "learning_rate", 0.002),
        ({"episodic_length": 200.0}, {"gamma": 0.9}, "gamma", 0.99),
        ({"episodic_length": 25.0}, {"gamma": 0.9}, "gamma", 0.99),
        ({"episodic_length": 1600.0}, {"gamma": 0.99}, "gamma", 0.995),
        ({"explained_variance": 0.02}, {}, "normalize_rewards", True),
        ({}, {"normalize_observations": False}, "normalize_observations", True),
        ({"forgotten": 0.3, "env_steps": 50_000.0}, {}, "rehearsal_episodes", 8),
    ],
)
def test_each_sign_calls_for_one_change(
    told: dict[str, float], params: dict[str, Scalar], key: str, value: Scalar
) -> None:
    assert [(one.key, one.value) for one in findings(view({**WELL, **told}, **params))] == [(key, value)]


@pytest.mark.parametrize(
    "seen",
    [
        view(WELL),
        view({}),
        view({"updates": 3.0}, rollout_steps=16),
        view({**WELL, "approx_kl": 0.0001}, target_kl=0.02),
        view({**WELL, "forgotten": 0.3, "env_steps": 30_000.0}),
        view({**WELL, "forgotten": 0.1, "env_steps": 50_000.0}),
        view({**WELL, "forgotten": 0.3, "env_steps": 50_000.0}, rehearsal_episodes=4),
        view({**WELL, "approx_kl": 0.0001}, learning_rate=0.03),
        replace(view({**WELL, "approx_kl": 0.0001}), keys=("gamma",)),
        replace(view(WELL), space=None),
    ],
    ids=["well", "silent", "shortest", "steered", "dear", "hardly", "rehearsed", "at the end", "closed", "undeclared"],
)
def test_nothing_is_called_for_where_nothing_is_wrong_or_may_change(seen: View) -> None:
    assert not [one for one in findings(seen) if one.value != seen.params[one.key]]


def ask(seen: View, *, diagnoses: bool = True) -> Proposal:
    found = SearchProposer(diagnoses=diagnoses).ask(seen)
    assert isinstance(found, Proposal)
    return found


def tell(seen: View, proposal: Proposal) -> View:
    one = Tried(
        candidate=f"c-{len(seen.tried) + 2:04d}",
        proposal=proposal,
        params={**seen.params, **proposal.params},
        outcome="rejected",
        gain=-1.0,
    )
    return replace(seen, tried=(*seen.tried, one))


ILL = {**WELL, "approx_kl": 0.0001, "explained_variance": 0.02}


def test_everything_is_mended_at_once_and_then_each_thing_alone_and_then_nothing_of_it_again() -> None:
    seen, changed = view(ILL), []
    for number in range(4):
        proposal = ask(replace(seen, diagnostics={**ILL, "approx_kl": 0.0001 * (1 + number / 50)}))
        changed.append(set(proposal.params))
        seen = tell(seen, proposal)
    assert changed[:3] == [{"learning_rate", "normalize_rewards"}, {"learning_rate"}, {"normalize_rewards"}]
    assert "drawn" in seen.tried[3].proposal.hypothesis
    assert "an update hardly moves the policy" in seen.tried[0].proposal.hypothesis


def test_a_mending_that_was_refuted_alone_is_not_called_for_again_on_the_next_tip() -> None:
    seen = view(ILL)
    for _ in range(3):
        seen = tell(seen, ask(seen))
    moved = {**seen.params, "gae_lambda": 0.9}
    again = ask(replace(seen, params=moved))
    assert "drawn" in again.hypothesis, "both were tried alone and did worse"
    other = ask(replace(seen, params=moved, diagnostics={**ILL, "approx_kl": 0.001}))
    assert set(other.params) == {"learning_rate"}, "another step size than the refuted one is another idea"


def test_a_change_that_runs_could_not_tell_from_a_refuted_one_is_not_called_for_either() -> None:
    seen = view({**WELL, "episodic_length": 577.0})
    seen = tell(seen, ask(seen))
    assert set(seen.tried[0].proposal.params) == {"gamma"}
    longer = replace(seen, params={**seen.params, "gae_lambda": 0.9}, diagnostics={**WELL, "episodic_length": 645.0})
    assert "drawn" in ask(longer).hypothesis, "a discount of 0.9942 did worse, so 0.9948 is not tried"


def test_what_is_known_for_this_environment_comes_before_a_diagnosis_and_what_is_known_for_others_after_it() -> None:
    near, far = (
        StartingPoint(called=name, family="made up", source="Made up.", params={"gamma": gamma}, near=is_near)
        for name, gamma, is_near in (("Near", 0.95, True), ("Far", 0.97, False))
    )
    seen, said = replace(view(ILL), starting=(near, far)), []
    for _ in range(5):
        proposal = ask(seen)
        said.append(proposal.hypothesis)
        seen = tell(seen, proposal)
    assert ["Near" in said[0], "hardly moves" in said[1], "Far" in said[4]] == [True, True, True]


def test_a_known_setting_of_long_rollouts_is_shortened_where_few_would_fit() -> None:
    """16 updates of 512 steps are a budget of 8,192: 64 environments get 16 steps each."""
    point = StartingPoint(
        called="Fast", family="made up", source="Made up.", params={"num_envs": 64, "rollout_steps": 128}, near=True
    )
    proposal = ask(replace(view({**WELL, "updates": 16.0}), starting=(point,)))
    assert dict(proposal.params) == {"num_envs": 64, "rollout_steps": 16}


def test_search_without_diagnoses_reads_none() -> None:
    assert ask(view(ILL), diagnoses=False) == ask(view({}), diagnoses=False)


@pytest.mark.parametrize("envs", [4, 64, 256])
def test_a_drawn_rollout_leaves_room_for_updates(envs: int) -> None:
    """32 updates of 512 steps are a budget of 16,384."""
    changes = shortened(view({**WELL, "updates": 32.0}), {"num_envs": envs, "rollout_steps": 4096})
    steps = changes["rollout_steps"]
    assert isinstance(steps, int)
    assert steps == 16 or envs * steps * LEAST_UPDATES <= 16_384
    assert shortened(view({}), {"rollout_steps": 4096}) == {"rollout_steps": 4096}


def test_diagnostics_are_the_middle_of_each_run_averaged_and_rounded() -> None:
    one = b"".join(b'{"env_steps": %d, "approx_kl": %d, "note": "x"}\n' % (n, n) for n in range(8))
    other = b'{"approx_kl": 10.0, "entropy": null}\nnot json\n[1]\n{"approx_kl": NaN}\n'
    assert diagnostics([one, other, b""]) == {"approx_kl": 6.75, "env_steps": 3.5, "updates": 4.5}


def test_a_return_that_is_lost_again_at_the_end_is_told_as_a_share_of_what_was_gained() -> None:
    """From 0 to 100 and back to 60, in ten parts of three reports; what was rehearsed is no report."""
    curve = [0, 20, 40, 60, 80, 100, 90, 80, 70, 60]
    lines: list[dict[str, float]] = [{"env_steps": i, "episodic_return": curve[i // 3]} for i in range(30)]
    lines.insert(7, {"env_steps": 7, "rehearsal_return": 500.0, "rehearsal_steps": 16})
    found = diagnostics(["\n".join(map(json.dumps, lines)).encode()])
    assert (found["forgotten"], found["updates"]) == (0.4, 30) and "rehearsal_return" not in found
    risen = "\n".join(json.dumps({"episodic_return": i}) for i in range(30)).encode()
    assert diagnostics([risen])["forgotten"] == 0
    assert "forgotten" not in diagnostics([b'{"episodic_return": 1}'])
