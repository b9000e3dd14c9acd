"""The terms of a study: what each clause refuses, what the surface covers, and what makes results comparable."""

import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from overnight.records.codec import decode, digest
from overnight.records.contract import CALLED, CLAUSE_TYPES, Baseline, Budget, Clause, Contract, Scope
from overnight.records.env import EnvSpec
from overnight.records.metric import MetricSpec
from records.test_records import CONTRACT, refusal_of, without

METRIC: dict[str, Any] = CONTRACT["metric"]


def contract(**clauses: object) -> Contract:
    return decode(Contract, {**CONTRACT, **clauses}, where="contract")


def scope(*paths: str, protected: tuple[str, ...] = ()) -> Scope:
    return Scope(preset="repo", paths=paths, keys=(), protected=protected)


@pytest.mark.feature("R37")
@pytest.mark.parametrize("clause", Clause)
def test_a_contract_without_one_of_its_eight_sections_is_refused(clause: Clause) -> None:
    assert refusal_of(Contract, without(CONTRACT, clause)) == f"`{clause}` is missing"


@pytest.mark.parametrize("clause", Clause)
def test_a_clause_that_is_a_string_is_refused(clause: Clause) -> None:
    says = refusal_of(Contract, {**CONTRACT, str(clause): "as discussed"})
    assert says == f"`{clause}` is 'as discussed', but a mapping is needed"


def test_there_are_eight_clauses_each_with_a_name_for_people() -> None:
    assert len(Clause) == 8
    assert set(CALLED) == set(CLAUSE_TYPES) == set(Clause)


@pytest.mark.parametrize("clause", Clause)
def test_a_clause_is_found_by_its_name(clause: Clause) -> None:
    assert type(contract().clause(clause)) is CLAUSE_TYPES[clause]


@pytest.mark.feature("A27")
def test_a_task_without_non_goals_is_refused() -> None:
    says = refusal_of(Contract, {**CONTRACT, "task": {**CONTRACT["task"], "non_goals": []}})
    assert says == "`task.non_goals` has 0 items, but at least 1 is needed"


@pytest.mark.feature("A30")
@pytest.mark.parametrize("kind", ["least_gain", "guardrails", "rollback_drop"])
def test_a_metric_without_success_regression_or_rollback_is_refused(kind: str) -> None:
    assert refusal_of(MetricSpec, without(METRIC, kind)) == f"`{kind}` is missing"


def test_a_metric_that_guards_nothing_is_refused() -> None:
    assert refusal_of(MetricSpec, {**METRIC, "guardrails": []}).startswith("`guardrails` has 0 items")


def test_a_metric_that_guards_one_measure_twice_is_refused() -> None:
    assert refusal_of(MetricSpec, {**METRIC, "guardrails": METRIC["guardrails"] * 2}) == (
        "`guardrails` names one measure twice"
    )


@pytest.mark.feature("R31")
@pytest.mark.parametrize("justification", ["", "  \n "])
def test_the_training_reward_as_the_metric_needs_a_justification(justification: str) -> None:
    says = refusal_of(MetricSpec, {**METRIC, "source": "training_reward", "justification": justification})
    assert says == "`justification` is empty, but the training reward is the objective"


def test_the_training_reward_with_a_justification_is_accepted() -> None:
    spec = {**METRIC, "source": "training_reward", "justification": "The reward is the game's own score."}
    assert decode(MetricSpec, spec, where="metric").source == "training_reward"


@pytest.mark.parametrize(("lowest", "highest"), [(0, 0), (5.0, -5.0)])
def test_an_empty_range_of_scores_is_refused(lowest: float, highest: float) -> None:
    says = refusal_of(MetricSpec, {**METRIC, "lowest": lowest, "highest": highest})
    assert says.startswith(f"`lowest` is {float(lowest)}, but it must be below `highest`")


def test_a_wall_clock_budget_that_the_hard_limit_would_cut_short_is_refused() -> None:
    budget = {**CONTRACT["budget"], "stop_unit": "wall_seconds", "stop_amount": 60, "run_wall_seconds": 59}
    assert refusal_of(Budget, budget) == "`run_wall_seconds` is 59, but a run is given 60 wall seconds"


@pytest.mark.parametrize("paths", [["train.py"], ["params.json", "train.py"], ["**"]])
def test_a_parameter_surface_opens_the_parameter_file_and_nothing_else(paths: list[str]) -> None:
    says = refusal_of(Scope, {**CONTRACT["scope"], "paths": paths})
    assert says.endswith("but the preset `params` opens params.json and nothing else")


@pytest.mark.parametrize(
    "command",
    [
        ["python", "train.py"],
        ["python", "-m", "overnight.rl.trainers"],
        ["python", "-m", "overnight.rl.trainers.ppo", "--cheat"],
        ["python", "-m", "overnight.rl.trainers.ppo;x"],
        ["./python", "-m", "overnight.rl.trainers.ppo"],
    ],
)
def test_a_command_that_calls_itself_built_in_and_is_not_is_refused(command: list[str]) -> None:
    says = refusal_of(Baseline, {**CONTRACT["baseline"], "command": command})
    assert says.endswith("which is not the command of a built-in trainer")


