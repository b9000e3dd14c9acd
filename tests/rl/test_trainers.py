"""What every built-in trainer keeps: its space file, its seed, its budget, its checkpoints and its policy."""

import importlib
import json
import shutil
import signal
from collections.abc import Callable, Iterator
from dataclasses import fields
from itertools import pairwise
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

from overnight.contract.trainers import BUILT_IN, space
from overnight.evaluate import architectures
from overnight.guest.train import Budget, Env, Order, Training
from overnight.records.schema import field_sentences

jax = pytest.importorskip("jax")

from overnight.rl.envs import batched  # noqa: E402 - they import JAX
from overnight.rl.networks import JAX, NUMPY, mlp  # noqa: E402
from overnight.rl.settings import prepare_device  # noqa: E402
from overnight.rl.stopwatch import Stopwatch  # noqa: E402

SMALL: dict[str, dict[str, Any]] = {
    "ppo": {"hidden_units": 16, "rollout_steps": 32, "normalize_observations": True, "normalize_rewards": True},
    "sac": {"hidden_units": 16, "batch_size": 16, "random_steps": 128, "normalize_observations": True},
    "dqn": {"hidden_units": 16, "batch_size": 16, "random_steps": 128, "normalize_observations": True},
}
ENV = {"ppo": "CartPole-v1", "sac": "Pendulum-v1", "dqn": "CartPole-v1"}


class Pick(gymnasium.Env[Any, Any]):
    """Shows two numbers, and rewards the choice of the same ones from two lists."""

    observation_space = gymnasium.spaces.Box(0.0, 2.0, (2,))
    action_space = gymnasium.spaces.MultiDiscrete([2, 3])

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.shown = self.np_random.integers(0, (2, 3))
        return self.shown.astype(np.float32), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        reward = float((action == self.shown).sum())
        self.shown = self.np_random.integers(0, (2, 3))
        return self.shown.astype(np.float32), reward, False, False, {}


class Waning(Pick):
    """Gives less in each environment that is made than in the one before."""

    made = 0

    def __init__(self) -> None:
        Waning.made += 1
        self.gives = 1 / Waning.made

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        observation, _, terminated, truncated, more = super().step(action)
        return observation, self.gives, terminated, truncated, more


gymnasium.register("overnight-tests/Waning-v0", lambda **_: Waning(), max_episode_steps=20)


class Lever(Pick):
    """Rewards the second of two actions."""

    action_space = gymnasium.spaces.Discrete(2)  # type: ignore[assignment]

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        return self.shown.astype(np.float32), float(action), False, False, {}


gymnasium.register("overnight-tests/Lever-v0", lambda **_: Lever(), max_episode_steps=20)
gymnasium.register("overnight-tests/Pick-v0", lambda **_: Pick(), max_episode_steps=20)


@pytest.fixture(autouse=True)
def _handler_comes_back() -> Iterator[None]:
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


def module(trainer: str) -> Any:
    return importlib.import_module(f"overnight.rl.trainers.{trainer}")


def order(
    trainer: str, amount: float, *, unit: str = "env_steps", env: str = "", limit: int | None = None, **params: Any
) -> Order:
    which = Env("gymnasium", env or ENV[trainer], {}, limit, clip_actions=True)
    return Order("r-0001", which, 2**63 + 5, Budget(unit, amount), SMALL.get(trainer, {}) | params, 1, "cpu", None)


Trained = Callable[..., Path]


@pytest.fixture
def trained(tmp_path: Path) -> Trained:
    """Train in this process, and return the folder of what came out."""

    def train(name: str, trainer: str, amount: float, *, begin: Path | None = None, **more: Any) -> Path:
        out = tmp_path / name
        out.mkdir()
        if begin is not None:
            shutil.copytree(begin / "checkpoint", out / "checkpoint")
            shutil.copytree(begin / "policy", out / "policy")
            shutil.copy(begin / "metrics.jsonl", out)
        module(trainer).train(Training(order(trainer, amount, **more), out))
        return out

    return train


def weights(out: Path) -> bytes:
    return (out / "policy" / "model.safetensors").read_bytes()


def lines(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]


SINGLE = tuple(name for name in BUILT_IN if name != "any")


