"""One sample of every stored record, and what each record refuses."""

from typing import Any

import pytest

from overnight.contract.draft import EnvFacts, Ground, Stated, for_env
from overnight.contract.read import read
from overnight.errors import UserError
from overnight.records.ablation import Ablation
from overnight.records.agent import Answered, Asked, Errand, Returned
from overnight.records.approval import Approval, LoopEntry, Permit
from overnight.records.audit import ResultAudit
from overnight.records.calibration import Calibration
from overnight.records.candidate import Candidate
from overnight.records.codec import Versioned, decode, dumps, encode, loads
from overnight.records.contract import Contract, ContractLock
from overnight.records.curriculum import CurriculumCandidate
from overnight.records.decision import Decision, Turn
from overnight.records.entry import PAYLOADS, Created, Entry, Kind, Note, Validation
from overnight.records.evidence import Evidence, Verification
from overnight.records.handed import Handed, Heard
from overnight.records.job import Exit, Job
from overnight.records.ladder import Promoted
from overnight.records.metric import MetricSpec
from overnight.records.order import RunOrder
from overnight.records.probe import RandomizationProbe
from overnight.records.proposal import Proposal, View
from overnight.records.queue import QueueManifest
from overnight.records.reflection import RewardReflection
from overnight.records.refusal import Refusal
from overnight.records.run import Run, RunEnd
from overnight.records.schedule import LookSchedule
from overnight.records.sitting import HandedOff, StoodStill
from overnight.records.space import Space
from overnight.records.transfer import Transfer
from overnight.study.fold import apply
from overnight.study.state import StudyState
from overnight.study.stored import STORED

Plain = dict[str, Any]
OBJECT, DIGEST = "a" * 40, "d" * 64


def draft() -> str:
    """A contract as `overnight init CartPole-v1` drafts it: complete, so that it can be approved as it is."""
    return for_env(
        Stated(env="CartPole-v1"),
        EnvFacts(max_episode_steps=500),
        Ground("cartpole", OBJECT),
        keys=("learning_rate",),
        trainer={"command": ["python", "-m", "overnight.rl.trainers.ppo"], "source": "The defaults of CleanRL."},
    )


def _contract() -> Plain:
    contract = read(draft(), where="contract.yaml").contract()
    assert contract is not None
    found: Plain = encode(contract)
    return found


def _state(created: Plain, candidate: Plain) -> Plain:
    state = StudyState()
    apply(state, {"kind": "created", "actor": "engine", "data": created})
    apply(state, {"kind": "drafted", "actor": "person", "data": candidate})
    found: Plain = encode(state)
    return found


