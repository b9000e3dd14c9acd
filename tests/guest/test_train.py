"""The training side of the guest contract: the order, the budget, the reports and the policy."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from overnight.guest import train
from overnight.guest.train import Budget, Env, Order, Training, load, write_tensors
from overnight.records.codec import decode, dumps
from overnight.records.order import RunOrder

GUEST = Path(train.__file__).parent
ORDER = {
    "run": "r-0001",
    "env": {"backend": "gymnasium", "id": "CartPole-v1", "kwargs": {"sutton_barto_reward": True}},
    "train_seed": 7,
    "budget": {"unit": "env_steps", "amount": 1000},
    "params": {"learning_rate": 0.001},
    "cores": 2,
    "device": "cpu",
}


@pytest.fixture(autouse=True)
def _handler_comes_back() -> Iterator[None]:
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


class Clock:
    """Both clocks that the budget reads, in a test's own hands."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.wall = self.cpu = 0.0
        clocks = SimpleNamespace(monotonic=lambda: self.wall, process_time=lambda: self.cpu)
        monkeypatch.setattr(train, "time", clocks)


def training(out: Path, unit: str = "env_steps", amount: float = 1000) -> Training:
    env = Env("gymnasium", "CartPole-v1", {}, None, clip_actions=True)
    return Training(Order("r-0001", env, 7, Budget(unit, amount), {}, 1, "cpu", None), out)


def write_order(folder: Path, monkeypatch: pytest.MonkeyPatch, text: bytes) -> None:
    (folder / "run.json").write_bytes(text)
    monkeypatch.setenv("OVERNIGHT_RUN", str(folder / "run.json"))


def test_an_order_that_the_engine_writes_is_the_order_that_the_trainer_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_order(tmp_path, monkeypatch, dumps(decode(RunOrder, ORDER, where="order")))
    order = load()
    assert (order.run, order.train_seed, order.cores, order.device) == ("r-0001", 7, 2, "cpu")
    assert order.env == Env("gymnasium", "CartPole-v1", {"sutton_barto_reward": True}, None, clip_actions=True)
    assert order.budget == Budget("env_steps", 1000)
    assert order.params == {"learning_rate": 0.001}
    assert order.compile_cache is None


@pytest.mark.parametrize(
    ("text", "says"),
    [
        pytest.param(b"{", "is not a run order", id="not JSON"),
        pytest.param(b"[]", "is not a run order", id="not a mapping"),
        pytest.param(b'{"schema": "overnight/run-order/9"}', "'overnight/run-order/1' is needed", id="a newer schema"),
        pytest.param(b'{"schema": "overnight/run-order/1"}', "KeyError: 'run'", id="a key is missing"),
    ],
)
def test_an_order_that_cannot_be_read_ends_the_process_with_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: bytes, says: str
) -> None:
    write_order(tmp_path, monkeypatch, text)
    with pytest.raises(SystemExit, match=says):
        load()


def test_a_program_that_overnight_did_not_start_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OVERNIGHT_RUN", raising=False)
    with pytest.raises(SystemExit, match="OVERNIGHT_RUN is not set"):
        load()


def test_a_budget_of_steps_is_spent_by_steps_alone(tmp_path: Path) -> None:
    run = training(tmp_path, amount=1000)
    assert [run.share(steps) for steps in (0, 250, 1000, 5000)] == [0.0, 0.25, 1.0, 1.0]
    assert not run.spent(999)
    assert run.spent(1000)


def test_the_last_lap_of_a_budget_of_steps_fits_exactly_or_is_not_run(tmp_path: Path) -> None:
    run = training(tmp_path, amount=1000)
    assert run.has_room(500, 500)
    assert not run.has_room(500, 501)
    assert not run.has_room(1000, 1)


@pytest.mark.parametrize("unit", ["cpu_seconds", "wall_seconds"])
def test_a_budget_of_time_starts_when_the_training_is_ready(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unit: str
) -> None:
    clock = Clock(monkeypatch)
    run = training(tmp_path, unit, 10)
    clock.wall = clock.cpu = 100.0
    run.ready()
    clock.wall = clock.cpu = 104.0
    assert run.share(123_456) == pytest.approx(0.4)
    assert (tmp_path / "ready").read_bytes() == b""


def test_without_ready_the_processor_time_counts_from_the_start_of_the_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock(monkeypatch)
    clock.cpu = 5.0
    assert training(tmp_path, "cpu_seconds", 10).share(0) == pytest.approx(0.5)


def test_in_a_budget_of_time_the_next_lap_is_taken_to_be_as_long_as_the_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock(monkeypatch)
    run = training(tmp_path, "wall_seconds", 10)
    run.ready()
    answers = []
    for clock.wall in (0.0, 6.0, 8.0, 9.5):
        answers.append(run.has_room(0, 1))
    assert answers == [True, True, True, False]  # the first lap compiles, and says nothing about the second