def test_the_space_of_any_trainer_is_that_of_all_of_them_and_says_which_algorithm_reads_what() -> None:
    whole, parts = space("any"), {name: space(name) for name in SINGLE}
    assert whole.parameters[0].choices == SINGLE
    assert {one.name for one in whole.parameters[1:]} == {
        one.name for all_ in parts.values() for one in all_.parameters
    }
    for one in whole.parameters[1:]:
        readers = {name: found for name, all_ in parts.items() if (found := all_.find(one.name)) is not None}
        assert one.algorithms == (tuple(readers) if len(readers) < len(SINGLE) else ()), one.name
        assert one.default == next(iter(readers.values())).default
        for found in readers.values():
            assert (found.type, found.log, found.choices) == (one.type, one.log, one.choices), one.name
            if one.low is not None and one.high is not None:
                assert found.low is not None and one.low <= found.low, one.name
                assert found.high is not None and found.high <= one.high, one.name


@pytest.mark.parametrize(("algorithm", "other"), [("ppo", "dqn"), ("dqn", "ppo")])
def test_any_trainer_trains_as_the_chosen_one_does(trained: Trained, algorithm: str, other: str) -> None:
    """What only another algorithm reads changes nothing."""
    params: dict[str, Any] = {"env": "CartPole-v1", **space(algorithm).defaults(), "hidden_units": 16}
    alien = {one.name: one.default for one in space("any").parameters if one.algorithms == (other,)}
    chosen = trained("chosen", "any", 1024, **params, **alien, algorithm=algorithm)
    assert weights(chosen) == weights(trained("alone", algorithm, 1024, **params))


@pytest.mark.parametrize("trainer", SINGLE)
def test_the_space_file_says_what_the_dataclass_says(trainer: str) -> None:
    config, listed = module(trainer).Parameters, space(trainer)
    sentences = field_sentences(config)
    own_first = sorted(fields(config), key=lambda field: field.name not in config.__annotations__)
    typed = [(field.name, field.default, sentences[field.name]) for field in own_first]
    assert listed.trainer == trainer
    assert [(one.name, one.default, one.says) for one in listed.parameters] == typed
    kinds = {"choice": str, "float": float, "int": int, "bool": bool}
    for one in listed.parameters:
        assert type(one.default) is kinds[one.type], one.name
        assert one.type != "choice" or set(one.choices) == set(JAX) == set(NUMPY)


@pytest.mark.parametrize("trainer", ["sac", "dqn"])
def test_two_runs_of_one_order_give_the_same_weights_within_the_budget(trained: Trained, trainer: str) -> None:
    one, two = (trained(name, trainer, 400) for name in ("one", "two"))
    assert weights(one) == weights(two)
    assert lines(one)[-1]["env_steps"] == 384  # laps of 64
    assert set(lines(one)[0]) == {"env_steps", "wall_seconds", *module(trainer).METRICS}
    assert lines(one)[-1]["learner_share"] > 0


@pytest.mark.parametrize(("trainer", "amount"), [("ppo", 1024), ("sac", 512), ("dqn", 512)])
def test_a_run_that_goes_on_from_a_checkpoint_ends_as_if_it_had_never_stopped(
    trained: Trained, trainer: str, amount: int
) -> None:
    whole = trained("whole", trainer, amount, checkpoints=2)
    facts = json.loads((whole / "checkpoint" / "facts.json").read_text())
    assert facts["steps"] == amount // 2
    gone_on = trained("gone on", trainer, amount, begin=whole, checkpoints=2)
    assert weights(gone_on) == weights(whole)
    steps = [line["env_steps"] for line in lines(gone_on)]
    assert steps == sorted(set(steps))
    assert lines(gone_on)[-1]["wall_seconds"] > facts["wall_seconds"]


def test_a_training_goes_on_only_from_a_checkpoint_of_the_same_order(trained: Trained) -> None:
    whole = trained("whole", "ppo", 1024, checkpoints=2)
    with pytest.raises(SystemExit, match="of a training with another gamma; delete it"):
        trained("other gamma", "ppo", 1024, begin=whole, checkpoints=2, gamma=0.9)
    with pytest.raises(SystemExit, match="of a training with another budget; delete it"):
        trained("longer", "ppo", 2048, begin=whole, checkpoints=2)