PROPOSAL: Plain = {
    "proposer": "human",
    "kind": "hyperparameter",
    "hypothesis": "The default step size is too small.",
    "predicted_effect": "The score rises by about ten.",
    "params": {"learning_rate": 0.001},
    "bundle": [],
    "parents": ["c-0001"],
    "operator": None,
}
CREATED: Plain = {"task": "cartpole", "study": "first", "commit": OBJECT, "tree": OBJECT, "version": "0.1.0"}
CANDIDATE: Plain = {
    "id": "c-0001",
    "proposal": PROPOSAL,
    "base": OBJECT,
    "commit": "b" * 40,
    "tree": "c" * 64,
    "changed_paths": 1,
    "changes": DIGEST,
    "contract": DIGEST,
}
CONTRACT = _contract()
PROBE: Plain = {
    "nominal": {"mass": 1.0, "friction": 0.5},
    "points": [{"name": "heavier", "values": {"mass": 2.0, "friction": 0.5}}],
}
CURRICULUM: Plain = {
    "candidate": "c-0001",
    "mode": "schedule",
    "learnability": "The easiest level is solved in ten episodes.",
    "difficulty_bridge": "Each level starts where the last one fails.",
    "diversity": ["Slopes are drawn anew in every episode."],
    "held_out": DIGEST,
    "rollback_rule": "Undo when the held-out score falls.",
}
DECISION: Plain = {
    "candidate": "c-0001",
    "verdict": "certified",
    "because": "Gain lies in [1.0, 3.0] over 6 paired seeds; the bar is 0.",
    "loop": "continue",
    "rule": "The whole interval lies above 0.",
    "gain": 2.0,
    "gain_low": 1.0,
    "gain_high": 3.0,
    "guardrails": [{"name": "worst_decile_return", "worse_by": -0.5, "margin": 0.0}],
    "evidence": ["r-0001"],
    "audit": "a-0001",
}
AUDIT: Plain = {
    "candidate": "c-0001",
    "claimed_gain": 2.0,
    "recomputed_gain": 2.0,
    "verdict": "passed",
    "because": "The evidence gives the same gain.",
    "evidence_paths": ["runs/r-0001/episodes.json"],
}
QUEUE: Plain = {
    "jobs": [
        {
            "candidate": "c-0002",
            "phase": "smoke",
            "train_seed": 7,
            "device": "cpu",
            "expects": "A policy that can be loaded.",
            "promote_when": "It ends without an error.",
            "after": ["c-0001"],
        }
    ]
}
REFLECTION: Plain = {
    "run": "r-0001",
    "components": [
        {"name": "alive", "share": 0.75, "trend": "rising", "saturated": False, "dominates": True},
    ],
    "hacking_risk": "medium",
    "because": "The alive bonus is most of the reward.",
}
VERIFICATION: Plain = {
    "candidate": "c-0001",
    "verdict": "improved",
    "because": "The pole stays up for 480 of 500 steps.",
    "behaviour": ["It balances without drifting to the edge."],
    "evidence": ["r-0001"],
}
SPACE: Plain = {
    "trainer": "ppo",
    "source": "The defaults of CleanRL.",
    "parameters": [
        {
            "name": "learning_rate",
            "type": "float",
            "default": 0.001,
            "says": "Step size.",
            "low": 0.00001,
            "high": 0.1,
            "log": True,
            "choices": [],
            "algorithms": [],
        }
    ],
}

