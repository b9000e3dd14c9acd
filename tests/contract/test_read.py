"""A contract file: what is known, what is unknown, what is wrong, and what an approval is bound to."""

import pytest

from overnight.contract import draft, trainers
from overnight.contract.approve import against_unattended
from overnight.contract.draft import EnvFacts, Ground, Stated
from overnight.contract.read import digests, read
from overnight.contract.screen import screen
from overnight.errors import UserError
from overnight.records.contract import Clause, Contract
from overnight.study import yaml

TREE = "a" * 40


def env_draft() -> str:
    space = trainers.space("ppo")
    return draft.for_env(
        Stated(env="CartPole-v1"),
        EnvFacts(max_episode_steps=500, proven=True),
        Ground("cartpole", TREE),
        keys=tuple(one.name for one in space.parameters),
        trainer={"command": list(trainers.command("ppo")), "source": space.source},
    )


def contract(**changes: object) -> Contract:
    """The drafted contract with some values replaced; keys are `clause__key` or `clause__key__key`."""
    data = yaml.load(env_draft(), where="draft")
    assert isinstance(data, dict)
    for path, value in changes.items():
        *outer, last = path.split("__")
        section = data
        for name in outer:
            section = section[name]
        section[last] = value
    found = read(yaml.dump(data), where="contract.yaml").contract()
    assert found is not None
    return found


def test_the_draft_for_an_environment_is_complete() -> None:
    reading = read(env_draft(), where="contract.yaml")
    assert not reading.unknown and not reading.wrong
    assert reading.contract() is not None


def test_the_draft_survives_being_written_and_read() -> None:
    data = yaml.load(env_draft(), where="draft")
    assert digests(read(yaml.dump(data), where="a")) == digests(read(env_draft(), where="b"))


@pytest.mark.feature("A39")
def test_what_a_repository_does_not_prove_stays_unknown() -> None:
    text = draft.for_repository(Stated(), EnvFacts(), Ground("task", TREE, "b" * 40, ("train.py",)))
    reading = read(text, where="contract.yaml")
    assert "command" in reading.unknown[Clause.BASELINE]
    assert {"mission", "non_goals", "env.id"} <= set(reading.unknown[Clause.TASK])
    assert "train.py" in text and "train.py" not in str(yaml.load(text, where="x"))


def test_a_wrong_clause_does_not_hide_the_others() -> None:
    reading = read(env_draft().replace("max_runs: 1000", "max_runs: many"), where="contract.yaml")
    assert set(reading.wrong) == {Clause.BUDGET}
    assert reading.problem(Clause.BUDGET) == "`budget.max_runs` is 'many', but a whole number is needed."
    assert len(reading.clauses) == 7


def test_a_misspelt_clause_is_an_error_with_a_suggestion() -> None:
    with pytest.raises(UserError, match="`hardwear` is not a clause") as told:
        read(env_draft().replace("\nhardware:", "\nhardwear:"), where="contract.yaml")
    assert told.value.hint == "did you mean `hardware`?"


def test_comments_and_order_do_not_matter_to_a_digest_but_values_do() -> None:
    text = env_draft()
    plain = "\n".join(line.split("  #")[0] for line in text.splitlines())
    assert digests(read(plain, where="a")) == digests(read(text, where="b"))
    edited = digests(read(text.replace("max_wall_hours: 8.0", "max_wall_hours: 9"), where="c"))
    differs = [clause for clause, digest in digests(read(text, where="d")).items() if edited[clause] != digest]
    assert differs == [Clause.BUDGET]


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        pytest.param({"experiments__permissions__network": True}, "network", id="network"),
        pytest.param({"experiments__permissions__trackers": ["wandb"]}, "trackers", id="trackers"),
        pytest.param({"experiments__kinds": ["code"]}, "code", id="code"),
        pytest.param({"baseline__trainer": "repository"}, "not a built-in trainer", id="command of one's own"),
        pytest.param({"scope__preset": "repo", "scope__paths": ["**"]}, "bring code", id="code surface"),
        pytest.param({"budget__max_dollars": 5}, "coding agent", id="money"),
    ],
)
def test_anything_but_our_trainer_on_parameters_needs_a_person(changes: dict[str, object], says: str) -> None:
    assert any(says in reason.says for reason in against_unattended(contract(**changes)))


def test_our_own_trainer_on_plain_parameters_may_start_unattended() -> None:
    assert against_unattended(contract()) == ()


@pytest.mark.parametrize(
    ("clause", "old", "new"),
    [
        pytest.param(Clause.SCOPE, "paths: [params.json]", 'paths: ["**"]', id="parameters that open code"),
        pytest.param(Clause.BASELINE, "- overnight.rl.trainers.ppo", "- evil", id="a stranger's module"),
        pytest.param(Clause.BASELINE, "overnight.rl.trainers.ppo", "overnight.rl.trainers.ppo.x", id="a longer name"),
    ],
)
def test_a_contract_cannot_call_itself_harmless(clause: Clause, old: str, new: str) -> None:
    text = env_draft().replace(
        '[python, "-m", overnight.rl.trainers.ppo]', '\n    - python\n    - "-m"\n    - overnight.rl.trainers.ppo'
    )
    assert old in text
    assert clause in read(text.replace(old, new), where="contract.yaml").wrong


@pytest.mark.feature("A27")
def test_a_task_without_non_goals_is_refused() -> None:
    lines = [line if "non_goals" not in line else "  non_goals: []" for line in env_draft().splitlines()]
    assert Clause.TASK in read("\n".join(lines), where="contract.yaml").wrong


def test_the_screen_tells_everything_that_matters() -> None:
    page = "\n".join(f"{heading}: {sentence}" for heading, sentence in screen(contract()))
    for word in (
        "params.json",
        "episode_return",
        "1,000 training runs",
        "8 hours",
        "holds on fresh train seeds",
        "200 candidates",
    ):
        assert word in page