def test_checkpoints_change_nothing_before_the_first_of_them(trained: Trained) -> None:
    with_one, without = trained("with", "ppo", 1024, checkpoints=2), trained("without", "ppo", 1024)
    differ = [a["policy_loss"] != b["policy_loss"] for a, b in zip(lines(with_one), lines(without), strict=True)]
    half = len(differ) // 2
    assert not any(differ[:half])
    assert all(differ[half:])


def rehearsed(out: Path) -> list[float | None]:
    return [line["rehearsal_return"] for line in lines(out) if "rehearsal_return" in line]


def again(out: Path, which: Order, episodes: int, *, key: int = 4) -> float:
    """The mean return of the policy that was kept, in the environments in which policies rehearse."""
    source = np.random.SeedSequence(which.train_seed, spawn_key=(key,))
    seeds = [int(seed >> 1) for seed in source.generate_state(episodes)]
    envs, act = batched.make(which.env, seeds, threads=1), architectures.load(out / "policy")
    observations, totals, playing = envs.reset(), np.zeros(episodes), np.ones(episodes, bool)
    while playing.any():
        observations, rewards, _, _ = envs.step(act(observations, np.zeros(episodes, bool)))
        totals += rewards * playing
        playing &= ~envs.resetting
    return float(totals.mean())


SHORT: dict[str, dict[str, Any]] = {
    "ppo": {"env": "overnight-tests/Pick-v0"},
    "sac": {"limit": 20},
    "dqn": {"limit": 30},
}


@pytest.mark.parametrize("trainer", SINGLE)
def test_the_best_of_the_rehearsed_policies_is_kept_and_its_rehearsals_are_paid_for(
    trained: Trained, trainer: str
) -> None:
    amount, more = 4096, {**SHORT[trainer], "learning_rate": 0.003}
    out = trained("rehearsed", trainer, amount, rehearsal_episodes=4, **more)
    found = [one for one in rehearsed(out) if one is not None]
    assert len(found) > 3 and len(set(found)) > 1
    assert again(out, order(trainer, amount, **more), 4) == pytest.approx(max(found), abs=1e-3)
    paid = [line["rehearsal_steps"] for line in lines(out) if "rehearsal_steps" in line]
    assert lines(out)[-1]["env_steps"] <= amount and amount / 100 < sum(paid) < amount / 6


def test_a_policy_that_is_about_to_be_kept_plays_three_times_as_many_further_episodes(trained: Trained) -> None:
    more: dict[str, Any] = {"env": "overnight-tests/Pick-v0", "learning_rate": 0.003}
    out = trained("further", "ppo", 16_384, rehearsal_episodes=4, **more)
    found = [one for one in rehearsed(out) if one is not None]
    which = order("ppo", 16_384, **more)
    first, further = again(out, which, 4), again(out, which, 12, key=5)
    assert (first + 3 * further) / 4 == pytest.approx(max(found), abs=1e-3)


def test_a_policy_that_does_worse_in_its_first_episodes_plays_no_further_ones(trained: Trained) -> None:
    out = trained("worse", "ppo", 16_384, env="overnight-tests/Waning-v0", rehearsal_episodes=4)
    paid = [line["rehearsal_steps"] for line in lines(out) if "rehearsal_steps" in line]
    assert paid[0] == 4 * paid[1] and set(paid[1:]) == {paid[1]}


def test_a_policy_rehearses_as_often_as_is_asked_while_that_takes_a_tenth_of_the_budget_at_most(
    trained: Trained,
) -> None:
    more: dict[str, Any] = {"env": "overnight-tests/Pick-v0", "rehearsal_episodes": 2}
    seldom, often, dear = (
        trained(name, "ppo", 16_384, rehearsals=rehearsals, **more | other)
        for name, rehearsals, other in (
            ("seldom", 5, {}),
            ("often", 25, {}),
            ("dear", 60, {"rehearsal_episodes": 8}),
        )
    )
    assert 4 <= len(rehearsed(seldom)) <= 6 and 18 <= len(rehearsed(often)) <= 26
    paid = [line["rehearsal_steps"] for line in lines(dear) if "rehearsal_steps" in line]
    assert 0.05 * 16_384 < sum(paid[:-1]) < 0.1 * 16_384 + max(paid) and len(paid) < 30
    with pytest.raises(SystemExit, match="`rehearsals` is 0, but 1 or more is needed"):
        trained("never", "ppo", 2048, rehearsals=0)