SAMPLES: dict[type[Versioned], Plain] = {
    Promoted: {
        "rung": 1,
        "candidate": "c-0002",
        "because": "The tip is clearly learning.",
        "learning_gain": 12.5,
        "evidence": ["r-0001"],
    },
    StoodStill: {"seconds": 312.5, "until": "2026-11-15T02:10:00+00:00"},
    HandedOff: {"because": "The stop rule fired: 40 candidates were tried.", "next": "overnight report"},
    Approval: {
        "clause": "budget",
        "digest": DIGEST,
        "terms": CONTRACT["budget"],
        "approver": "ada",
        "strength": "terminal",
        "replaces": None,
        "signature": None,
    },
    Asked: {
        "id": "a-0001",
        "speaks": "claude",
        "operator": "tune",
        "base": OBJECT,
        "brief": DIGEST,
        "reserved_dollars": 1.0,
    },
    Answered: {
        "ask": "a-0001",
        "outcome": "limited",
        "because": "The service takes no more questions until 07:00.",
        "wall_seconds": 3.5,
        "tokens": 1200,
        "dollars": None,
        "counted_dollars": 1.0,
        "until": 1800000000.0,
    },
    Errand: {
        "command": ["claude", "-p", "the brief"],
        "variables": ["ANTHROPIC_API_KEY", "HTTPS_PROXY"],
        "secrets": ["ANTHROPIC_API_KEY"],
        "files": [".claude/.credentials.json"],
        "readable": ["/opt/node"],
        "hidden": ["/home/ada"],
        "wall_seconds": 1200.0,
        "silence_seconds": 300.0,
        "tier": "T2",
    },
    Returned: {"why": "ended", "status": 0, "wall_seconds": 12.5, "said": "", "leaked": []},
    Handed: {"proposal": PROPOSAL, "base": OBJECT},
    Heard: {"candidate": None, "refused": ["It changes nothing."]},
    Candidate: CANDIDATE,
    Contract: CONTRACT,
    ContractLock: {"contract": DIGEST, "clauses": {"task": DIGEST}},
    Created: CREATED,
    CurriculumCandidate: CURRICULUM,
    Decision: DECISION,
    Entry: {"seq": 0, "epoch": 1, "at": "2030-01-01", "actor": "engine", "kind": "created", "data": CREATED},
    Evidence: {
        "run": "r-0001",
        "candidate": "c-0001",
        "tree": OBJECT,
        "phase": "screen",
        "score": 212.5,
        "episodes": 20,
        "guardrails": {"worst_decile_return": 100.0},
        "comparability": DIGEST,
        "artefact": DIGEST,
    },
    Calibration: {
        "comparability": DIGEST,
        "evidence": ["r-0001", "r-0002"],
        "seeds": 2,
        "lost": 0,
        "mean": 210.5,
        "noise": 12.5,
        "shape": "even",
        "run_seconds": 30.5,
        "references": {"random": 20.5},
        "runs": 64,
        "max_runs": 1000,
        "max_wall_hours": 8.0,
        "candidates": 20,
        "provable": 14.5,
        "sentences": ["This study can prove a gain of +14 return or more."],
        "saturated": None,
        "plan": {
            "race": {"baseline_seeds": 2, "pairing": True},
            "looks": [6, 12],
            "shares": [0.6, 0.4],
            "audit_seeds": 0,
            "total_error": 0.05,
            "mode": "family",
        },
    },
    Ablation: {
        "candidate": "c-0003",
        "parts": [
            {
                "part": name,
                "word": word,
                "loss": 0.5,
                "loss_low": -2.5,
                "loss_high": None,
                "says": "It is so.",
            }
            for name, word in (("c-0002", "carries"), ("c-0003", "dead weight"))
        ],
        "margin": 4.0,
        "removed": ["c-0003"],
        "leaner": "c-0005",
        "loss": 0.5,
        "loss_high": 3.5,
        "says": "One part was removed.",
        "evidence": ["r-0001"],
    },
    LookSchedule: {
        "attempt": 1,
        "tip": "c-0002",
        "incumbent": "c-0001",
        "looks": [6, 30],
        "shares": [0.3, 0.7],
        "paired": False,
        "error": 0.0194,
        "runs_left": 61.5,
    },
    Turn: {"loop": "stop", "because": "The time of the night is used up."},
    LoopEntry: {"contract": DIGEST, "approver": "ada", "strength": "unattended"},
    MetricSpec: CONTRACT["metric"],
    Note: {"says": "The night began."},
    Permit: {"candidate": "c-0001", "tree": OBJECT, "contract": DIGEST, "approver": "ada", "strength": "signed"},
    Proposal: PROPOSAL,
    QueueManifest: QUEUE,
    RandomizationProbe: PROBE,
    Refusal: {"candidate": None, "reasons": [{"rule": "budget", "says": "The budget is spent."}]},
    ResultAudit: AUDIT,
    RewardReflection: REFLECTION,
    Run: {
        "id": "r-0001",
        "candidate": "c-0001",
        "tree": OBJECT,
        "command": ["python", "-m", "overnight.rl.trainers.ppo"],
        "phase": "screen",
        "round": 0,
        "number": 1,
        "train_seed": 7,
        "contract": DIGEST,
        "comparability": DIGEST,
    },
    RunEnd: {
        "run": "r-0001",
        "outcome": "completed",
        "because": "It ended.",
        "wall_seconds": 1.5,
        "cpu_seconds": 1.0,
        "exit_status": 0,
    },
    RunOrder: {
        "run": "r-0001",
        "env": {
            "backend": "gymnasium",
            "id": "CartPole-v1",
            "kwargs": {},
            "max_episode_steps": 500,
            "clip_actions": True,
        },
        "train_seed": 7,
        "budget": {"unit": "env_steps", "amount": 1000.0},
        "params": {"learning_rate": 0.001},
        "cores": 1,
        "device": "cpu",
        "compile_cache": None,
    },
    Job: {
        "command": ["python", "train.py"],
        "env": {"PATH": "/usr/bin"},
        "fresh_bytecode": True,
        "cores": [0],
        "wall_seconds": 60.0,
        "silence_seconds": 30.0,
        "disk_bytes": 1000,
    },
    Exit: {
        "outcome": "completed",
        "because": "It ended.",
        "exit_status": 0,
        "wall_seconds": 1.0,
        "cpu_seconds": 1.0,
        "policy": DIGEST,
        "log_bytes": 10,
    },
    Space: SPACE,
    StudyState: _state(CREATED, CANDIDATE),
    Transfer: {
        "candidate": "c-0001",
        "tree": OBJECT,
        "baseline": OBJECT,
        "env": {"backend": "gymnasium", "id": "Ant-v5", "kwargs": {}, "max_episode_steps": None, "clip_actions": True},
        "budget": {"unit": "env_steps", "amount": 4000},
        "times": 4.0,
        "hardware": "any, cpu, 2 cores a run",
        "train_seeds": [7, 8],
        "ours": [1.5, None],
        "theirs": [1.0, 0.5],
        "gain": None,
        "gain_low": None,
        "gain_high": None,
        "says": "Ant-v5: too few runs brought a score to compare.",
    },
    Validation: {"candidate": "c-0001", "tree": OBJECT, "contract": DIGEST, "rules": DIGEST},
    Verification: VERIFICATION,
    View: {
        "task": "cartpole",
        "study": "first",
        "program": "Try larger steps.",
        "surface": ["params.json"],
        "keys": ["learning_rate"],
        "space": None,
        "params": {"learning_rate": 0.001, "activation": "tanh", "anneal": True},
        "tried": [
            {
                "candidate": "c-0001",
                "proposal": PROPOSAL,
                "params": {"learning_rate": 0.001},
                "outcome": "rejected",
                "gain": -1.0,
                "base": None,
                "because": [],
            }
        ],
        "runs_left": 3,
        "candidates_left": 2,
        "seed": 7,
    },
}