@pytest.mark.parametrize(
    ("clause", "key", "odd"),
    [
        ("budget", "max_runs", 0),
        ("budget", "stop_amount", 0),
        ("budget", "max_wall_hours", -1),
        ("budget", "max_dollars", -0.01),
        ("hardware", "cores_per_run", 0),
        ("hardware", "memory_gigabytes", 0),
        ("evaluation", "max_false_claims", 0),
        ("evaluation", "max_false_claims", 0.51),
        ("evaluation", "screen_train_seeds", 0),
        ("evaluation", "min_tier", "T0"),
        ("scope", "paths", []),
        ("scope", "preset", "everything"),
        ("experiments", "kinds", ["anything"]),
        ("experiments", "proposers", ["Not A Slug"]),
        ("baseline", "command", []),
        ("baseline", "tree", "main"),
        ("metric", "precision", 0),
    ],
)
def test_a_term_out_of_its_range_is_refused_by_name(clause: str, key: str, odd: object) -> None:
    says = refusal_of(Contract, {**CONTRACT, clause: {**CONTRACT[clause], key: odd}})
    assert says.startswith(f"`{clause}.{key}")


@pytest.mark.parametrize(
    ("env", "fits"),
    [
        ("CartPole-v1", True),
        ("ALE/Pong-v5", True),
        ("my_package.envs:Mine-v0", True),
        ("a/b/Mine-v0", False),
        ("a:b:c", False),
        ("os; rm -rf /", False),
        ("Mine-v0\n", False),
        ("", False),
    ],
)
def test_an_environment_is_named_by_a_registered_id(env: str, fits: bool) -> None:
    plain = {"backend": "gymnasium", "id": env}
    if fits:
        assert decode(EnvSpec, plain, where="env").id == env
    else:
        assert refusal_of(EnvSpec, plain).startswith(f"`id` is {env!r}, but a Gymnasium id")


@pytest.mark.parametrize(
    ("path", "glob", "covered"),
    [
        ("params.json", "params.json", True),
        ("params.json", "*.json", True),
        ("a/params.json", "*.json", False),
        ("a/params.json", "**/*.json", True),
        ("params.json", "**/*.json", True),
        ("a/b/c.py", "a/**", True),
        ("a/b/c.py", "a/*", False),
        ("a", "a/**", True),
        ("ab/c.py", "a/**", False),
        ("a/x/y/b", "a/**/b", True),
        ("a/b", "a/**/b", True),
        ("a/B", "a/b", False),
        ("train1.py", "train[0-9].py", True),
        ("train.py", "train?.py", False),
        ("a/b", "*", False),
        ("a/b", "**", True),
    ],
)
def test_only_two_stars_cross_folders(path: str, glob: str, covered: bool) -> None:
    assert scope(glob).allows(path) is covered


def test_what_is_protected_stays_closed_inside_the_surface() -> None:
    surface = scope("src/**", protected=("src/evaluate/**", "**/*.lock"))
    assert surface.allows("src/train.py")
    assert not surface.allows("src/evaluate/referee.py")
    assert not surface.allows("src/poetry.lock")


def test_everything_outside_the_surface_is_closed() -> None:
    assert not scope("params.json").allows("train.py")


def _as_pattern(glob: str) -> str:
    one = {"**": r"(?:[^/]+/)*"}
    return "".join(one.get(part, re.escape(part).replace(r"\*", "[^/]*") + "/") for part in glob.split("/"))


PART = st.text("ab", min_size=1, max_size=2)
GLOB_PART = st.sampled_from(["**", "*", "a", "b", "a*", "*b", "ab"])


@given(st.lists(PART, min_size=1, max_size=5), st.lists(GLOB_PART, min_size=1, max_size=5))
def test_a_pattern_covers_what_the_same_regular_expression_covers(path: list[str], glob: list[str]) -> None:
    expected = re.fullmatch(_as_pattern("/".join(glob)), "/".join(path) + "/") is not None
    assert scope("/".join(glob)).allows("/".join(path)) is expected


@pytest.mark.feature("Z52")
@pytest.mark.parametrize(
    ("clause", "key", "value", "same"),
    [
        pytest.param("budget", "stop_amount", 5, False, id="more training"),
        pytest.param("budget", "stop_unit", "cpu_seconds", False, id="another stop unit"),
        pytest.param("hardware", "cores_per_run", 2, False, id="more cores"),
        pytest.param("hardware", "device", "cuda:0", False, id="another device"),
        pytest.param("evaluation", "screen_episodes", 21, False, id="another protocol"),
        pytest.param("task", "env", {"backend": "gymnasium", "id": "Acrobot-v1"}, False, id="another environment"),
        pytest.param("task", "mission", "Anything else.", True, id="another mission"),
        pytest.param("budget", "max_runs", 5, True, id="fewer runs"),
        pytest.param("scope", "max_files", 2, True, id="another surface"),
    ],
)
def test_results_are_comparable_under_the_same_budget_hardware_and_protocol(
    clause: str, key: str, value: object, same: bool
) -> None:
    other = contract(**{clause: {**CONTRACT[clause], key: value}})
    assert (other.comparability() == contract().comparability()) is same


def test_editing_one_clause_changes_the_digest_of_that_clause_alone() -> None:
    edited = contract(budget={**CONTRACT["budget"], "max_runs": 5})
    changed = {clause for clause in Clause if digest(edited.clause(clause)) != digest(contract().clause(clause))}
    assert changed == {Clause.BUDGET}


def test_a_parameter_study_with_our_trainer_runs_no_code_of_a_candidate() -> None:
    assert not contract().runs_candidate_code()


def test_an_open_surface_or_a_foreign_command_runs_code_of_a_candidate() -> None:
    ours, theirs = contract(), Baseline(trainer="repository", command=("make",), tree="a" * 40, source="Theirs.")
    assert replace(ours, scope=scope("src/**")).runs_candidate_code()
    assert replace(ours, baseline=theirs).runs_candidate_code()