def test_a_rehearsal_that_takes_too_much_of_the_budget_is_given_up_and_the_last_policy_is_kept(
    trained: Trained,
) -> None:
    long, plain = trained("long", "sac", 1024, rehearsal_episodes=4), trained("plain", "sac", 1024)
    assert rehearsed(long) == [None]
    assert [line["env_steps"] for line in lines(long)] != [line["env_steps"] for line in lines(plain)]
    assert weights(long) != weights(plain), "the steps of the rehearsal were not trained with"


@pytest.mark.parametrize(("towards", "stays"), [(0, True), (1, False)])
def test_a_rehearsal_that_is_given_up_displaces_the_best_only_where_it_had_earned_as_much(
    tmp_path: Path, towards: int, stays: bool
) -> None:
    training = Training(order("ppo", 4096, env="overnight-tests/Lever-v0", rehearsal_episodes=32), tmp_path)
    state = module("ppo").State(training.order, module("ppo").parameters(training.order.params))
    state.best, state.average = 5.0, leaning(state, towards)
    assert state.offer(training) is not stays  # given up after 7 of 20 steps, each of which earns 0 or 1
    assert (state.best, state.rehearsal_episodes) == ((5.0, 32) if stays else (None, 0))


def test_a_policy_that_does_worse_than_an_earlier_one_is_not_kept_also_after_a_kill(trained: Trained) -> None:
    more = {"env": "overnight-tests/Waning-v0", "checkpoints": 2, "rehearsal_episodes": 4}
    whole = trained("whole", "ppo", 4096, **more)
    found = [one for one in rehearsed(whole) if one is not None]
    assert len(found) > 4 and found == sorted(found, reverse=True)
    assert json.loads((whole / "checkpoint" / "facts.json").read_text())["best"] == found[0]
    gone_on = trained("gone on", "ppo", 4096, begin=whole, **more)
    assert len(rehearsed(gone_on)) == len(rehearsed(whole))
    assert weights(gone_on) == weights(whole) != weights(trained("last", "ppo", 4096, env=more["env"]))


def test_rollouts_grow_in_doublings_over_the_budget_and_stay_within_it(trained: Trained) -> None:
    out = trained("growing", "ppo", 4096, rollout_growth=4, num_minibatches=2)
    steps = [0, *(line["env_steps"] for line in lines(out))]
    lengths = [later - earlier for earlier, later in pairwise(steps)]
    assert sorted(set(lengths)) == [128, 256, 512] and lengths == sorted(lengths)
    assert 4096 - 512 < steps[-1] <= 4096
    thirds = [sum(lengths[: lengths.index(length)]) for length in (256, 512)]
    assert thirds == pytest.approx([4096 / 3, 2 * 4096 / 3], abs=256)


def test_rollouts_grow_by_the_very_factor_that_is_asked_for_and_by_no_less_than_one(trained: Trained) -> None:
    out = trained("threefold", "ppo", 4096, rollout_growth=3, num_minibatches=2)
    steps = [0, *(line["env_steps"] for line in lines(out))]
    assert sorted({later - earlier for earlier, later in pairwise(steps)}) == [128, 256, 384]
    with pytest.raises(SystemExit, match="`rollout_growth` is 0, but 1 or more is needed"):
        trained("none", "ppo", 4096, rollout_growth=0)


def beginnings(out: Path) -> list[int]:
    """The steps at which the step size was larger again than before."""
    trained = [line for line in lines(out) if "learning_rate" in line]
    return [now["env_steps"] for before, now in pairwise(trained) if now["learning_rate"] > before["learning_rate"]]


def test_a_long_training_begins_anew_after_so_many_steps_and_keeps_the_best_of_its_attempts(trained: Trained) -> None:
    more: dict[str, Any] = {"env": "overnight-tests/Pick-v0", "learning_rate": 0.003}
    amount = 8192
    out = trained("anew", "ppo", amount, rehearsal_episodes=4, attempt_steps=3000, **more)
    first, second = beginnings(out)
    assert 3000 < first < 3900 and 6000 < second < 7200
    found = [one for one in rehearsed(out) if one is not None]
    which = order("ppo", amount, **more)
    kept = (again(out, which, 4) + 3 * again(out, which, 12, key=5)) / 4
    assert kept == pytest.approx(max(found), abs=1e-3)
    starts = [line for line in lines(out) if line["env_steps"] in (first, second)]
    assert all(line["learning_rate"] > 0.0028 and line["entropy"] > 0.6 for line in starts), "new weights know nothing"