def refusal_of(kind: type, data: object) -> str:
    """The sentence with which a record refuses its data."""
    with pytest.raises(UserError) as caught:
        decode(kind, data, where="file")
    return caught.value.what


def without(data: Plain, key: str) -> Plain:
    return {name: value for name, value in data.items() if name != key}


def test_every_stored_record_has_a_sample() -> None:
    assert {kind.SCHEMA for kind in SAMPLES} == set(STORED)


@pytest.mark.parametrize("kind", SAMPLES, ids=lambda kind: kind.__name__)
def test_a_stored_record_survives_its_file(kind: type[Versioned]) -> None:
    record: Versioned = decode(kind, SAMPLES[kind], where="sample")
    assert loads(kind, dumps(record), where="file") == record


@pytest.mark.parametrize("kind", SAMPLES, ids=lambda kind: kind.__name__)
def test_a_sample_is_written_as_it_was_read(kind: type[Versioned]) -> None:
    written = encode(decode(kind, SAMPLES[kind], where="sample"))
    assert {key: written[key] for key in SAMPLES[kind]} == SAMPLES[kind]


@pytest.mark.parametrize("kind", SAMPLES, ids=lambda kind: kind.__name__)
def test_a_stored_record_takes_no_key_it_does_not_know(kind: type[Versioned]) -> None:
    assert refusal_of(kind, {**SAMPLES[kind], "surprise": 1}) == "`surprise` is not a known key"


@pytest.mark.parametrize("kind", [kind for kind in SAMPLES if kind is not StudyState], ids=lambda kind: kind.__name__)
def test_a_record_cannot_be_changed(kind: type[Versioned]) -> None:
    record: Versioned = decode(kind, SAMPLES[kind], where="sample")
    with pytest.raises(AttributeError):
        setattr(record, next(iter(SAMPLES[kind])), None)


