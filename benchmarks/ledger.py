"""Measure the ledger and the command line on this machine: `make bench`.

Prints one line a figure, with the promise beside it. Figures are medians or the best of a few
tries, because other work on the machine only ever makes them worse.
"""

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

import long_ledger  # noqa: E402
from overnight.machine import RealMachine  # noqa: E402
from overnight.records.lifecycle import Actor  # noqa: E402
from overnight.study.fold import Fold  # noqa: E402
from overnight.study.layout import Root  # noqa: E402
from overnight.study.ledger import Ledger, read_sound  # noqa: E402
from overnight.study.study import Study, read_state  # noqa: E402

MACHINE = RealMachine()


def seconds(work: Callable[[], object], times: int) -> list[float]:
    """How long some work took, each time."""
    spent = []
    for _ in range(times):
        began = time.perf_counter()
        work()
        spent.append(time.perf_counter() - began)
    return spent


def tell(what: str, figure: float, promise: str) -> None:
    """One line."""
    sys.stdout.write(f"{what:<52} {figure * 1000:>10.2f} ms   promised: {promise}\n")


def main() -> None:
    """Measure everything."""
    with tempfile.TemporaryDirectory(dir=ROOT) as scratch:
        at = Root(Path(scratch) / ".overnight").task("cartpole").study("first")
        with_ledger = Path(scratch) / "append"
        with_ledger.mkdir()
        with Ledger.open(MACHINE, with_ledger, holder="bench") as ledger:
            spent = seconds(lambda: ledger.append(Actor.ENGINE, "noted", {"says": "x" * 250}), 1000)
        tell("durable append, anchored, median", statistics.median(spent), "under 1 ms")
        tell("durable append, anchored, 99th percentile", statistics.quantiles(spent, n=100)[98], "none")
        long_ledger.write(at.folder, 100_000)

        def verify() -> None:
            entries = Fold()
            entries.state(read_sound(MACHINE, at.folder, entries), where="ledger")

        tell("100,000 entries: verify and fold everything", min(seconds(verify, 3)), "under 3 s")
        with Study.open(MACHINE, at, doing="bench"):
            pass
        tell("100,000 entries: fold for `status`", min(seconds(lambda: read_state(MACHINE, at), 3)), "under 1 s")
    command = [sys.executable, "-m", "overnight.cli.main", "--help"]
    spent = seconds(lambda: subprocess.run(command, stdout=subprocess.DEVNULL, check=True), 10)
    tell("overnight --help, median of 10", statistics.median(spent), "under 300 ms")


if __name__ == "__main__":
    main()