def test_an_attempt_that_goes_on_after_a_kill_ends_as_if_it_had_never_stopped(trained: Trained) -> None:
    more: dict[str, Any] = {"env": "overnight-tests/Pick-v0", "rehearsal_episodes": 4, "attempt_steps": 1500}
    whole = trained("whole", "ppo", 4096, checkpoints=2, **more)
    assert json.loads((whole / "checkpoint" / "facts.json").read_text())["attempt"] == 1
    gone_on = trained("gone on", "ppo", 4096, begin=whole, checkpoints=2, **more)
    assert weights(gone_on) == weights(whole)
    assert beginnings(gone_on) == beginnings(whole) and rehearsed(gone_on) == rehearsed(whole)


def test_an_attempt_that_finds_the_whole_budget_spent_is_over_at_once_and_is_the_last(tmp_path: Path) -> None:
    training = Training(order("ppo", 4096, rehearsal_episodes=4), tmp_path)
    state = module("ppo").State(training.order, module("ppo").parameters(training.order.params))
    state.attempt_steps, state.steps = 3000, 4096
    state.end_stint(training)
    assert state.progress(training) == 1 and not state.stint_is_over(training)


def test_where_nothing_rehearses_a_training_does_not_begin_anew(trained: Trained) -> None:
    one, other = trained("one", "ppo", 2048, attempt_steps=512), trained("other", "ppo", 2048)
    assert weights(one) == weights(other)


def leaning(state: Any, towards: int) -> Any:
    """Weights that always choose one of two actions."""
    found = np.zeros_like(state.learner.weights)
    module("ppo").unpack(found, state.sizes).actor[-1][1][towards] = 1.0
    return found


def test_of_several_beginnings_the_one_that_rehearses_best_goes_on(tmp_path: Path) -> None:
    more: dict[str, Any] = {"env": "overnight-tests/Lever-v0", "rehearsal_episodes": 4, "auditions": 3}
    training = Training(order("ppo", 100_000, **more), tmp_path)
    state = module("ppo").State(training.order, module("ppo").parameters(training.order.params))
    begun, best = [np.asarray(state.learner.weights)], leaning(state, 1)
    for stint, towards in enumerate((0, 1, 0)):
        state.steps += 5_000 - 10  # each has a twentieth of the budget, whatever the rehearsals before it took
        assert not state.stint_is_over(training)
        state.steps += 20
        assert state.stint_is_over(training)
        state.average = leaning(state, towards)
        state.learner = state.learner._replace(weights=state.average, count=np.float32(stint))
        state.end_stint(training)
        begun.append(np.asarray(state.learner.weights))
    assert len({one.tobytes() for one in begun[:3]}) == 3, "every audition has weights of its own"
    np.testing.assert_array_equal(begun[3], best)
    assert state.learner.count == 1, "the moments of the optimiser are those of the best beginning, too"
    assert state.best == 20 and not state.stint_is_over(training)
    assert state.progress(training) == pytest.approx(training.share(state.steps)), "schedules do not begin anew"


def test_auditions_choose_how_the_first_attempt_begins_whose_steps_count_from_their_end(tmp_path: Path) -> None:
    more: dict[str, Any] = {"env": "overnight-tests/Lever-v0", "rehearsal_episodes": 4, "auditions": 2}
    training = Training(order("ppo", 100_000, attempt_steps=6_000, **more), tmp_path)
    state = module("ppo").State(training.order, module("ppo").parameters(training.order.params))
    for _ in range(2):
        state.steps += 5_000
        assert state.progress(training) == pytest.approx(training.share(state.steps)), "an audition is no attempt"
        state.end_stint(training)
    begins, attempt = state.steps, state.attempt
    state.steps = begins + 3_000
    assert state.progress(training) == pytest.approx(0.5) and not state.stint_is_over(training)
    state.steps = begins + 6_000
    assert state.stint_is_over(training) and state.attempt == attempt == 2