@pytest.mark.feature("R112")
@pytest.mark.parametrize("key", CANDIDATE)
def test_a_candidate_without_a_required_field_is_refused(key: str) -> None:
    assert refusal_of(Candidate, without(CANDIDATE, key)) == f"`{key}` is missing"


@pytest.mark.feature("R113")
def test_an_approval_that_is_a_string_is_refused() -> None:
    assert refusal_of(PAYLOADS[Kind.APPROVED], "approved by ada") == "is 'approved by ada', but a mapping is needed"


@pytest.mark.feature("R114")
def test_a_metric_without_a_direction_is_refused() -> None:
    assert refusal_of(MetricSpec, without(SAMPLES[MetricSpec], "direction")) == "`direction` is missing"


@pytest.mark.feature("R115")
def test_an_unknown_lifecycle_state_is_refused() -> None:
    state = SAMPLES[StudyState]
    odd = {**state["candidates"]["c-0001"], "state": "almost accepted"}
    says = refusal_of(StudyState, {**state, "candidates": {"c-0001": odd}})
    assert says.startswith("`candidates.c-0001.state` is 'almost accepted', but `draft` or `validated` or")


@pytest.mark.feature("R116")
def test_a_reflection_without_a_hacking_risk_is_refused() -> None:
    assert refusal_of(RewardReflection, without(REFLECTION, "hacking_risk")) == "`hacking_risk` is missing"


@pytest.mark.feature("R117")
def test_a_probe_point_that_varies_two_parameters_is_refused() -> None:
    both = {"name": "both", "values": {"mass": 2.0, "friction": 0.1}}
    says = refusal_of(RandomizationProbe, {**PROBE, "points": [*PROBE["points"], both]})
    assert says == "`points.1` varies mass and friction, but a probe varies one at a time"


def test_a_probe_point_gives_every_nominal_parameter() -> None:
    bare = {"name": "bare", "values": {"mass": 2.0}}
    assert "exactly the nominal parameters" in refusal_of(RandomizationProbe, {**PROBE, "points": [bare]})


@pytest.mark.feature("R118")
def test_a_queued_job_in_an_unknown_phase_is_refused() -> None:
    says = refusal_of(QueueManifest, {"jobs": [{**QUEUE["jobs"][0], "phase": "production"}]})
    assert says == "`jobs.0.phase` is 'production', but `smoke` or `short` or `multi-seed` or `incumbent` is needed"


def test_a_queued_job_that_waits_for_itself_is_refused() -> None:
    says = refusal_of(QueueManifest, {"jobs": [{**QUEUE["jobs"][0], "after": ["c-0002"]}]})
    assert says == "`jobs.0.after` makes c-0002 wait for itself"


@pytest.mark.feature("R119")
def test_an_audit_that_lists_no_evidence_paths_is_refused() -> None:
    says = refusal_of(ResultAudit, {**AUDIT, "evidence_paths": []})
    assert says == "`evidence_paths` has 0 items, but at least 1 is needed"


@pytest.mark.feature("R120")
def test_a_curriculum_without_a_rollback_rule_is_refused() -> None:
    assert refusal_of(CurriculumCandidate, without(CURRICULUM, "rollback_rule")) == "`rollback_rule` is missing"


@pytest.mark.feature("A48")
def test_a_loop_decision_outside_the_five_is_refused() -> None:
    says = refusal_of(Decision, {**DECISION, "loop": "celebrate"})
    assert says == ("`loop` is 'celebrate', but `continue` or `stop` or `rollback` or `narrow` or `escalate` is needed")


@pytest.mark.parametrize("missing", ["because", "rule"])
def test_a_decision_without_its_reason_or_its_rule_is_refused(missing: str) -> None:
    assert refusal_of(Decision, without(DECISION, missing)) == f"`{missing}` is missing"