def test_sigterm_means_finish(tmp_path: Path) -> None:
    run = training(tmp_path)
    assert not run.spent(0)
    os.kill(os.getpid(), signal.SIGTERM)
    assert run.stopping
    assert run.spent(0)
    assert not run.has_room(0, 1)


def test_a_report_is_one_line_and_a_number_that_is_not_finite_is_null(tmp_path: Path) -> None:
    run = training(tmp_path)
    run.report(128, episodic_return=21.5, value_loss=float("nan"), entropy=float("inf"))
    run.report(256, episodic_return=3)
    first, second = (json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines())
    assert first.pop("wall_seconds") >= 0
    assert first == {"env_steps": 128, "episodic_return": 21.5, "value_loss": None, "entropy": None}
    assert second["episodic_return"] == 3


def test_a_new_policy_takes_the_place_of_the_old_one_and_leaves_nothing_else(tmp_path: Path) -> None:
    run = training(tmp_path)
    run.save_policy(lambda folder: (folder / "old.txt").touch())
    run.save_policy(lambda folder: (folder / "new.txt").touch())
    assert [path.relative_to(tmp_path).as_posix() for path in sorted(tmp_path.rglob("*"))] == [
        "policy",
        "policy/new.txt",
    ]


def test_a_policy_that_cannot_be_written_leaves_the_old_one(tmp_path: Path) -> None:
    run = training(tmp_path)
    run.save_policy(lambda folder: (folder / "old.txt").touch())

    def fail(folder: Path) -> None:
        (folder / "half.txt").touch()
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="the disk is full"):
        run.save_policy(fail)
    assert [path.name for path in sorted(tmp_path.rglob("*"))] == ["policy", "old.txt"]


def test_a_training_begins_without_a_checkpoint_and_goes_on_from_the_last_one(tmp_path: Path) -> None:
    one = training(tmp_path)
    assert one.checkpoint() is None
    one.save_checkpoint(lambda folder: (folder / "first").touch())
    one.save_checkpoint(lambda folder: (folder / "second").touch())
    found = one.checkpoint()
    assert found is not None
    assert [path.name for path in found.iterdir()] == ["second"]
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint"]


def test_a_training_that_goes_on_has_spent_what_was_spent_and_drops_what_it_will_report_again(
    tmp_path: Path,
) -> None:
    first = training(tmp_path)
    for steps in (100, 200, 300):
        first.report(steps, loss=1.0)
    with (tmp_path / "metrics.jsonl").open("a") as file:
        file.write('{"env_steps": 4')  # it was killed while it wrote
    second = training(tmp_path, unit="wall_seconds", amount=1000)
    second.ready()
    second.resume(200, wall_seconds=250.0, cpu_seconds=40.0)
    assert 0.25 <= second.share(0) < 0.27
    assert 40 <= second.cpu_seconds() < 50
    second.report(300, loss=2.0)
    lines = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert [(line["env_steps"], line["loss"]) for line in lines] == [(100, 1.0), (200, 1.0), (300, 2.0)]
    assert lines[-1]["wall_seconds"] >= 250


def test_a_tensor_whose_bytes_do_not_fill_its_shape_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"`w` has 4 bytes, but its shape \[2\] of F32 needs 8"):
        write_tensors(tmp_path / "x", {"w": ("F32", [2], bytes(4))})


def test_the_thread_limits_are_set_before_anything_is_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "XLA_FLAGS"):
        monkeypatch.setenv(name, "")
    train.limit_threads(1)
    assert os.environ["OMP_NUM_THREADS"] == os.environ["OPENBLAS_NUM_THREADS"] == "1"
    assert os.environ["XLA_FLAGS"] == "--xla_cpu_multi_thread_eigen=false"


def test_a_copied_folder_works_where_overnight_is_not_installed(tmp_path: Path) -> None:
    shutil.copytree(GUEST, tmp_path / "guest", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "run.json").write_bytes(dumps(decode(RunOrder, ORDER, where="order")))
    lines = (
        "import sys",
        f"sys.path.insert(0, {str(tmp_path)!r})",
        "from guest.train import Training, load",
        "run = Training(load())",
        "run.ready(); run.report(1, loss=0.5); run.save_policy(lambda folder: (folder / 'policy.json').touch())",
        "strangers = {name.split('.')[0] for name in sys.modules} - set(sys.stdlib_module_names) - {'guest'}",
        "assert not {name for name in strangers if not name.startswith('_')}, strangers",
    )
    env = {"OVERNIGHT_RUN": str(tmp_path / "run.json"), "OVERNIGHT_OUT": str(tmp_path)}
    subprocess.run([sys.executable, "-I", "-S", "-c", "\n".join(lines)], env=env, check=True)
    assert (tmp_path / "policy" / "policy.json").exists()
    assert (tmp_path / "metrics.jsonl").exists()