def test_an_audition_rehearses_at_its_end_and_not_before(tmp_path: Path) -> None:
    more: dict[str, Any] = {"env": "overnight-tests/Lever-v0", "rehearsal_episodes": 4, "auditions": 1}
    training = Training(order("ppo", 100_000, rehearsals=33, **more), tmp_path)
    state = module("ppo").State(training.order, module("ppo").parameters(training.order.params))
    state.steps, state.average = 3_500, leaning(state, 1)
    state.keep(training)
    assert not (tmp_path / "policy").exists()
    state.steps, state.average = 5_000, leaning(state, 0)
    state.end_stint(training)
    assert (state.best, state.attempt) == (0, 1)


@pytest.mark.parametrize("more", [{"auditions": 2}, {"attempt_steps": 5_000}])
def test_what_was_learnt_stays_where_the_training_is_over_while_it_rehearses(
    tmp_path: Path, more: dict[str, Any]
) -> None:
    lever: dict[str, Any] = {"env": "overnight-tests/Lever-v0", "rehearsal_episodes": 4}
    training = Training(order("ppo", 100_000, **lever, **more), tmp_path)
    state = module("ppo").State(training.order, module("ppo").parameters(training.order.params))
    state.steps, learnt = 5_000, leaning(state, 1)
    state.average, state.learner = learnt, state.learner._replace(weights=learnt)
    assert state.stint_is_over(training)
    training.stopping = True  # SIGTERM, in the middle of the rehearsal
    state.end_stint(training)
    state.offer(training)
    np.testing.assert_array_equal(state.average, learnt)
    act = architectures.load(tmp_path / "policy")
    assert act(np.zeros((3, 2), np.float32), np.ones(3, bool)).tolist() == [1, 1, 1]


def test_more_auditions_than_a_budget_holds_are_refused(trained: Trained) -> None:
    with pytest.raises(SystemExit, match="`auditions` is 20, but 10 is the most"):
        trained("many", "ppo", 2048, auditions=20)


def test_a_metered_training_begins_new_episodes_after_each_rehearsal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    training = Training(order("ppo", 100_000, env="overnight-tests/Lever-v0", rehearsal_episodes=2), tmp_path)
    state = module("ppo").State(training.order, module("ppo").parameters(training.order.params))
    made: list[tuple[int, ...]] = []
    begin = state.new_lanes

    def new_lanes() -> Any:
        made.append(tuple(state._leg_seeds()))
        return begin()

    monkeypatch.setattr(importlib.import_module("overnight.rl.course"), "is_metered", lambda: True)
    monkeypatch.setattr(state, "new_lanes", new_lanes)
    for _ in range(2):
        state.offer(training)
    assert len(made) == 2 and len({tuple(state._seeds((0,), 4)), *made}) == 3


def test_no_minibatch_has_less_than_eight_samples(trained: Trained) -> None:
    tiny = {"num_envs": 2, "rollout_steps": 16, "update_epochs": 1}
    many, four = (
        trained("many", "ppo", 256, num_minibatches=64, **tiny),
        trained("four", "ppo", 256, num_minibatches=4, **tiny),
    )
    assert weights(many) == weights(four)
    assert all(line["policy_loss"] for line in lines(many))


def test_a_training_that_goes_on_after_its_auditions_ends_as_if_it_had_never_stopped(trained: Trained) -> None:
    more: dict[str, Any] = {"env": "overnight-tests/Pick-v0", "rehearsal_episodes": 4, "auditions": 2}
    whole = trained("whole", "ppo", 16_384, checkpoints=2, **more)
    assert json.loads((whole / "checkpoint" / "facts.json").read_text())["attempt"] == 2
    gone_on = trained("gone on", "ppo", 16_384, begin=whole, checkpoints=2, **more)
    assert weights(gone_on) == weights(whole) and rehearsed(gone_on) == rehearsed(whole)


def test_where_nothing_rehearses_a_training_has_one_beginning(trained: Trained) -> None:
    one, other = trained("one", "ppo", 2048, auditions=3), trained("other", "ppo", 2048)
    assert weights(one) == weights(other)