@pytest.mark.parametrize(
    ("change", "says"),
    [
        pytest.param({"gain_low": 0.0}, "`gain_low` is 0.0, but", id="interval touches zero"),
        pytest.param({"gain_low": None}, "`gain_low` is None, but", id="no interval"),
        pytest.param({"evidence": []}, "`evidence` is empty, but", id="no evidence"),
        pytest.param({"audit": None}, "`audit` is null, but", id="no audit"),
        pytest.param(
            {"guardrails": [{"name": "falls", "worse_by": 0.2, "margin": 0.1}]},
            "`guardrails` says that falls got worse",
            id="a guardrail that broke",
        ),
    ],
)
def test_a_certified_gain_needs_gain_evidence_audit_and_guardrails(change: Plain, says: str) -> None:
    assert refusal_of(Decision, {**DECISION, **change}).startswith(says)


def test_a_verdict_that_claims_nothing_needs_no_audit() -> None:
    modest = {**DECISION, "verdict": "inconclusive", "gain_low": -1.0, "audit": None, "evidence": []}
    assert decode(Decision, modest, where="file").audit is None


@pytest.mark.feature("A47")
def test_without_inspected_behaviour_nothing_is_verified_as_improved() -> None:
    says = refusal_of(Verification, {**VERIFICATION, "behaviour": []})
    assert says == "`verdict` is `improved`, but no behaviour was inspected"


def test_without_inspected_behaviour_the_evidence_may_be_called_insufficient() -> None:
    modest = {**VERIFICATION, "behaviour": [], "verdict": "insufficient evidence"}
    assert decode(Verification, modest, where="file").verdict == "insufficient evidence"


def test_a_bundle_of_one_is_refused() -> None:
    assert refusal_of(Proposal, {**PROPOSAL, "bundle": ["One."]}).startswith("`bundle` lists one change")


def test_a_bundle_names_every_parameter_it_changes() -> None:
    three = {**PROPOSAL, "params": {"a": 1, "b": 2, "c": 3}, "bundle": ["One.", "Two."]}
    assert refusal_of(Proposal, three) == "`bundle` lists 2 changes, but 3 parameters change"


def test_a_refusal_has_at_least_one_reason() -> None:
    assert refusal_of(Refusal, {"candidate": None, "reasons": []}).startswith("`reasons` has 0 items")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        pytest.param({"default": 0.5}, "is 0.5, but 1e-05 to 0.1 is allowed", id="above its range"),
        pytest.param({"default": "fast"}, "is 'fast', but a number is needed", id="text for a number"),
        pytest.param({"default": True}, "is true, but a number is needed", id="a truth value for a number"),
        pytest.param({"type": "int"}, "is 0.001, but a whole number is needed", id="a decimal for a whole number"),
        pytest.param({"type": "bool"}, "is 0.001, but true or false is needed", id="a number for a truth value"),
        pytest.param({"type": "choice", "choices": [1, "a"]}, "is 0.001, but one of 1, 'a' is needed", id="no choice"),
    ],
)
def test_a_parameter_refuses_a_default_outside_its_own_range(change: Plain, says: str) -> None:
    parameters = [{**SPACE["parameters"][0], **change}]
    assert refusal_of(Space, {**SPACE, "parameters": parameters}) == f"`parameters.0.default` {says}"


@pytest.mark.parametrize(
    ("kind", "key", "odd"),
    [
        (Candidate, "id", "../../etc/passwd"),
        (Candidate, "id", "c-1"),
        (Candidate, "id", "c-0001\n"),
        (Candidate, "tree", "HEAD"),
        (Candidate, "tree", "A" * 40),
        (Run, "id", "c-0001"),
        (Created, "task", "../up"),
        (Created, "task", "-rf"),
        (Created, "study", ""),
        (Validation, "rules", "d" * 63),
    ],
)
def test_an_id_that_the_engine_never_gave_out_is_refused(kind: type[Versioned], key: str, odd: str) -> None:
    assert refusal_of(kind, {**SAMPLES[kind], key: odd}).startswith(f"`{key}` is {odd!r}, but ")