def test_where_a_rehearsal_takes_too_long_the_first_beginning_goes_on(tmp_path: Path) -> None:
    more: dict[str, Any] = {"env": "overnight-tests/Lever-v0", "rehearsal_episodes": 32, "auditions": 3}
    training = Training(order("ppo", 4096, **more), tmp_path)
    state = module("ppo").State(training.order, module("ppo").parameters(training.order.params))
    begun, state.steps = np.asarray(state.learner.weights), 300
    assert state.stint_is_over(training)
    state.end_stint(training)  # 32 episodes of 20 steps are more than a twentieth of the budget
    np.testing.assert_array_equal(state.learner.weights, begun)
    assert not state.is_auditioning() and not state.stint_is_over(training) and state.attempt == 0


@pytest.mark.parametrize("unit", ["wall_seconds", "cpu_seconds"])
def test_in_a_budget_of_time_the_step_size_falls_with_the_time_that_is_spent(trained: Trained, unit: str) -> None:
    rates = [line["learning_rate"] for line in lines(trained("timed", "ppo", 1.5, unit=unit))]
    assert rates == sorted(rates, reverse=True)
    assert rates[0] <= 0.00025
    assert rates[-1] < 0.00025 / 2


@pytest.fixture
def dialled(trained: Trained, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[float]]:
    """Train PPO for four updates, and return what one of its dials was set to in each."""

    def train(dial: str, **params: Any) -> list[float]:
        ppo, seen = module("ppo"), []
        update = ppo.update

        def watched(learner: Any, rollout: Any, shuffles: Any, dials: dict[str, Any], *more: Any) -> Any:
            seen.append(float(dials[dial]))
            return update(learner, rollout, shuffles, dials, *more)

        with monkeypatch.context() as patched:
            patched.setattr(ppo, "update", watched)
            trained(f"{dial} {len(params)}", "ppo", 512, **params)
        return seen

    return train


def test_the_entropy_bonus_falls_to_zero_over_the_budget_where_that_is_asked_for(
    dialled: Callable[..., list[float]],
) -> None:
    assert dialled("entropy_weight", entropy_weight=0.5) == [0.5] * 4
    assert dialled("entropy_weight", entropy_weight=0.5, anneal_entropy=True) == [0.5, 0.375, 0.25, 0.125]


def test_the_discount_sees_further_late_in_the_budget_where_that_is_asked_for(
    dialled: Callable[..., list[float]],
) -> None:
    assert dialled("gamma") == [float(np.float32(0.99))] * 4
    by_hand = [10, 10 * 16 ** (1 / 64), 10 * 16 ** (1 / 8), 10 * 16 ** (27 / 64)]
    grown = dialled("gamma", gamma=0.9, horizon_growth=16.0)
    assert [1 / (1 - gamma) for gamma in grown] == pytest.approx(by_hand, rel=1e-4)


def test_the_network_that_is_kept_is_the_mean_over_a_share_of_the_updates_so_far() -> None:
    """With half of the updates: 1 / 1, 1 / 1, 2 / 3, 1 / 2 of the way to the newest weights."""
    average, averaged = np.zeros(1, np.float32), module("ppo").averaged
    seen = []
    for updates, newest in enumerate((4, 8, 2, 10), start=1):
        average = averaged(average, np.array([newest], np.float32), float(updates), 0.5)
        seen.append(float(average[0]))
    assert seen == pytest.approx([4, 8, 4, 7])
    assert averaged(average, np.array([3], np.float32), 100.0, 0.0) == [3], "without a share it is the network as it is"


def test_averaging_changes_the_policy_that_is_kept_and_nothing_of_the_training(trained: Trained) -> None:
    plain, mean = trained("plain", "ppo", 4096), trained("mean", "ppo", 4096, averaging=0.3)
    told = [[line["policy_loss"] for line in lines(out) if "policy_loss" in line] for out in (plain, mean)]
    assert told[0] == told[1]
    assert weights(plain) != weights(mean)


def test_the_mean_of_the_network_goes_on_after_a_kill_as_if_nothing_had_happened(trained: Trained) -> None:
    whole = trained("whole", "ppo", 4096, averaging=0.3, checkpoints=2)
    gone_on = trained("gone on", "ppo", 4096, begin=whole, averaging=0.3, checkpoints=2)
    assert weights(gone_on) == weights(whole) != weights(trained("last", "ppo", 4096, checkpoints=2))


@pytest.mark.parametrize(("trainer", "env"), [("sac", "CartPole-v1"), ("dqn", "Pendulum-v1")])
def test_a_trainer_says_which_actions_it_cannot_learn(trained: Trained, trainer: str, env: str) -> None:
    with pytest.raises(Exception, match=f"{env}: {trainer} needs"):
        trained("wrong", trainer, 64, env=env)


@pytest.mark.parametrize("trainer", ["sac", "dqn"])
def test_a_lap_of_many_updates_ends_with_the_training(
    trained: Trained, trainer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    updates, made = module(trainer).update, []

    def stop_after_two(*told: Any) -> Any:
        made.append(told)
        if len(made) == 2:
            signal.raise_signal(signal.SIGTERM)
        return updates(*told)

    monkeypatch.setattr(module(trainer), "update", stop_after_two)
    trained("long", trainer, 4096, updates_per_step=8.0, lap_steps=64, num_envs=8, random_steps=0)
    assert len(made) == 2, "one lap has 4,096 updates, in 16 rounds"


def test_where_a_lap_earns_less_than_one_update_every_so_many_laps_have_one(
    trained: Trained, monkeypatch: pytest.MonkeyPatch
) -> None:
    updates, made = module("dqn").update, []

    def counted(*told: Any) -> Any:
        made.append(told)
        return updates(*told)

    monkeypatch.setattr(module("dqn"), "update", counted)
    trained("seldom", "dqn", 320, updates_per_step=0.0625, lap_steps=1, num_envs=1, random_steps=0)
    assert len(made) == 320 / 16


def test_ppo_learns_to_choose_from_two_lists_at_once(trained: Trained) -> None:
    params = {"learning_rate": 0.003, "num_envs": 8, "update_epochs": 8, "normalize_observations": False}
    out = trained("lists", "ppo", 8192, env="overnight-tests/Pick-v0", **params)
    act = architectures.load(out / "policy")
    shown = np.array([[i, j] for i in range(2) for j in range(3)])
    assert (act(shown, np.zeros(6, bool)) == shown).mean() > 0.9


def test_sac_exports_the_mode_of_its_policy_within_the_bounds(trained: Trained) -> None:
    jnp, sac = jax.numpy, module("sac")
    out = trained("sac", "sac", 192, checkpoints=2)
    asked = order("sac", 192, checkpoints=2)
    state = sac.State(asked, sac.parameters(asked.params))
    state.begin(Training(asked, out))
    state.save(out / "policy")
    observations = 3 * np.random.default_rng(0).standard_normal((50, 3)).astype(np.float32)
    mean = mlp(state.actor, jnp.asarray(state.player.normaliser()(observations)), jax.nn.relu)[:, :1]
    found = architectures.load(out / "policy")(observations, np.zeros(50, bool))
    np.testing.assert_allclose(found, 2 * jnp.tanh(mean), atol=1e-5)
    assert np.abs(found).max() <= 2


@pytest.mark.parametrize("device", ["tpu", "cpu:7", "cuda:zero"])
def test_a_device_that_is_asked_for_and_missing_ends_the_process_with_a_sentence(device: str) -> None:
    prepare_device(order("ppo", 1))
    wanted = Order("r-0001", order("ppo", 1).env, 1, Budget("env_steps", 1), {}, 1, device, None)
    with pytest.raises(SystemExit, match=f"device: `{device}` is asked for, but JAX finds only cpu here"):
        prepare_device(wanted)


def test_the_shares_of_a_lap_are_those_of_its_wall_time(monkeypatch: pytest.MonkeyPatch) -> None:
    wall, cpu = iter([0.0, 2.0, 5.0, 10.0, 10.0]), iter([0.0, 6.0, 6.0])
    monkeypatch.setattr("time.perf_counter", lambda: next(wall))
    monkeypatch.setattr("time.process_time", lambda: next(cpu))
    watch = Stopwatch(cores=1)
    with watch.learning():
        pass
    watch.environment += 4.0
    # 500 steps in 10 s, of which 4 in the environments and 3 in the learner; the core was ours for 6.
    assert watch.lap(500) == pytest.approx((50.0, 0.4, 0.3, 0.4))
